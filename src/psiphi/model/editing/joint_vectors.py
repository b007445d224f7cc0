"""What all joints say together: names, limits, losses, springs, rotors as vectors in the order of q or v, and places."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array
from psiphi._util.validate import frozen, one_of
from psiphi.model.components import names_of_entries, part_of
from psiphi.model.editing.name_patterns import matching
from psiphi.model.model import Model


class JointVectors(Model):
    """A model that says what its joints are, all at once. Numbers are infinite, or zero, where there is none."""

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that move, base to tip."""
        return tuple(joint.name for joint in self.joints if joint.shared is None)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """The entries of q: a joint's name, numbered where it has several coordinates."""
        return tuple(names_of_entries(self.joints, "q"))

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """The entries of v, a and tau, named likewise."""
        return tuple(names_of_entries(self.joints, "v"))

    @cached_property
    def lower(self) -> Array:
        """Lower limits of q (nq,), -inf where there is none."""
        return self._each("lower")

    @cached_property
    def upper(self) -> Array:
        """Upper limits of q (nq,), inf where there is none."""
        return self._each("upper")

    @cached_property
    def velocity(self) -> Array:
        """Speed limits (nv,), inf where there is none."""
        return self._each("velocity")

    @property
    def velocity_limit(self) -> Array:
        """Speed limits (nv,): `velocity`."""
        return self.velocity

    @cached_property
    def effort(self) -> Array:
        """Torque and force limits (nv,), inf where there is none."""
        return self._each("effort")

    @cached_property
    def damping(self) -> Array:
        """Viscous damping (nv,): it acts where a call is told so."""
        return self._each("damping")

    @cached_property
    def friction(self) -> Array:
        """Dry friction (nv,): it acts where a call is told so."""
        return self._each("friction")

    @cached_property
    def armature(self) -> Array:
        """Rotor inertia (nv,): it acts always."""
        return self._each("armature")

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of the joints' springs (nv,), of a table its slope at rest: they act where a call is told so."""
        return self._each("stiffness")

    @cached_property
    def rest(self) -> Array:
        """Where the joints' springs are at rest (nv,)."""
        return self._each("rest")

    def select(self, joints: Any, of: str = "v") -> np.ndarray[Any, np.dtype[np.intp]]:
        """Where joints stand in v (in q with `of="q"`): by names, or patterns like "arm_*", in the robot's order.

        >>> import psiphi as pp
        >>> robot = pp.load("g1")
        >>> robot.select("left_knee_*"), robot.select("left_knee_*", of="q"), robot.effort[robot.select("left_hip_*")]
        (array([9]), array([10]), array([ 88., 139.,  88.]))
        """
        one_of("of", of, "qv", 'give of="q" for configurations')
        chosen = matching("joints", joints, self.joint_names, self.name)
        own = [part_of(joint, of) for joint in self.joints if joint.name in set(chosen)]
        return np.array([i for where in own for i in where], dtype=np.intp)

    def _each(self, what: str) -> Array:
        return frozen(
            np.concatenate([np.zeros(0), *(getattr(joint, what) for joint in self.joints)])
        )
