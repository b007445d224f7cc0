"""`pp.reach` and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, flag, positive_number, whole_number
from psiphi.apps.ik import ik_request
from psiphi.apps.ik.ik_request import Goal
from psiphi.apps.ik.ik_solver import IKSolver, cached_problem
from psiphi.apps.ik.ik_tasks import METRE, RADIAN
from psiphi.apps.ik.task_priorities import solve_by_priority
from psiphi.model.model import Pose
from psiphi.robot.free_robot import check_single_robot
from psiphi.robot.mechanisms.loop_closure import close_loops
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

MAX_STARTS = 10_000


@dataclass(frozen=True, eq=False)
class IKResult:
    """Configurations and their errors.

    q           (..., nq): the solution, or the nearest configuration found
    converged   (...): whether every target is met within `tolerance`
    error       (...): the largest error, in rad or m
    errors      {name: (...)}: the error of each target and unit, such as "tool rad", "tool m",
                "center_of_mass m"
    tries       (...): number of starts used
    solutions   with `distinct=True`, all solutions found (..., k, nq); k is the largest number of
                any problem, missing ones are NaN
    """

    q: np.ndarray
    converged: np.ndarray
    error: np.ndarray
    errors: dict[str, np.ndarray] = field(repr=False)
    tries: np.ndarray = field(repr=False)
    solutions: np.ndarray | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        count, solved = self.converged.size, int(np.count_nonzero(self.converged))
        if not self.converged.ndim:
            state = "converged" if solved else "not converged"
            return f"IKResult({state}, error {float(self.error):.2g})"
        largest = float(self.error.max(initial=0.0))
        return f"IKResult({solved} of {count} converged, largest error {largest:.2g})"


def reach(
    robot: Robot | System,
    targets: Mapping[str, Numbers | Pose] | None = None,
    near: Numbers | None = None,
    *,
    directions: Mapping[str, tuple[Numbers, Numbers]] | None = None,
    center_of_mass: Numbers | None = None,
    posture: Numbers | None = None,
    weights: Mapping[str, Numbers] | None = None,
    order: Sequence[str] | None = None,
    limits: bool = True,
    moving: str | Sequence[str] | None = None,
    tolerance: float = 1e-6,
    starts: int = 32,
    distinct: bool = False,
) -> IKResult:
    """Inverse kinematics: min_q sum w |e(q)|^2, e = [log(R_d R*); p_d - p], within joint limits.

    `targets`     {frame: pose (..., 4, 4), point (..., 3) or orientation (..., 3, 3)}; each batch
                  element is a problem. Numbers (3, 3) are an orientation if they are a rotation,
                  and three points if not
    `near`        (..., nq): the first start, `robot.neutral()` by default. Joints that no target
                  depends on stay there, or move to the nearest limit
    `directions`  {frame: (axis in the frame, direction (..., 3) in the world)}: the axis is to
                  point in the direction
    `center_of_mass`  (..., 3)
    `posture`     (..., nq): among all solutions, prefer one near to this
    `weights`     {frame or "center_of_mass": w or (rotation w, position w)}, in 1/rad^2 and 1/m^2:
                  which targets prevail if not all can be met; 0 ignores a part. By default 1 rad
                  weighs as much as the RMS distance that the frame can move
    `order`       names of targets, "center_of_mass" among them, the most important first. A target
                  acts only in the freedom that those before it leave. Targets not named come
                  first, the posture comes last
    `limits`      whether joints stay within their limits
    `moving`      names of the joints that may move; all by default
    `tolerance`   in rad and m
    `starts`      largest number of starts per problem
    `distinct`    True collects all solutions that the starts find

    In a closed system (`pp.connect`, `pp.grasp`) loops are closed before all targets. Without
    targets this is `System.assemble`.

    The algorithm is damped Newton steps, compiled as one loop, one problem per SIMD lane. If a
    target cannot be met, q is the nearest configuration found (a local minimum from the best start)
    and `converged` is False.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> T = robot.frame_pose([0.1, -0.8, 0.6, 0.2, 0.5, 0.3], "tool")
    >>> found = pp.reach(robot, {"tool": T}, near=np.zeros(6))
    >>> found  # doctest: +ELLIPSIS
    IKResult(converged, error ...)
    >>> bool(np.abs(robot.frame_pose(found.q, "tool") - T).max() < 1e-6)
    True
    """
    limits, distinct = flag("limits", limits), flag("distinct", distinct)
    system = robot if isinstance(robot, System) else None
    robot = ik_request.check_joints(system.robot if system else robot)
    if system is None:
        check_single_robot("reach", robot)
    goals = ik_request.read_goals(
        robot, targets, directions, center_of_mass, weights, not (system and system.nc)
    )
    loops_only = system is not None and not goals and posture is None and not distinct
    loops = ik_request.loop_tasks(system) if system and not loops_only else []
    ranked = ik_request.with_levels(goals, order, loops)
    configurations = {
        name: ik_request.configuration(robot, name, x)
        for name, x in (("near", near), ("posture", posture))
        if x is not None
    }
    starts = whole_number("starts", starts)
    if not 1 <= starts <= MAX_STARTS:
        raise StateError(f"starts is {starts}, expected 1 to {MAX_STARTS}", "32 is the default")
    remedy = "give rad and m, 1e-6 for instance"
    tolerance = positive_number("tolerance", tolerance, remedy, most=1.0)
    arrays = {f"{task.kind} of {task.frame or ik_request.MASS}": goal for task, goal in ranked}
    arrays |= configurations
    batch = batch_axes("reach", {name: x.shape[:-1] for name, x in arrays.items()})
    free = ik_request.moving_joints(robot, moving)
    if limits:
        ik_request.check_limits(robot, free)
    if system and loops_only:
        start = configurations.get("near", robot.neutral())
        return _close_loops_only(system, start, free, tolerance, limits, starts)
    ik_request.check_size(robot)
    *levels, solver = _make_solvers(
        robot, ranked, configurations, batch, limits, free, tolerance, by_level=not distinct
    )
    from_base = bool(configurations)
    solutions = solver.find_all(starts, from_base) if distinct else None
    if levels:
        solver = solve_by_priority([*levels, solver], starts, from_base)
    elif not distinct:
        solver.solve(starts, from_base)
    solver.approach_posture()
    return _result(solver, batch, solutions)


def _make_solvers(
    robot: Robot,
    goals: list[Goal],
    configurations: dict[str, np.ndarray],
    batch: tuple[int, ...],
    limits: bool,
    free: np.ndarray,
    tolerance: float,
    by_level: bool,
) -> list[IKSolver]:
    """The solver of all tasks at once, last; if `by_level`, solvers of the first levels before."""

    def flat(x: np.ndarray) -> np.ndarray:
        rows = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])
        return np.ascontiguousarray(rows, dtype=float)

    def solver_of(some: list[Goal], posture: np.ndarray | None = None) -> IKSolver:
        tasks = tuple(task for task, _ in some)
        problem = cached_problem(robot, tasks, limits, free.tobytes(), posture is not None)
        goal = np.concatenate([flat(x) for _, x in some], axis=-1)
        return IKSolver(problem, goal, np.array(base), posture, tolerance)

    equal = [(replace(task, level=0), x) for task, x in goals]
    posture = flat(configurations["posture"]) if "posture" in configurations else None
    tasks = tuple(task for task, _ in equal)
    problem = cached_problem(robot, tasks, limits, free.tobytes(), posture is not None)
    start = configurations.get("near", configurations.get("posture", robot.neutral()))
    base = flat(problem.clip_to_limits(start))
    last = max(task.level for task, _ in goals) if by_level else 0
    levels = [
        solver_of([(task, x) for task, x in goals if task.level <= level])
        for level in (range(1 + last) if last else ())
    ]
    return [*levels, solver_of(equal, posture)]


def _result(
    solver: IKSolver, batch: tuple[int, ...], solutions: list[np.ndarray] | None
) -> IKResult:
    tasks, nq = solver.problem.tasks, solver.problem.robot.nq
    names = [f"{task.frame or ik_request.MASS} {unit}" for task in tasks for unit in task.units]
    each = np.sqrt(solver.squared_errors).reshape(*batch, len(names))
    errors = {name: each[..., i] for i, name in enumerate(names)}
    padded = None
    if solutions is not None:
        padded = np.full((len(solutions), max(map(len, solutions), default=0), nq), np.nan)
        for row, found in zip(padded, solutions, strict=True):
            row[: len(found)] = found
        padded = padded.reshape(*batch, *padded.shape[1:])
    q, converged = solver.q.reshape(*batch, nq), solver.solved.reshape(batch)
    tries = solver.tries.reshape(batch)
    return IKResult(q, converged, each.max(axis=-1), errors, tries, padded)


def _close_loops_only(
    system: System,
    near: np.ndarray,
    free: np.ndarray,
    tolerance: float,
    limits: bool,
    starts: int,
) -> IKResult:
    """Close the loops from `near` (..., nq); `free` (nv,) is the mask of coordinates that move."""
    batch = system.batch_axes(near.shape[:-1])
    flat = system.at_elements(batch, np.ones(batch, dtype=bool))
    guess = np.broadcast_to(near, (*batch, system.nq)).reshape(-1, system.nq)
    q, e, tries = close_loops(flat, guess, free.astype(float), tolerance, limits, starts)
    errors = {
        name: np.linalg.norm(e[:, rows], axis=-1).reshape(batch)[()]
        for name, rows in _constraint_rows(system).items()
    }
    error = np.max([*errors.values()], axis=0)
    q = q.reshape(*batch, system.nq)
    return IKResult(q, error <= tolerance, error, errors, tries.reshape(batch))


def _constraint_rows(system: System) -> dict[str, list[int]]:
    """The rows of every constraint by unit: {"contact 1 rad": rows}."""
    closure, found = system.closure, {}
    joints = [(METRE if system.joint(f.joint).row.slides[0] else RADIAN,) for f in closure.mimics]
    units = [*(c.units for c in closure.constraints), *joints]
    constraints = (*closure.constraints, *closure.mimics)
    for constraint, rows, row_units in zip(constraints, closure.slices, units, strict=True):
        for unit in (RADIAN, METRE):
            index = [
                i for i, x in zip(range(rows.start, rows.stop), row_units, strict=True) if x == unit
            ]
            found |= {f"{constraint.name} {unit}": index} if index else {}
    return found
