"""Effort limits and rotors of MuJoCo's actuators on hinges and slides.

From MuJoCo 4 on, an actuator may have several controls and outputs, and a rotor. Gears are stored
per output, control ranges per control.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psiphi.io.peer_models import MjModel

ON_JOINT = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
SLIDE, HINGE = 2, 3  # mjtJoint


def actuators(peer: MjModel) -> range:
    """The indices of all actuators."""
    return range(getattr(peer, "nactuator", peer.nu))


def addresses(peer: MjModel, word: str) -> Sequence[int] | np.ndarray:
    """The first output ("outadr") or control ("ctrladr") of each actuator."""
    return getattr(peer, f"actuator_{word}", actuators(peer))


def rotor_values(peer: MjModel, word: str) -> np.ndarray:
    """The "armature", "damping" or "dampingpoly" of all actuators; zero before MuJoCo 4."""
    return getattr(peer, f"actuator_{word}", np.zeros(len(actuators(peer))))


def joint_motors(peer: MjModel, j: int) -> list[int]:
    """The actuators on joint j, if it is a hinge or slide."""
    if peer.jnt_type[j] not in (SLIDE, HINGE):
        return []
    on_joint = [
        a
        for a in actuators(peer)
        if peer.actuator_trntype[a] in ON_JOINT and peer.actuator_trnid[a, 0] == j
    ]
    return [a for a in on_joint if gear(peer, a)]


def gear(peer: MjModel, actuator: int) -> float:
    """The gear ratio of an actuator on a hinge or slide."""
    return float(peer.actuator_gear[addresses(peer, "outadr")[actuator], 0])


def reflected(peer: MjModel, j: int, word: str) -> float:
    """Armature or damping of the rotors on joint j, reflected to the joint: gear² times that."""
    return sum(
        gear(peer, a) ** 2 * float(rotor_values(peer, word)[a]) for a in joint_motors(peer, j)
    )


def effort_limit(peer: MjModel, j: int) -> float | None:
    """The effort limit of joint j: its own, or the sum of gear times force of its actuators."""
    motors = joint_motors(peer, j)
    limits = [sum(_largest_force(peer, a) * abs(gear(peer, a)) for a in motors)] if motors else []
    if peer.jnt_actfrclimited[j]:
        limits.append(float(np.abs(peer.jnt_actfrcrange[j]).max()))
    least = min(limits, default=np.inf)
    return least if np.isfinite(least) else None


def is_direct_motor(peer: MjModel, actuator: int) -> bool:
    """Whether the force of an actuator is a constant times its control."""
    kinds = peer.actuator_dyntype, peer.actuator_gaintype, peer.actuator_biastype
    return not any(kind[actuator] for kind in kinds)


def force_range(peer: MjModel, actuator: int) -> np.ndarray | None:
    """The force range of an actuator; for a direct motor without one, gain times control range."""
    if peer.actuator_forcelimited[actuator]:
        return np.array(peer.actuator_forcerange[actuator])
    control = addresses(peer, "ctrladr")[actuator]
    if is_direct_motor(peer, actuator) and peer.actuator_ctrllimited[control]:
        return peer.actuator_ctrlrange[control] * peer.actuator_gainprm[actuator, 0]
    return None


def _largest_force(peer: MjModel, actuator: int) -> float:
    known = force_range(peer, actuator)
    return np.inf if known is None else float(np.abs(known).max())
