"""Types for the models of MuJoCo and Pinocchio, whose compiled modules have no type information."""

from __future__ import annotations

from typing import Any, Protocol


class MjModel(Protocol):
    """A compiled model, `mujoco.MjModel`: arrays of bodies, joints, dofs, geoms, actuators."""

    nbody: int
    njnt: int

    def __getattr__(self, name: str) -> Any: ...


class MjSpec(Protocol):
    """A model that can be edited, `mujoco.MjSpec`."""

    def compile(self) -> MjModel: ...


class PinModel(Protocol):
    """A `pinocchio.Model`: its joints, inertias, frames and limits."""

    nq: int
    nv: int
    njoints: int

    def __getattr__(self, name: str) -> Any: ...


class PinFrame(Protocol):
    """A `pinocchio.Frame`: its name, joint, placement and type."""

    name: str

    def __getattr__(self, name: str) -> Any: ...
