"""Forward dynamics with loops: the compiled answer; elements with a singular Omega again by eigenvalues; what that cannot
answer (nothing keeps the constraints, or the mass matrix is singular too) by the dense system, whose word is the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import SingularError
from psiphi._util.validate import flag
from psiphi.functions import argument_checks
from psiphi.model.components import joint_at
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.model.state_checks import check_states, element
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.rccfd_methods import DENSE, method_name
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN, direction, least_norm
from psiphi.robot.mechanisms.solve.stage_program import given

Answers = dict[str, Any]


def details(system: Any, q, v, tau, f_ext, axes: str, method: str | None, check: bool) -> Answers:
    """a, forces, multipliers; unique, rank and solvable per element."""
    method = method_name(method, DENSE)
    frames = (
        tuple(system.robot.frame(name).name for name in argument_checks.mapping(f_ext))
        if f_ext is not None
        else ()
    )
    values = system.state_arrays(q=q, v=v, tau=tau)
    if frames:
        wrenches = argument_checks.stack_wrenches(argument_checks.mapping(f_ext))
        values = argument_checks.plain(
            system.robot, system.name, given(system.algebra, frames), (*values, wrenches)
        )
    if flag("check", check):
        check_states(
            system.robot, "forward_dynamics", given(system.algebra, frames), values, frames
        )
    if method == DENSE:
        a, lam, wrenches, strain = dense_saddle.solve(system, values, frames, axes)
    else:
        a, lam, wrenches, strain = system.call_function(
            system.dynamics_function(method, frames, axes), values
        )
    lead = np.shape(strain)
    found = {"a": a, "forces": wrenches[..., : len(system.contacts), :], "multipliers": lam}
    found |= {
        "unique": np.ones(lead, bool),
        "rank": np.full(lead, system.nc),
        "solvable": np.ones(lead, bool),
    }
    bad = ~(strain < STRAIN)
    if np.any(bad):
        _mend(system, found, bad, values, frames, axes, check)
    return found


def _mend(system: Any, found: Answers, bad: np.ndarray, values, frames, axes, check: bool) -> None:
    """The elements `bad` again, with multipliers of least norm."""
    lead = np.shape(bad)
    picked = tuple(_picked(x, lead, bad, 2 if i == 3 else 1) for i, x in enumerate(values))
    system = system.at_elements(lead, bad)
    new, lost = (
        _nowhere(system, bad) if system.algebra.is_thin else _least(system, picked, frames, axes)
    )
    verdicts = _last_word(system, new, lost, picked, frames, axes)
    for name, value in new.items():
        whole = np.array(found[name])
        whole[bad] = value
        found[name] = whole if lead else whole[()]
    if verdicts and (not lead or check):
        i, verdict = next(iter(verdicts.items()))
        place = tuple(int(x) for x in np.argwhere(bad)[i])
        raise _error(system.at_elements(lost.shape, i), picked[0][i], verdict, place)


def _least(system: Any, values, frames, axes) -> tuple[Answers, np.ndarray]:
    """Multipliers of least norm by the eigenvalues of Omega, and where that is no answer."""
    free, Omega, gap = system.call_function(system.terms_function(frames, axes), values)
    Jc = system.constraint_jacobian(values[0])
    dust = dense_saddle.is_dust(Jc)
    least = least_norm(Omega, -gap, max_norm(free), dust)
    extra, _ = system.multiplier_response(values[0], least.multipliers)
    # what light bodies do freely may be far more than what they do held: once more, with what the answer itself leaves open
    left = -gap - np.einsum("...ij,...j->...i", Jc, extra)
    multipliers = least.multipliers + least_norm(Omega, left, dust=dust).multipliers
    extra, wrenches = system.multiplier_response(values[0], multipliers)
    new = {
        "a": free + extra,
        "forces": wrenches,
        "multipliers": multipliers,
        "rank": least.rank,
        "unique": least.rank == system.nc,
        "solvable": ~least.open,
    }
    return new, least.open | ~np.isfinite(new["a"]).all(axis=-1)


def _nowhere(system: Any, bad: np.ndarray) -> tuple[Answers, np.ndarray]:
    """Where there is no Omega, nothing is known before the dense system is asked."""
    count = int(np.sum(bad))
    shapes = {"a": (system.nv,), "forces": (len(system.contacts), 6), "multipliers": (system.nc,)}
    new: Answers = {name: np.full((count, *shape), np.nan) for name, shape in shapes.items()}
    new |= {
        "rank": np.zeros(count, int),
        "unique": np.zeros(count, bool),
        "solvable": np.zeros(count, bool),
    }
    return new, np.ones(count, bool)


def _last_word(
    system: Any, new: Answers, lost: np.ndarray, values, frames, axes
) -> dict[int, dense_saddle.DenseSolution]:
    """Judge each lost element by the dense system; those of a finite state without an answer come back."""
    unanswered: dict[int, dense_saddle.DenseSolution] = {}
    if not lost.any():
        return unanswered
    where = np.flatnonzero(lost)
    system = system.at_elements(lost.shape, where)
    rows = dense_saddle.pieces(system, tuple(x[where] for x in values), frames, axes)
    verdicts = [dense_saddle.judge(*(x[i] for x in rows)) for i in range(len(where))]
    forces = system.multiplier_response(
        values[0][where], np.stack([v.multipliers for v in verdicts])
    )[1]
    for i, verdict, force in zip(where.tolist(), verdicts, forces, strict=True):
        if verdict.loose.any() or verdict.left.any():
            unanswered[i] = verdict
        unique = verdict.is_answer and verdict.rank == system.nc
        entry = (verdict.a, force, verdict.multipliers, verdict.rank, unique, verdict.is_answer)
        for name, value in zip(
            ("a", "forces", "multipliers", "rank", "unique", "solvable"), entry, strict=True
        ):
            new[name][i] = value
    return unanswered


def _picked(array: np.ndarray, lead: tuple[int, ...], where: np.ndarray, core: int) -> np.ndarray:
    """The elements of a broadcast argument where `where` holds: (n, *core)."""
    return np.broadcast_to(array, (*lead, *array.shape[array.ndim - core :]))[where]


def _error(
    system: Any, q: np.ndarray, verdict: dense_saddle.DenseSolution, place: tuple[int, ...]
) -> SingularError:
    """Which contact and direction no acceleration keeps, or which joint none determines."""
    where = element(place)
    if verdict.loose.any():
        worst = int(np.argmax(np.abs(verdict.loose)))
        joint = joint_at(system.joints, worst)
        axis = ", ".join(
            f"{x:.3g}" for x in verdict.loose[joint.v_slice] / verdict.loose[worst] + 0.0
        )
        if system.object == system.bodies[joint.index].name and joint.kind == "free":
            return SingularError(
                f"the object {system.object} has no inertia along the motion ({axis}), turning first, and no contact holds it "
                f"there{where}: its acceleration is not unique",
                "give it mass and inertia, as in pp.Body.box(mass, size), or hold that motion with another contact",
            )
        return SingularError(
            f"the acceleration of joint {joint.name} along ({axis}) is not unique{where}: nothing that moves so has inertia, "
            "and no constraint holds it",
            "give the links there mass and inertia, the joint armature, or hold that motion with a contact",
        )
    return SingularError(
        f"no acceleration keeps {direction(system, q, verdict.left)}{where}: the mechanism is singular in that direction",
        "start from another configuration, slow down, or free that direction with another kind of contact",
    )
