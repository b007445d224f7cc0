"""A robot whose configurations are arrays of any library: moved, compared and scaled where they are."""

from __future__ import annotations

from typing import Any

from psiphi.arguments import Array, Numbers, is_foreign
from psiphi.foreign.entering import enter, full
from psiphi.functions.called import WithFunctions
from psiphi.optional import need


class WithCoordinates(WithFunctions):
    """The model's own laws of q, compiled for arrays that are not NumPy's."""

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> Array:
        """q moved along the constant velocity v for the time dt, on the configuration manifold.

        dt is a number, or one for each batch element; beside arrays of other libraries one number, or their array (..., 1).
        """
        if not (is_foreign(q) or is_foreign(v) or is_foreign(dt)):
            return super().integrate(q, v, dt)
        like: Any = q if is_foreign(q) else v
        return self._compiled("integrate", q, v, dt if is_foreign(dt) else full(like, 1, float(dt)))  # type: ignore[arg-type]

    def difference(self, q0: Numbers, q1: Numbers) -> Array:
        """The velocity v with integrate(q0, v) = q1."""
        return self._compiled("difference", q0, q1) if is_foreign(q0) or is_foreign(q1) else super().difference(q0, q1)

    def rate(self, q: Numbers, v: Numbers) -> Array:
        """dq/dt = Omega(q) v, S0 (b.5): v itself but for quaternions and planar joints. -> (..., nq)"""
        return self._compiled("rate", q, v) if is_foreign(q) or is_foreign(v) else super().rate(q, v)

    def velocity_of(self, q: Numbers, q_dot: Numbers) -> Array:
        """v of dq/dt, S0 (b.3): the undoing of `rate`; what would change a quaternion's length is left out. -> (..., nv)"""
        return self._compiled("velocity_of", q, q_dot) if is_foreign(q) or is_foreign(q_dot) else super().velocity_of(q, q_dot)

    def normalize(self, q: Numbers) -> Array:
        """q with its quaternions scaled to unit length."""
        return self._compiled("normalize", q) if is_foreign(q) else super().normalize(q)

    def _compiled(self, law: str, *values: Any) -> Any:
        """Laws are traced downstream, with those of steps."""
        return enter(need("psiphi.rollouts.compiled_coordinates", "configurations", "psiphi").function(self, law), values)
