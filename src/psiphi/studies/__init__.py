"""Studies: thousands or millions of motions of one system, each with numbers of its own, kept and gone on with.

Comes in: a TOML file, or its keys in Python. Goes out: a `Study`, whose numbers are in Zarr. Read `study.py` first (the door).

    asked.py           what is asked: the keys of the file; varied.py: what varies; distributions.py: how
    counters.py        random numbers by the seed and a motion's number alone
    starting.py        from the numbers of motions to states, parameters and controllers
    chunks.py          the motions of a chunk, and which of them failed
    kept.py            the folder: Zarr, markers of what is done, what a study is known by
    workers.py         this process, or a Dask cluster
    outcome.py         what one asks of a finished study; study_page.py: its report, a page
"""

from psiphi.studies.outcome import States, Study, StudyFailure
from psiphi.studies.study import study

__all__ = ["States", "Study", "StudyFailure", "study"]
