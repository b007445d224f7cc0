"""Trajectories for other tools: pandas, xarray, matplotlib; each imported when asked for."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from psiphi.errors import Error, StateError
from psiphi.motion import tabulate
from psiphi.optional import need
from psiphi.wording import nearest, shown

UNITS = {"q": "rad, m", "v": "rad/s, m/s", "a": "rad/s^2, m/s^2", "tau": "N m, N", "energy": "J", "residual": "m, rad"}


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


def plot(motion: Any, what: str, path: str | os.PathLike | None) -> Any:
    """One pair of axes a quantity; a batch shows at most eight motions."""
    if not isinstance(what, str) and not (isinstance(what, list | tuple) and all(isinstance(name, str) for name in what)):
        raise StateError(f"cannot plot {shown(what)}", 'give names, "q tau energy" for instance')
    what = what if isinstance(what, str) else " ".join(what)
    wanted = what.replace(",", " ").split()
    known = tabulate.shapes(motion)
    unknown = [name for name in wanted if name not in tabulate.TABLED]
    if unknown or not wanted:
        raise StateError(f"cannot plot {what!r}", nearest(unknown[0] if unknown else what, list(known)))
    drawn = [name for name in wanted if name in known]
    if not drawn:
        raise StateError(f"this motion has no {' and no '.join(wanted)}", f"it has {', '.join(known)}")
    figures = need("matplotlib.figure", "a plot", "psiphi[plot]")
    figure = figures.Figure(figsize=(8.0, 1.0 + 2.2 * len(drawn)), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(len(drawn), 1, sharex=True)), drawn, strict=True):
        _draw(axes, motion, name, known[name])
    if path is not None:
        try:
            figure.savefig(os.fspath(path))
        except (OSError, ValueError) as error:
            cause = f"cannot write {os.fspath(path)!r}: {getattr(error, 'strerror', None) or error}"
            raise Error(cause, "end the name in .png, .svg or .pdf, in a folder that exists") from error
    return figure


def _draw(axes: Any, motion: Any, name: str, shape: list[int]) -> None:
    labels = tabulate.labels(motion.info, name, shape)
    lines = getattr(motion, name).reshape(math.prod(motion.batch), len(motion), len(labels))
    for element, line in enumerate(lines[:8]):
        for column, label in enumerate(labels):
            text = label.partition(":")[2] if element == 0 and len(labels) > 1 else None
            color, dashes, faint = f"C{column % 10}", ("-", "--", ":")[column // 10 % 3], 1.0 if element == 0 else 0.4
            axes.plot(motion.t, line[:, column], color=color, linestyle=dashes, alpha=faint, label=text)
    for event in motion.events[:20]:
        axes.axvline(event.t, color="0.6", linestyle=":", linewidth=0.8)
    axes.set_ylabel(f"{name} [{UNITS[name]}]" if name in UNITS else name)
    axes.set_xlabel("t [s]")
    axes.label_outer()
    if 1 < len(labels) <= 12 and len(lines):
        axes.legend(fontsize="x-small", ncols=2, loc="upper right")
