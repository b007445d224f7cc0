"""The policy: what is accepted, what is accepted and reported, what is refused, and what `repair=` mends.

Nothing odd is silent: it is an `Error` with a remedy, or a line in `model.report`; what was repaired or is doubtful is also
a `ModelWarning`. Decided on the 77 URDF files of
example-robot-data, so that every robot with a finite answer loads as it is.

| what | refused | `repair=` | accepted, reported |
|---|---|---|---|
| numbers | NaN, infinite (but limits), beyond 1e50 | | |
| mass | negative | | zero with inertia, or no <inertial>, on a link that moves |
| inertia of a link | sum of principal moments negative | "inertia" | a negative one; triangle inequality broken |
| inertia of a moving body, welds merged | a negative principal moment | "inertia" | |
| joint axis | zero | "axis" | not of unit length: normalized |
| limits | lower > upper | "limits" (lower, upper swapped) | those of a hinge that look like degrees |
| velocity, effort, damping, friction, armature | negative | | |
| mimic | a cycle | "mimic" (dropped) | target missing, fixed or of another kind: dropped |
| tree | unknown link, two parents, cycle, several roots (URDF) | | a body without a joint, welded to the world |
| articulated inertia D(k) | not positive definite (`mobility_check.py`) | | |

Tolerances: a principal moment counts as negative below -(1e-9 of the largest + mass * (0.1 um)^2), and the same slack
applies to the triangle inequality. "inertia" replaces the inertia by the nearest one that a mass distribution can have.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot, inf

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import listed, nearest, shown
from psiphi.model.builder.mobility_check import check_massless, check_movable
from psiphi.model.builder.records import JointRecord, LinkRecord
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.inertias import matrices, project
from psiphi.model.model import Model

REPAIRS = ("inertia", "axis", "limits", "mimic")
RELATIVE = 1e-9  # of the largest principal moment
POINT = 1e-14  # m^2: a radius of gyration of 0.1 um is a point
TURNS, DEGREES = 12.5, 1000.0  # rad: limits of hinges between these look like degrees
ROUNDED = 1e-5  # an axis printed with six digits is this near to unit length


def read_repairs(repair) -> frozenset[str]:
    """The repairs asked for: a name, several names, or "all"."""
    names = (repair,) if isinstance(repair, str) else repair
    if not isinstance(names, list | tuple | set | frozenset) or not all(
        isinstance(name, str) for name in names
    ):
        cause = f"repair is {shown(repair)}, expected names of repairs"
        raise ModelError(
            cause, f"give some of {', '.join(map(repr, REPAIRS))}, or 'all'", element="repair"
        )
    names = tuple(names)
    if names == ("all",):
        return frozenset(REPAIRS)
    for name in names:
        if name not in REPAIRS:
            raise ModelError(
                f"no repair {shown(name)}", nearest(name, ("all", *REPAIRS)), element="repair"
            )
    return frozenset(names)


def check_links(
    links: dict[str, LinkRecord], repairs: frozenset[str], log: ReaderReport
) -> dict[str, LinkRecord]:
    """Mass and inertia of every link; the repaired ones are new records."""
    if not links:
        return links
    records = list(links.values())
    mass = np.array([link.mass for link in records])
    J = np.linalg.eigvalsh(matrices([link.inertia for link in records]))
    slack = _slack(mass, J)
    negative = J.sum(axis=1) < -slack
    indefinite = J[:, 0] < -slack
    impossible = J[:, 2] - J[:, 1] - J[:, 0] > slack
    mended = dict(links)
    for k in np.flatnonzero((mass < 0.0) | indefinite | impossible | negative):
        mended[records[k].name] = _judge(
            records[k], J[k], bool(negative[k]), bool(indefinite[k]), repairs, log
        )
    for k in np.flatnonzero((mass == 0.0) & (J[:, 2] > 0.0)):
        log.doubt(
            records[k],
            f"has inertia (principal moments {_moments(J[k])}) but no mass; accepted as it is",
        )
    return mended


def _slack(mass: np.ndarray, J: np.ndarray) -> np.ndarray:
    return RELATIVE * np.abs(J).max(axis=-1) + POINT * np.abs(mass)


def _judge(
    link: LinkRecord,
    J: np.ndarray,
    negative: bool,
    indefinite: bool,
    repairs: frozenset[str],
    log: ReaderReport,
) -> LinkRecord:
    if link.mass < 0.0:
        log.fail(link, f"mass is {link.mass:g} kg, expected 0 or more", "correct the mass")
    if "inertia" in repairs:
        log.doubt(
            link,
            f"repaired: principal moments {_moments(J)} projected to the nearest a mass distribution can have",
        )
        return replace(link, inertia=project(link.inertia))
    if negative:
        log.fail(
            link,
            f"the inertia has principal moments {_moments(J)}, expected 0 or more",
            'correct the inertia, or load with repair=("inertia",)',
        )
    excess = J[2] / (J[0] + J[1]) - 1.0 if J[0] + J[1] > 0.0 else inf
    fault = (
        "one is negative"
        if indefinite
        else f"the largest exceeds the sum of the others by {excess:.2%}"
    )
    log.doubt(link, f"accepted, physically impossible: principal moments {_moments(J)}, {fault}")
    return link


def _moments(J: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in J)


def check_joints(
    joints: dict[str, JointRecord], repairs: frozenset[str], log: ReaderReport
) -> dict[str, JointRecord]:
    """Axes, limits and mimics of every joint; the repaired ones are new records."""
    mended = {
        name: _limited(_aimed(joint, repairs, log), repairs, log) for name, joint in joints.items()
    }
    return check_mimics(mended, repairs, log)


def _aimed(joint: JointRecord, repairs: frozenset[str], log: ReaderReport) -> JointRecord:
    if not joint.moves or joint.row.axes == 0:
        return joint
    axis = _unit(joint, "axis", joint.axis, repairs, log)
    axis2 = joint.axis2
    if joint.row.axes == 2:
        axis2 = perpendicular(axis) if axis2 is None else _unit(joint, "axis2", axis2, repairs, log)
        if abs(sum(a * b for a, b in zip(axis, axis2, strict=True))) > 1.0 - 1e-9:
            log.fail(
                joint,
                f"axis {shown(axis)} and axis2 {shown(axis2)} are parallel",
                "give two different axes",
            )
    elif axis2 is not None:
        log.fail(joint, f"axis2 is given, but a {joint.kind} joint has one axis", "leave axis2 out")
    return (
        joint
        if axis is joint.axis and axis2 is joint.axis2
        else replace(joint, axis=axis, axis2=axis2)
    )


def _unit(joint: JointRecord, what: str, axis, repairs: frozenset[str], log: ReaderReport):
    size = hypot(*axis)
    if abs(size - 1.0) < 1e-15:  # to rounding: what was normalized once stays as it is
        return axis
    if size == 0.0:
        if "axis" not in repairs:
            log.fail(
                joint,
                f"{what} is zero, expected a direction",
                'give a direction, or load with repair=("axis",) for 1 0 0',
            )
        log.doubt(joint, f"repaired: {what} was zero, now 1 0 0")
        return (1.0, 0.0, 0.0)
    if abs(size - 1.0) > ROUNDED:
        log.note(joint, f"{what} {shown(axis)} has length {size:.6g}; normalized")
    return tuple(x / size for x in axis)


def perpendicular(axis) -> tuple[float, ...]:
    """A unit vector at right angles to `axis`: x for z, y for x, z for y, and what lies nearest to these for the rest."""
    along = [0.0, 0.0, 0.0]
    along[(max(range(3), key=lambda i: abs(axis[i])) + 1) % 3] = 1.0
    share = sum(a * b for a, b in zip(axis, along, strict=True))
    rest = [b - share * a for a, b in zip(axis, along, strict=True)]
    size = hypot(*rest)
    return tuple(x / size for x in rest)


def _limited(joint: JointRecord, repairs: frozenset[str], log: ReaderReport) -> JointRecord:
    if joint.kind == "revolute" and any(
        TURNS < abs(limit) <= DEGREES for limit in (*joint.lower, *joint.upper)
    ):
        text = f"limits {_plain(joint.lower)} and {_plain(joint.upper)} are radians, several turns: were degrees meant?"
        log.doubt(joint, text)
    if all(low <= high for low, high in zip(joint.lower, joint.upper, strict=True)):
        return joint
    text = f"lower limit {_plain(joint.lower)} is above upper limit {_plain(joint.upper)}"
    if "limits" not in repairs:
        log.fail(joint, text, 'exchange them, or load with repair=("limits",)')
    log.doubt(joint, f"repaired: {text}; exchanged")
    pairs = [sorted(pair) for pair in zip(joint.lower, joint.upper, strict=True)]
    return replace(
        joint, lower=tuple(low for low, _ in pairs), upper=tuple(high for _, high in pairs)
    )


def _plain(values) -> str:
    return f"{values[0]:g}" if len(values) == 1 else shown(values)


def check_mimics(
    joints: dict[str, JointRecord], repairs: frozenset[str], log: ReaderReport
) -> dict[str, JointRecord]:
    """A mimic that cannot act (no such target, fixed, of another kind) is dropped; nobody follows itself."""
    followed: set[str] = set()  # joints whose chain of targets is known to end
    mended = dict(joints)
    for joint in joints.values():
        if joint.mimic is None:
            continue
        fault, cycle = _mimic_fault(joint, mended), _mimic_cycle(joint, mended, followed)
        if cycle and "mimic" not in repairs:
            log.fail(
                joint,
                cycle,
                'let one of them move freely, or load with repair=("mimic",) to drop it',
            )
        if fault or cycle:
            log.doubt(joint, f"mimic dropped: {fault or cycle}")
            mended[joint.name] = replace(joint, mimic=None)
    return mended


def _mimic_fault(joint: JointRecord, joints: dict[str, JointRecord]) -> str | None:
    assert joint.mimic is not None
    target = joints.get(joint.mimic.joint)
    if target is None:
        return (
            f"joint {shown(joint.mimic.joint)} is not there ({nearest(joint.mimic.joint, joints)})"
        )
    if not joint.moves or not target.moves:
        return f"it follows {target.label}, but {target.label if joint.moves else 'the joint itself'} is fixed"
    if (joint.row.nq, target.row.nq) != (1, 1):
        return (
            f"it follows {target.label}, but a {joint.kind} joint cannot follow a {target.kind} one"
        )
    return None


def _mimic_cycle(
    joint: JointRecord, joints: dict[str, JointRecord], followed: set[str]
) -> str | None:
    chain: dict[str, None] = {}
    at: JointRecord | None = joint
    while at is not None and at.mimic is not None and at.name not in followed:
        if at.name in chain:
            return f"mimic goes in a circle: {listed(chain)}"
        chain[at.name] = None
        at = joints.get(at.mimic.joint)
    followed.update(chain)
    return None


def check_model(
    model: Model,
    links: dict[str, LinkRecord],
    joints: dict[str, JointRecord],
    log: ReaderReport,
    moves: bool = True,
) -> None:
    """What can be judged only when welded links are merged: moving bodies have inertias that move (unless `moves` is left for
    later)."""
    if moves:
        check_massless(model, joints, log)
    for body in model.bodies:
        if not links[body.name].has_mass:
            log.note(links[body.name], "moves but has neither mass nor inertia of its own")
    check_bodies(model, links, log)
    if moves:
        check_movable(model, joints, log)


def check_bodies(model: Model, links: dict[str, LinkRecord], log: ReaderReport) -> None:
    """No moving body has a negative principal moment about its centre of mass."""
    if not model.bodies:
        return
    J = np.linalg.eigvalsh(np.array([body.inertia for body in model.bodies]))
    mass = np.array([body.mass for body in model.bodies])
    for k in np.flatnonzero(J[:, 0] < -_slack(mass, J)):
        log.fail(
            links[model.bodies[k].name],
            f"the moving body has principal moments {_moments(J[k])} (welded links included), expected 0 or more",
            'correct the inertia, or load with repair=("inertia",)',
        )
