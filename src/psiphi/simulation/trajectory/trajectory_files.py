"""Trajectories on disk: .npz and .csv, every number exact, nothing that runs when it is read (no pickle).

A .npz file holds everything. A .csv file is a plain table: a header, then one row a sample; the motions of a batch follow each
other, and a first column `element` numbers them. What no table holds (events, names, the shape of a batch) stands beside it
in `name.csv.json`, with a checksum of the table it belongs to. Without that file, a table is read by its header.
"""

from __future__ import annotations

import csv
import json
import math
import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import Error, StateError
from psiphi._util.escape import csv_cell
from psiphi._util.files import atomic_write
from psiphi._util.text import shown
from psiphi._util.validate import whole_number
from psiphi.simulation.trajectory import trajectory_tables

ARRAYS = ("t", *trajectory_tables.SAMPLE_AXES)
FORMAT = 1
MAX_BYTES = 4 << 30  # of numbers that a file may become; an option of `Trajectory.load`
MAX_HEADER_BYTES = 64 << 20  # bytes of events and names
BYTES_PER_CHARACTER = 4  # bytes that one letter of a table becomes at most: "0," is a number
READ_ERRORS = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    EOFError,
    RecursionError,
    NotImplementedError,
)
READ_ERRORS = (*READ_ERRORS, zipfile.BadZipFile, zlib.error, csv.Error)
LoadedFile = tuple[dict[str, np.ndarray], list, dict[str, Any]]


def save(motion: Any, path: str | os.PathLike[str]) -> None:
    """Write to temporary names, then rename: a killed writer leaves no half file."""
    target = read_path(path)
    writer = {".npz": _write_npz, ".csv": _write_csv}.get(target.suffix.lower())
    if writer is None:
        raise Error(
            f"cannot save a trajectory as {shown(target.name)}", "end the name in .npz or .csv"
        )
    with atomic_write(sidecar(target)) as beside, atomic_write(target) as half:
        writer(motion, half, beside)


def sidecar(table: Path) -> Path:
    """Where the rest of a table stands: m.csv.json beside m.csv."""
    return table.with_name(f"{table.name}.json")


def read_path(given: Any) -> Path:
    """The path of a file to read or write."""
    return Path(validate.path("the file", given, "a path", 'give a name like "motion.npz"'))


def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> LoadedFile:
    """(arrays, events, info) of a saved trajectory."""
    source, most = read_path(path), whole_number("max_bytes", max_bytes)
    reader = {".npz": _read_npz, ".csv": _read_csv}.get(source.suffix.lower())
    if reader is None:
        raise Error(f"{shown(source.name)} is no saved trajectory", "its name ends in .npz or .csv")
    try:
        if not source.exists():
            raise Error(f"there is no file {str(source)!r}", "check the path")
        arrays, events, info = reader(source, most)
        return _check_shapes(arrays), events, info
    except OSError as error:
        raise Error(
            f"cannot read {str(source)!r}: {error.strerror or error}",
            "check the file and its permissions",
        ) from error
    except READ_ERRORS as error:
        if isinstance(error, Error):
            raise
        cause = f"{str(source)!r} is no trajectory of psiphi, or a damaged one ({type(error).__name__}: {error})"
        raise Error(cause, "save it again with Trajectory.save") from error


def _check_size(size: int, most: int, source: Path) -> None:
    if size > most:
        cause = f"{shown(source.name)} may become {size} bytes, and at most {most} are read"
        raise Error(cause, f"load it with max_bytes={size}, if the memory holds that much")


def _header(motion: Any) -> dict[str, Any]:
    events = [
        [e.name, e.t, e.what, list(e.where), None if math.isnan(e.value) else e.value, e.stopped]
        for e in motion.events
    ]
    return {"format": FORMAT, "events": events, "info": motion.info}


def _json(head: dict[str, Any]) -> str:
    try:
        return json.dumps(head)
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "keep numbers, text, lists and dicts in it"
        raise StateError(f"the motion's info cannot be written: {error}", remedy) from error


def _parse_header(text: str) -> dict[str, Any]:
    head = json.loads(text)
    if head["format"] != FORMAT:
        raise ValueError(f"format {head['format']}, and this psiphi reads {FORMAT}")
    return head


def _check_shapes(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    lead = arrays["q"].shape[:-1]
    if arrays["t"].ndim != 1 or lead[-1:] != arrays["t"].shape:
        raise ValueError(f"t has shape {arrays['t'].shape}, q {arrays['q'].shape}")
    for name, x in arrays.items():
        if x.dtype != float or (name != "t" and x.shape[: len(lead)] != lead):
            raise ValueError(f"{name} has shape {x.shape} of {x.dtype}, q {arrays['q'].shape}")
    return arrays


# -- .npz -----------------------------------------------------------------------------------------------------------------


def _write_npz(motion: Any, path: Path, _: Path) -> None:
    arrays = {name: x for name in ARRAYS if (x := getattr(motion, name)) is not None}
    head = np.array(_json(_header(motion)))
    with open(path, "wb") as file:
        np.savez(file, head=head, **arrays)


def _read_npz(path: Path, most: int) -> LoadedFile:
    """Nothing is unpacked before all sizes are known: those of the box, and those the arrays claim."""
    with zipfile.ZipFile(path) as box:
        members = {info.filename.removesuffix(".npy"): info for info in box.infolist()}
        own = [name for name in members if name in ARRAYS]
        _check_size(sum(members[name].file_size for name in own), most, path)
        _check_size(members["head"].file_size, 4 * MAX_HEADER_BYTES, path)
        head = _parse_header(str(_member(box, members["head"])))
        return {name: _member(box, members[name]) for name in own}, head["events"], head["info"]


def _member(box: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header tells the truth about its size."""
    with box.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = header(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != info.file_size - stream.tell():
            raise ValueError(
                f"{info.filename} holds {info.file_size} bytes, not {shape} of {dtype}"
            )
    with box.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


# -- .csv -----------------------------------------------------------------------------------------------------------------


def _write_csv(motion: Any, path: Path, beside: Path) -> None:
    names, table = trajectory_tables.table(motion)
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow((["element"] if motion.batch else []) + ["t", *map(csv_cell, names)])
        for element, block in enumerate(
            table.reshape(math.prod(motion.batch), len(motion), len(names))
        ):
            for t, values in zip(motion.t.tolist(), block.tolist(), strict=True):
                rows.writerow(([element] if motion.batch else []) + [repr(x) for x in (t, *values)])
    head = _header(motion) | {
        "batch": list(motion.batch),
        "samples": len(motion),
        "shapes": trajectory_tables.sample_shapes(motion),
    }
    if not math.prod(motion.batch):  # no rows of the table hold the times
        head["t"] = motion.t.tolist()
    beside.write_text(_json(head | {"crc32": _crc(path)}), encoding="utf-8")


def _crc(path: Path) -> int:
    """A checksum of a file's bytes; a file whose last line has no end is refused."""
    crc, block = 0, b"\n"
    with open(path, "rb") as file:
        while more := file.read(1 << 20):
            crc, block = zlib.crc32(more, crc), more
    if not block.endswith(b"\n"):
        raise ValueError("its last line is cut short")
    return crc


def _read_csv(path: Path, most: int) -> LoadedFile:
    _check_size(BYTES_PER_CHARACTER * path.stat().st_size, most, path)
    crc, rest = _crc(path), sidecar(path)
    head: dict[str, Any] = {}
    if rest.exists():
        _check_size(rest.stat().st_size, MAX_HEADER_BYTES, rest)
        head = _parse_header(rest.read_text(encoding="utf-8"))
        if head["crc32"] != crc:
            cause = f"{shown(path.name)} is not the table that {shown(rest.name)} was written beside: it was changed, or cut"
            raise Error(
                cause,
                f"save the motion again, or remove {rest.name} to read the table by its header",
            )
    with open(path, encoding="utf-8", newline="") as file:
        names = next(csv.reader([file.readline()]), [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a table without rows is no fault
            numbers = np.loadtxt(file, dtype=float, delimiter=",", comments=None, ndmin=2)
    if numbers.size == 0:
        numbers = numbers.reshape(0, len(names))
    if numbers.shape[1] != len(names) or "t" not in names:
        raise ValueError(
            f"{len(names)} names ({shown(names[:3])}) above {numbers.shape[1]} columns; expected t, q:..., v:..."
        )
    return _by_sidecar(numbers, head) if head else _by_header(names, numbers)


def _by_sidecar(numbers: np.ndarray, head: dict[str, Any]) -> LoadedFile:
    """The table of a motion, by what stands beside it."""
    batch = tuple(int(n) for n in head["batch"])
    numbers = numbers[:, 1:] if batch else numbers
    table = numbers.reshape(*batch, head["samples"], numbers.shape[1])
    t = np.array(head["t"], dtype=float) if "t" in head else numbers[: head["samples"], 0].copy()
    return (
        {"t": t} | trajectory_tables.split_table(table[..., 1:], head["shapes"]),
        head["events"],
        head["info"],
    )


def _by_header(names: list[str], numbers: np.ndarray) -> LoadedFile:
    """Any table with the columns t, q:..., v:...; others of a motion (tau:..., energy) where there are some."""
    columns: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        columns.setdefault(name.partition(":")[0], []).append(k)
    missing = [name for name in ("t", "q", "v") if name not in columns]
    if missing:
        raise ValueError(f"it has no column {' and no '.join(missing)}; expected t, q:..., v:...")
    if twice := next((name for k, name in enumerate(names) if name in names[:k]), None):
        raise ValueError(f"it has two columns {twice}")
    if {"a", "tau"} & columns.keys():  # as v is
        order = {names[k].partition(":")[2]: i for i, k in enumerate(columns["v"])}
        for key in {"a", "tau"} & columns.keys():
            columns[key].sort(key=lambda k: order.get(names[k].partition(":")[2], k))
    lead: tuple[int, ...] = (len(numbers),)
    if "element" in columns:
        which = columns["element"][0]
        numbers = numbers[np.argsort(numbers[:, which], kind="stable")]
        if len(set(np.unique(numbers[:, which], return_counts=True)[1].tolist())) > 1:
            raise ValueError("the motions of a batch have different numbers of samples")
        motions = len(np.unique(numbers[:, columns["element"][0]]))
        lead = (motions, len(numbers) // motions) if motions else (0, 0)
    sample = {"energy": (), "forces": (-1, 6)}
    arrays = {
        name: numbers[:, own].reshape(*lead, *sample.get(name, (len(own),)))
        for name, own in columns.items()
        if name in trajectory_tables.SAMPLE_AXES
    }
    t = numbers[:, columns["t"][0]].reshape(lead)
    if "element" in columns and (t != t[:1]).any():
        raise ValueError("the motions of a batch have different times")
    labels = {key: [names[k].partition(":")[2] for k in columns[key]] for key in ("q", "v")}
    return {"t": t[0] if t.ndim == 2 and len(t) else t.reshape(-1)} | arrays, [], labels
