"""MuJoCo's actuators on hinges and slides: the most they can do, and the rotors they turn.

From MuJoCo 4 on an actuator may have several controls and several outputs: gears stand output by output, ranges of controls
control by control; and it may have a rotor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ON_JOINT = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
SLIDE, HINGE = 2, 3  # mjtJoint


def actuators(peer: Any) -> range:
    return range(getattr(peer, "nactuator", peer.nu))


def addresses(peer: Any, word: str) -> Any:
    """Where the actuators' outputs ("outadr") or controls ("ctrladr") begin."""
    return getattr(peer, f"actuator_{word}", actuators(peer))


def rotor_values(peer: Any, word: str) -> np.ndarray:
    """The "armature" or "damping" of all actuators; the "dampingpoly" beyond it."""
    return getattr(peer, f"actuator_{word}", np.zeros(len(actuators(peer))))


def joint_motors(peer: Any, j: int) -> list[int]:
    """The actuators on a hinge or a slide; "jointinparent" says the same of these."""
    if peer.jnt_type[j] not in (SLIDE, HINGE):
        return []
    on_joint = [
        a
        for a in actuators(peer)
        if peer.actuator_trntype[a] in ON_JOINT and peer.actuator_trnid[a, 0] == j
    ]
    return [a for a in on_joint if gear(peer, a)]


def gear(peer: Any, actuator: int) -> float:
    """What a force of the actuator is multiplied with, on a hinge or a slide."""
    return float(peer.actuator_gear[addresses(peer, "outadr")[actuator], 0])


def reflected(peer: Any, j: int, word: str) -> float:
    """What rotors add to the armature, or the damping, of a hinge or a slide: gear² times theirs."""
    return sum(
        gear(peer, a) ** 2 * float(rotor_values(peer, word)[a]) for a in joint_motors(peer, j)
    )


def effort_limit(peer: Any, j: int) -> float | None:
    """What the motors of a joint can do: the joint's own limit, and gear times what its actuators give together."""
    given = joint_motors(peer, j)
    limits = [sum(_largest_force(peer, a) * abs(gear(peer, a)) for a in given)] if given else []
    if peer.jnt_actfrclimited[j]:
        limits.append(float(np.abs(peer.jnt_actfrcrange[j]).max()))
    least = min(limits, default=np.inf)
    return least if np.isfinite(least) else None


def is_direct_motor(peer: Any, actuator: int) -> bool:
    """Whether its force is a number times its control."""
    kinds = peer.actuator_dyntype, peer.actuator_gaintype, peer.actuator_biastype
    return not any(kind[actuator] for kind in kinds)


def force_range(peer: Any, actuator: int) -> np.ndarray | None:
    """The least and the largest force of an actuator: its force range, or of a plain motor gain times control range."""
    if peer.actuator_forcelimited[actuator]:
        return np.array(peer.actuator_forcerange[actuator])
    control = addresses(peer, "ctrladr")[actuator]
    if is_direct_motor(peer, actuator) and peer.actuator_ctrllimited[control]:
        return peer.actuator_ctrlrange[control] * peer.actuator_gainprm[actuator, 0]
    return None


def _largest_force(peer: Any, actuator: int) -> float:
    known = force_range(peer, actuator)
    return np.inf if known is None else float(np.abs(known).max())
