"""Many motions with numbers of their own: `pp.study`.

In: a table of what varies. Out: a `Study`, on disk. Read `study.py` first.

    chunks.py               The motions of one chunk, computed
    distributions.py        How a number varies from motion to motion
    motion_inputs.py        From the numbers of motions to what `pp.rollout` takes
    parameter_variation.py  What varies from motion to motion
    philox.py               Random numbers by their place
    study.py                The door
    study_config.py         What is asked of a study, read from TOML or from the same keys in
                            Python
    study_report.py         A study's report
    study_result.py         What `pp.study` gives
    workers.py              Who computes the chunks
    zarr_store.py           A study's folder
"""
