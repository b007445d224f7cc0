"""The folder of a study: results in Zarr, written chunk by chunk, and markers of finished chunks.

    study.json      the configuration and the version of psiphi; another study is rejected
    data.zarr       final_q, final_v, cause, joint, time, and samples q, v: one row per motion;
                    every chunk has a check sum (CRC-32C), which is compared when it is read
    done/000017     chunk 17 is complete; the marker is created atomically after its data

If the process is killed at any time, a chunk either has its marker and is complete, or is computed
again.
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
FILL_VALUES = {
    "f8": np.nan,
    "u1": 255,
    "i4": -2,
}  # what Zarr returns for a missing file; no motion has these values
RERUN = "delete the folder and run the study again"


class StudyStore:
    """The folder of a study."""

    def __init__(self, folder: Path, config: StudyConfig):
        self.folder, self.config = folder, config
        self.group: Any = None

    @property
    def arrays(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and type of one motion's row in each array, by name."""
        robot, rows = self.config.robot, self.config.samples
        sizes: dict[str, tuple[tuple[int, ...], str]] = {
            "final_q": ((robot.nq,), "f8"),
            "final_v": ((robot.nv,), "f8"),
        }
        sizes |= {"cause": ((), "u1"), "joint": ((), "i4"), "time": ((), "f8")}
        sizes |= {x.array: (x.shape, "f8") for x in self.config.sensors}
        return sizes | (
            {"q": ((rows, robot.nq), "f8"), "v": ((rows, robot.nv), "f8")} if rows else {}
        )

    def open_or_create(self) -> None:
        """Create the folder, or check that it belongs to this study."""
        zarr = import_optional("zarr", "a study", EXTRA)
        spec, file = self._spec(), self.folder / SPEC
        with self._reporting("cannot store a study in", "use another folder"):
            (self.folder / DONE).mkdir(parents=True, exist_ok=True)
            if file.exists():
                self._check_same(json.loads(file.read_text(encoding="utf-8")), spec)
            else:
                if any((self.folder / DONE).iterdir()):
                    raise Error(f"{self.folder} has results but no {SPEC}", "use another folder")
                write_atomic(file, json.dumps(spec, indent=1).encode())
            self.group = zarr.open_group(str(self.folder / DATA), mode="a")
            check_sum = zarr.codecs.Crc32cCodec()
            for name, (shape, kind) in self.arrays.items():
                if name not in self.group:
                    if self.done:
                        raise Error(
                            f"{self.folder} has markers of finished chunks but no {DATA}/{name}",
                            RERUN,
                        )
                    self.group.create_array(
                        name,
                        shape=(self.config.motions, *shape),
                        chunks=(self.config.chunk, *shape),
                        dtype=kind,
                        compressors=[check_sum],
                        fill_value=FILL_VALUES[kind],
                    )

    def open(self) -> None:
        """Open an existing folder for reading."""
        zarr, file = import_optional("zarr", "a study", EXTRA), self.folder / SPEC
        if not file.is_file():
            raise Error(
                f"there is no study in {shown(str(self.folder))}",
                "create one: psiphi study run FILE",
            )
        with self._reporting("cannot read", "run the study again in another folder"):
            self._check_same(
                json.loads(file.read_text(encoding="utf-8")), self._spec(), check_code=False
            )
            self.group = zarr.open_group(str(self.folder / DATA), mode="r")

    @contextmanager
    def _reporting(self, what: str, remedy: str) -> Iterator[None]:
        """Raise operating system errors and invalid JSON as an Error."""
        try:
            yield
        except (OSError, json.JSONDecodeError) as error:
            reason = getattr(error, "strerror", None) or f"{SPEC} is invalid: {error}"
            raise Error(f"{what} {shown(str(self.folder))}: {reason}", remedy) from error

    def write(self, chunk: int, rows: dict[str, np.ndarray]) -> None:
        """Write the rows of a chunk, then its marker."""
        start = chunk * self.config.chunk
        remedy = (
            "the chunks in its folder done are complete: free space, and run the study again to "
            "compute the others"
        )
        with self._reporting(f"chunk {chunk} cannot be written to", remedy):
            for name in self.arrays:
                self.group[name][start : start + len(rows[name])] = rows[name]
            write_atomic(self.folder / DONE / f"{chunk:06d}", b"")

    @property
    def done(self) -> list[int]:
        """The complete chunks."""
        try:
            names = [entry.name for entry in os.scandir(self.folder / DONE)]
        except OSError:  # missing or unreadable: `open_or_create` raises the error
            return []
        return sorted(
            int(name) for name in names if name.isdecimal() and int(name) < self.config.chunks
        )

    @property
    def motions(self) -> int:
        """The number of finished motions."""
        return sum(len(self.config.numbers(chunk)) for chunk in self.done)

    def read(self, name: str) -> np.ndarray:
        """The array of one name. The study must be finished and its files complete."""
        self.check_finished()
        rows, cause = self._rows(name), self._rows("cause")
        lost = cause == FILL_VALUES["u1"]
        if name in ("final_q", "final_v"):
            lost |= np.isnan(rows).any(axis=-1) & (cause == 0)
        if lost.any():
            count, first = count_of(int(lost.sum()), "motion"), int(lost.argmax())
            cause = f"{self.folder}: the data of {count} are missing, beginning with motion {first}"
            raise Error(cause, RERUN)
        return rows

    def _rows(self, name: str) -> np.ndarray:
        """All rows of an array; an Error names the first chunk that is damaged."""
        try:
            return np.asarray(self.group[name][:])
        except ValueError as error:  # a check sum, or the length of a file
            for chunk in self.done:
                first, last = self.config.numbers(chunk)[[0, -1]]
                try:
                    np.asarray(self.group[name][first : last + 1])
                except ValueError:
                    file = self.folder / DONE / f"{chunk:06d}"
                    raise Error(
                        f"{self.folder}: {name} of motions {first} to {last} is damaged: {error}",
                        f"delete {file} and run the study again: it computes these motions only",
                    ) from error
            raise Error(f"{self.folder}: {name} is damaged: {error}", RERUN) from error

    def check_finished(self) -> None:
        """Raise a StateError if chunks are missing."""
        if len(self.done) < self.config.chunks:
            cause = f"{self.motions} of {self.config.motions} motions are done"
            raise StateError(
                f"the study is not finished: {cause}", "run it again; it resumes where it stopped"
            )

    def _spec(self) -> dict[str, Any]:
        return {
            "asked": self.config.spec,
            "psiphi": installed_version("psiphi", "0"),
            "code": code_key(),
        }

    def _check_same(self, stored: Any, spec: dict[str, Any], check_code: bool = True) -> None:
        """Raise an Error if the stored configuration, or the version of psiphi, differs."""
        old = stored.get("asked", {}) if isinstance(stored, dict) else {}
        for key in sorted({*old, *spec["asked"]}):
            if old.get(key) != spec["asked"].get(key):
                cause = f"{self.folder} holds another study: {key} is {shown(old.get(key))} there"
                raise Error(
                    f"{cause}, {shown(spec['asked'].get(key))} here",
                    "use another folder, or delete that one",
                )
        if check_code and stored.get("code") != spec["code"]:
            cause = (
                f"{self.folder} was started with another version of psiphi "
                f"({stored.get('psiphi')}), so results may differ in the last bits"
            )
            raise Error(cause, "finish it with that version, or use another folder")


def code_key() -> str:
    """A hash of everything but the CPU that the last bits of a motion depend on."""
    return kernel_cache.kernel_key()[:16]


def write_atomic(file: Path, data: bytes) -> None:
    """Write a file atomically: it is complete or absent."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    with open(new, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, file)
