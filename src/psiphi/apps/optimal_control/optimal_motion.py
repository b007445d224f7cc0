"""`OptimalMotion`: the result of `OptimalControl.solve`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.text import columns
from psiphi._util.validate import batch_place
from psiphi.apps.optimal_control.contact_sequence.contact_schedule import (
    contact_lines,
    friction_needed,
)
from psiphi.apps.optimal_control.cost_terms import up_direction
from psiphi.apps.optimal_control.feedback_controller import MotionController
from psiphi.apps.optimal_control.optimum_derivatives import OptimumDerivatives
from psiphi.simulation.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from psiphi.apps.optimal_control.optimal_control import OptimalControl

SHARED = ("problem", "history", "goals", "parameters", "schedule")


@dataclass(frozen=True, eq=False)
class OptimalMotion:
    """Motions of least cost, with N = steps:

    q, v         (..., N + 1, nq), (..., N + 1, nv): the states at the nodes
    u            (..., N, nu): the torques of the motors
    k, K         (..., N, nu), (..., N, nu, 2 nv): u + k + K [log(q^-1 q'); v' - v] is the step and
                 the feedback of the Gauss-Newton problem at this motion; k is 0 where it is solved
    cost         (...): the sum of the costs, and of the penalty of soft limits
    converged    (...): whether the last steps gained less than the tolerance
    iterations   (...)
    residual     (...): the largest gradient by a free torque, max |Qu_i| / sqrt(Quu_ii)
    gap          (...): the sum of the gaps between the steps; 0 unless `states=` was given
    violation    (...): how far the state is beyond its kept limits; 0 without limits
    multipliers  (..., N + 1, limits): of the kept limits, in the order of `problem.limit_names`
    damping      (...): with it, `near=` goes on where the solver stopped
    """

    problem: OptimalControl
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    k: np.ndarray
    K: np.ndarray
    cost: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    gap: np.ndarray
    violation: np.ndarray
    multipliers: np.ndarray
    damping: np.ndarray
    curved: np.ndarray = field(repr=False)  # whether the curvature of the dynamics was added
    penalty: np.ndarray = field(repr=False)  # rho of the limits
    history: tuple[np.ndarray, ...] = field(repr=False)  # the costs after each iteration
    goals: Mapping[str, np.ndarray] = field(
        repr=False
    )  # (..., rows, size), as the solver read them
    parameters: np.ndarray | None = field(repr=False)
    schedule: np.ndarray | None = field(default=None, repr=False)  # (..., N, contacts)

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes."""
        return self.q.shape[:-2]

    @property
    def t(self) -> np.ndarray:
        """(N + 1,): the times of the nodes."""
        return self.problem.dt * np.arange(self.q.shape[-2])

    @property
    def tau(self) -> np.ndarray:
        """(..., N, nv): the torques of all joints, zero at joints without a motor."""
        tau = np.zeros((*self.u.shape[:-1], self.problem.robot.nv))
        tau[..., list(self.problem.motors)] = self.u
        return tau

    @cached_property
    def costs(self) -> dict[str, np.ndarray]:
        """{name of the cost: (...)}: the parts of `cost`, without those of limits."""
        return self.problem.term_costs(self)

    @property
    def at_bounds(self) -> np.ndarray:
        """(..., N, nu): whether a torque is at one of its bounds."""
        if self.problem.bounds is None:
            return np.zeros(self.u.shape, dtype=bool)
        low, high = self.problem.bounds
        return (self.u <= low) | (self.u >= high)

    @cached_property
    def wrenches(self) -> np.ndarray:
        """(..., N, contacts, 6): moments and forces of the world on the held frames, at their
        origins, in world axes; in the step in which a contact starts to hold with its impact,
        divided by dt."""
        return self.problem.contact_wrenches(self)

    @property
    def forces(self) -> np.ndarray:
        """(..., N, contacts, 3): the forces of the world on the held frames, in world axes."""
        return self.wrenches[..., 3:]

    @property
    def friction_needed(self) -> np.ndarray:
        """(..., N, contacts): |f_t| / f_n, the friction without which a held contact slips;
        infinite where it would have to pull, 0 where it does not hold."""
        holds = self.schedule if self.schedule is not None else np.zeros(())
        return friction_needed(self.forces, np.array(up_direction(self.problem.robot)), holds)

    @property
    def pulls(self) -> np.ndarray:
        """(..., N, contacts): whether a held contact pulls, which the ground cannot."""
        return np.isinf(self.friction_needed)

    def element(self, *where: int) -> OptimalMotion:
        """One motion of a batch: `found.element(3)`."""
        place = batch_place(where, self.batch)
        changed = {
            f.name: getattr(self, f.name)[place] for f in fields(self) if f.name not in SHARED
        }
        goals = {name: _element(x, 2, self.batch, place) for name, x in self.goals.items()}
        parameters = self.parameters
        if parameters is not None:
            parameters = _element(parameters, 1, self.batch, place)
        history = tuple(x[place] for x in self.history)
        changed |= {"goals": goals, "parameters": parameters, "history": history}
        if self.schedule is not None:
            changed["schedule"] = _element(self.schedule, 2, self.batch, place)
        return replace(self, **changed)

    def controller(self) -> MotionController:
        """u_k + K_k dx within the bounds of the torques, for `pp.simulate` and `pp.rollout`."""
        return MotionController(self)

    @cached_property
    def trajectory(self) -> Trajectory:
        """The motion as a `pp.Trajectory`: plots, pages, tables, files.

        tau of the last sample is that of the last step.
        """
        tau = np.concatenate([self.tau, self.tau[..., -1:, :]], axis=-2)
        info = {"method": "optimal control", "dt": self.problem.dt}
        robot = self.problem.bound_robot(self.parameters)
        return Trajectory(self.t, self.q, self.v, tau=tau, system=robot, info=info)

    @cached_property
    def _derivatives(self) -> OptimumDerivatives:
        return OptimumDerivatives(self)

    def jvp(self, **changes: Numbers) -> dict[str, np.ndarray]:
        """The changes of the optimal q, v and u for changes of the start, `q` and `v` (..., nv), of
        goals by name, and of free `parameters`.

        Torques at their bounds and states at kept limits stay there. Elements that have not
        converged are NaN. A pose changes by a matrix (4, 4).
        """
        return self._derivatives.jvp(changes)

    def vjp(self, **weights: Numbers) -> dict[str, np.ndarray]:
        """The gradients of sum(weight * result) by "q" and "v" of the start, by goals and
        parameters; weights are those of q, v (..., N + 1, nv) and u (..., N, nu).

        Gradients are those of each problem of the batch.
        """
        return self._derivatives.vjp(weights)

    def plot(self, what: str | Sequence[str] = "q v tau", **options: Any) -> Figure:
        """The plot of the motion: `Trajectory.plot`."""
        return self.trajectory.plot(what, **options)

    def html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """The motion as a page: `Trajectory.html`."""
        return self.trajectory.html(path, **options)  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        return self.trajectory._repr_html_()  # type: ignore[attr-defined]

    def summary(self) -> str:
        """A text: what converged, and the share of each cost."""
        rows = [(name, f"{np.median(x):.4g}") for name, x in self.costs.items()]
        rows.append(("cost", f"{np.median(self.cost):.4g}"))
        median = " (median)" if self.batch else ""
        lines = [repr(self), *columns([("", f"cost{median}"), *rows])]
        bound = float(self.at_bounds.mean()) if self.u.size else 0.0
        lines.append(f"torques at a bound: {100.0 * bound:.0f} %")
        lines += contact_lines(self.problem.contact_names, self.friction_needed)
        return "\n".join(lines)

    def __repr__(self) -> str:
        count, solved = self.converged.size, int(np.count_nonzero(self.converged))
        residual = float(np.max(self.residual, initial=0.0))
        if not self.batch:
            state = "converged" if solved else "not converged"
            rest = f"{int(self.iterations)} iterations, cost {float(self.cost):.4g}"
            return f"OptimalMotion({state}, {rest}, residual {residual:.1g})"
        middle = f"{np.median(self.iterations):.0f} (median)" if count else "0"
        return (
            f"OptimalMotion({solved} of {count} converged, iterations {middle}, "
            f"largest residual {residual:.1g})"
        )


def _element(
    x: np.ndarray, core: int, batch: tuple[int, ...], where: tuple[int, ...]
) -> np.ndarray:
    return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))[where]
