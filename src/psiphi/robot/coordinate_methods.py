"""A robot whose configurations are arrays of any library: moved, compared and scaled by code, where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.validate import is_foreign, real
from psiphi.compiler.passes import is_large
from psiphi.functions import scalar_fast_path
from psiphi.functions.arrays.array_dispatch import enter, full, in_a_row, one_number, widest
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.robot import coordinate_functions
from psiphi.robot.quantity_methods import QuantityMethods

_ndarray = np.ndarray


def _duration(dt: Any) -> float:
    """One dt beside arrays of another library."""
    return one_number("integrate", real("integrate: dt", dt, (), "give a number"))


_duration._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile takes it as it is


class CoordinateMethods(QuantityMethods):
    """The model's own laws of q: compiled, but for NumPy's arrays where q is a vector or the robot is large."""

    @cached_property
    def _soon(self) -> dict[str, Any]:
        """The laws of one state of plain vectors, each after its first such call; None of all else."""
        return {}

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> Array:
        """q moved along the constant velocity v for the time dt, on the configuration manifold.

        dt is a number, or one for each batch element; beside arrays of other libraries a number, or their array () or (..., 1).
        """
        if type(q) is _ndarray and type(dt) is float:
            x = self._soon.get("integrate", scalar_fast_path.nothing)(q, v, np.array((dt,)))
            if x is not None:
                return x
        if not (is_foreign(q) or is_foreign(v) or is_foreign(dt)):
            return super().integrate(q, v, dt)
        h = in_a_row(dt) if is_foreign(dt) else full(widest(q, v), 1, _duration(dt))
        return self._compiled("integrate", q, v, h)

    def difference(self, q0: Numbers, q1: Numbers) -> Array:
        """The velocity v with integrate(q0, v) = q1."""
        return self._at_hand("difference", super().difference, q0, q1)

    def rate(self, q: Numbers, v: Numbers) -> Array:
        """dq/dt = Omega(q) v, S0 (b.5): v itself but for quaternions and planar joints. -> (..., nq)"""
        return self._at_hand("rate", super().rate, q, v)

    def velocity_of(self, q: Numbers, q_dot: Numbers) -> Array:
        """v of dq/dt, S0 (b.3): the undoing of `rate`; what would change a quaternion's length is left out. -> (..., nv)"""
        return self._at_hand("velocity_of", super().velocity_of, q, q_dot)

    def normalize(self, q: Numbers) -> Array:
        """q with its quaternions scaled to unit length."""
        return self._at_hand("normalize", super().normalize, q)

    def _at_hand(self, law: str, of_numpy: Callable[..., Array], *values: Any) -> Any:
        """The law of one state at once, of arrays of another library where they are, or of NumPy's."""
        x = self._soon.get(law, scalar_fast_path.nothing)(*values)
        if x is not None:
            return x
        return self._compiled(law, *values) if any(map(is_foreign, values)) else of_numpy(*values)

    def _by_law(self, name: str, law: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
        """Arrays of NumPy that fit: code, the same for one state and for many; a vector space needs none."""
        if self.manifold.is_flat:
            self._soon[name] = scalar_fast_path.of_vectors([x.shape[-1:] for x in arrays], law)
        if self.manifold.is_flat or is_large(self):
            return law(*arrays)
        function = self._law(name)
        result = function.run(arrays)
        scalar_fast_path.quicken(function, arrays)
        self._soon[name] = (
            scalar_fast_path.upright(self._model, function.at_once, 1)
            if name == "difference"
            else function.at_once
        )
        return result

    def _compiled(self, law: str, *values: Any) -> Any:
        return enter(self._law(law), values)

    def _law(self, law: str) -> DifferentiableFunction:
        """Laws are traced downstream, with those of steps."""
        return coordinate_functions.function(self, law)
