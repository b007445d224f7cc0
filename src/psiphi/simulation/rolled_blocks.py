"""`pp.rollout` of Dask arrays: a plan of rollouts of their blocks, run when somebody computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.arguments import is_lazy
from psiphi.control.plant import Plant
from psiphi.errors import StateError
from psiphi.runtime.lazy_arrays import in_blocks
from psiphi.sweeps.program import Argument


class RolledBlocks:
    """Rollouts of one block of starts, as a worker runs them."""

    def __init__(self, rollout: Callable, robot: Any, names: tuple[str, ...], options: dict[str, Any]):
        self.rollout, self.robot, self.names, self.options = rollout, robot, names, options

    def __call__(self, *arrays: np.ndarray) -> Any:
        given = dict(zip(self.names, arrays, strict=True))
        if "tau" in given:  # one for all steps, beside batch axes of its own
            given["tau"] = given["tau"][..., None, :]
        return self.rollout(self.robot, **given, **self.options)


def rolled_later(rollout: Callable, plant: Plant, starts: dict[str, Any], rows: int, options: dict[str, Any]) -> Any:
    """(q, v), lazy; `starts` are q0, v0 and tau, of which those that are Dask's, or have batch axes, are cut into blocks."""
    if options.get("out") is not None:
        raise StateError("rollout: out= takes numbers now, and an argument is a Dask array", "leave out= out")
    cut = {name: x for name, x in starts.items() if is_lazy(x) or (name == "q0" or (name == "v0" and x is not None))}
    sizes = {"q0": plant.nq, "v0": plant.nv, "tau": plant.nv}
    inputs = [Argument(name, (sizes[name],)) for name in cut]
    outputs = [Argument("q", (rows, plant.nq)), Argument("v", (rows, plant.nv))]
    rest = {name: x for name, x in starts.items() if name not in cut}
    call = RolledBlocks(rollout, plant.given, tuple(cut), {**options, **rest})
    return in_blocks("rollout", call, inputs, outputs, list(cut.values()), None)
