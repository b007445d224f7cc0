"""What of a MuJoCo model has no counterpart: a row each, with what it is about; what would change the motion is a doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.text import listed
from psiphi.io.mujoco.mujoco_actuators import (
    actuators,
    is_direct_motor,
    joint_motors,
    force_range,
    rotor_values,
)
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import DocumentRecord

FREE, BALL = 0, 1
CONSTRAINT, FRICTIONLOSS, LIMIT, SPRING, DAMPER = 1, 4, 8, 32, 64  # mjtDisableBit


class UnsupportedFeature(NamedTuple):
    """`who` gives the names it is about, none where it is not there; `moves`: MuJoCo's motion depends on it."""

    find: Callable[[Any, Any], Iterable[str]]
    text: str
    affects_motion: bool


def _free_joint_values(word: str) -> Callable[[Any, Any], list[str]]:
    """Free joints with such numbers of their slides, which are along the world's axes."""

    def who(peer: Any, names: Any) -> list[str]:
        own, free = (
            getattr(peer, f"dof_{word}"),
            (j for j in range(peer.njnt) if peer.jnt_type[j] == FREE),
        )
        return [
            names.joints[j]
            for j in free
            if np.any(own[peer.jnt_dofadr[j] : peer.jnt_dofadr[j] + 3])
        ]

    return who


def _ball_springs(peer: Any, names: Any) -> list[str]:
    """Springs of balls and of free joints."""
    bent = getattr(peer, "jnt_stiffnesspoly", peer.jnt_stiffness)  # from MuJoCo 4 on
    turning = [j for j in range(peer.njnt) if peer.jnt_type[j] in (FREE, BALL)]
    return [names.joints[j] for j in turning if np.any(peer.jnt_stiffness[j]) or np.any(bent[j])]


def _nonlinear_damping(peer: Any, names: Any) -> list[str]:
    bent = getattr(peer, "dof_dampingpoly", ())  # from MuJoCo 4 on
    own = [names.joints[int(peer.dof_jntid[d])] for d, more in enumerate(bent) if np.any(more)]
    return own + [
        _actuator(peer, a) for a in actuators(peer) if np.any(rotor_values(peer, "dampingpoly")[a])
    ]


def _yielding_springs(peer: Any, names: Any) -> list[str]:
    yields = getattr(peer, "jnt_springyield", np.zeros(peer.njnt))  # from MuJoCo 4 on
    return [
        names.joints[j] for j in range(peer.njnt) if yields[j] and np.any(peer.jnt_stiffness[j])
    ]


def _disabled_forces(peer: Any, names: Any) -> list[str]:
    """By <flag>: what the joints have all the same."""
    kept = {
        "springs": (SPRING, peer.jnt_stiffness),
        "damping": (DAMPER, peer.dof_damping),
        "frictionloss": (CONSTRAINT | FRICTIONLOSS, peer.dof_frictionloss),
        "limits": (CONSTRAINT | LIMIT, peer.jnt_limited),
    }
    return [
        word
        for word, (bits, numbers) in kept.items()
        if peer.opt.disableflags & bits and np.any(numbers)
    ]


def _ball_limits(peer: Any, names: Any) -> list[str]:
    return [
        names.joints[j]
        for j in range(peer.njnt)
        if peer.jnt_limited[j] and peer.jnt_type[j] == BALL
    ]


def _fluid(peer: Any, names: Any) -> list[str]:
    return ["the medium"] if peer.opt.density or peer.opt.viscosity else []


def _colliding_geoms(peer: Any, names: Any) -> list[str]:
    geoms = np.flatnonzero(
        (np.asarray(peer.geom_contype) != 0) | (np.asarray(peer.geom_conaffinity) != 0)
    )
    return [peer.geom(int(i)).name or f"geom{i}" for i in geoms]


def _motors_by_joint(peer: Any) -> dict[int, list[int]]:
    """The motors by joint."""
    return {j: found for j in range(peer.njnt) if (found := joint_motors(peer, j))}


def _joints_without_actuator(peer: Any, names: Any) -> list[str]:
    driven = {
        int(peer.actuator_trnid[a, 0]) for a in actuators(peer) if peer.actuator_trntype[a] == 0
    } | _motors_by_joint(peer).keys()
    return [
        names.joints[j]
        for j in range(peer.njnt)
        if actuators(peer) and j not in driven and peer.jnt_type[j] != FREE
    ]


def _other_actuators(peer: Any, names: Any) -> list[str]:
    """Actuators that are more than a plain motor on a joint."""
    on_joints = {a for found in _motors_by_joint(peer).values() for a in found}
    plain = [
        is_direct_motor(peer, a) and (peer.actuator_trntype[a] == 0 or a in on_joints)
        for a in actuators(peer)
    ]
    return [_actuator(peer, a) for a in actuators(peer) if not plain[a]]


def _rotors_off_joints(peer: Any, names: Any) -> list[str]:
    """Actuators with rotors that are not on a hinge or a slide."""
    on_joints = {a for found in _motors_by_joint(peer).values() for a in found}
    heavy = [
        a
        for a in actuators(peer)
        if rotor_values(peer, "armature")[a] or rotor_values(peer, "damping")[a]
    ]
    return [_actuator(peer, a) for a in heavy if a not in on_joints]


def _asymmetric_limits(peer: Any, names: Any) -> list[str]:
    """Joints whose motors can do more in one direction than in the other."""
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


def _actuator(peer: Any, a: int) -> str:
    return peer.actuator(a).name or f"actuator{a}"


def _keyframes_with_velocity(peer: Any, names: Any) -> list[str]:
    return [peer.key(i).name or f"key{i}" for i in range(peer.nkey) if np.any(peer.key_qvel[i])]


def _all_of(kind: str, count: str) -> Callable[[Any, Any], list[str]]:
    """All of a kind, by name; numbered where MuJoCo gives no names."""

    def who(peer: Any, names: Any) -> list[str]:
        named = not isinstance(getattr(peer, kind, peer.qpos0), np.ndarray)
        known = [getattr(peer, kind)(i).name if named else "" for i in range(getattr(peer, count))]
        return [name or f"{kind}{i}" for i, name in enumerate(known)]

    return who


UNSUPPORTED = (
    *(
        UnsupportedFeature(
            _free_joint_values(word),
            f"{word} of the three slides of a free joint: left out, that of its turns is kept",
            True,
        )
        for word in ("armature", "frictionloss")
    ),
    UnsupportedFeature(
        _ball_springs, "springs of ball and free joints (stiffness): left out", True
    ),
    UnsupportedFeature(
        _nonlinear_damping, "damping that is not linear: its linear part is kept", True
    ),
    UnsupportedFeature(_yielding_springs, "springs that yield: here they do not", True),
    UnsupportedFeature(_disabled_forces, "switched off by a flag there, kept as data here", True),
    UnsupportedFeature(
        _rotors_off_joints,
        "armature and damping of actuators that are not on a hinge or a slide: left out",
        True,
    ),
    UnsupportedFeature(
        _all_of("tendon", "ntendon"),
        "tendons, with their springs, dampers and armature: left out",
        True,
    ),
    UnsupportedFeature(_all_of("flex", "nflex"), "flexible bodies: left out", True),
    UnsupportedFeature(_all_of("plugin", "nplugin"), "plugins: left out", True),
    UnsupportedFeature(_fluid, "forces of wind and water: left out", True),
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
    UnsupportedFeature(
        _other_actuators, "actuators with laws of their own, or not on a joint: left out", False
    ),
    UnsupportedFeature(
        _asymmetric_limits,
        "torques that are limited otherwise by direction: the larger limit is kept",
        False,
    ),
    UnsupportedFeature(
        _joints_without_actuator,
        "joints without an actuator: name them passive where motors matter",
        False,
    ),
    UnsupportedFeature(
        _keyframes_with_velocity,
        "velocities of keyframes: left out, a posture is a configuration",
        False,
    ),
    UnsupportedFeature(_colliding_geoms, "geoms that collide: there are no contacts here", False),
)


def report_unsupported(builder: Builder, peer: Any, names: Any) -> None:
    """The rows that apply, in the report."""
    for row in UNSUPPORTED:
        who = list(dict.fromkeys(row.find(peer, names)))
        if who:
            say = builder.notes.warn if row.affects_motion else builder.notes.note
            say(DocumentRecord("MuJoCo"), f"{row.text} ({listed(who)})")
