"""Inertial parameters: from masses, payloads or at random; whether a body can have them.

Mass and moments are those of a nonnegative density if and only if the pseudo-inertia

    S = [[J, m c], [m c*, m]],      J = tr(I) 1 / 2 - I

has no negative eigenvalue (Wensing, Kim and Slotine 2018). For any A, A S A* is the S of the body
sheared, scaled and shifted. Random bodies are made in this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.memory_layout import aligned_array
from psiphi._util.text import nearest, shown
from psiphi._util.validate import (
    batch_axes,
    frozen,
    generator,
    positive_number,
    real_array,
    whole_number,
)
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning_tree
from psiphi.model.builder.pose_values import placement, read_pose
from psiphi.model.components import second_moments
from psiphi.model.editing.replacement import with_bodies
from psiphi.model.inertias import inertia_from_second_moments, point_mass_inertia
from psiphi.model.loops.cluster_joints import free_coordinates
from psiphi.model.model import WORLD, Body, Model
from psiphi.model.parameters.free_parameters import (
    OF_COORDINATES,
    UPPER_TRIANGLE,
    FreeParameters,
    ParameterBlock,
    mass_moments,
    standard_parameters,
)
from psiphi.model.state_checks import batch_element, first_true

LEAST = -1e-9  # the tolerance of the smallest eigenvalue of the scaled S


def pseudo_inertia(pi: np.ndarray) -> np.ndarray:
    """S (..., 4, 4) of the ten inertial parameters (..., 10) of a body."""
    S = np.empty((*pi.shape[:-1], 4, 4))
    S[..., 3, 3], S[..., :3, 3] = pi[..., 0], pi[..., 1:4]
    S[..., 3, :3] = S[..., :3, 3]
    I = symmetric_matrices(pi[..., 4:])
    S[..., :3, :3] = second_moments(I)
    return S


def from_pseudo_inertia(S: np.ndarray) -> np.ndarray:
    """The ten inertial parameters (..., 10) of S."""
    I = inertia_from_second_moments(S[..., :3, :3])
    return np.concatenate(
        [S[..., 3:, 3], S[..., :3, 3], I[..., UPPER_TRIANGLE[0], UPPER_TRIANGLE[1]]], axis=-1
    )


def symmetric_matrices(entries: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of (xx, xy, xz, yy, yz, zz)."""
    return entries[..., [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]


def consistency_margin(pi: np.ndarray) -> np.ndarray:
    """The smallest eigenvalue (...) of S, scaled by the mass and the radius of gyration.

    -inf for a mass that is not positive; 0 if all parameters are 0.
    """
    S = pseudo_inertia(np.asarray(pi, dtype=float))
    m = S[..., 3, 3]
    with np.errstate(all="ignore"):
        radius = np.sqrt(np.trace(S[..., :3, :3], axis1=-2, axis2=-1) / m)
        scale = np.where(radius > 0.0, 1.0 / radius, 1.0)[..., None] * np.array(
            [1.0, 1.0, 1.0, 0.0]
        ) + [0.0, 0.0, 0.0, 1.0]
        scaled = S * scale[..., :, None] * scale[..., None, :] / m[..., None, None]
    valid = (m > 0.0) & np.isfinite(scaled).all(axis=(-2, -1))
    least = np.linalg.eigvalsh(np.where(valid[..., None, None], scaled, np.eye(4)))[..., 0]
    return np.where(valid, least, np.where((S == 0.0).all(axis=(-2, -1)), 0.0, -np.inf))


def mask_inconsistent(freed: FreeParameters, parameters: np.ndarray) -> np.ndarray:
    """The parameters, NaN in batch elements that no body can have; without a batch, an error."""
    impossible = np.zeros(parameters.shape[:-1], dtype=bool)
    for block in freed.blocks:
        found = _is_impossible(freed, block, parameters[..., block.columns])
        if parameters.ndim == 1 and found:
            raise StateError(
                _fault(freed, block, parameters[block.columns]),
                "light.parameters() are the robot's own",
            )
        impossible |= found
    return np.where(impossible[..., None], np.nan, parameters) if impossible.any() else parameters


def check_consistency(freed: FreeParameters, parameters: np.ndarray) -> None:
    """Raise an error for the first batch element that no body can have."""
    for block in freed.blocks:
        values = parameters[..., block.columns]
        place = first_true(np.asarray(_is_impossible(freed, block, values)))
        if place is not None:
            raise StateError(
                _fault(freed, block, values[place]) + batch_element(place),
                "light.parameters() are the robot's own; light.consistent makes such elements NaN",
            )


def _is_impossible(freed: FreeParameters, block: ParameterBlock, values: np.ndarray) -> np.ndarray:
    """Whether no body can have the values (..., size of the block)."""
    if block.group == "inertia":  # values as impossible as those of the file are accepted
        nominal = float(consistency_margin(freed.values[block.columns]))
        return ~(consistency_margin(values) >= min(LEAST, 1.001 * nominal))
    valid = np.isfinite(values)
    if block.group not in ("com", "offsets"):
        valid &= values >= 0.0
    return np.asarray(~valid.all(axis=-1))


def _fault(freed: FreeParameters, block: ParameterBlock, values: np.ndarray) -> str:
    """What is wrong with the values of a block."""
    names = freed.names[block.columns]
    place = first_true(~np.isfinite(values)) or (
        first_true(values < 0.0) if block.group not in ("inertia", "com", "offsets") else None
    )
    if place is None and block.group == "inertia" and not values[0] > 0.0:
        place = (0,)
    if place is not None:
        return f"parameters: {names[place[0]]} is {values[place]:.6g}, which is impossible"
    link, least = freed.nominal.bodies[block.body].name, float(consistency_margin(values))
    return (
        f"parameters: no body has the inertia of link {link!r}: its mass density would be negative "
        f"somewhere ({least:.3g})"
    )


def masses(freed: FreeParameters, masses: Mapping[str, Numbers]) -> np.ndarray:
    """The parameters with other masses, {link: mass}; inertias scale with the mass."""
    if not isinstance(masses, Mapping) or not masses:
        raise StateError(
            f"masses is {shown(masses)}, expected {{link: mass}}", "name links that are free"
        )
    new: dict[ParameterBlock, np.ndarray] = {}
    for link, mass in masses.items():
        block = _block_of_link(freed, link, ("inertia", "mass"))
        m, nominal = _masses_array(f"the mass of {link}", mass), freed.values[block.columns]
        if block.group == "inertia" and not nominal[0] > 0.0:
            raise StateError(f"link {link!r} has no mass to scale", "use payload")
        new[block] = m[..., None] * (nominal / nominal[0] if block.group == "inertia" else 1.0)
    return _with_blocks(freed, new)


def payload(
    robot: Model,
    freed: FreeParameters,
    frame: str,
    mass: Numbers,
    com: Numbers,
    inertia: Numbers | None,
) -> np.ndarray:
    """The parameters with a load on a frame; the inertia of the frame's link must be free."""
    seat = robot.frame(frame)
    if seat.body == WORLD:
        raise StateError(
            f"frame {shown(frame)} is on the world", "name a frame of a link that moves"
        )
    link = freed.nominal.bodies[seat.body].name
    block = _block_of_link(freed, link, ("inertia",))
    m, c = _masses_array("mass", mass), real_array("com", com, (3,), "give x, y, z")
    I = real_array(
        "inertia",
        np.zeros((3, 3)) if inertia is None else inertia,
        (3, 3),
        "give 3x3 about the centre of mass",
    )
    R, t = seat.pose.rotation, seat.pose.translation
    lead = batch_axes("payload", {"mass": m.shape, "com": c.shape[:-1], "inertia": I.shape[:-2]})
    c, I = np.broadcast_to(c @ R.T + t, (*lead, 3)), np.broadcast_to(R @ I @ R.T, (*lead, 3, 3))
    m = np.broadcast_to(m, lead)
    I = I + point_mass_inertia(m, c)  # about the link's origin
    load = np.concatenate(
        [m[..., None], m[..., None] * c, I[..., UPPER_TRIANGLE[0], UPPER_TRIANGLE[1]]], axis=-1
    )
    return _with_blocks(freed, {block: freed.values[block.columns] + load})


def _masses_array(what: str, mass: Numbers) -> np.ndarray:
    """Masses (...) of at least 0."""
    m = real_array(what, mass, (), "give kilograms")
    if (m < 0.0).any():
        raise StateError(f"{what} is {shown(mass)}, expected 0 or more", "give kilograms")
    return m


def random_parameters(
    freed: FreeParameters,
    size: int | Sequence[int],
    spread: float,
    seed: np.random.Generator | int | None,
) -> np.ndarray:
    """Random parameters (*size, n) about the nominal ones.

    Bodies are scaled, sheared and shifted; positive numbers are scaled.
    """
    rng = generator(seed)
    width = positive_number("spread", spread, "give a relative spread, 0.1 for instance", 10.0)
    lead = tuple(
        whole_number("size", n) for n in (size if isinstance(size, tuple | list) else (size,))
    )
    try:
        return _with_blocks(
            freed, {block: _random(freed, block, lead, width, rng) for block in freed.blocks}
        )
    except (ValueError, MemoryError) as error:
        raise StateError(
            f"size is {shown(size)}, which does not fit in memory", "make several calls"
        ) from error


def _random(
    freed: FreeParameters,
    block: ParameterBlock,
    lead: tuple[int, ...],
    width: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Random values (*lead, size of the block) about the nominal ones."""
    nominal = freed.values[block.columns]
    if block.group in (*OF_COORDINATES, "mass"):
        return nominal * np.exp(width * rng.standard_normal((*lead, len(nominal))))
    if block.group == "offsets":  # relative to 0.1 m and 0.1 rad
        return nominal + 0.1 * width * rng.standard_normal((*lead, 6))
    S = pseudo_inertia(standard_parameters(freed.nominal.bodies[block.body]))
    radius = np.sqrt(max(np.trace(S[:3, :3]), 0.0) / S[3, 3]) if S[3, 3] > 0.0 else 1.0
    if block.group == "com":
        return nominal + width * radius * rng.standard_normal((*lead, 3))
    # A = [[shear, shift], [0, scale]]; shifts are relative to the radius of gyration.
    weights = np.ones((4, 4))
    weights[:3, 3], weights[3, :3] = radius, 0.0
    A = np.eye(4) + 0.5 * width * rng.standard_normal((*lead, 4, 4)) * weights
    return from_pseudo_inertia(A @ S @ np.swapaxes(A, -1, -2))


def fix_parameters(freed: FreeParameters, parameters: np.ndarray) -> Any:
    """The nominal robot with these values as constants."""
    robot: Any = freed.nominal
    builder, bodies = Builder(spanning_tree(robot)), {}
    for k, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        parts = freed.parts(k, parameters)
        if parts.keys() & {"inertia", "mass", "com"}:
            bodies[k] = _body_of_moments(body, *mass_moments(body, parts))
        record = builder.joints[joint.name]
        free = free_coordinates(robot, joint)
        new: dict[str, Any] = {
            group: _with_values(getattr(record, group), free, parts[group])
            for group in OF_COORDINATES
            if group in parts
        }
        if "offsets" in parts:
            pose = read_pose("the offsets", parts["offsets"].reshape(2, 3))
            new["place"] = placement(robot.frames[record.parent].pose.inv @ pose)
        builder.joints[joint.name] = replace(record, **new)
    with_bodies(builder, robot, bodies)
    return robot.rebuild(builder)


def with_friction(robot: Any, friction: np.ndarray) -> Any:
    """The robot with other dry friction (nv,). `robot` is a `Robot`."""
    builder = Builder(spanning_tree(robot))
    for joint in robot.joints:
        record = builder.joints[joint.name]
        free = free_coordinates(robot, joint)
        new = _with_values(record.friction, free, friction[joint.v_slice])
        builder.joints[joint.name] = replace(record, friction=new)
    return robot.rebuild(builder)


def _with_values(
    numbers: tuple[float, ...], indices: Sequence[int], values: np.ndarray
) -> tuple[float, ...]:
    """The numbers, with `values` at `indices`."""
    out = list(numbers)
    for i, value in zip(indices, values.tolist(), strict=True):
        out[i] = value
    return tuple(out)


def _body_of_moments(body: Body, m: float, mc: list, J: list) -> Body:
    """The body with other mass, and first and second moments about the link's origin."""
    c = np.array(mc) / m if m > 0.0 else np.zeros(3)
    central = J - m * np.outer(c, c)
    return replace(
        body,
        mass=float(m),
        com=frozen(c),
        inertia=frozen(inertia_from_second_moments(central)),
        solid=None,
    )


def total_mass(robot: Model, freed: FreeParameters, parameters: np.ndarray) -> float | np.ndarray:
    """The mass of all moving bodies, for parameters (..., n)."""
    free = {block.body: block for block in freed.blocks if block.group in ("inertia", "mass")}
    fixed = sum(body.mass for k, body in enumerate(robot.bodies) if k not in free)
    total = fixed + sum(np.asarray(parameters)[..., block.start] for block in free.values())
    return float(total) if np.ndim(total) == 0 else total


def _block_of_link(freed: FreeParameters, link: object, groups: tuple[str, ...]) -> ParameterBlock:
    """The block of a link in one of these groups."""
    known = {
        freed.nominal.bodies[block.body].name: block
        for block in freed.blocks
        if block.group in groups
    }
    if not isinstance(link, str) or link not in known:
        raise StateError(
            f"{' or '.join(groups)} of link {shown(link)} is not free", nearest(link, known)
        )
    return known[link]


def _with_blocks(freed: FreeParameters, new: Mapping[ParameterBlock, np.ndarray]) -> np.ndarray:
    """The nominal parameters, with new values (..., size) of some blocks."""
    shapes = {
        f"{block.group} of {freed.nominal.bodies[block.body].name}": values.shape[:-1]
        for block, values in new.items()
    }
    lead = batch_axes("", shapes)
    out = aligned_array(lead, freed.size)
    out[...] = freed.values
    for block, values in new.items():
        out[..., block.columns] = values
    return out
