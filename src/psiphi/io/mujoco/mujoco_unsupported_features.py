"""Features of MuJoCo models that psiphi does not support: one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from psiphi._util.text import listed
from psiphi.io.mujoco.mujoco_actuators import (
    actuators,
    force_range,
    is_direct_motor,
    joint_motors,
    rotor_values,
)
from psiphi.io.mujoco.mujoco_geoms import KINDS, collides, is_mesh
from psiphi.io.peer_models import MjModel
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import DocumentRecord

if TYPE_CHECKING:
    from psiphi.io.mujoco.from_mujoco import NameTable

FREE, BALL = 0, 1
CONSTRAINT, FRICTIONLOSS, LIMIT, SPRING, DAMPER = 1, 4, 8, 32, 64  # mjtDisableBit


Find: TypeAlias = "Callable[[MjModel, NameTable], Iterable[str]]"


class UnsupportedFeature(NamedTuple):
    """A feature that psiphi does not support.

    `find` lists the names of the elements that have it. If it `affects_motion`, the report is a
    warning, else a note.
    """

    find: Find
    text: str
    affects_motion: bool


def _free_joint_values(word: str) -> Find:
    """Free joints with nonzero `word` of their translations, which are along world axes."""

    def find(peer: MjModel, names: NameTable) -> list[str]:
        values, free = (
            getattr(peer, f"dof_{word}"),
            (j for j in range(peer.njnt) if peer.jnt_type[j] == FREE),
        )
        return [
            names.joints[j]
            for j in free
            if np.any(values[peer.jnt_dofadr[j] : peer.jnt_dofadr[j] + 3])
        ]

    return find


def _ball_springs(peer: MjModel, names: NameTable) -> list[str]:
    """Ball and free joints with a spring."""
    terms = getattr(peer, "jnt_stiffnesspoly", peer.jnt_stiffness)  # from MuJoCo 4 on
    rotating = [j for j in range(peer.njnt) if peer.jnt_type[j] in (FREE, BALL)]
    return [names.joints[j] for j in rotating if np.any(peer.jnt_stiffness[j]) or np.any(terms[j])]


def _nonlinear_damping(peer: MjModel, names: NameTable) -> list[str]:
    """Joints and actuators with nonlinear damping."""
    terms = getattr(peer, "dof_dampingpoly", ())  # from MuJoCo 4 on
    joints = [names.joints[int(peer.dof_jntid[d])] for d, row in enumerate(terms) if np.any(row)]
    return joints + [
        _actuator(peer, a) for a in actuators(peer) if np.any(rotor_values(peer, "dampingpoly")[a])
    ]


def _yielding_springs(peer: MjModel, names: NameTable) -> list[str]:
    """Joints whose spring yields."""
    yields = getattr(peer, "jnt_springyield", np.zeros(peer.njnt))  # from MuJoCo 4 on
    return [
        names.joints[j] for j in range(peer.njnt) if yields[j] and np.any(peer.jnt_stiffness[j])
    ]


def _disabled_forces(peer: MjModel, names: NameTable) -> list[str]:
    """Joint forces that a <flag> disables although the joints have values for them."""
    forces = {
        "springs": (SPRING, peer.jnt_stiffness),
        "damping": (DAMPER, peer.dof_damping),
        "frictionloss": (CONSTRAINT | FRICTIONLOSS, peer.dof_frictionloss),
        "limits": (CONSTRAINT | LIMIT, peer.jnt_limited),
    }
    return [
        word
        for word, (bits, numbers) in forces.items()
        if peer.opt.disableflags & bits and np.any(numbers)
    ]


def _ball_limits(peer: MjModel, names: NameTable) -> list[str]:
    """Ball joints with a limit."""
    return [
        names.joints[j]
        for j in range(peer.njnt)
        if peer.jnt_limited[j] and peer.jnt_type[j] == BALL
    ]


def _fluid(peer: MjModel, names: NameTable) -> list[str]:
    return ["the medium"] if peer.opt.density or peer.opt.viscosity else []


def _colliding_geoms(peer: MjModel, names: NameTable) -> list[str]:
    """Geoms that can collide."""
    return [_geom_name(peer, i) for i in range(peer.ngeom) if collides(peer, i)]


def _colliding_ellipsoids(peer: MjModel, names: NameTable) -> list[str]:
    """Geoms of bodies that can collide, but are no collision shapes."""
    return [
        _geom_name(peer, i)
        for i in range(peer.ngeom)
        if collides(peer, i) and peer.geom_bodyid[i]
        if int(peer.geom_type[i]) not in KINDS and not is_mesh(peer, i)
    ]


def _gaps(peer: MjModel, names: NameTable) -> list[str]:
    """Geoms whose gap lessens their margin: in models made before MuJoCo 4."""
    before = not hasattr(peer, "jnt_stiffnesspoly")
    return [_geom_name(peer, i) for i in range(peer.ngeom) if before and peer.geom_gap[i]]


def _geom_name(peer: MjModel, i: int) -> str:
    return peer.geom(i).name or f"geom{i}"


def _motors_by_joint(peer: MjModel) -> dict[int, list[int]]:
    """The actuators on each joint."""
    return {j: found for j in range(peer.njnt) if (found := joint_motors(peer, j))}


def _joints_without_actuator(peer: MjModel, names: NameTable) -> list[str]:
    """Joints without an actuator, if the model has actuators."""
    driven = {
        int(peer.actuator_trnid[a, 0]) for a in actuators(peer) if peer.actuator_trntype[a] == 0
    } | _motors_by_joint(peer).keys()
    return [
        names.joints[j]
        for j in range(peer.njnt)
        if actuators(peer) and j not in driven and peer.jnt_type[j] != FREE
    ]


def _other_actuators(peer: MjModel, names: NameTable) -> list[str]:
    """Actuators other than a direct motor on a joint."""
    on_joints = {a for found in _motors_by_joint(peer).values() for a in found}
    direct = [
        is_direct_motor(peer, a) and (peer.actuator_trntype[a] == 0 or a in on_joints)
        for a in actuators(peer)
    ]
    return [_actuator(peer, a) for a in actuators(peer) if not direct[a]]


def _rotors_off_joints(peer: MjModel, names: NameTable) -> list[str]:
    """Actuators with a rotor that are not on a hinge or slide."""
    on_joints = {a for found in _motors_by_joint(peer).values() for a in found}
    with_rotor = [
        a
        for a in actuators(peer)
        if rotor_values(peer, "armature")[a] or rotor_values(peer, "damping")[a]
    ]
    return [_actuator(peer, a) for a in with_rotor if a not in on_joints]


def _asymmetric_limits(peer: MjModel, names: NameTable) -> list[str]:
    """Joints whose motors have different limits in the two directions."""
    limits = {
        j: [force_range(peer, a) for a in found] for j, found in _motors_by_joint(peer).items()
    }
    for j in np.flatnonzero(peer.jnt_actfrclimited):
        limits.setdefault(int(j), []).append(peer.jnt_actfrcrange[j])
    return [
        names.joints[j]
        for j, pairs in limits.items()
        if any(pair is not None and pair.sum() for pair in pairs)
    ]


def _actuator(peer: MjModel, a: int) -> str:
    return peer.actuator(a).name or f"actuator{a}"


def _keyframes_with_velocity(peer: MjModel, names: NameTable) -> list[str]:
    """Keyframes with nonzero velocity."""
    return [peer.key(i).name or f"key{i}" for i in range(peer.nkey) if np.any(peer.key_qvel[i])]


def _all_of(kind: str, count: str) -> Find:
    """All elements of a kind by name; nameless ones are numbered."""

    def find(peer: MjModel, names: NameTable) -> list[str]:
        named = not isinstance(getattr(peer, kind, peer.qpos0), np.ndarray)
        known = [getattr(peer, kind)(i).name if named else "" for i in range(getattr(peer, count))]
        return [name or f"{kind}{i}" for i, name in enumerate(known)]

    return find


UNSUPPORTED = (
    *(
        UnsupportedFeature(
            _free_joint_values(word),
            f"{word} of the translations of a free joint: left out; that of its rotations is used",
            True,
        )
        for word in ("armature", "frictionloss")
    ),
    UnsupportedFeature(
        _ball_springs, "springs of ball and free joints (stiffness): left out", True
    ),
    UnsupportedFeature(_nonlinear_damping, "nonlinear damping: only its linear part is used", True),
    UnsupportedFeature(_yielding_springs, "springs that yield: yielding is left out", True),
    UnsupportedFeature(
        _disabled_forces, "disabled by a flag in MuJoCo, but part of the psiphi model", True
    ),
    UnsupportedFeature(
        _rotors_off_joints,
        "armature and damping of actuators that are not on a hinge or slide: left out",
        True,
    ),
    UnsupportedFeature(
        _all_of("tendon", "ntendon"),
        "tendons, with their springs, dampers and armature: left out",
        True,
    ),
    UnsupportedFeature(_all_of("flex", "nflex"), "flexible bodies: left out", True),
    UnsupportedFeature(_all_of("plugin", "nplugin"), "plugins: left out", True),
    UnsupportedFeature(_fluid, "fluid forces (density, viscosity, wind): left out", True),
    UnsupportedFeature(
        lambda p, n: [n.bodies[i] for i in np.flatnonzero(p.body_gravcomp)],
        "gravity compensation: left out",
        True,
    ),
    UnsupportedFeature(_ball_limits, "limits of ball joints: left out", False),
    UnsupportedFeature(
        lambda p, n: [n.bodies[i] for i in np.flatnonzero(p.body_mocapid >= 0)],
        "mocap bodies: welded to the world",
        False,
    ),
    UnsupportedFeature(_other_actuators, "actuators other than motors on joints: left out", False),
    UnsupportedFeature(
        _asymmetric_limits,
        "effort limits that differ by direction: the larger one is used",
        False,
    ),
    UnsupportedFeature(
        _joints_without_actuator,
        "joints without an actuator: pass them as passive= if motors matter",
        False,
    ),
    UnsupportedFeature(
        _keyframes_with_velocity,
        "velocities of keyframes: left out; a posture is a configuration",
        False,
    ),
    UnsupportedFeature(
        _colliding_geoms,
        'geoms that collide: with the ground of a simulation, by robot.with_contacts("collision"), '
        "not with each other",
        False,
    ),
    UnsupportedFeature(_gaps, "gaps of geoms, before MuJoCo 4: left out of their margins", False),
    UnsupportedFeature(
        _colliding_ellipsoids,
        "ellipsoids that collide: left out of the collision shapes",
        False,
    ),
)


def report_unsupported(builder: Builder, peer: MjModel, names: NameTable) -> None:
    """Add the features that the model uses to the report of the builder."""
    for row in UNSUPPORTED:
        found = list(dict.fromkeys(row.find(peer, names)))
        if found:
            report = builder.notes.warn if row.affects_motion else builder.notes.note
            report(DocumentRecord("MuJoCo"), f"{row.text} ({listed(found)})")
