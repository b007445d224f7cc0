"""Forward dynamics of closed chains, in three steps.

1. The compiled function solves all elements of a batch.
2. Elements with a singular Omega are solved again, by the eigenvalues of Omega.
3. What remains (the constraints cannot be satisfied, or the mass matrix is singular too) is decided
   by the dense system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers, Wrenches
from psiphi._util.errors import SingularError
from psiphi._util.validate import flag
from psiphi.functions import argument_checks
from psiphi.model.components import joint_of_entry
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.model.state_checks import batch_element, check_states
from psiphi.robot.mechanisms import loop_closure
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.rccfd_methods import DENSE, method_name
from psiphi.robot.mechanisms.solve.redundant_constraints import (
    ILL_CONDITIONED,
    least_norm,
    violated_direction,
)
from psiphi.robot.mechanisms.solve.stage_program import dynamics_arguments

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

Results = dict[str, Any]
Arrays: TypeAlias = tuple[np.ndarray, ...]


def details(
    system: System,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    f_ext: Wrenches | None,
    axes: str,
    method: str | None,
    check: bool,
) -> Results:
    """a, forces and multipliers; unique, rank and solvable per element."""
    method = method_name(method, DENSE)
    frames = (
        tuple(system.robot.frame(name).name for name in argument_checks.check_wrench_mapping(f_ext))
        if f_ext is not None
        else ()
    )
    values = system.state_arrays(q=q, v=v, tau=tau)
    if frames:
        wrenches = argument_checks.stack_wrenches(argument_checks.check_wrench_mapping(f_ext))
        arguments = dynamics_arguments(system.algebra, frames)
        values = argument_checks.plain_arrays(
            system.robot, system.name, arguments, (*values, wrenches)
        )
    if flag("check", check):
        arguments = dynamics_arguments(system.algebra, frames)
        check_states(system.robot, "forward_dynamics", arguments, values, frames)
        loop_closure.check_constraints(system, "forward_dynamics", values[0], values[1])
    if method == DENSE:
        a, lam, wrenches, ill_conditioning = dense_saddle.solve(system, values, frames, axes)
    else:
        a, lam, wrenches, ill_conditioning = system.call_function(
            system.dynamics_function(method, frames, axes), values
        )
    batch = np.shape(ill_conditioning)
    results = {
        "a": a,
        "forces": wrenches[..., : len(system.contacts), :],
        "multipliers": lam,
        "unique": np.ones(batch, bool),
        "rank": np.full(batch, system.nc),
        "solvable": np.ones(batch, bool),
    }
    singular = ~(ill_conditioning < ILL_CONDITIONED)
    if np.any(singular):
        _solve_singular(system, results, singular, values, frames, axes, check)
    return results


def _solve_singular(
    system: System,
    results: Results,
    singular: np.ndarray,
    values: Arrays,
    frames: tuple[str, ...],
    axes: str,
    check: bool,
) -> None:
    """Replace the results of the elements `singular`, with multipliers of least norm."""
    batch = np.shape(singular)
    selected = tuple(_select(x, batch, singular, 2 if i == 3 else 1) for i, x in enumerate(values))
    system = system.at_elements(batch, singular)
    new, unsolved = (
        _no_results(system, singular)
        if system.algebra.is_thin
        else _least_norm_results(system, selected, frames, axes)
    )
    failures = _solve_dense(system, new, unsolved, selected, frames, axes)
    for name, value in new.items():
        whole = np.array(results[name])
        whole[singular] = value
        results[name] = whole if batch else whole[()]
    if failures and (not batch or check):
        i, solution = next(iter(failures.items()))
        index = tuple(int(x) for x in np.argwhere(singular)[i])
        one = system.at_elements(unsolved.shape, i)
        raise _singular_error(one, selected[0][i], solution, index)


def _least_norm_results(
    system: System, values: Arrays, frames: tuple[str, ...], axes: str
) -> tuple[Results, np.ndarray]:
    """The results with multipliers of least norm, by the eigenvalues of Omega, and which elements
    they do not solve (n,)."""
    free, Omega, rows = system.call_function(system.terms_function(frames, axes), values)
    Jc = system.constraint_jacobian(values[0])
    negligible = dense_saddle.negligible_rows(Jc)
    least = least_norm(Omega, -rows, max_norm(free), negligible)
    correction, _ = system.multiplier_response(values[0], least.multipliers)
    # free accelerations of light bodies can be far larger than constrained ones: solve once more
    # for the residual of the accelerations themselves
    residual = -rows - np.einsum("...ij,...j->...i", Jc, correction)
    multipliers = least.multipliers + least_norm(Omega, residual, negligible=negligible).multipliers
    correction, wrenches = system.multiplier_response(values[0], multipliers)
    results = {
        "a": free + correction,
        "forces": wrenches,
        "multipliers": multipliers,
        "rank": least.rank,
        "unique": least.rank == system.nc,
        "solvable": ~least.is_unsolved,
    }
    return results, least.is_unsolved | ~np.isfinite(results["a"]).all(axis=-1)


def _no_results(system: System, singular: np.ndarray) -> tuple[Results, np.ndarray]:
    """Empty results if there is no Omega; the dense system solves all elements."""
    count = int(np.sum(singular))
    shapes = {"a": (system.nv,), "forces": (len(system.contacts), 6), "multipliers": (system.nc,)}
    results: Results = {name: np.full((count, *shape), np.nan) for name, shape in shapes.items()}
    results |= {
        "rank": np.zeros(count, int),
        "unique": np.zeros(count, bool),
        "solvable": np.zeros(count, bool),
    }
    return results, np.ones(count, bool)


def _solve_dense(
    system: System,
    results: Results,
    unsolved: np.ndarray,
    values: Arrays,
    frames: tuple[str, ...],
    axes: str,
) -> dict[int, dense_saddle.DenseSolution]:
    """Solve the elements `unsolved` by the dense system, in place; returns those without a
    solution whose state is finite."""
    failures: dict[int, dense_saddle.DenseSolution] = {}
    if not unsolved.any():
        return failures
    where = np.flatnonzero(unsolved)
    system = system.at_elements(unsolved.shape, where)
    terms = dense_saddle.dense_terms(system, tuple(x[where] for x in values), frames, axes)
    solutions = [dense_saddle.solve_gauss(*(x[i] for x in terms)) for i in range(len(where))]
    multipliers = np.stack([solution.multipliers for solution in solutions])
    forces = system.multiplier_response(values[0][where], multipliers)[1]
    for i, solution, force in zip(where.tolist(), solutions, forces, strict=True):
        if solution.undetermined.any() or solution.residual.any():
            failures[i] = solution
        entries = {
            "a": solution.a,
            "forces": force,
            "multipliers": solution.multipliers,
            "rank": solution.rank,
            "unique": solution.is_solved and solution.rank == system.nc,
            "solvable": solution.is_solved,
        }
        for name, value in entries.items():
            results[name][i] = value
    return failures


def _select(array: np.ndarray, batch: tuple[int, ...], where: np.ndarray, core: int) -> np.ndarray:
    """The elements `where` of an argument broadcast to the batch axes: (n, *core)."""
    return np.broadcast_to(array, (*batch, *array.shape[array.ndim - core :]))[where]


def _singular_error(
    system: System, q: np.ndarray, solution: dense_saddle.DenseSolution, index: tuple[int, ...]
) -> SingularError:
    """Names the contact and direction that no acceleration satisfies, or the undetermined joint."""
    where = batch_element(index)
    if solution.undetermined.any():
        motion = solution.undetermined
        worst = int(np.argmax(np.abs(motion)))
        joint = joint_of_entry(system.joints, worst)
        axis = ", ".join(f"{x:.3g}" for x in motion[joint.v_slice] / motion[worst] + 0.0)
        if system.object == system.bodies[joint.index].name and joint.kind == "free":
            return SingularError(
                f"the object {system.object} has no inertia along the motion ({axis}), angular "
                f"part first, and no contact constrains it{where}: its acceleration is not unique",
                "give it mass and inertia, as in pp.Body.box(mass, size), or add a contact that "
                "constrains this motion",
            )
        return SingularError(
            f"the acceleration of joint {joint.name} along ({axis}) is not unique{where}: the "
            "motion has no inertia, and no constraint determines it",
            "give the links mass and inertia, the joint armature, or add a contact that "
            "constrains this motion",
        )
    direction = violated_direction(system, q, solution.residual)
    return SingularError(
        f"no acceleration satisfies {direction}{where}: the mechanism is singular in that "
        "direction",
        "start from another configuration, slow down, or use a contact that leaves that "
        "direction free",
    )
