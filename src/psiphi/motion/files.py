"""Trajectories on disk: .npz and .csv, every number exact, nothing that runs when it is read (no pickle).

A CSV file begins with one comment line `# psiphi trajectory {...}` of JSON (events, names, the shape of the batch), then a
header and one row a sample; the motions of a batch follow each other, and a first column `element` numbers them.
"""

from __future__ import annotations

import csv
import json
import math
import os
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from psiphi.errors import Error, StateError
from psiphi.motion import tabulate
from psiphi.wording import shown

ARRAYS = ("t", "q", "v", "a", "tau", "forces", "energy", "residual")
FORMAT, MARK = 1, "# psiphi trajectory "
Loaded = tuple[dict[str, np.ndarray], list, dict[str, Any]]


def save(motion: Any, path: str | os.PathLike) -> None:
    """Write to a temporary name, then rename: a killed writer leaves no half file."""
    target = a_path(path)
    writer = {".npz": _write_npz, ".csv": _write_csv}.get(target.suffix.lower())
    if writer is None:
        raise Error(f"cannot save a trajectory as {target.name!r}", "end the name in .npz or .csv")
    half = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        writer(motion, half)
        os.replace(half, target)
    except OSError as error:
        raise Error(f"cannot write {str(target)!r}: {error.strerror}", "check the folder and its permissions") from error
    finally:
        with suppress(OSError):
            half.unlink(missing_ok=True)


def a_path(given: Any) -> Path:
    """The path of a file to read or write."""
    if not isinstance(given, str | os.PathLike):
        raise StateError(f"the file is {shown(given)}, expected a path", 'give a name like "motion.npz"')
    return Path(os.fsdecode(given))


def load(path: str | os.PathLike) -> Loaded:
    """(arrays, events, info) of a saved trajectory."""
    source = a_path(path)
    reader = {".npz": _read_npz, ".csv": _read_csv}.get(source.suffix.lower())
    if reader is None:
        raise Error(f"{source.name!r} is no saved trajectory", "its name ends in .npz or .csv")
    if not source.exists():
        raise Error(f"there is no file {str(source)!r}", "check the path")
    try:
        arrays, events, info = reader(source)
        return _checked(arrays), events, info
    except OSError as error:
        raise Error(f"cannot read {str(source)!r}: {error.strerror or error}", "check the file and its permissions") from error
    except (KeyError, TypeError, ValueError, IndexError, EOFError, zipfile.BadZipFile, csv.Error) as error:
        if isinstance(error, Error):
            raise
        cause = f"{str(source)!r} is no trajectory of psiphi, or a damaged one ({type(error).__name__}: {error})"
        raise Error(cause, "save it again with Trajectory.save") from error


def _head(motion: Any) -> dict[str, Any]:
    events = [[e.name, e.t, e.what, list(e.where), None if math.isnan(e.value) else e.value, e.stopped] for e in motion.events]
    return {"format": FORMAT, "events": events, "info": motion.info}


def _open_head(head: dict[str, Any]) -> tuple[list, dict[str, Any]]:
    if head["format"] != FORMAT:
        raise ValueError(f"format {head['format']}, and this psiphi reads {FORMAT}")
    return head["events"], head["info"]


def _checked(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    lead = arrays["q"].shape[:-1]
    if arrays["t"].ndim != 1 or lead[-1:] != arrays["t"].shape:
        raise ValueError(f"t has shape {arrays['t'].shape}, q {arrays['q'].shape}")
    for name, x in arrays.items():
        if x.dtype != float or (name != "t" and x.shape[: len(lead)] != lead):
            raise ValueError(f"{name} has shape {x.shape} of {x.dtype}, q {arrays['q'].shape}")
    return arrays


def _write_npz(motion: Any, path: Path) -> None:
    arrays = {name: x for name in ARRAYS if (x := getattr(motion, name)) is not None}
    with open(path, "wb") as file:
        np.savez(file, head=np.array(json.dumps(_head(motion))), **arrays)


def _read_npz(path: Path) -> Loaded:
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
        events, info = _open_head(json.loads(str(file["head"])))
        return {name: file[name] for name in file.files if name in ARRAYS}, events, info


def _write_csv(motion: Any, path: Path) -> None:
    names, table = tabulate.table(motion)
    head = _head(motion) | {"batch": list(motion.batch), "samples": len(motion), "shapes": tabulate.shapes(motion)}
    if not math.prod(motion.batch):  # no rows below would hold the times
        head["t"] = motion.t.tolist()
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(MARK + json.dumps(head) + "\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow((["element"] if motion.batch else []) + ["t", *names])
        for element, block in enumerate(table.reshape(math.prod(motion.batch), len(motion), len(names))):
            for t, values in zip(motion.t.tolist(), block.tolist(), strict=True):
                rows.writerow(([element] if motion.batch else []) + [repr(x) for x in (t, *values)])


def _read_csv(path: Path) -> Loaded:
    with open(path, encoding="utf-8", newline="") as file:
        line = file.readline()
        if not line.startswith(MARK):
            raise ValueError("its first line is not that of a trajectory")
        head = json.loads(line[len(MARK) :])
        text = file.read()
    if not text.endswith("\n"):
        raise ValueError("its last line is cut short")
    rows = list(csv.reader(text.splitlines()))[1:]
    events, info = _open_head(head)
    batch = tuple(int(n) for n in head["batch"])
    width = 1 + sum(math.prod(shape) for shape in head["shapes"].values()) + bool(batch)
    numbers = np.array(rows, dtype=float).reshape(-1, width)[:, bool(batch) :]
    samples = len(numbers) // math.prod(batch) if math.prod(batch) else len(head["t"])
    if samples != head.get("samples", samples):
        raise ValueError(f"{samples} samples of {head['samples']}")
    whole = numbers.reshape(*batch, samples, width - bool(batch))
    t = np.array(head["t"], dtype=float) if "t" in head else numbers[:samples, 0].copy()
    return {"t": t} | tabulate.split(whole[..., 1:], head["shapes"]), events, info
