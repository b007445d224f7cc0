"""Data of all joints as vectors in the order of q or v: names, limits, losses, springs, rotors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array
from psiphi._util.validate import frozen, one_of
from psiphi.model.components import coordinate_range, entry_names
from psiphi.model.editing.name_patterns import matching_names
from psiphi.model.model import Model


class JointVectors(Model):
    """A model with vectors of its joints' data. Missing limits are infinite, other data zero."""

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the moving joints, base to tip."""
        return tuple(joint.name for joint in self.joints if joint.shared is None)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the entries of q: the joint's name, with a number if it has several entries."""
        return tuple(entry_names(self.joints, "q"))

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the entries of v, a and tau, as `coordinate_names`."""
        return tuple(entry_names(self.joints, "v"))

    @cached_property
    def lower(self) -> Array:
        """Lower limits of q (nq,); -inf for none."""
        return self._each("lower")

    @cached_property
    def upper(self) -> Array:
        """Upper limits of q (nq,); inf for none."""
        return self._each("upper")

    @cached_property
    def velocity(self) -> Array:
        """Velocity limits (nv,); inf for none."""
        return self._each("velocity")

    @property
    def velocity_limit(self) -> Array:
        """Velocity limits (nv,), the same as `velocity`."""
        return self.velocity

    @cached_property
    def effort(self) -> Array:
        """Torque and force limits (nv,); inf for none."""
        return self._each("effort")

    @cached_property
    def damping(self) -> Array:
        """Viscous damping (nv,). It acts if a call asks for it: `damping=True`."""
        return self._each("damping")

    @cached_property
    def friction(self) -> Array:
        """Dry friction (nv,). It acts if a call asks for it: `friction=True`."""
        return self._each("friction")

    @cached_property
    def armature(self) -> Array:
        """Rotor inertia (nv,). It always acts."""
        return self._each("armature")

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of the joints' springs (nv,); the slope at rest for a table.

        Springs act if a call asks for them: `springs=True`.
        """
        return self._each("stiffness")

    @cached_property
    def rest(self) -> Array:
        """Rest positions of the joints' springs (nv,)."""
        return self._each("rest")

    def select(
        self, joints: str | Iterable[str], of: str = "v"
    ) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The indices of joints in v, or in q with `of="q"`, in the robot's order.

        `joints` are names, or patterns like "arm_*".

        >>> import psiphi as pp
        >>> robot = pp.load("g1")
        >>> robot.select("left_knee_*"), robot.select("left_knee_*", of="q")
        (array([9]), array([10]))
        >>> robot.effort[robot.select("left_hip_*")]
        array([ 88., 139.,  88.])
        """
        one_of("of", of, "qv", 'give of="q" for configurations')
        chosen = matching_names("joints", joints, self.joint_names, self.name)
        ranges = [coordinate_range(joint, of) for joint in self.joints if joint.name in set(chosen)]
        return np.array([i for entries in ranges for i in entries], dtype=np.intp)

    def _each(self, field: str) -> Array:
        """A field of all joints, concatenated."""
        return frozen(
            np.concatenate([np.zeros(0), *(getattr(joint, field) for joint in self.joints)])
        )
