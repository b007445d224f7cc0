"""Flexible bodies in .npz and .json files; names are the arguments of `FlexibleBody`.

docs/flexible.md describes the format.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import ModelError
from psiphi._util.files import atomic_write
from psiphi._util.text import shown
from psiphi.model.flexible.modal_checks import check_names

# Arguments of `FlexibleBody` (the first four are needed) and of `craig_bampton` (the first five).
MODAL_NAMES = (
    "nodes",
    "mass",
    "shapes",
    "stiffness",
    "interface",
    "turns",
    "rotary",
    "shortening",
    "damping",
    "modal_mass",
    "drawn",
)
MATRIX_NAMES = (
    "nodes",
    "mass",
    "stiffness",
    "interface",
    "modes",
    "root",
    "rotary",
    "damping",
)


def read_modal(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `FlexibleBody`, or of `craig_bampton` if the file has a root."""
    file = _path(path)
    try:
        data = _json(file) if file.suffix == ".json" else _npz(file)
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(
            f"{shown(file.name)} cannot be read: {error}", "docs/flexible.md describes the format"
        ) from error
    names, needed = (
        (MATRIX_NAMES, MATRIX_NAMES[:5]) if "root" in data else (MODAL_NAMES, MODAL_NAMES[:4])
    )
    check_names(file.name, data, names, needed)
    return data


def write_modal(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write the arguments of `FlexibleBody` to a file."""
    file = _path(path)
    with atomic_write(file, ModelError) as part, open(part, "wb") as stream:
        (_write_json if file.suffix == ".json" else _write_npz)(stream, data)


def _write_json(stream: IO[bytes], data: dict[str, Any]) -> None:
    plain = {name: x if isinstance(x, dict) else np.asarray(x).tolist() for name, x in data.items()}
    stream.write(json.dumps(plain).encode())


def _write_npz(stream: IO[bytes], data: dict[str, Any]) -> None:
    arrays: dict[str, Any] = {
        name: np.asarray(x) for name, x in data.items() if name != "interface"
    }
    ends = data.get("interface", {})
    arrays |= {
        "interface_names": np.array(list(ends), dtype=str),
        "interface_nodes": np.array(list(ends.values()), dtype=int),
    }
    np.savez(stream, **arrays)


def _path(path: str | os.PathLike[str]) -> Path:
    file = Path(validate.path("path", path, "a file", "give an .npz or .json file", ModelError))
    if file.suffix not in (".npz", ".json"):
        raise ModelError(f"{shown(file.name)} is not an .npz or .json file", "give one of these")
    return file


def _json(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def _npz(file: Path) -> dict[str, Any]:
    with np.load(file, allow_pickle=False) as archive:
        data: dict[str, Any] = {name: archive[name] for name in archive.files}
    names, nodes = data.pop("interface_names", None), data.pop("interface_nodes", None)
    if (names is None) != (nodes is None):
        raise ValueError("interface_names and interface_nodes must both be present")
    if names is not None and nodes is not None:
        data["interface"] = {
            str(name): int(k) for name, k in zip(np.ravel(names), np.ravel(nodes), strict=True)
        }
    if "modes" in data:
        data["modes"] = int(data["modes"])
    return data
