"""A study's folder: results in Zarr, chunk by chunk, and what is done.

    study.json      what was asked, and by which psiphi: another study does not go on here
    data.zarr       final_q, final_v, cause, joint, time, and q, v of samples: a row a motion, chunks as they were computed
    done/000017     chunk 17 is written: its marker comes into being at once, after its numbers

Whatever moment a process is killed at, a chunk has its marker, and is whole, or is computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.extras import import_optional, installed_version
from psiphi._util.text import count_of, shown
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.backends import kernel_cache

SPEC, DATA, DONE = "study.json", "data.zarr", "done"
EXTRA = "psiphi[cluster]"
UNWRITTEN = {
    "f8": np.nan,
    "u1": 255,
    "i4": -2,
}  # what Zarr answers where a file is gone: no number of a motion
AGAIN = "remove the folder, and run the study again"


class StudyStore:
    """What is in a study's folder."""

    def __init__(self, folder: Path, asked: StudyConfig):
        self.folder, self.asked = folder, asked
        self.group: Any = None

    @property
    def arrays(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The rows of a motion, by name: shape and type."""
        robot, rows = self.asked.robot, self.asked.samples
        sizes: dict[str, tuple[tuple[int, ...], str]] = {
            "final_q": ((robot.nq,), "f8"),
            "final_v": ((robot.nv,), "f8"),
        }
        sizes |= {"cause": ((), "u1"), "joint": ((), "i4"), "time": ((), "f8")}
        return sizes | (
            {"q": ((rows, robot.nq), "f8"), "v": ((rows, robot.nv), "f8")} if rows else {}
        )

    def begin(self) -> None:
        """Make the folder, or look whether it is this study's."""
        zarr = import_optional("zarr", "a study", EXTRA)
        mine, file = self._spec(), self.folder / SPEC
        with self._told("cannot keep a study in", "give another folder"):
            (self.folder / DONE).mkdir(parents=True, exist_ok=True)
            if file.exists():
                self._check_same(json.loads(file.read_text(encoding="utf-8")), mine)
            else:
                if any((self.folder / DONE).iterdir()):
                    raise Error(f"{self.folder} has results and no {SPEC}", "give another folder")
                put(file, json.dumps(mine, indent=1).encode())
            self.group = zarr.open_group(str(self.folder / DATA), mode="a")
            for name, (shape, kind) in self.arrays.items():
                if name not in self.group:
                    if self.done:
                        raise Error(
                            f"{self.folder} has marks of chunks that are done, and no {DATA}/{name}",
                            AGAIN,
                        )
                    whole, blocks = (self.asked.motions, *shape), (self.asked.chunk, *shape)
                    more = {"compressors": None, "fill_value": UNWRITTEN[kind]}
                    self.group.create_array(name, shape=whole, chunks=blocks, dtype=kind, **more)

    def open(self) -> None:
        """Look at what is there; nothing is made."""
        zarr, file = import_optional("zarr", "a study", EXTRA), self.folder / SPEC
        if not file.is_file():
            raise Error(
                f"there is no study in {shown(str(self.folder))}", "psiphi study run FILE makes one"
            )
        with self._told("cannot read", "run the study again, in another folder"):
            self._check_same(json.loads(file.read_text(encoding="utf-8")), self._spec(), code=False)
            self.group = zarr.open_group(str(self.folder / DATA), mode="r")

    @contextmanager
    def _told(self, what: str, remedy: str) -> Iterator[None]:
        """What the system, or what stands there, says against it, in words."""
        try:
            yield
        except (OSError, json.JSONDecodeError) as error:
            why = getattr(error, "strerror", None) or f"{SPEC} is broken: {error}"
            raise Error(f"{what} {shown(str(self.folder))}: {why}", remedy) from error

    def write(self, chunk: int, rows: dict[str, np.ndarray]) -> None:
        """A chunk's numbers, then its marker."""
        start = chunk * self.asked.chunk
        for name in self.arrays:
            self.group[name][start : start + len(rows[name])] = rows[name]
        put(self.folder / DONE / f"{chunk:06d}", b"")

    @property
    def done(self) -> list[int]:
        """The chunks that are whole."""
        try:
            names = [entry.name for entry in os.scandir(self.folder / DONE)]
        except OSError:  # nothing there, or nothing that can be read: `begin` finds the words
            return []
        return sorted(
            int(name) for name in names if name.isdecimal() and int(name) < self.asked.chunks
        )

    @property
    def motions(self) -> int:
        """How many motions are done."""
        return sum(len(self.asked.numbers(chunk)) for chunk in self.done)

    def read(self, name: str) -> np.ndarray:
        """All rows of one name: of a study that is finished, and whose numbers are still there."""
        self.check_finished()
        rows, cause = (np.asarray(self.group[x][:]) for x in (name, "cause"))
        lost = cause == UNWRITTEN["u1"]
        if name in ("final_q", "final_v"):
            lost |= np.isnan(rows).any(axis=-1) & (cause == 0)
        if lost.any():
            many, first = count_of(int(lost.sum()), "motion"), int(lost.argmax())
            raise Error(f"{self.folder}: the numbers of {many} are gone, {first} the first", AGAIN)
        return rows

    def check_finished(self) -> None:
        if len(self.done) < self.asked.chunks:
            cause = f"{self.motions} of {self.asked.motions} motions are done"
            raise StateError(
                f"the study is not finished: {cause}", "run it again: it goes on where it was"
            )

    def _spec(self) -> dict[str, Any]:
        return {
            "asked": self.asked.spec,
            "psiphi": installed_version("psiphi", "0"),
            "code": code_key(),
        }

    def _check_same(self, theirs: Any, mine: dict[str, Any], code: bool = True) -> None:
        old = theirs.get("asked", {}) if isinstance(theirs, dict) else {}
        for key in sorted({*old, *mine["asked"]}):
            if old.get(key) != mine["asked"].get(key):
                cause = f"{self.folder} holds another study: {key} is {shown(old.get(key))} there"
                raise Error(
                    f"{cause}, and {shown(mine['asked'].get(key))} here",
                    "give another folder, or remove that one",
                )
        if code and theirs.get("code") != mine["code"]:
            cause = f"{self.folder} was begun by another psiphi ({theirs.get('psiphi')}), whose last bits may differ"
            raise Error(cause, "finish it with that one, or give another folder")


def code_key() -> str:
    """What the last bits of a motion depend on, besides the processor."""
    return kernel_cache.kernel_key()[:16]


def put(file: Path, data: bytes) -> None:
    """A file that is there whole, or not at all."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    with open(new, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, file)
