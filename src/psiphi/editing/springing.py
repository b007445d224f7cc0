"""Springs at joints that are there, and joints that become elastic."""

from __future__ import annotations

from typing import Any

from psiphi.editing.picking import matching
from psiphi.model.builder import Builder
from psiphi.model.model import Model


def with_spring(model: Model, builder: Builder, joints: Any, stiffness: Any, rest: Any, spring: Any) -> None:
    """The springs of these joints, in the builder."""
    for name in matching("joints", joints, [joint.name for joint in model.joints], model.name):
        builder.spring(name, stiffness, rest, spring)


def with_elastic(
    model: Model, builder: Builder, joints: Any, stiffness: Any, rotor: Any, ratio: Any, damping: Any, spring: Any
) -> None:
    """These joints in series with springs, in the builder."""
    for name in matching("joints", joints, [joint.name for joint in model.joints], model.name):
        builder.elastic(name, stiffness, rotor, ratio, damping, spring)
