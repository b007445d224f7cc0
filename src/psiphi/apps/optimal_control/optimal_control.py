"""`pp.OptimalControl`: problems of optimal control of a robot, solved in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import columns, shown
from psiphi._util.validate import (
    batch_axes,
    finite_array,
    is_foreign,
    one_of,
    positive_count,
    positive_number,
    whole_number,
)
from psiphi.apps.optimal_control import problem_request as request
from psiphi.apps.optimal_control import state_limits
from psiphi.apps.optimal_control.arrays.optimum_function import (
    constant_numbers,
    has_foreign,
    solve_arrays,
)
from psiphi.apps.optimal_control.contact_sequence import contact_schedule
from psiphi.apps.optimal_control.control_blocks import ControlBlocks, loop_count
from psiphi.apps.optimal_control.control_kernels import ControlKernels
from psiphi.apps.optimal_control.cost import Cost
from psiphi.apps.optimal_control.ddp_solver import (
    FIRST_DAMPING,
    Motions,
    ProblemNumbers,
    Solver,
    SolverState,
    still,
)
from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import JointNames

HESSIANS = ("auto", "gauss", "full")
MAX_STEPS = 100_000
StateGuess = tuple[Numbers, Numbers]


class OptimalControl:
    """min sum_k h l(x_k, u_k) + l_N(x_N), x_k+1 = f(x_k, u_k), low <= u <= high.

    x = (q, v), and f is a semi-implicit Euler step of `dt` seconds with constant torque:
    v1 = v + h FD(q, v, tau), q1 = q exp(h v1). There are `steps` steps.

    `running`, `final`   costs of `pp.cost`; those of `running` are multiplied by dt. Torques need a
                         cost: `pp.cost.torque(1e-6)` at least
    `torque`             bounds of the torques, kept exactly: True for `robot.effort`, a number, one
                         for each motor, a pair (low, high), or None
    `limits`, `speed`    limits of the joints' positions (`robot.lower`, `robot.upper`) and speeds
                         (True for `robot.velocity_limit`, or numbers): "kept" by an augmented
                         Lagrangian, "soft" by a penalty of `limit_weight`, or None
    `actuated`, `passive`  names of the joints with motors, or of those without
    `hessian`            "gauss" (Gauss-Newton), "full" (with the curvature of the dynamics), or
                         "auto": Gauss-Newton first, full close to the solution. Robots with
                         quaternions or embedded loops use "gauss"
    `contacts`           names of frames that the world can hold, feet for instance, or {name:
                         "point" (its position) or "pose"}: `solve(..., schedule=)` says when

    The first call of `solve` compiles. Starts, goals and parameters are inputs: one compiled
    problem serves them all, each problem of a batch in its own SIMD lane.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("pelican")
    >>> reach = pp.OptimalControl(
    ...     robot, dt=0.02, steps=25,
    ...     running=[pp.cost.torque(1e-3)],
    ...     final=[pp.cost.point("tool", 1e4), pp.cost.speed(10.0)])
    >>> goals = robot.frame_pose([[0.5, 0.5], [0.2, 1.0]], "tool")[:, :3, 3]
    >>> found = reach.solve(np.zeros(2), tool=goals)
    >>> found.q.shape, found.u.shape, bool(found.converged.all())
    ((2, 26, 2), (2, 25, 2), True)
    >>> found.controller()
    <MotionController of 'pelican': low, high>
    """

    def __init__(
        self,
        robot: Robot,
        dt: float,
        steps: int,
        *,
        running: Sequence[Cost] = (),
        final: Sequence[Cost] = (),
        torque: bool | Numbers | tuple[Numbers, Numbers] | None = True,
        limits: str | bool | None = None,
        speed: str | bool | Numbers | None = None,
        limit_weight: float = 1e3,
        actuated: JointNames = None,
        passive: JointNames = None,
        hessian: str = "auto",
        contacts: Sequence[str] | Mapping[str, str] | None = None,
    ):
        self.robot = request.check_problem_robot(robot)
        self.needs_parameters = getattr(self.robot, "given", 0) is None
        if self.needs_parameters:  # costs and limits are read with the values of the file
            self.robot = self.robot.at(self.robot.parameters())  # type: ignore[attr-defined]
        self._bound = next(iter(self.robot.parameter_arguments), None)
        if is_foreign(self._bound):  # the default of `solve`, with its derivatives
            self.robot = self.bound_robot(constant_numbers("robot.at(parameters)", self._bound))
        self.dt = positive_number("dt", dt, "give seconds, 0.01 for instance")
        self.steps = positive_count("steps", steps, MAX_STEPS, "give the number of steps of dt")
        self.motors = request.motor_indices(self.robot, actuated, passive)
        self.contacts = contact_schedule.read_contacts(self.robot, contacts)
        count = len(self.motors)
        self.running = request.read_terms(self.robot, "running", running, count, self.contacts)
        self.final = request.read_terms(self.robot, "final", final, count, self.contacts)
        request.check_terms(self.robot, self.running, self.final, self.motors)
        self.bounds = request.read_bounds(self.robot, torque, self.motors)
        self.limits, self.limit_kind = request.read_limits(self.robot, limits, speed)
        self.limit_weight = positive_number("limit_weight", limit_weight, "give a weight")
        self.hessian = one_of("hessian", hessian, HESSIANS)
        if not self.robot.manifold.is_flat:
            if self.hessian == "full":
                what = "embedded loops" if self.robot.manifold.cluster_joints else "quaternions"
                cause = f"hessian='full' of {self.robot.name}, whose joints have {what}"
                raise StateError(f"{cause}, is not implemented", 'give hessian="gauss"')
            self.hessian = "gauss"
        if self.contacts:
            if self.hessian == "full":
                cause = "hessian='full' of a problem with contacts is not implemented"
                raise StateError(cause, 'give hessian="gauss"')
            self.hessian = "gauss"
        self._kernels: dict[tuple[bool, bool], ControlKernels] = {}

    # -- description

    @property
    def duration(self) -> float:
        """steps dt, in seconds."""
        return self.steps * self.dt

    @property
    def goal_names(self) -> tuple[str, ...]:
        """The goals that `solve` asks for."""
        terms = (*self.running, *self.final)
        return tuple(dict.fromkeys(term.name for term in terms if term.has_goal))

    @property
    def limit_names(self) -> tuple[str, ...]:
        """The limits of the state, in the order of `OptimalMotion.multipliers`."""
        nv = self.robot.nv

        def name(k: int, sign: float) -> str:
            kind = "position" if k < nv else "speed"
            return f"{request.joint_name(self.robot, k % nv)} {kind} {'<' if sign > 0 else '>'}"

        return tuple(f"{name(k, sign)} {bound:.4g}" for k, sign, bound in self.limits)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """The frames that can be held, in the order of a schedule."""
        return tuple(name for name, _ in self.contacts)

    @property
    def flops(self) -> dict[str, int]:
        """Operations for one node: of the backward loop, of the line search (`look`), and of one
        motion (`take`). With contacts, the line search is `take` for each candidate."""
        blocks = self._family(False, False).blocks
        names = ("backward", "take") if self.contacts else ("backward", "look", "take")
        return {name: loop_count(getattr(blocks, name)).flops for name in names}

    def explain(self) -> str:
        """A text: the sizes of the problem, its costs, and the operations of its loops."""
        names = [self.robot.velocity_names[i] for i in self.motors]
        lines = [repr(self), f"motors: {', '.join(names)}"]
        for title, terms in (("running", self.running), ("final", self.final)):
            each = [f"{t.cost!r} -> {t.name}" if t.has_goal else repr(t.cost) for t in terms]
            lines.append(f"{title}: {', '.join(each) or 'none'}")
        if self.bounds is not None:
            lines.append("torques: within their bounds, exactly")
        if self.limits:
            lines.append(f"limits, {self.limit_kind}: {', '.join(self.limit_names)}")
        if self.contacts:
            lines.append(f"contacts: {', '.join(' '.join(pair) for pair in self.contacts)}")
        lines.append(f"Hessian: {self.hessian}")
        rows = [(name, f"{count} flops a node") for name, count in self.flops.items()]
        return "\n".join([*lines, *columns(rows)])

    def __repr__(self) -> str:
        return (
            f"<OptimalControl of {self.robot.name!r}: {self.steps} steps of {self.dt:g} s, "
            f"{len(self.motors)} torques>"
        )

    # -- solution

    def solve(
        self,
        q: Numbers,
        v: Numbers = 0.0,
        *,
        near: OptimalMotion | None = None,
        shift: int = 0,
        torques: Numbers | None = None,
        states: StateGuess | None = None,
        parameters: Numbers | None = None,
        schedule: Numbers | Mapping[str, Numbers] | None = None,
        iterations: int = 100,
        tolerance: float = 1e-7,
        progress: Callable[[int, np.ndarray], object] | None = None,
        **goals: Any,
    ) -> OptimalMotion:
        """The motion of least cost from each start q (..., nq), v (..., nv).

        `goals`       by name: `tool=poses`. All arguments may have batch axes
        `torques`     (..., steps, nu or nv): the first guess; by default the torques that hold the
                      robot at the start, or 0 if some joint has no motor
        `states`      ((..., steps + 1, nq), (..., steps + 1, nv)): a guess of the states. It need
                      not be a motion: the gaps between its steps close during the iterations
        `near`        an `OptimalMotion`, from which the solver starts: its torques and gains are
                      rolled out from the new start, `shift` steps later
        `parameters`  of a robot with free parameters; by default those of the robot
        `schedule`    (..., steps, contacts), 1 in the steps in which a contact holds and 0 in the
                      others, or {contact: (..., steps)}. A contact that starts to hold stops its
                      frame: an impact. It holds the frame where it is
        `iterations`  at most; `tolerance` is the relative gain of a step that counts as none
        `progress`    a function of (iteration, costs), called after each iteration

        If the start, goals or parameters are arrays of torch or JAX, the result is a named tuple
        (q, v, u, converged) of such arrays, with the derivatives of their library.
        """
        every = dict(locals())  # the arguments by name
        if parameters is None and is_foreign(self._bound):
            parameters = self._bound
        given = {"q": q, "v": v, **goals}
        given |= {} if parameters is None else {PARAMETERS: parameters}
        if has_foreign(tuple(given.values())):
            known = ("self", "q", "v", "parameters", "goals")
            options = {name: x for name, x in every.items() if name not in known}
            return solve_arrays(self, given, options)  # type: ignore[return-value]
        q0, v0 = request.read_start(self.robot, q, v)
        iterations = whole_number("iterations", iterations)
        remedy = "give a number, 1e-7 for instance"
        tolerance = max(positive_number("tolerance", tolerance, remedy, most=1.0), 1e-14)
        shift = min(whole_number("shift", shift), self.steps)  # later ones are its last step
        if near is not None and (torques is not None or states is not None):
            raise StateError("near= and torques= or states= are given", "give one of them")
        if near is not None and not isinstance(near, OptimalMotion):
            raise StateError(
                f"near is {shown(near)}, expected an OptimalMotion", "solve returns one"
            )
        if near is not None and near.problem.shape != self.shape:
            cause = f"near is a motion of {near.problem!r}"
            raise StateError(cause, "give a motion of this problem")
        if progress is not None and not callable(progress):
            cause = f"progress is {shown(progress)}, expected a function"
            raise StateError(cause, "give a function of (iteration, costs)")
        if shift and near is None:
            raise StateError("shift is given without near", "give near=")
        named = request.read_goals((*self.running, *self.final), goals, self.steps)
        bound = self._read_parameters(parameters)
        tables = self._read_tables(torques, states)
        holds = contact_schedule.read_schedule(self.contacts, schedule, self.steps)
        if holds is not None:
            tables["schedule"] = holds
        axes = {"q": q0.shape[:-1], "v": v0.shape[:-1]}
        axes |= {name: x.shape[:-2] for name, x in (*named.items(), *tables.items())}
        if bound is not None:
            axes["parameters"] = bound.shape[:-1]
        if near is not None:
            axes["near"] = near.batch
        batch = batch_axes("solve", axes)
        if self.limit_kind == "kept":
            request.check_start_within(self.robot, self.limits, q0, v0)
        count = int(np.prod(batch))
        start = [flat_batch(x, batch, 1) for x in (q0, v0)]
        numbers = self._numbers(named, bound, batch, holds)
        with np.errstate(all="ignore"):
            return self._solve(
                batch, count, start, numbers, named, bound, tables, near, shift, iterations,
                tolerance, progress,
            )  # fmt: skip

    def _solve(
        self,
        batch: tuple[int, ...],
        count: int,
        start: list[np.ndarray],
        numbers: ProblemNumbers,
        named: dict[str, np.ndarray],
        bound: np.ndarray | None,
        tables: dict[str, np.ndarray],
        near: OptimalMotion | None,
        shift: int,
        iterations: int,
        tolerance: float,
        watch: Callable[[int, np.ndarray], object] | None,
    ) -> OptimalMotion:
        solver = self.solver
        x, progress = self._first_motions(batch, start, numbers, tables, near, shift, bound)
        limits = state_limits.StateLimits.start(self, numbers, count, near, batch, shift)
        history = [x.cost.copy()]

        def record(index: np.ndarray, now: Motions) -> None:
            last = history[-1].copy()
            last[index] = now.cost
            history.append(last)
            if watch is not None:
                _report(watch, len(history) - 1, last.reshape(batch)[()])

        limits.solve(solver, x, progress, iterations, tolerance, record)
        x.d, x.cost = None, limits.costs(solver, x)
        gains = solver.gains(x, limits.numbers, np.zeros(count))
        m, n = len(self.motors), 2 * self.robot.nv

        def shaped(y: np.ndarray) -> np.ndarray:
            return y.reshape((*batch, *y.shape[1:]))[()]

        return OptimalMotion(
            self,
            q=shaped(x.q),
            v=shaped(x.v),
            u=shaped(x.u),
            k=shaped(gains.k),
            K=shaped(gains.K.reshape(count, self.steps, m, n)),
            cost=shaped(x.cost),
            converged=shaped(progress.converged & np.isfinite(x.cost)),
            iterations=shaped(progress.iterations),
            residual=shaped(np.sqrt(gains.residual[:, 0])),
            gap=shaped(progress.gap),
            violation=shaped(limits.violation(x)),
            multipliers=shaped(limits.multipliers),
            damping=shaped(progress.damping),
            curved=shaped(progress.curved),
            penalty=shaped(limits.rho),
            history=tuple(map(shaped, history)),
            goals=named,
            parameters=bound,
            schedule=tables.get("schedule"),
        )

    @property
    def shape(self) -> tuple:
        """What motions of a problem must share to be used as `near`."""
        return self.robot.digest, self.steps, self.motors, len(self.limits), self.contacts

    @cached_property
    def solver(self) -> Solver:
        """(Internal use only) The iteration on arrays."""
        return Solver(self._family, self.dt, self.steps, self.hessian)

    def _family(self, has_gaps: bool, curvature: bool) -> ControlKernels:
        key = has_gaps, curvature
        if key not in self._kernels:
            blocks = ControlBlocks(
                self.robot, self.running, self.final, self.motors, self.bounds is not None,
                self.limits, has_gaps, curvature, self.contacts,
            )  # fmt: skip
            self._kernels[key] = ControlKernels(blocks)
        return self._kernels[key]

    # -- arguments

    def _read_parameters(self, parameters: Numbers | None) -> np.ndarray | None:
        self.check_free(parameters)
        if self.robot.freed is None:
            return None
        values = self.robot.parameter_arguments[0]
        if parameters is None and self.needs_parameters:
            cause = f"solve: {self.robot.name} has free parameters, and parameters= is missing"
            raise StateError(cause, f"give {np.shape(values)[-1]} numbers, or robot.at(parameters)")
        if parameters is None:
            return np.asarray(values, dtype=float)
        size = np.shape(values)[-1]
        return finite_array("parameters", parameters, (size,), f"give {size} numbers")

    def check_free(self, parameters: Numbers | None) -> None:
        """(Internal use only) Raise an error for parameters of a robot that has none."""
        if self.robot.freed is None and parameters is not None:
            cause = f"parameters are given, and {self.robot.name} has no free parameters"
            raise StateError(cause, 'make the problem with robot.free("inertia")')

    def bound_robot(self, parameters: np.ndarray | None) -> Robot:
        """(Internal use only) The robot with the parameters of a solution."""
        return self.robot if parameters is None else self.robot.at(parameters)  # type: ignore[attr-defined]

    def _read_tables(
        self, torques: Numbers | None, states: StateGuess | None
    ) -> dict[str, np.ndarray]:
        """The guesses, by name."""
        tables, nv, count = {}, self.robot.nv, len(self.motors)
        if torques is not None:
            remedy = f"give one row a step: (..., {self.steps}, {count})"
            u = request.read_table("torques", torques, self.steps, (count, nv), remedy)
            tables["torques"] = u if u.shape[-1] == count else u[..., list(self.motors)]
        if states is not None:
            if not isinstance(states, tuple | list) or len(states) != 2:
                cause = f"states is {shown(states)}, expected (q, v)"
                raise StateError(cause, "give the positions and the velocities of all nodes")
            remedy = f"give one row a node: (..., {self.steps + 1}, n)"
            for name, value, size in zip("qv", states, (self.robot.nq, nv), strict=True):
                what = f"states {name}"
                tables[what] = request.read_table(what, value, self.steps + 1, (size,), remedy)
            tables["states q"] = self.robot.normalize(tables["states q"])
        return tables

    def _numbers(
        self,
        named: dict[str, np.ndarray],
        bound: np.ndarray | None,
        batch: tuple[int, ...],
        holds: np.ndarray | None,
    ) -> ProblemNumbers:
        """Goals, weights, bounds and parameters, by place."""
        constant: dict[str, np.ndarray] = {}
        per_node: dict[str, np.ndarray] = {}
        running = request.joined_goals(self.running, named, slice(0, -1))
        final = request.joined_goals(self.final, named, slice(-1, None))
        if running is not None:
            per_node["goal"] = flat_batch(running, batch, 2)
        if final is not None:
            constant["final_goal"] = flat_batch(final, batch, 2)
        for prefix, terms in (("", self.running), ("final_", self.final)):
            weights = [term.weights for term in terms]
            if weights:
                row = np.concatenate(weights)[None]
                constant[f"{prefix}weight"] = flat_batch(row, batch, 2)
        if self.bounds is not None:
            for name, row in zip(("low", "high"), self.bounds, strict=True):
                constant[name] = flat_batch(row[None], batch, 2)
        if bound is not None:
            constant[PARAMETERS] = flat_batch(bound[..., None, :], batch, 2)
        if holds is not None:
            per_node["hold"] = flat_batch(holds, batch, 2)
        return ProblemNumbers(constant, per_node)

    def _first_motions(
        self,
        batch: tuple[int, ...],
        start: list[np.ndarray],
        numbers: ProblemNumbers,
        tables: dict[str, np.ndarray],
        near: OptimalMotion | None,
        shift: int,
        bound: np.ndarray | None,
    ) -> tuple[Motions, SolverState]:
        """The motions that the iteration starts from."""
        (q, v), solver = start, self.solver
        count, m, n = len(q), len(self.motors), 2 * self.robot.nv
        rolled = state_limits.without_limits(self, numbers, count)
        zero = np.zeros(count)
        if near is not None:
            nominal, K = self._shifted(near, batch, shift)
            k = np.zeros(nominal.u.shape)
            x = solver.take(nominal, rolled, k, K, zero, first=(q, v))
            damping = flat_batch(np.asarray(near.damping)[..., None], batch, 1)[:, 0]
            progress = SolverState.start(count, damping, zero.copy())
            curved = flat_batch(np.asarray(near.curved)[..., None], batch, 1)[:, 0]
            progress.curved = np.array(curved) & (self.hessian != "gauss")
            return x, progress
        u = self._first_torques(batch, start, tables, bound)
        if "states q" in tables:
            return self._with_gaps(batch, start, rolled, tables, u)
        no_gains = np.broadcast_to(np.zeros(1), (count, self.steps, m * n))
        no_step = np.broadcast_to(np.zeros(1), (count, self.steps, m))
        x = solver.take(still(q, v, u), rolled, no_step, no_gains, zero)
        self._check_first(batch, x)
        progress = SolverState.start(count, FIRST_DAMPING, zero.copy())
        progress.curved |= self.hessian == "full"
        return x, progress

    def _check_first(self, batch: tuple[int, ...], x: Motions) -> None:
        """Raise an error if the first motion of every element diverges; of a batch, single elements
        have no solution."""
        bad = ~(np.isfinite(x.cost) & np.isfinite(x.q[:, -1]).all(-1))
        if bad.any() and bad.all():
            rows = np.isfinite(x.q[0]).all(-1) & np.isfinite(x.v[0]).all(-1)
            node = int(np.argmin(rows)) if not rows.all() else self.steps
            cause = f"solve: the motion of the first guess diverges at node {node}"
            raise StateError(cause, "give torques= or states=, or a smaller dt")

    def _shifted(
        self, near: OptimalMotion, batch: tuple[int, ...], shift: int
    ) -> tuple[Motions, np.ndarray]:
        """The motion `shift` steps later; after its end, its last step."""
        steps = np.minimum(np.arange(self.steps) + shift, self.steps - 1)
        nodes = np.minimum(np.arange(self.steps + 1) + shift, self.steps)
        q, v = (flat_batch(x, batch, 2)[:, nodes] for x in (near.q, near.v))
        u = flat_batch(near.u, batch, 2)[:, steps]
        K = flat_batch(near.K.reshape(*near.K.shape[:-2], -1), batch, 2)[:, steps]
        return Motions(q, v, u, np.zeros(len(q))), K

    def _first_torques(
        self,
        batch: tuple[int, ...],
        start: list[np.ndarray],
        tables: dict[str, np.ndarray],
        bound: np.ndarray | None,
    ) -> np.ndarray:
        """(B, steps, nu): the guess of the torques, within their bounds."""
        count, m = len(start[0]), len(self.motors)
        if "torques" in tables:
            u = np.array(flat_batch(tables["torques"], batch, 2))
        elif m == self.robot.nv or self.contacts:
            robot = self.robot
            if bound is not None:
                robot = self.bound_robot(np.array(flat_batch(bound, batch, 1)))
            if self.contacts:
                holds, held = tables["schedule"], self._family(False, False).blocks.held
                return self._within_bounds(
                    contact_schedule.holding_torques(
                        robot, held, self.motors, start[0], flat_batch(holds, batch, 2)
                    )
                )
            hold = robot.gravity(start[0])[:, list(self.motors)]
            u = np.repeat(hold[:, None], self.steps, axis=1)
        else:
            u = np.zeros((count, self.steps, m))
        return self._within_bounds(u)

    def _within_bounds(self, u: np.ndarray) -> np.ndarray:
        return u if self.bounds is None else np.clip(u, *self.bounds)

    def first_torques(
        self, q: Numbers, torques: Numbers | None = None, parameters: Numbers | None = None
    ) -> np.ndarray:
        """(Internal use only) (steps, nu): the torques that `solve` starts from at one state."""
        start = [np.asarray(q, float)[None], np.zeros((1, self.robot.nv))]
        tables, bound = self._read_tables(torques, None), self._read_parameters(parameters)
        return self._first_torques((), start, tables, bound)[0]

    def _with_gaps(
        self,
        batch: tuple[int, ...],
        start: list[np.ndarray],
        numbers: ProblemNumbers,
        tables: dict[str, np.ndarray],
        u: np.ndarray,
    ) -> tuple[Motions, SolverState]:
        """The guess of the states, and its gaps d = log(x_k+1^-1 f(x_k, u_k))."""
        q, v = (np.array(flat_batch(tables[f"states {name}"], batch, 2)) for name in "qv")
        q[:, 0], v[:, 0] = start
        manifold = self.robot.manifold
        q1, v1, _ = self.solver.each_step(Motions(q, v, u, np.zeros(len(q))), numbers)
        d = np.concatenate([manifold.log(q[:, 1:], q1), v1 - v[:, 1:]], axis=-1)
        x = Motions(q, v, u, np.zeros(len(q)), d)
        running, final = self.solver.term_costs(x, numbers)
        x.cost = np.add.reduce([*running.T, *final.T])
        progress = SolverState.start(len(q), FIRST_DAMPING, np.abs(d).sum(axis=(-1, -2)))
        progress.curved |= self.hessian == "full"
        return x, progress

    def numbers_of(self, motion: OptimalMotion) -> ProblemNumbers:
        """(Internal use only) The goals, weights and parameters of a solution, by place."""
        return self._numbers(dict(motion.goals), motion.parameters, motion.batch, motion.schedule)

    def contact_wrenches(self, motion: OptimalMotion) -> np.ndarray:
        """(Internal use only) (..., N, contacts, 6): what the contacts of a motion do."""
        batch, numbers = motion.batch, self.numbers_of(motion)
        if not self.contacts:
            return np.zeros((*motion.u.shape[:-1], 0, 6))
        numbers = state_limits.without_limits(self, numbers, int(np.prod(batch)))
        q, v, u = (flat_batch(y, batch, 2) for y in (motion.q, motion.v, motion.u))
        with np.errstate(all="ignore"):
            _, _, rows = self.solver.each_step(Motions(q, v, u, np.zeros(len(q))), numbers)
        held = self._family(False, False).blocks.held
        found = contact_schedule.wrenches(held, rows)
        return found.reshape((*batch, *found.shape[1:]))

    def term_costs(self, motion: OptimalMotion) -> dict[str, np.ndarray]:
        """(Internal use only) The parts of the cost of a motion, by name."""
        batch = motion.batch
        numbers = self.numbers_of(motion)
        q, v, u = (flat_batch(y, batch, 2) for y in (motion.q, motion.v, motion.u))
        x = Motions(q, v, u, np.zeros(0))
        running, final = self.solver.term_costs(x, numbers)
        found: dict[str, np.ndarray] = {}
        for prefix, terms, costs in (("", self.running, running), ("final ", self.final, final)):
            for term, column in zip(terms, costs.T, strict=False):
                name = f"{prefix}{term.name}"
                found[name] = found.get(name, 0.0) + column.reshape(batch)[()]
        return found


def _report(watch: Callable[[int, np.ndarray], object], iteration: int, costs: np.ndarray) -> None:
    """Call the function of a user; an error of its own is one in words."""
    try:
        watch(iteration, costs)
    except Exception as error:
        cause = f"progress failed after iteration {iteration}: {type(error).__name__}: {error}"
        raise StateError(cause, "give a function of (iteration, costs)") from error


def flat_batch(x: np.ndarray, batch: tuple[int, ...], core: int) -> np.ndarray:
    """(..., *core) as (B, *core): without a copy if x has no batch axes."""
    count = int(np.prod(batch))
    inner = x.shape[x.ndim - core :]
    if x.ndim == core:
        return np.broadcast_to(x, (count, *inner))
    return np.broadcast_to(x, (*batch, *inner)).reshape(count, *inner)
