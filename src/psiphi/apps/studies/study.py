"""The door: `pp.study("study.toml")`, or `pp.study(robot, motions=..., vary={...})`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import flag
from psiphi.apps.studies.chunks import Chunk
from psiphi.apps.studies.study_config import StudyConfig, read_study
from psiphi.apps.studies.study_result import Study, a_folder
from psiphi.apps.studies.workers import computed
from psiphi.apps.studies.zarr_store import StudyStore
from psiphi.backends.cuda import cuda_driver
from psiphi.simulation.simulate.progress_bar import ProgressBar


def study(
    source: Any,
    out: Any = None,
    *,
    scheduler: Any = None,
    cards: Any = False,
    progress: Any = False,
    **keys: Any,
) -> Study:
    """Many motions of one system, each with numbers of its own: run, or gone on with where it was, and kept in `out`.

    `source` is a TOML file, a dict of its keys, or a robot or system, with the keys as arguments (docs/studies.md lists them).
    `out` is a folder ("NAME.study" of "NAME.toml"; a temporary one where there is no file). It runs on all threads of this
    process, or on the Dask cluster whose address or Client `scheduler` is; with `cards` on graphics cards, those of this
    machine, or of the workers that have one.

    >>> import psiphi as pp
    >>> masses = {"uniform": [0.8, 1.2], "relative": True}
    >>> found = pp.study(pp.load("acrobot"), motions=100, seed=1, duration=0.1, vary={"mass": masses})
    >>> found.final.q.shape, found.quantiles([0.5]).q.shape, found.failures
    ((100, 2), (1, 2), [])
    >>> bool((found.motion(7).final.q == found.final.q[7]).all())
    True
    """
    asked = read_study(source, keys)
    shown, own, cards = flag("progress", progress), None, flag("cards", cards)
    if out is None and not isinstance(source, str | os.PathLike):
        own = tempfile.TemporaryDirectory(prefix="psiphi-study-", ignore_cleanup_errors=True)
        out = own.name
    kept = StudyStore(default_folder(source) if out is None else a_folder(out), asked)
    run(asked, kept, scheduler, shown, cards)
    return Study(asked, kept, own)


def default_folder(source: Any) -> Path:
    """Of "falls.toml" the folder "falls.study", where one works."""
    return Path(f"{Path(os.fsdecode(source)).stem}.study")


def run(
    asked: StudyConfig,
    kept: StudyStore,
    scheduler: Any = None,
    progress: bool = False,
    cards: bool = False,
) -> None:
    """All chunks that are not there yet."""
    chunk, done = Chunk(asked, cards), set(kept.done)
    if cards and scheduler is None and not cuda_driver.driver().count:
        raise StateError(
            "cards is True, and the driver sees no graphics card",
            "leave it out; psiphi info --gpu tells more",
        )
    if len(done) < asked.chunks:
        chunk.run(
            np.arange(1)
        )  # what cannot run is said before anything is made; the kernels are in the cache
    kept.begin()
    if len(done) == asked.chunks:
        return
    wanted = (number for number in range(asked.chunks) if number not in done)
    before = count = kept.motions
    with CountingBar(asked.motions, before, always=progress) as bar:
        for number, rows in computed(chunk, wanted, scheduler):
            kept.write(number, rows)
            count += len(asked.numbers(number))
            if progress:
                bar(count, None, None)


class CountingBar(ProgressBar):
    """How many motions are done, how fast, and how long it takes still."""

    def __init__(self, motions: int, before: int, always: bool = False):
        super().__init__(motions, always=always)
        self.before = before

    def _line(self, part: float, t: float, v: Any) -> str:
        rate = self._rate(t - self.before)
        left = (self.duration - t) / rate if rate else 0.0
        return f"{self._drawn(part)}  {t:.0f} motions  {rate:.3g} a second  {int(left) // 60}:{int(left) % 60:02d} left"
