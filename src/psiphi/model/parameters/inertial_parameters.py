"""Parameters of a robot: made from masses, loads or at random, and whether bodies can have them.

Mass and moments are those of some density exactly when the pseudo-inertia

    S = [[J, m c], [m c*, m]],      J = tr(I) 1 / 2 - I

has no negative eigenvalue (Wensing, Kim and Slotine 2018). With any A, A S A* is the S of the body sheared, scaled and shifted:
so random bodies are made from one that there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.memory_layout import room
from psiphi._util.text import nearest, shown
from psiphi._util.validate import batch_axes, frozen, generator, positive, real, whole
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning
from psiphi.model.builder.pose_values import place, pose
from psiphi.model.components import second_moments
from psiphi.model.editing.replacement import with_bodies
from psiphi.model.inertias import of_second_moments, off_origin
from psiphi.model.loops.cluster_joints import free_coordinates
from psiphi.model.model import WORLD, Body
from psiphi.model.parameters.free_parameters import (
    OF_COORDINATES,
    UPPER,
    FreeParameters,
    ParameterBlock,
    moments,
    ten,
)
from psiphi.model.state_checks import element, first

LEAST = -1e-9  # of the mass: an eigenvalue of S that is rounding and no negative one


def pseudo_inertia(pi: np.ndarray) -> np.ndarray:
    """S (..., 4, 4) of the ten numbers (..., 10) of a body."""
    S = np.empty((*pi.shape[:-1], 4, 4))
    S[..., 3, 3], S[..., :3, 3] = pi[..., 0], pi[..., 1:4]
    S[..., 3, :3] = S[..., :3, 3]
    I = symmetric(pi[..., 4:])
    S[..., :3, :3] = second_moments(I)
    return S


def from_pseudo_inertia(S: np.ndarray) -> np.ndarray:
    """The ten numbers (..., 10) of S."""
    I = of_second_moments(S[..., :3, :3])
    return np.concatenate([S[..., 3:, 3], S[..., :3, 3], I[..., UPPER[0], UPPER[1]]], axis=-1)


def symmetric(six: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of xx xy xz yy yz zz."""
    return six[..., [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]


def soundness(pi: np.ndarray) -> np.ndarray:
    """(...): the least eigenvalue of S in units of the mass and the radius of gyration; -inf of a mass that is none."""
    S = pseudo_inertia(np.asarray(pi, dtype=float))
    m = S[..., 3, 3]
    with np.errstate(all="ignore"):
        radius = np.sqrt(np.trace(S[..., :3, :3], axis1=-2, axis2=-1) / m)
        scale = np.where(radius > 0.0, 1.0 / radius, 1.0)[..., None] * np.array(
            [1.0, 1.0, 1.0, 0.0]
        ) + [0.0, 0.0, 0.0, 1.0]
        scaled = S * scale[..., :, None] * scale[..., None, :] / m[..., None, None]
    good = (m > 0.0) & np.isfinite(scaled).all(axis=(-2, -1))
    least = np.linalg.eigvalsh(np.where(good[..., None, None], scaled, np.eye(4)))[..., 0]
    return np.where(good, least, np.where((S == 0.0).all(axis=(-2, -1)), 0.0, -np.inf))


def consistent(freed: FreeParameters, parameters: np.ndarray) -> np.ndarray:
    """The parameters, with NaN in elements of a batch that no body can have; one set of them is an error."""
    wrong = np.zeros(parameters.shape[:-1], dtype=bool)
    for block in freed.blocks:
        bad = _impossible(freed, block, parameters[..., block.own])
        if parameters.ndim == 1 and bad:
            raise StateError(
                _fault(freed, block, parameters[block.own]),
                "light.parameters() are the robot's own",
            )
        wrong |= bad
    return np.where(wrong[..., None], np.nan, parameters) if wrong.any() else parameters


def refuse(freed: FreeParameters, parameters: np.ndarray) -> None:
    """An error that names the first element of a batch that no body can have, and what is wrong with it."""
    for block in freed.blocks:
        values = parameters[..., block.own]
        place = first(np.asarray(_impossible(freed, block, values)))
        if place is not None:
            cause = _fault(freed, block, values[place]) + element(place)
            raise StateError(
                cause,
                "light.parameters() are the robot's own; light.consistent makes such elements NaN",
            )


def _impossible(freed: FreeParameters, block: ParameterBlock, values: np.ndarray) -> Any:
    if (
        block.word == "inertia"
    ):  # no worse than the robot's own, where a file has something impossible
        own = float(soundness(freed.values[block.own]))
        return ~(soundness(values) >= min(LEAST, 1.001 * own))
    good = (
        np.isfinite(values)
        if block.word in ("com", "offsets")
        else np.isfinite(values) & (values >= 0.0)
    )
    return ~good.all(axis=-1)


def _fault(freed: FreeParameters, block: ParameterBlock, values: np.ndarray) -> str:
    names = freed.names[block.own]
    place = first(~np.isfinite(values)) or (
        first(values < 0.0) if block.word not in ("inertia", "com", "offsets") else None
    )
    if place is None and block.word == "inertia" and not values[0] > 0.0:
        place = (0,)
    if place is not None:
        return f"parameters: {names[place[0]]} is {values[place]:.6g}, which it cannot be"
    link, least = freed.nominal.bodies[block.index].name, float(soundness(values))
    return f"parameters: no body has the inertia of link {link!r}: its mass density would be negative somewhere ({least:.3g})"


# -- made -------------------------------------------------------------------------------------------------------------------


def masses(freed: FreeParameters, given: Any) -> np.ndarray:
    """With other masses, by link."""
    if not isinstance(given, Mapping) or not given:
        raise StateError(
            f"masses is {shown(given)}, expected {{link: mass}}", "name links that are free"
        )
    new: dict[ParameterBlock, np.ndarray] = {}
    for link, mass in given.items():
        block = _of_link(freed, link, ("inertia", "mass"))
        m, own = _kilograms(f"the mass of {link}", mass), freed.values[block.own]
        if block.word == "inertia" and not own[0] > 0.0:
            raise StateError(f"link {link!r} has no mass to scale", "use payload")
        new[block] = m[..., None] * (own / own[0] if block.word == "inertia" else 1.0)
    return _filled(freed, new)


def payload(
    robot: Any, freed: FreeParameters, frame: Any, mass: Any, com: Any, inertia: Any
) -> np.ndarray:
    """With a load on a frame; where mass is free alone, its centre of mass must not move."""
    spot = robot.frame(frame)
    if spot.body == WORLD:
        raise StateError(
            f"frame {shown(frame)} is on the world", "name a frame of a link that moves"
        )
    link = freed.nominal.bodies[spot.body].name
    block = _of_link(freed, link, ("inertia",))
    m, c = _kilograms("mass", mass), real("com", com, (3,), "give x, y, z")
    I = real(
        "inertia",
        np.zeros((3, 3)) if inertia is None else inertia,
        (3, 3),
        "give 3x3 about the centre of mass",
    )
    R, t = spot.pose.rotation, spot.pose.translation
    lead = batch_axes("payload", {"mass": m.shape, "com": c.shape[:-1], "inertia": I.shape[:-2]})
    c, I = np.broadcast_to(c @ R.T + t, (*lead, 3)), np.broadcast_to(R @ I @ R.T, (*lead, 3, 3))
    m = np.broadcast_to(m, lead)
    about = I + off_origin(m, c)
    load = np.concatenate([m[..., None], m[..., None] * c, about[..., UPPER[0], UPPER[1]]], axis=-1)
    return _filled(freed, {block: freed.values[block.own] + load})


def _kilograms(what: str, mass: Any) -> np.ndarray:
    """Masses (...) of 0 or more."""
    m = real(what, mass, (), "give kilograms")
    if (m < 0.0).any():
        raise StateError(f"{what} is {shown(mass)}, expected 0 or more", "give kilograms")
    return m


def randomised(freed: FreeParameters, size: Any, spread: Any, seed: Any) -> np.ndarray:
    """Random, about the robot's own: bodies are scaled, sheared and shifted, positive numbers scaled."""
    rng = generator(seed)
    width = positive("spread", spread, "give a relative spread, 0.1 for instance", 10.0)
    lead = tuple(whole("size", n) for n in (size if isinstance(size, tuple | list) else (size,)))
    try:
        return _filled(
            freed, {block: _random(freed, block, lead, width, rng) for block in freed.blocks}
        )
    except (ValueError, MemoryError) as error:
        raise StateError(
            f"size is {shown(size)}, more than the memory holds", "make them in parts"
        ) from error


def _random(
    freed: FreeParameters,
    block: ParameterBlock,
    lead: tuple[int, ...],
    width: float,
    rng: np.random.Generator,
) -> np.ndarray:
    own = freed.values[block.own]
    if block.word in (*OF_COORDINATES, "mass"):
        return own * np.exp(width * rng.standard_normal((*lead, len(own))))
    if block.word == "offsets":  # of a tenth of a metre, and of a radian
        return own + 0.1 * width * rng.standard_normal((*lead, 6))
    S = pseudo_inertia(ten(freed.nominal.bodies[block.index]))
    radius = np.sqrt(max(np.trace(S[:3, :3]), 0.0) / S[3, 3]) if S[3, 3] > 0.0 else 1.0
    if block.word == "com":
        return own + width * radius * rng.standard_normal((*lead, 3))
    share = np.ones(
        (4, 4)
    )  # shears, shifts of the extent (none of a point at the origin), and the mass's own
    share[:3, 3], share[3, :3] = radius, 0.0
    shear = 0.5 * width * rng.standard_normal((*lead, 4, 4)) * share
    A = np.eye(4) + shear
    return from_pseudo_inertia(A @ S @ np.swapaxes(A, -1, -2))


def baked(freed: FreeParameters, parameters: np.ndarray) -> Any:
    """The nominal robot with other numbers: what was free is built in."""
    robot: Any = freed.nominal
    builder, bodies = Builder(spanning(robot)), {}
    for k, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        parts = freed.parts(k, parameters)
        if parts.keys() & {"inertia", "mass", "com"}:
            bodies[k] = _body(body, *moments(body, parts))
        record = builder.joints[joint.name]
        new: dict[str, Any] = {
            word: _put(getattr(record, word), free_coordinates(robot, joint), parts[word])
            for word in OF_COORDINATES
            if word in parts
        }
        if "offsets" in parts:
            there = pose("the offsets", parts["offsets"].reshape(2, 3))
            new["place"] = place(robot.frames[record.parent].pose.inv @ there)
        builder.joints[joint.name] = replace(record, **new)
    with_bodies(builder, robot, bodies)
    return robot._built(builder)


def rubbing(robot: Any, friction: np.ndarray) -> Any:
    """The robot with other dry friction (nv,)."""
    builder = Builder(spanning(robot))
    for joint in robot.joints:
        record = builder.joints[joint.name]
        own = _put(record.friction, free_coordinates(robot, joint), friction[joint.v_slice])
        builder.joints[joint.name] = replace(record, friction=own)
    return robot._built(builder)


def _put(known: tuple[float, ...], places: Sequence[int], values: np.ndarray) -> tuple[float, ...]:
    """The numbers of a joint's coordinates, with others at these places."""
    found = list(known)
    for i, value in zip(places, values.tolist(), strict=True):
        found[i] = value
    return tuple(found)


def _body(body: Body, m: float, mc: list, J: list) -> Body:
    """The body with other mass, first and second moment about its link's origin."""
    c = np.array(mc) / m if m > 0.0 else np.zeros(3)
    central = J - m * np.outer(c, c)
    return replace(
        body, mass=float(m), com=frozen(c), inertia=frozen(of_second_moments(central)), solid=None
    )


def total_mass(robot: Any, freed: FreeParameters, parameters: Any) -> Any:
    """The mass of all moving bodies."""
    held = {block.index: block for block in freed.blocks if block.word in ("inertia", "mass")}
    rest = sum(body.mass for k, body in enumerate(robot.bodies) if k not in held)
    total = rest + sum(np.asarray(parameters)[..., block.start] for block in held.values())
    return float(total) if np.ndim(total) == 0 else total


def _of_link(freed: FreeParameters, link: Any, words: tuple[str, ...]) -> ParameterBlock:
    known = {
        freed.nominal.bodies[block.index].name: block
        for block in freed.blocks
        if block.word in words
    }
    if not isinstance(link, str) or link not in known:
        raise StateError(
            f"{' or '.join(words)} of link {shown(link)} is not free", nearest(link, known)
        )
    return known[link]


def _filled(freed: FreeParameters, new: Mapping[ParameterBlock, np.ndarray]) -> np.ndarray:
    """The robot's own numbers, with some blocks of others."""
    lead = batch_axes(
        "",
        {
            f"{block.word} of {freed.nominal.bodies[block.index].name}": values.shape[:-1]
            for block, values in new.items()
        },
    )
    out = room(lead, freed.size)
    out[...] = freed.values
    for block, values in new.items():
        out[..., block.own] = values
    return out
