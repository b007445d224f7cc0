"""Checks of links, joints and models: what is an error, what `repair=` corrects, what is reported.

Each fault is an `Error` with a remedy, or a line in `model.report`; a repaired or suspicious value
is also a `ModelWarning`. The rules were chosen on the 77 URDF files of example-robot-data, so that
every robot with finite dynamics loads.

| data | error | `repair=` | accepted and reported |
|---|---|---|---|
| numbers | NaN, infinite (except limits), beyond 1e50 | | |
| mass | negative | | zero with inertia; no <inertial> on a moving link |
| inertia of a link | sum of principal moments negative | "inertia" | one of them negative; \
triangle inequality violated |
| inertia of a moving body with welded links | a negative principal moment | "inertia" | |
| joint axis | zero | "axis" | not of unit length: normalized |
| limits | lower > upper | "limits" (swapped) | a revolute joint's limits that may be in degrees |
| velocity, effort, damping, friction, armature | negative | | |
| mimic | a cycle | "mimic" (dropped) | target missing, fixed or of another kind: dropped |
| tree | unknown link, two parents, cycle, several roots (URDF) | | a body without a joint: welded \
to the world |
| articulated inertia D(k) | not positive definite (`mobility_check.py`) | | |

Tolerances: a principal moment is negative if it is below -(1e-9 of the largest + mass (0.1 um)^2);
the triangle inequality has the same tolerance. "inertia" replaces an inertia by the nearest one
that a mass distribution can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import hypot, inf

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import listed, nearest, shown
from psiphi.model.builder.mobility_check import check_massless, check_movable
from psiphi.model.builder.records import JointRecord, LinkRecord
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.inertias import inertia_matrices, nearest_inertia
from psiphi.model.model import Model

REPAIRS = ("inertia", "axis", "limits", "mimic")
RELATIVE = 1e-9  # of the largest principal moment
POINT = 1e-14  # m^2: the square of a radius of gyration that counts as zero, 0.1 um
TURNS, DEGREES = 12.5, 1000.0  # rad: limits of revolute joints between these may be in degrees
ROUNDED = 1e-5  # the error of a unit axis that is printed with six digits


def read_repairs(repair: str | Iterable[str]) -> frozenset[str]:
    """The names of repairs in the argument `repair`: a name, several names, or "all"."""
    names = (repair,) if isinstance(repair, str) else repair
    if not isinstance(names, list | tuple | set | frozenset) or not all(
        isinstance(name, str) for name in names
    ):
        raise ModelError(
            f"repair is {shown(repair)}, expected names of repairs",
            f"give some of {', '.join(map(repr, REPAIRS))}, or 'all'",
            element="repair",
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
    """Check mass and inertia of every link; returns the links, with repaired records replaced."""
    if not links:
        return links
    records = list(links.values())
    mass = np.array([link.mass for link in records])
    J = np.linalg.eigvalsh(inertia_matrices([link.inertia for link in records]))
    slack = _slack(mass, J)
    negative = J.sum(axis=1) < -slack
    indefinite = J[:, 0] < -slack
    impossible = J[:, 2] - J[:, 1] - J[:, 0] > slack
    checked = dict(links)
    for k in np.flatnonzero((mass < 0.0) | indefinite | impossible | negative):
        with log.collect():
            checked[records[k].name] = _check_inertia(
                records[k], J[k], bool(negative[k]), bool(indefinite[k]), repairs, log
            )
    for k in np.flatnonzero((mass == 0.0) & (J[:, 2] > 0.0)):
        log.warn(
            records[k],
            f"has inertia (principal moments {_moments(J[k])}) but no mass; accepted",
        )
    return checked


def _slack(mass: np.ndarray, J: np.ndarray) -> np.ndarray:
    return RELATIVE * np.abs(J).max(axis=-1) + POINT * np.abs(mass)


def _check_inertia(
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
        log.warn(
            link,
            f"repaired: principal moments {_moments(J)} replaced by the nearest possible ones",
        )
        return replace(link, inertia=nearest_inertia(link.inertia))
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
    log.warn(link, f"accepted, physically impossible: principal moments {_moments(J)}, {fault}")
    return link


def _moments(J: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in J)


def check_joints(
    joints: dict[str, JointRecord], repairs: frozenset[str], log: ReaderReport
) -> dict[str, JointRecord]:
    """Check axes, limits and mimics of all joints; returns them, with repaired records replaced."""
    checked = dict(joints)
    for name, joint in joints.items():
        with log.collect():
            checked[name] = _check_axes(joint, repairs, log)
        with log.collect():
            checked[name] = _check_limits(checked[name], repairs, log)
    return check_mimics(checked, repairs, log)


def _check_axes(joint: JointRecord, repairs: frozenset[str], log: ReaderReport) -> JointRecord:
    if not joint.moves or joint.row.axes == 0:
        return joint
    axis = _unit_axis(joint, "axis", joint.axis, repairs, log)
    axis2 = joint.axis2
    if joint.row.axes == 2:
        axis2 = (
            perpendicular(axis)
            if axis2 is None
            else _unit_axis(joint, "axis2", axis2, repairs, log)
        )
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


def _unit_axis(
    joint: JointRecord,
    what: str,
    axis: tuple[float, ...],
    repairs: frozenset[str],
    log: ReaderReport,
) -> tuple[float, ...]:
    size = hypot(*axis)
    if abs(size - 1.0) < 1e-15:  # normalized before
        return axis
    if size == 0.0:
        if "axis" not in repairs:
            log.fail(
                joint,
                f"{what} is zero, expected a direction",
                'give a direction, or load with repair=("axis",) for 1 0 0',
            )
        log.warn(joint, f"repaired: {what} was zero, now 1 0 0")
        return (1.0, 0.0, 0.0)
    if abs(size - 1.0) > ROUNDED:
        log.note(joint, f"{what} {shown(axis)} has length {size:.6g}; normalized")
    return tuple(x / size for x in axis)


def perpendicular(axis: Sequence[float]) -> tuple[float, ...]:
    """A unit vector perpendicular to `axis`: y for x, z for y, x for z.

    For another axis it is the projection of the vector that belongs to its largest component.
    """
    start = [0.0, 0.0, 0.0]
    start[(max(range(3), key=lambda i: abs(axis[i])) + 1) % 3] = 1.0
    share = sum(a * b for a, b in zip(axis, start, strict=True))
    normal = [b - share * a for a, b in zip(axis, start, strict=True)]
    size = hypot(*normal)
    return tuple(x / size for x in normal)


def _check_limits(joint: JointRecord, repairs: frozenset[str], log: ReaderReport) -> JointRecord:
    if joint.kind == "revolute" and any(
        TURNS < abs(limit) <= DEGREES for limit in (*joint.lower, *joint.upper)
    ):
        limits = f"limits {_limit_text(joint.lower)} and {_limit_text(joint.upper)}"
        log.warn(joint, f"{limits} are several turns in radians: are they in degrees?")
    if all(low <= high for low, high in zip(joint.lower, joint.upper, strict=True)):
        return joint
    fault = (
        f"lower limit {_limit_text(joint.lower)} is above upper limit {_limit_text(joint.upper)}"
    )
    if "limits" not in repairs:
        log.fail(joint, fault, 'exchange them, or load with repair=("limits",)')
    log.warn(joint, f"repaired: {fault}; exchanged")
    pairs = [sorted(pair) for pair in zip(joint.lower, joint.upper, strict=True)]
    return replace(
        joint, lower=tuple(low for low, _ in pairs), upper=tuple(high for _, high in pairs)
    )


def _limit_text(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else shown(values)


def check_mimics(
    joints: dict[str, JointRecord], repairs: frozenset[str], log: ReaderReport
) -> dict[str, JointRecord]:
    """Drop a mimic whose target is missing, fixed or of another kind; refuse cycles."""
    acyclic: set[str] = set()  # joints whose chain of targets is known to end
    checked = dict(joints)
    for joint in joints.values():
        if joint.mimic is None:
            continue
        with log.collect():
            checked[joint.name] = _check_mimic(joint, checked, acyclic, repairs, log)
    return checked


def _check_mimic(
    joint: JointRecord,
    joints: dict[str, JointRecord],
    acyclic: set[str],
    repairs: frozenset[str],
    log: ReaderReport,
) -> JointRecord:
    fault, cycle = _mimic_fault(joint, joints), _mimic_cycle(joint, joints, acyclic)
    if cycle and "mimic" not in repairs:
        log.fail(
            joint,
            cycle,
            'let one of them move freely, or load with repair=("mimic",) to drop it',
        )
    if fault or cycle:
        log.warn(joint, f"mimic dropped: {fault or cycle}")
        return replace(joint, mimic=None)
    return joint


def _mimic_fault(joint: JointRecord, joints: dict[str, JointRecord]) -> str | None:
    assert joint.mimic is not None
    target = joints.get(joint.mimic.joint)
    if target is None:
        return f"no joint {shown(joint.mimic.joint)} ({nearest(joint.mimic.joint, joints)})"
    if not joint.moves or not target.moves:
        fixed = target.label if joint.moves else "the joint itself"
        return f"it follows {target.label}, but {fixed} is fixed"
    if (joint.row.nq, target.row.nq) != (1, 1):
        return (
            f"it follows {target.label}, but a {joint.kind} joint cannot follow a {target.kind} one"
        )
    return None


def _mimic_cycle(
    joint: JointRecord, joints: dict[str, JointRecord], acyclic: set[str]
) -> str | None:
    chain: dict[str, None] = {}
    target: JointRecord | None = joint
    while target is not None and target.mimic is not None and target.name not in acyclic:
        if target.name in chain:
            return f"mimics form a cycle: {listed(chain)}"
        chain[target.name] = None
        target = joints.get(target.mimic.joint)
    acyclic.update(chain)
    return None


def check_model(
    model: Model,
    links: dict[str, LinkRecord],
    joints: dict[str, JointRecord],
    log: ReaderReport,
    mobility: bool = True,
) -> None:
    """Checks that need the model: inertias of moving bodies, with welded links merged.

    With `mobility`, also whether all joints can be moved.
    """
    if mobility:
        check_massless(model, joints, log)
    for body in model.bodies:
        if not links[body.name].has_mass:
            log.note(links[body.name], "moves but has neither mass nor inertia of its own")
    check_bodies(model, links, log)
    if mobility:
        check_movable(model, joints, log)


def check_bodies(model: Model, links: dict[str, LinkRecord], log: ReaderReport) -> None:
    """Check that no moving body has a negative principal moment about its centre of mass."""
    if not model.bodies:
        return
    J = np.linalg.eigvalsh(np.array([body.inertia for body in model.bodies]))
    mass = np.array([body.mass for body in model.bodies])
    for k in np.flatnonzero(J[:, 0] < -_slack(mass, J)):
        log.fail(
            links[model.bodies[k].name],
            f"the moving body has principal moments {_moments(J[k])} (welded links included), "
            "expected 0 or more",
            'correct the inertia, or load with repair=("inertia",)',
        )
