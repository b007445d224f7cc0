"""`pp.reach`: the door, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, flag, positive_number, whole_number
from psiphi.apps.ik import ik_request
from psiphi.apps.ik.ik_solver import IKSolver, problem
from psiphi.apps.ik.ik_tasks import SLIDE, TURN
from psiphi.apps.ik.task_priorities import in_order
from psiphi.robot.free_robot import check_single_robot
from psiphi.robot.mechanisms.loop_closure import close_loops
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

MOST = 10_000  # starts


@dataclass(frozen=True, eq=False)
class IKResult:
    """Configurations, and how well they do.

    q           (..., nq): the solution, or where there is none the nearest that was found
    converged   (...): whether every target is met to `tolerance`
    error       (...): the largest of what is missed, in rad and m
    errors      {what: (...)}: what each part of each target misses, as "tool rad", "tool m", "center_of_mass m"
    tries       (...): starts that were needed
    solutions   with `distinct=True` all that were found, (..., k, nq), k of the problem with most; NaN where there are fewer
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
            return f"IKResult({'converged' if solved else 'not reached, the nearest'}, error {float(self.error):.2g})"
        return f"IKResult({solved} of {count} converged, largest error {float(self.error.max(initial=0.0)):.2g})"


def reach(
    robot: Robot | System,
    targets: Any = None,
    near: Any = None,
    *,
    directions: Any = None,
    center_of_mass: Any = None,
    posture: Any = None,
    weights: Any = None,
    order: Any = None,
    limits: bool = True,
    moving: Any = None,
    tolerance: float = 1e-6,
    starts: int = 32,
    distinct: bool = False,
) -> IKResult:
    """q with T_frame(q) = T_wanted of every frame: min_q sum w |e(q)|^2, e = [log(R_d R*); p_d - p], within the joint limits.

    `targets`     {frame: pose (..., 4, 4) or point (..., 3)}, any batch axes: one problem for each element
    `near`        (..., nq): where to start; joints that no target feels stay there (or at `robot.neutral()`), or where their
                  limits begin
    `directions`  {frame: (axis in the frame, direction (..., 3) in the world)}: that axis should look that way
    `center_of_mass`  (..., 3)
    `posture`     (..., nq): of all solutions one near to this
    `weights`     {frame or "center_of_mass": w or (w of the rotation, w of the position)}, in 1/rad^2 and 1/m^2: what counts
                  where not all can be met; 0 leaves a part out. By default 1 rad weighs as much as the frame's own reach
    `order`       names of targets, "center_of_mass" among them, the most important first: what a later one wants is done as
                  far as those before it do not feel it. What it does not name comes before them, the posture always last
    `limits`      whether joints stay within their limits; `moving` names those that may move at all
    `tolerance`   rad and m; `starts` how many are tried; `distinct=True` collects all solutions that they find

    Of a closed system (`pp.connect`, `pp.grasp`) loops are closed before anything else; without targets that is all, and
    what `System.assemble` does.

    Damped Newton steps, compiled whole, a problem a SIMD lane. Where a target cannot be met, q is the nearest that was found
    (a local minimum from the best start) and `converged` is False.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> wanted = robot.frame_pose([0.1, -0.8, 0.6, 0.2, 0.5, 0.3], "tool")
    >>> found = pp.reach(robot, {"tool": wanted}, near=np.zeros(6))
    >>> found, bool(np.abs(robot.frame_pose(found.q, "tool") - wanted).max() < 1e-6)  # doctest: +ELLIPSIS
    (IKResult(converged, error ...), True)
    """
    limits, distinct = flag("limits", limits), flag("distinct", distinct)
    system = robot if isinstance(robot, System) else None
    robot = ik_request.robot_of(system.robot if system else robot)
    if system is None:
        check_single_robot("reach", robot)
    wanted = ik_request.goals(
        robot, targets, directions, center_of_mass, weights, not (system and system.nc)
    )
    alone = system is not None and not wanted and posture is None and not distinct
    asked = ik_request.ordered(
        wanted, order, ik_request.ties(system) if system and not alone else []
    )
    given = {
        name: ik_request.configuration(robot, name, x)
        for name, x in (("near", near), ("posture", posture))
        if x is not None
    }
    starts = whole_number("starts", starts)
    if not 1 <= starts <= MOST:
        raise StateError(f"starts is {starts}, expected 1 to {MOST}", "32 is the default")
    tolerance = positive_number(
        "tolerance", tolerance, "give rad and m, 1e-6 for instance", most=1.0
    )
    wishes = {f"{task.kind} of {task.frame or ik_request.MASS}": goal for task, goal in asked}
    lead = batch_axes("reach", {name: x.shape[:-1] for name, x in (wishes | given).items()})
    free = ik_request.moving_joints(robot, moving)
    if limits:
        ik_request.check_limits(robot, free)
    if system and alone:
        return loops_alone(
            system, given.get("near", robot.neutral()), free, tolerance, limits, starts
        )
    ik_request.check_size(robot)
    *levels, hunt = _hunts(robot, asked, given, lead, limits, free, tolerance, ranked=not distinct)
    solutions = hunt.every(starts, bool(given)) if distinct else None
    if levels:
        hunt = in_order([*levels, hunt], starts, bool(given))
    elif not distinct:
        hunt.first(starts, bool(given))
    hunt.settle()
    return _answer(hunt, lead, solutions)


def _hunts(
    robot: Robot,
    asked: list[Any],
    given: dict[str, np.ndarray],
    lead: tuple[int, ...],
    limits: bool,
    free: np.ndarray,
    tolerance: float,
    ranked: bool,
) -> list[IKSolver]:
    """The problems (..., n) in a row: all of them at once, and before that, where they are `ranked`, level by level."""

    def flat(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(
            np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]), dtype=float
        )

    def hunt(some: list[Any], pull: np.ndarray | None = None) -> IKSolver:
        solver = problem(
            robot, tuple(task for task, _ in some), limits, free.tobytes(), pull is not None
        )
        return IKSolver(
            solver,
            np.concatenate([flat(x) for _, x in some], axis=-1),
            np.array(base),
            pull,
            tolerance,
        )

    at_once = [(replace(task, level=0), x) for task, x in asked]
    pull = flat(given["posture"]) if "posture" in given else None
    solver = problem(
        robot, tuple(task for task, _ in at_once), limits, free.tobytes(), pull is not None
    )
    base = flat(solver.inside(given.get("near", given.get("posture", robot.neutral()))))
    last = max(task.level for task, _ in asked) if ranked else 0
    levels = (
        [hunt([(task, x) for task, x in asked if task.level <= level]) for level in range(1 + last)]
        if last
        else []
    )
    return [*levels, hunt(at_once, pull)]


def _answer(hunt: IKSolver, lead: tuple[int, ...], solutions: list[np.ndarray] | None) -> IKResult:
    tasks, nq = hunt.problem.tasks, hunt.problem.robot.nq
    names = [f"{task.frame or ik_request.MASS} {unit}" for task in tasks for unit in task.units]
    miss = np.sqrt(hunt.miss).reshape(*lead, len(names))
    errors = {name: miss[..., i] for i, name in enumerate(names)}
    every = None
    if solutions is not None:
        every = np.full((len(solutions), max(map(len, solutions), default=0), nq), np.nan)
        for row, some in zip(every, solutions, strict=True):
            row[: len(some)] = some
        every = every.reshape(*lead, *every.shape[1:])
    q, solved, tries = (
        hunt.q.reshape(*lead, nq),
        hunt.solved.reshape(lead),
        hunt.tries.reshape(lead),
    )
    return IKResult(q, solved, miss.max(axis=-1), errors, tries, every)


def loops_alone(
    system: System,
    near: np.ndarray,
    moving: np.ndarray,
    tolerance: float,
    limits: bool,
    starts: int,
) -> IKResult:
    """From near (..., nq); `moving` (nv,) says which coordinates may."""
    lead = system.batch_axes(near.shape[:-1])
    one, guess = (
        system.at_elements(lead, np.ones(lead, dtype=bool)),
        np.broadcast_to(near, (*lead, system.nq)).reshape(-1, system.nq),
    )
    q, e, tries = close_loops(one, guess, moving.astype(float), tolerance, limits, starts)
    errors = {
        name: np.linalg.norm(e[:, rows], axis=-1).reshape(lead)[()]
        for name, rows in _parts(system).items()
    }
    error = np.max([*errors.values()], axis=0)
    return IKResult(
        q.reshape(*lead, system.nq), error <= tolerance, error, errors, tries.reshape(lead)
    )


def _parts(system: System) -> dict[str, list[int]]:
    """The rows of every constraint, turns and places by themselves: {"contact 1 rad": rows}."""
    closure, out = system.closure, {}
    joints = [(SLIDE if system.joint(f.joint).row.slides[0] else TURN,) for f in closure.mimics]
    units = [*(c.units for c in closure.constraints), *joints]
    for tie, own, each in zip(
        (*closure.constraints, *closure.mimics), closure.slices, units, strict=True
    ):
        for unit in (TURN, SLIDE):
            rows = [i for i, x in zip(range(own.start, own.stop), each, strict=True) if x == unit]
            out |= {f"{tie.name} {unit}": rows} if rows else {}
    return out
