"""Flexible bodies in files: .npz or .json, with the names of `FlexibleBody`'s arguments (docs/flexible.md)."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from psiphi.errors import ModelError
from psiphi.wording import nearest, shown

MODAL = {"nodes", "mass", "shapes", "stiffness", "interface", "turns", "rotary", "shortening", "damping", "modal_mass", "drawn"}
MATRICES = {"nodes", "mass", "stiffness", "root", "interface", "modes", "rotary", "damping"}
NEEDED = {False: {"nodes", "mass", "shapes", "stiffness"}, True: {"nodes", "mass", "stiffness", "interface", "modes"}}


def read_modal(path: Any) -> dict[str, Any]:
    """The arguments of `FlexibleBody`, or of `FlexibleBody.craig_bampton` where there is a root."""
    file = _path(path)
    try:
        data = _json(file) if file.suffix == ".json" else _npz(file)
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"{shown(file.name)} cannot be read: {error}", "docs/flexible.md says what is in it") from error
    known, needed = (MATRICES, NEEDED[True]) if "root" in data else (MODAL, NEEDED[False])
    for name in data:
        if name not in known:
            raise ModelError(f"{file.name} has {shown(name)}, which is not known", nearest(name, known))
    if missing := sorted(needed - data.keys()):
        raise ModelError(f"{file.name} has no {missing[0]}", f"it needs {', '.join(sorted(needed))}")
    return data


def write_modal(path: Any, data: dict[str, Any]) -> None:
    file = _path(path)
    try:
        _write(file, data)
    except (OSError, ValueError) as error:
        raise ModelError(f"{shown(file.name)} cannot be written: {error}", "give a place that can be written to") from error


def _write(file: Path, data: dict[str, Any]) -> None:
    if file.suffix == ".json":
        plain = {name: x if isinstance(x, dict) else np.asarray(x).tolist() for name, x in data.items()}
        file.write_text(json.dumps(plain), encoding="utf-8")
        return
    arrays: dict[str, Any] = {name: np.asarray(x) for name, x in data.items() if name != "interface"}
    ends = data.get("interface", {})
    arrays |= {"interface_names": np.array(list(ends), dtype=str), "interface_nodes": np.array(list(ends.values()), dtype=int)}
    np.savez(file, **arrays)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"path is {shown(path)}, expected a file", "give an .npz or .json file")
    place = os.fspath(path)
    file = Path(os.fsdecode(place) if isinstance(place, bytes) else place)
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
        data["interface"] = {str(name): int(k) for name, k in zip(np.ravel(names), np.ravel(nodes), strict=True)}
    if "modes" in data:
        data["modes"] = int(data["modes"])
    return data
