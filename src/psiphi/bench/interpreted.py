"""Robots and closed systems that are not compiled: their functions are what the sweeps mean (`psiphi.sweeps.interpreter`)."""

from __future__ import annotations

import numpy as np

from psiphi.closed.choosing import Chosen
from psiphi.closed.circuits import dynamics
from psiphi.closed.methods import HUB
from psiphi.closed.system import System
from psiphi.functions.robot import Robot
from psiphi.sweeps.interpreter import interpret


class Interpreted(Robot):
    """The robot's doors on the interpreter's floor."""

    def forward_dynamics(self, q, v, tau, f_ext=None, axes="world", out=None, dtype=None, check=False, method=None):
        return self._loaded("forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check)

    def _matrix(self, name, q, out, dtype, check):
        return self._call(name, dict(q=q), out, dtype, check)

    def _call(self, name, state, out, dtype, check, frames=(), axes="world"):
        source = self.function(name, frames, axes).source
        results = interpret(source.program, source.tree, *state.values())
        return results[0] if len(results) == 1 else results


class Uncompiled(System):
    """A closed system whose functions are what its programs mean."""

    def _chosen(self, frames=(), axes="world", redundant=False):
        """Nothing is counted: Omega, whatever it costs, where there is one."""
        method = HUB if self.algebra.is_thin else "free"
        return Chosen(dynamics(self.algebra, method, frames, axes, redundant), method)

    def _call(self, function, values):
        source = function.source
        with np.errstate(all="ignore"):
            results = interpret(source.program, source.tree, *values)
        return results[0] if len(results) == 1 else results


def uncompiled(system: System) -> System:
    """The same system, nothing of it compiled."""
    c = system.closure
    return Uncompiled(Interpreted.of(system.robot), c.constraints, c.follows, system.passive, system.object)
