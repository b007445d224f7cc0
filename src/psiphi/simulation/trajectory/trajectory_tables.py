"""A trajectory as one table with named columns, and as tables of pandas and xarray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.extras import import_optional
from psiphi.model.components import entry_names

if TYPE_CHECKING:
    from psiphi.simulation.trajectory.trajectory import Trajectory

UNITS = {
    "q": "rad, m",
    "v": "rad/s, m/s",
    "a": "rad/s^2, m/s^2",
    "tau": "N m, N",
    "energy": "J",
    "residual": "m, rad",
    "gaps": "m",
    "contact_residual": "m/s",
    "stop_forces": "N m, N",
    "stop_work": "J",
}
SAMPLE_AXES = {  # arrays of a trajectory, and the number of axes of one sample
    "q": 1,
    "v": 1,
    "a": 1,
    "tau": 1,
    "forces": 2,
    "energy": 0,
    "residual": 1,
    "gaps": 1,
    "modes": 1,
    "contact_residual": 0,
    "stop_forces": 1,
    "stop_work": 0,
}
WRENCH_PARTS = ("nx", "ny", "nz", "fx", "fy", "fz")  # the last three for contact points
CONTACT_ARRAYS = ("forces", "gaps", "modes")


def coordinate_names(robot: object) -> dict[str, list[str]]:
    """The names of the entries of q and v: names of joints, numbered if a joint has several."""
    return {of: entry_names(getattr(robot, "joints", ()), of) for of in ("q", "v")}


def sample_shapes(motion: Trajectory) -> dict[str, list[int]]:
    """{name: shape of one sample} of the arrays that are not None."""
    lead = motion.q.ndim - 1
    return {
        name: list(x.shape[lead:])
        for name in SAMPLE_AXES
        if (x := getattr(motion, name)) is not None
    }


def table(motion: Trajectory) -> tuple[list[str], np.ndarray]:
    """The names of the columns, and the numbers (..., n, columns)."""
    names: list[str] = []
    blocks = []
    for name, shape in sample_shapes(motion).items():
        x = getattr(motion, name)
        blocks.append(x.reshape(*motion.q.shape[:-1], math.prod(shape)))
        names += column_names(motion.info, name, shape)
    return names, np.concatenate(blocks, axis=-1)


def column_names(info: dict[str, Any], name: str, shape: list[int]) -> list[str]:
    """The names of the columns of one array."""
    if not shape:
        return [name]
    if name == "residual" and shape == [2]:
        return ["residual:position", "residual:velocity"]
    if name in CONTACT_ARRAYS:
        contacts = _names_or_numbers(info.get("contacts", ()), shape[0])
        if len(shape) == 1:
            return [f"{name}:{contact}" for contact in contacts]
        parts = WRENCH_PARTS[-shape[1] :]
        return [f"{name}:{contact}.{part}" for contact in contacts for part in parts]
    names = info.get("q" if name == "q" else "v", ())
    return [f"{name}:{label}" for label in _names_or_numbers(names, math.prod(shape))]


def split_table(numbers: np.ndarray, sizes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """The arrays of a table, from the shape of one sample of each."""
    arrays, start = {}, 0
    for name, shape in sizes.items():
        stop = start + math.prod(shape)
        arrays[name] = np.ascontiguousarray(numbers[..., start:stop]).reshape(
            *numbers.shape[:-1], *shape
        )
        start = stop
    return arrays


def _names_or_numbers(names: Sequence[str], size: int) -> list[str]:
    return list(names) if len(names) == size else [str(i) for i in range(size)]


def to_pandas(motion: Trajectory) -> Any:
    """A DataFrame indexed by t, or by batch element and t."""
    pandas = import_optional("pandas", "to_pandas", "pandas")
    names, numbers = table(motion)
    rows = numbers.reshape(math.prod(numbers.shape[:-1]), len(names))
    if not motion.batch:
        return pandas.DataFrame(rows, index=pandas.Index(motion.t, name="t"), columns=names)
    index = pandas.MultiIndex.from_product(
        [range(math.prod(motion.batch)), motion.t], names=["element", "t"]
    )
    return pandas.DataFrame(rows, index=index, columns=names)


def to_xarray(motion: Trajectory) -> Any:
    """A Dataset with axes batch0, batch1, ..., t, then q_index, v_index, contact, part, error."""
    xarray = import_optional("xarray", "to_xarray", "xarray")
    lead = [*(f"batch{i}" for i in range(len(motion.batch))), "t"]
    axes = {"q": ["q_index"], "v": ["v_index"], "a": ["v_index"], "tau": ["v_index"], "energy": []}
    axes |= {"residual": ["error"], "forces": ["contact", "part"], "contact_residual": []}
    axes |= {"gaps": ["contact"], "modes": ["contact"]}
    axes |= {"stop_forces": ["v_index"], "stop_work": []}
    data = {}
    for name in sample_shapes(motion):
        data[name] = (lead + axes[name], getattr(motion, name), {"units": UNITS.get(name, "")})
    coordinates: dict[str, Any] = {"t": motion.t}
    for key in ("q", "v"):
        if len(motion.info.get(key, ())) == getattr(motion, key).shape[-1]:
            coordinates[f"{key}_index"] = motion.info[key]
    if motion.forces is not None:
        coordinates["part"] = list(WRENCH_PARTS[-motion.forces.shape[-1] :])
    events = [str(event) for event in motion.events]
    return xarray.Dataset(data, coords=coordinates, attrs={"events": events})
