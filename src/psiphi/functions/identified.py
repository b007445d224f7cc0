"""A robot's torques by its inertial parameters: the door to `identification.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import Array, DType, Numbers, Out
from psiphi.editing.editable import Editable
from psiphi.errors import StateError
from psiphi.functions import identification


class Identified(Editable):
    """A robot that says what of its inertia its torques tell; `_call` runs a function of the catalogue."""

    _call: Any

    def regressor(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        more: str | Sequence[str] = (),
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """Y with tau = Y pi + rotors a, linear in the bodies' `inertial_parameters` pi. -> (..., nv, 10 bodies)

        pi = [m, m c, Ixx Ixy Ixz Iyy Iyz Izz] a body, about its link's origin in link axes. `more` adds nv columns each of
        "armature" (a on the diagonal), "damping" (v) and "friction" (sign v).

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> q, v, a = robot.random(seed=0), np.ones(6), np.ones(6)
        >>> Y = robot.regressor(q, v, a)
        >>> Y.shape, bool(np.allclose(Y @ robot.inertial_parameters, robot.inverse_dynamics(q, v, a)))
        ((6, 60), True)
        """
        words = identification.checked_words(more)
        if words and out is not None:
            raise StateError("regressor: out came with more columns", "leave one of them out")
        Y = self._call("regressor", dict(q=q, v=v, a=a), out, dtype, check)
        if not words:
            return Y
        extra = identification.more_columns(words, np.asarray(v, dtype=Y.dtype), np.asarray(a, dtype=Y.dtype))
        return np.concatenate([Y, *(np.broadcast_to(x, (*Y.shape[:-1], self.nv)) for x in extra)], axis=-1)

    @cached_property
    def inertial_parameters(self) -> Array:
        """pi of `regressor`, (10 bodies,): mass, first moment and inertia about the link's origin, of every body."""
        return identification.parameters(self)

    def base_parameters(self, *, more: str | Sequence[str] = ()) -> identification.BaseParameters:
        """The combinations of `inertial_parameters` that torques can tell, with names; `more` as in `regressor`.

        >>> import psiphi as pp
        >>> base = pp.load("acrobot").base_parameters()
        >>> base.rank, base.combinations[1]
        (6, 'upper.mz - lower.m')
        """
        return identification.base_parameters(self, more)
