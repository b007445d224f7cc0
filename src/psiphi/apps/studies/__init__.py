"""Monte-Carlo studies: many motions with varied parameters, `pp.study`.

In: a TOML file or keyword arguments. Out: a `Study`, stored on disk. Read `study.py` first.

    study.py                `pp.study`: runs or resumes a study
    study_config.py         The configuration, read from TOML or from the same keys in Python
    parameter_variation.py  Which parameters vary: the table [vary]
    distributions.py        How a parameter varies: uniform, normal, choice, grid
    study_sensors.py        What is measured: the tables [sensors.NAME]
    motion_inputs.py        From motion numbers to the arguments of `pp.rollout`
    chunks.py               Computes the motions of one chunk
    workers.py              Runs the chunks in this process or on a Dask cluster
    zarr_store.py           The folder of a study: Zarr arrays and markers
    study_result.py         `Study`: final states, samples, failures, single motions
    study_report.py         The HTML report of a study
"""
