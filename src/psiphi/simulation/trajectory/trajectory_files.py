"""Trajectories as .npz and .csv files. Numbers are exact; reading runs no code (no pickle).

A .npz file has everything. A .csv file is a plain table: a header, then one row per sample; the
motions of a batch follow each other, numbered by a first column `element`. What a table cannot hold
(events, names, the shape of a batch) is in the sidecar `name.csv.json`, with a checksum of its
table. Without the sidecar, a table is read by its header.
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
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import Error, StateError
from psiphi._util.escape import csv_cell
from psiphi._util.files import atomic_write
from psiphi._util.text import shown
from psiphi._util.validate import whole_number
from psiphi.simulation.trajectory import trajectory_tables

if TYPE_CHECKING:
    from psiphi.simulation.trajectory.trajectory import Trajectory

ARRAYS = ("t", *trajectory_tables.SAMPLE_AXES)
FORMAT = 1
MAX_BYTES = 4 << 30  # of numbers in a file; an option of `Trajectory.load`
MAX_HEADER_BYTES = 64 << 20  # events and names
BYTES_PER_CHARACTER = 4  # at most, of a table in memory: "0," becomes a float64
READ_ERRORS = (  # of damaged files
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    EOFError,
    RecursionError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
)
LoadedFile = tuple[dict[str, np.ndarray], list, dict[str, Any]]


def save(motion: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write to temporary files, then rename them, so that no incomplete file is left behind."""
    target = read_path(path)
    writer = {".npz": _write_npz, ".csv": _write_csv}.get(target.suffix.lower())
    if writer is None:
        raise Error(
            f"cannot save a trajectory as {shown(target.name)}", "end the name in .npz or .csv"
        )
    with atomic_write(sidecar(target)) as rest, atomic_write(target) as table:
        writer(motion, table, rest)


def sidecar(table: Path) -> Path:
    """The file beside a table with its events and names: m.csv.json beside m.csv."""
    return table.with_name(f"{table.name}.json")


def read_path(value: object) -> Path:
    """The path of a file to read or write."""
    return Path(validate.path("the file", value, "a path", 'give a name like "motion.npz"'))


def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> LoadedFile:
    """(arrays, events, info) of a saved trajectory."""
    source, limit = read_path(path), whole_number("max_bytes", max_bytes)
    reader = {".npz": _read_npz, ".csv": _read_csv}.get(source.suffix.lower())
    if reader is None:
        raise Error(f"{shown(source.name)} is not a saved trajectory", "give a .npz or .csv file")
    try:
        if not source.exists():
            raise Error(f"there is no file {str(source)!r}", "check the path")
        arrays, events, info = reader(source, limit)
        return _check_shapes(arrays), events, info
    except OSError as error:
        raise Error(
            f"cannot read {str(source)!r}: {error.strerror or error}",
            "check the file and its permissions",
        ) from error
    except READ_ERRORS as error:
        if isinstance(error, Error):
            raise
        cause = f"{type(error).__name__}: {error}"
        raise Error(
            f"{str(source)!r} is not a trajectory of psiphi, or is damaged ({cause})",
            "save it again with Trajectory.save",
        ) from error


def _check_size(size: int, limit: int, source: Path) -> None:
    if size > limit:
        raise Error(
            f"{shown(source.name)} may need {size} bytes of memory, and the limit is {limit}",
            f"load it with max_bytes={size}, if the memory suffices",
        )


def _header(motion: Trajectory) -> dict[str, Any]:
    events = [
        [e.name, e.t, e.what, list(e.where), None if math.isnan(e.value) else e.value, e.stopped]
        for e in motion.events
    ]
    return {"format": FORMAT, "events": events, "info": motion.info}


def _json(head: dict[str, Any]) -> str:
    try:
        return json.dumps(head)
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "use numbers, text, lists and dicts only"
        raise StateError(f"the motion's info cannot be written: {error}", remedy) from error


def _parse_header(text: str) -> dict[str, Any]:
    head = json.loads(text)
    if head["format"] != FORMAT:
        raise ValueError(f"format {head['format']}, but this psiphi reads {FORMAT}")
    return head


def _check_shapes(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    lead = arrays["q"].shape[:-1]
    if arrays["t"].ndim != 1 or lead[-1:] != arrays["t"].shape:
        raise ValueError(f"t has shape {arrays['t'].shape}, q {arrays['q'].shape}")
    for name, x in arrays.items():
        if x.dtype != float or (name != "t" and x.shape[: len(lead)] != lead):
            raise ValueError(f"{name} has shape {x.shape} of {x.dtype}, q {arrays['q'].shape}")
    return arrays


# -- .npz files


def _write_npz(motion: Trajectory, path: Path, _: Path) -> None:
    arrays = {name: x for name in ARRAYS if (x := getattr(motion, name)) is not None}
    head = np.array(_json(_header(motion)))
    with open(path, "wb") as file:
        np.savez(file, head=head, **arrays)


def _read_npz(path: Path, limit: int) -> LoadedFile:
    """Read the arrays, after the sizes in the archive and in their headers are checked."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        names = [name for name in members if name in ARRAYS]
        _check_size(sum(members[name].file_size for name in names), limit, path)
        _check_size(members["head"].file_size, 4 * MAX_HEADER_BYTES, path)
        head = _parse_header(str(_member(archive, members["head"])))
        arrays = {name: _member(archive, members[name]) for name in names}
        return arrays, head["events"], head["info"]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array; an error if its header claims another size than it has."""
    with archive.open(info) as stream:
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
    with archive.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


# -- .csv files


def _write_csv(motion: Trajectory, path: Path, rest: Path) -> None:
    names, table = trajectory_tables.table(motion)
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow((["element"] if motion.batch else []) + ["t", *map(csv_cell, names)])
        blocks = table.reshape(math.prod(motion.batch), len(motion), len(names))
        for element, block in enumerate(blocks):
            for t, values in zip(motion.t.tolist(), block.tolist(), strict=True):
                rows.writerow(([element] if motion.batch else []) + [repr(x) for x in (t, *values)])
    head = _header(motion) | {
        "batch": list(motion.batch),
        "samples": len(motion),
        "shapes": trajectory_tables.sample_shapes(motion),
    }
    if not math.prod(motion.batch):  # the table has no rows, hence no times
        head["t"] = motion.t.tolist()
    rest.write_text(_json(head | {"crc32": _crc(path)}), encoding="utf-8")


def _crc(path: Path) -> int:
    """A checksum of a file; an error if its last line has no end."""
    crc, block = 0, b"\n"
    with open(path, "rb") as file:
        while more := file.read(1 << 20):
            crc, block = zlib.crc32(more, crc), more
    if not block.endswith(b"\n"):
        raise ValueError("its last line is incomplete")
    return crc


def _read_csv(path: Path, limit: int) -> LoadedFile:
    _check_size(BYTES_PER_CHARACTER * path.stat().st_size, limit, path)
    crc, rest = _crc(path), sidecar(path)
    head: dict[str, Any] = {}
    if rest.exists():
        _check_size(rest.stat().st_size, MAX_HEADER_BYTES, rest)
        head = _parse_header(rest.read_text(encoding="utf-8"))
        if head["crc32"] != crc:
            raise Error(
                f"{shown(path.name)} is not the table that {shown(rest.name)} belongs to: it was "
                "changed or is incomplete",
                f"save the motion again, or remove {rest.name} to read the table by its header",
            )
    with open(path, encoding="utf-8", newline="") as file:
        names = next(csv.reader([file.readline()]), [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a table may have no rows
            numbers = np.loadtxt(file, dtype=float, delimiter=",", comments=None, ndmin=2)
    if numbers.size == 0:
        numbers = numbers.reshape(0, len(names))
    if numbers.shape[1] != len(names) or "t" not in names:
        raise ValueError(
            f"{len(names)} names ({shown(names[:3])}) for {numbers.shape[1]} columns; "
            "expected t, q:..., v:..."
        )
    return _by_sidecar(numbers, head) if head else _by_header(names, numbers)


def _by_sidecar(numbers: np.ndarray, head: dict[str, Any]) -> LoadedFile:
    """The arrays of a table with a sidecar."""
    batch = tuple(int(n) for n in head["batch"])
    numbers = numbers[:, 1:] if batch else numbers
    table = numbers.reshape(*batch, head["samples"], numbers.shape[1])
    t = np.array(head["t"], dtype=float) if "t" in head else numbers[: head["samples"], 0].copy()
    arrays = {"t": t} | trajectory_tables.split_table(table[..., 1:], head["shapes"])
    return arrays, head["events"], head["info"]


def _by_header(names: list[str], numbers: np.ndarray) -> LoadedFile:
    """The arrays of a table with columns t, q:..., v:..., and perhaps others (tau:..., energy)."""
    columns: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        columns.setdefault(name.partition(":")[0], []).append(k)
    missing = [name for name in ("t", "q", "v") if name not in columns]
    if missing:
        raise ValueError(f"it has no column {' and no '.join(missing)}; expected t, q:..., v:...")
    if duplicate := next((name for k, name in enumerate(names) if name in names[:k]), None):
        raise ValueError(f"it has two columns {duplicate}")
    if {"a", "tau", "stop_forces"} & columns.keys():  # in the order of the columns of v
        order = {names[k].partition(":")[2]: i for i, k in enumerate(columns["v"])}
        for key in {"a", "tau", "stop_forces"} & columns.keys():
            columns[key].sort(key=lambda k: order.get(names[k].partition(":")[2], k))
    lead: tuple[int, ...] = (len(numbers),)
    if "element" in columns:
        which = columns["element"][0]
        numbers = numbers[np.argsort(numbers[:, which], kind="stable")]
        if len(set(np.unique(numbers[:, which], return_counts=True)[1].tolist())) > 1:
            raise ValueError("the motions of a batch have different numbers of samples")
        motions = len(np.unique(numbers[:, columns["element"][0]]))
        lead = (motions, len(numbers) // motions) if motions else (0, 0)
    parts = {names[k].rpartition(".")[2] for k in columns.get("forces", ())}
    width = len(parts & {*trajectory_tables.WRENCH_PARTS}) or 6
    sample_shapes = {"energy": (), "forces": (-1, width), "contact_residual": (), "stop_work": ()}
    arrays = {
        name: numbers[:, places].reshape(*lead, *sample_shapes.get(name, (len(places),)))
        for name, places in columns.items()
        if name in trajectory_tables.SAMPLE_AXES
    }
    t = numbers[:, columns["t"][0]].reshape(lead)
    if "element" in columns and (t != t[:1]).any():
        raise ValueError("the motions of a batch have different times")
    labels = {key: [names[k].partition(":")[2] for k in columns[key]] for key in ("q", "v")}
    return {"t": t[0] if t.ndim == 2 and len(t) else t.reshape(-1)} | arrays, [], labels
