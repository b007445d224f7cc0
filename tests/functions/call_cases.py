"""The robot's functions as a table, and the robots to test them on: each new row is called with
every bad argument."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp


class Door(NamedTuple):
    """One function of a robot: its array arguments, whether it takes a frame, axes or wrenches, its
    core shapes."""

    name: str
    arrays: tuple[str, ...]
    shapes: tuple[tuple, ...] = (("nv",),)
    frame: bool = False
    axes: bool = False
    wrenches: bool = False
    many: bool = False  # takes several frames

    def __call__(self, robot: pp.Robot, given: dict[str, Any], **options) -> Any:
        frame = [options.pop("frame", "tool")] if self.frame else []
        return getattr(robot, self.name)(*(given[name] for name in self.arrays), *frame, **options)

    def core(self, robot: pp.Robot) -> list[tuple[int, ...]]:
        sizes = {"nv": robot.nv, "bodies": len(robot.bodies)}
        return [tuple(sizes.get(n, n) for n in shape) for shape in self.shapes]


SQUARE = ("nv", "nv")
DOORS = [
    Door("forward_dynamics", ("q", "v", "tau"), wrenches=True, axes=True),
    Door("inverse_dynamics", ("q", "v", "a"), wrenches=True, axes=True),
    Door("bias", ("q", "v"), wrenches=True, axes=True),
    Door("gravity", ("q",)),
    Door("mass_matrix", ("q",), (SQUARE,)),
    Door("mass_matrix_inverse", ("q",), (SQUARE,)),
    Door("mass_matrix_factors", ("q",), (SQUARE, SQUARE)),
    Door("mass_product", ("q", "a")),
    Door("mass_solve", ("q", "tau")),
    Door("factor_product", ("q", "x"), (("nv",), ("nv",))),
    Door("coriolis", ("q", "v"), (SQUARE,)),
    Door("coriolis_product", ("q", "v", "x")),
    Door("link_accelerations", ("q", "v", "a"), (("bodies", 6),)),
    Door("joint_forces", ("q", "v", "a"), (("bodies", 6),), wrenches=True, axes=True),
    Door("frame_acceleration", ("q", "v", "a"), ((6,),), frame=True),
    Door("joint_torques", ("q", "v", "a"), wrenches=True, axes=True),
    Door("frame_imu", ("q", "v", "a"), ((6,),), frame=True),
    Door("frame_pose", ("q",), ((4, 4),), frame=True),
    Door("frame_velocity", ("q", "v"), ((6,),), frame=True, axes=True),
    Door("jacobian", ("q",), ((6, "nv"),), frame=True, axes=True),
    Door("operational_compliance", ("q",), ((6, 6),), frame=True, axes=True, many=True),
    Door("energy", ("q", "v"), ((),)),
    Door("kinetic_energy", ("q", "v"), ((),)),
    Door("potential_energy", ("q",), ((),)),
    Door("center_of_mass", ("q",), ((3,),)),
    Door("momentum", ("q", "v"), ((6,),)),
    Door("centroidal_momentum", ("q", "v"), ((6,),)),
    Door("centroidal_momentum_matrix", ("q",), ((6, "nv"),)),
]
KNOCKS = [(door, argument) for door in DOORS for argument in door.arrays]


def knock_name(value: Any) -> str | None:
    return value.name if isinstance(value, Door) else None


@cache
def gymnast() -> pp.Robot:
    """A floating base with a ball, a hinge and a slide: nq = 13, nv = 11, two quaternions."""
    b = pp.Builder("gymnast")
    for k, name in enumerate(("trunk", "arm", "hand", "finger")):
        b.body(name, 1.0 + k, com=(0.1, -0.2, 0.3), inertia=np.diag([0.3, 0.4, 0.5]))
    b.joint("float", "free", "world", "trunk")
    b.joint("shoulder", "spherical", "trunk", "arm", xyz=(0, 0.2, 0.4))
    b.joint("wrist", "revolute", "arm", "hand", xyz=(0.5, 0, 0), axis=(0, 1, 0), armature=0.1)
    b.joint("grip", "prismatic", "hand", "finger", xyz=(0.1, 0, 0.1), axis=(1, 0, 0))
    b.frame("tool", "finger", xyz=(0.1, 0, 0))
    b.frame("floor", "world", xyz=(0, 0, -1))
    return b.build()


@cache
def stone() -> pp.Robot:
    """Nothing moves: nq = nv = 0."""
    b = pp.Builder("stone")
    b.body("rock", 2.0, com=(0, 0, 1), inertia=np.eye(3))
    b.joint("weld", "fixed", "world", "rock", xyz=(1, 2, 3))
    b.frame("tool", "rock", xyz=(0, 0, 1))
    return b.build()


def arguments(robot: pp.Robot, size: tuple[int, ...] = (), seed: int = 7) -> dict[str, np.ndarray]:
    """A state and torques, accelerations to go with it."""
    rng = np.random.default_rng(seed)
    return {"q": robot.random(rng, size)} | {
        name: rng.standard_normal((*size, robot.nv)) for name in ("v", "a", "tau", "x")
    }


def parts(result: Any) -> tuple[np.ndarray, ...]:
    """The arrays of a result."""
    return result if isinstance(result, tuple) else (result,)


def assert_same(result: Any, expected: Any, **tolerance) -> None:
    """Equal to the last bit, or within a tolerance."""
    for ours, theirs in zip(parts(result), parts(expected), strict=True):
        if tolerance:
            np.testing.assert_allclose(ours, theirs, **tolerance)
        else:
            np.testing.assert_array_equal(ours, theirs)
