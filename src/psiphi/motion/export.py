"""Trajectories for other tools: pandas and xarray; each imported when asked for."""

from __future__ import annotations

import math
from typing import Any

from psiphi.motion import tabulate
from psiphi.motion.curves import UNITS
from psiphi.optional import need


def to_pandas(motion: Any) -> Any:
    """A DataFrame indexed by t; by the batch element and t for a batch."""
    pandas = need("pandas", "to_pandas", "pandas")
    names, table = tabulate.table(motion)
    rows = table.reshape(math.prod(table.shape[:-1]), len(names))
    if not motion.batch:
        return pandas.DataFrame(rows, index=pandas.Index(motion.t, name="t"), columns=names)
    index = pandas.MultiIndex.from_product([range(math.prod(motion.batch)), motion.t], names=["element", "t"])
    return pandas.DataFrame(rows, index=index, columns=names)


def to_xarray(motion: Any) -> Any:
    """A Dataset: axes batch0, batch1, ..., t, then q, v, contact, part."""
    xarray = need("xarray", "to_xarray", "xarray")
    lead = [*(f"batch{i}" for i in range(len(motion.batch))), "t"]
    axes = {"q": ["q_index"], "v": ["v_index"], "a": ["v_index"], "tau": ["v_index"], "energy": []}
    axes |= {"residual": ["error"], "forces": ["contact", "part"]}
    data = {}
    for name in tabulate.shapes(motion):
        data[name] = (lead + axes[name], getattr(motion, name), {"units": UNITS.get(name, "")})
    coordinates: dict[str, Any] = {"t": motion.t}
    for key in ("q", "v"):
        if len(motion.info.get(key, ())) == getattr(motion, key).shape[-1]:
            coordinates[f"{key}_index"] = motion.info[key]
    if "forces" in data:
        coordinates["part"] = list(tabulate.PARTS)
    return xarray.Dataset(data, coords=coordinates, attrs={"events": [str(event) for event in motion.events]})
