"""`pp.study("study.toml")`, or `pp.study(robot, motions=..., vary={...})`."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import flag
from psiphi.apps.studies.chunks import Chunk
from psiphi.apps.studies.study_config import StudyConfig, StudySource, read_study
from psiphi.apps.studies.study_result import Study, folder_path
from psiphi.apps.studies.workers import compute_chunks
from psiphi.apps.studies.zarr_store import StudyStore
from psiphi.backends.cuda import driver_bindings
from psiphi.simulation.simulate.progress_bar import ProgressBar


def study(
    source: StudySource,
    out: str | os.PathLike[str] | None = None,
    *,
    scheduler: object = None,
    cards: bool = False,
    progress: bool | None = None,
    **keys: object,
) -> Study:
    """Run or resume a study: many motions of one system with varied parameters, stored in `out`.

    `source` is a TOML file, a dict of its keys, or a robot or system; keyword arguments are further
    keys (docs/studies.md lists them). `out` is a folder; the default is "NAME.study" for
    "NAME.toml", and a temporary folder if `source` is not a file. The study runs on all threads of
    this process, or on the Dask cluster `scheduler`, an address or a Client. With `cards=True` it
    runs on the GPUs of this machine or of the workers. A terminal or a notebook shows a progress
    bar; with `progress=True` a log gets ten lines, and with `progress=False` nothing is shown.
    Control-C stops the study within a second; the same call resumes it.

    >>> import psiphi as pp
    >>> mass = {"uniform": [0.8, 1.2], "relative": True}
    >>> robot = pp.load("acrobot")
    >>> study = pp.study(robot, motions=100, seed=1, duration=0.1, vary={"mass": mass})
    >>> study.final.q.shape, study.quantiles([0.5]).q.shape, study.failures
    ((100, 2), (1, 2), [])
    >>> bool((study.motion(7).final.q == study.final.q[7]).all())
    True
    """
    config = read_study(source, keys)
    progress = None if progress is None else flag("progress", progress)
    use_gpus, temporary = flag("cards", cards), None
    if out is not None:
        folder = folder_path(out)
    elif isinstance(source, str | os.PathLike):
        folder = default_folder(source)
    else:
        temporary = tempfile.TemporaryDirectory(prefix="psiphi-study-", ignore_cleanup_errors=True)
        folder = Path(temporary.name)
    store = StudyStore(folder, config)
    try:
        run(config, store, scheduler, progress, use_gpus)
    except KeyboardInterrupt:
        if temporary is None:
            raise
        count = f"{store.motions} of {config.motions} motions"
        text = f"the study was interrupted after {count}, which are not kept; out= keeps them"
        raise KeyboardInterrupt(text) from None
    return Study(config, store, temporary)


def default_folder(source: str | os.PathLike[str]) -> Path:
    """The folder "falls.study" in the current directory, for the file "falls.toml"."""
    return Path(f"{Path(os.fsdecode(source)).stem}.study")


def run(
    config: StudyConfig,
    store: StudyStore,
    scheduler: object = None,
    progress: bool | None = None,
    use_gpus: bool = False,
) -> None:
    """Compute and store all chunks that are not done.

    A KeyboardInterrupt says how many motions are stored.
    """
    try:
        _run(config, store, scheduler, progress, use_gpus)
    except KeyboardInterrupt:
        count = f"{store.motions} of {config.motions} motions"
        text = f"{count} are stored in {store.folder}; the same command resumes"
        raise KeyboardInterrupt(text) from None


def _run(
    config: StudyConfig,
    store: StudyStore,
    scheduler: object,
    progress: bool | None,
    use_gpus: bool,
) -> None:
    chunk, done = Chunk(config, use_gpus), set(store.done)
    if use_gpus and scheduler is None and not driver_bindings.driver().count:
        raise StateError(
            "cards is True, but the driver finds no GPU",
            "omit cards; psiphi info --gpu prints details",
        )
    if len(done) < config.chunks:
        chunk.run(np.arange(1))  # compiles the kernels; raises errors before anything is written
    store.open_or_create()
    if len(done) == config.chunks:
        return
    missing = (number for number in range(config.chunks) if number not in done)
    before = count = store.motions
    unused = np.empty(0)  # q and v, which this bar does not show
    with CountingBar(config.motions, before, always=bool(progress)) as bar:

        def show() -> None:
            if progress is not False:
                bar(count, unused, unused)

        show()
        with closing(compute_chunks(chunk, missing, scheduler, show)) as results:
            for number, rows in results:
                store.write(number, rows)
                count += len(config.numbers(number))
                show()


class CountingBar(ProgressBar):
    """A progress bar with the number of motions, the rate and the remaining time."""

    def __init__(self, motions: int, before: int, always: bool = False):
        super().__init__(motions, always=always)
        self.before = before

    def _line(self, part: float, t: float, v: object) -> str:
        rate, counts = self._rate(t - self.before), f"{self._bar(part)}  {t:.0f} motions"
        if not rate:  # the first chunk is not finished
            return counts
        minutes, seconds = divmod(int((self.duration - t) / rate), 60)
        return f"{counts}  {rate:.3g} per second  {minutes}:{seconds:02d} left"
