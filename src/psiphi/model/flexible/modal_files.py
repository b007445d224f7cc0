"""Flexible bodies in files: .npz or .json, with the names of `FlexibleBody`'s arguments (docs/flexible.md)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import ModelError
from psiphi._util.files import replacing
from psiphi._util.text import shown
from psiphi.model.flexible.modal_checks import known

MODAL = (
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
MATRICES = (
    "nodes",
    "mass",
    "stiffness",
    "interface",
    "modes",
    "root",
    "rotary",
    "damping",
)  # the first of both are needed


def read_modal(path: Any) -> dict[str, Any]:
    """The arguments of `FlexibleBody`, or of `FlexibleBody.craig_bampton` where there is a root."""
    file = _path(path)
    try:
        data = _json(file) if file.suffix == ".json" else _npz(file)
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(
            f"{shown(file.name)} cannot be read: {error}", "docs/flexible.md says what is in it"
        ) from error
    names, needed = (MATRICES, MATRICES[:5]) if "root" in data else (MODAL, MODAL[:4])
    known(file.name, data, names, needed)
    return data


def write_modal(path: Any, data: dict[str, Any]) -> None:
    file = _path(path)
    with replacing(file, ModelError) as part, open(part, "wb") as stream:
        (_write_json if file.suffix == ".json" else _write_npz)(stream, data)


def _write_json(stream: Any, data: dict[str, Any]) -> None:
    plain = {name: x if isinstance(x, dict) else np.asarray(x).tolist() for name, x in data.items()}
    stream.write(json.dumps(plain).encode())


def _write_npz(stream: Any, data: dict[str, Any]) -> None:
    arrays: dict[str, Any] = {
        name: np.asarray(x) for name, x in data.items() if name != "interface"
    }
    ends = data.get("interface", {})
    arrays |= {
        "interface_names": np.array(list(ends), dtype=str),
        "interface_nodes": np.array(list(ends.values()), dtype=int),
    }
    np.savez(stream, **arrays)


def _path(path: Any) -> Path:
    file = Path(validate.path("path", path, "a file", "give an .npz or .json file", ModelError))
    if file.suffix not in (".npz", ".json"):
        raise ModelError(f"{shown(file.name)} is no .npz and no .json file", "give one of them")
    return file


def _json(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("it holds no names")
    return data


def _npz(file: Path) -> dict[str, Any]:
    with np.load(file, allow_pickle=False) as box:
        data: dict[str, Any] = {name: box[name] for name in box.files}
    names, nodes = data.pop("interface_names", None), data.pop("interface_nodes", None)
    if (names is None) != (nodes is None):
        raise ValueError("interface_names and interface_nodes come together")
    if names is not None and nodes is not None:
        data["interface"] = {
            str(name): int(k) for name, k in zip(np.ravel(names), np.ravel(nodes), strict=True)
        }
    if "modes" in data:
        data["modes"] = int(data["modes"])
    return data
