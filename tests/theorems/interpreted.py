"""A robot that is not compiled: its functions are what the sweeps mean (`psiphi.sweeps.interpreter`)."""

from __future__ import annotations

from functools import lru_cache

from psiphi.functions.dynamics import CATALOGUE
from psiphi.functions.robot import Robot
from psiphi.sweeps.framing import frame_tree
from psiphi.sweeps.interpreter import interpret

_tree = lru_cache(maxsize=8)(frame_tree)


class Interpreted(Robot):
    """The robot's doors on the interpreter's floor."""

    def forward_dynamics(self, q, v, tau, f_ext=None, axes="world", out=None, dtype=None, check=False):
        return self._loaded("forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check)

    def _matrix(self, name, q, out, dtype, check):
        return self._call(name, dict(q=q), out, dtype, check)

    def _call(self, name, state, out, dtype, check, frames=(), axes="world"):
        tree = _tree(self, CATALOGUE[name].rods)
        results = interpret(CATALOGUE[name].program(tree, frames, axes), tree, *state.values())
        return results if len(results) > 1 else results[0]
