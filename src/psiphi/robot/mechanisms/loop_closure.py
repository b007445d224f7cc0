"""Loop closure: from a rough guess (`assemble`), or from a state with drift (`project`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import as_names, positive_number
from psiphi.model.spatial.branch_free import away_from_bound
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.model.state_checks import batch_element
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.redundant_constraints import (
    ILL_CONDITIONED,
    RESIDUAL_TOLERANCE,
    least_norm,
    violated_direction,
)
from psiphi.robot.robot import Robot

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

MAX_STEPS = 300  # damped Gauss-Newton steps of one start
MAX_STEP = 0.5  # the largest change of a coordinate in one step: radians, metres
MAX_DAMPING = 1e9  # a start ends when its damping reaches this
SUFFICIENT_DECREASE = 1 - 1e-9  # a step must reduce |e|^2 by this factor
MAX_STARTS = 16  # the guess, then perturbed guesses
PERTURBATIONS = 0.2, 2.0  # standard deviation of the first and of the last perturbation
NEWTON_STEPS = 8  # of a projection
MAX_RESIDUAL = 1e-6  # of a state that satisfies the constraints; rates relative to 1 and |v|


class ClosureError:
    """e(q) and Jc(q) of a system, for a batch of `count` elements."""

    def __init__(self, system: System, count: int):
        self.jacobian_function = system.jacobian_function
        self.residual_function = system.residual_function
        self.system, self._rest, self._batch = system, np.zeros(system.nv), (count,)

    def at_elements(self, which: np.ndarray) -> ClosureError:
        """The same for some elements of the batch."""
        return ClosureError(self.system.at_elements(self._batch, which), len(which))

    def residual(self, q: np.ndarray) -> np.ndarray:
        """e(q) (n, m)."""
        return self.system.call_function(self.residual_function, (q, self._rest))[..., 0, :]

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """Jc(q) (n, m, nv)."""
        return self.system.call_function(self.jacobian_function, (q,))


def assemble(
    system: System, q_guess: Numbers, hold: str | Sequence[str], tolerance: float
) -> np.ndarray:
    """q with all loops closed, near a guess; an error names the loop that does not close."""
    (q,) = system.state_arrays(q=q_guess)
    for function in (system.residual_function, system.jacobian_function):
        function.source.compile("d")  # report errors of the compiler before the first step
    tolerance = positive_number("tolerance", tolerance, "give metres and radians, say 1e-11")
    batch = system.batch_axes(q.shape[:-1])
    with np.errstate(all="ignore"):
        guess = np.broadcast_to(system.robot.model.normalize(q), (*batch, system.nq))
        guess = guess.reshape(-1, system.nq)
    weights = np.ones(system.nv)
    for name in as_names("hold", hold):
        own = system.robot.joint(name).v_slice
        if own.start == own.stop:
            raise StateError(
                f"hold names {name}, which has no coordinate: an embedded loop or gear moves it",
                "hold joints of robot.coordinate_names",
            )
        weights[own] = 0.0
    invalid: Any = ~np.isfinite(guess).all(axis=-1)
    if invalid.any():
        where = batch_element(_first_index(invalid, batch))
        raise StateError(
            f"the guess is not finite, or has a zero quaternion{where}",
            "give finite numbers and unit quaternions",
        )
    flat = system.at_elements(batch, np.ones(batch, dtype=bool))
    q, e, _ = close_loops(flat, guess, weights, tolerance)
    _check_closed(system, q, e, tolerance, batch)
    return q.reshape(*batch, system.nq)


def close_loops(
    system: System,
    guess: np.ndarray,
    weights: np.ndarray,
    tolerance: float,
    limits: bool = False,
    starts: int = MAX_STARTS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """min |e(q)| from guesses (n, nq), by damped Gauss-Newton steps:
    dq = -W Jc* (Jc W Jc* + mu I)^-1 e, with the damping mu adapted per element.

    W = `weights` (nv,) is zero for joints that are held; with `limits`, also for a joint at a limit
    that the step would violate. An element that fails starts again from its perturbed guess, with
    growing perturbations. Returns q, e, and the number of starts per element.
    """
    error = ClosureError(system, len(guess))
    bounds = MoveBounds.within_limits(system.robot, weights) if limits else MoveBounds(weights)
    guess = bounds.clip(np.array(guess))
    q, e = np.array(guess), np.full((len(guess), system.nc), np.inf)
    tries = np.zeros(len(guess), dtype=int)
    rng = np.random.default_rng(0)
    for size in np.concatenate([[0.0], np.linspace(*PERTURBATIONS, max(starts - 1, 0))]):
        todo = np.flatnonzero(~(max_norm(e) <= tolerance))
        if not len(todo):
            break
        start = guess[todo]
        if size:
            change = size * weights * rng.standard_normal((len(todo), system.nv))
            start = bounds.clip(system.robot.model.integrate(start, change))
        new, new_e = _gauss_newton(error.at_elements(todo), bounds, start, tolerance)
        better = max_norm(new_e) < max_norm(e[todo])
        q[todo[better]], e[todo[better]] = new[better], new_e[better]
        tries[todo] += 1
    return system.robot.model.normalize(q), e, tries


@dataclass(frozen=True, eq=False)
class MoveBounds:
    """The weights W (nv,) of the coordinates, and the bounds of some: (indices in q, indices in v,
    lower, upper)."""

    weights: np.ndarray
    bounds: tuple[np.ndarray, ...] = ()

    @classmethod
    def within_limits(cls, robot: Robot, weights: np.ndarray) -> MoveBounds:
        """The joint limits as bounds."""
        in_q, in_v = robot.manifold.flat
        bounded = (weights[in_v] > 0.0) & (
            np.isfinite(robot.lower[in_q]) | np.isfinite(robot.upper[in_q])
        )
        in_q, in_v = in_q[bounded], in_v[bounded]
        return cls(weights, (in_q, in_v, robot.lower[in_q], robot.upper[in_q]))

    def clip(self, q: np.ndarray) -> np.ndarray:
        """q with its coordinates clipped to the bounds, in place."""
        if self.bounds:
            in_q, _, lower, upper = self.bounds
            q[:, in_q] = np.clip(q[:, in_q], lower, upper)
        return q

    def weights_at(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """W at q, for steps along `direction` (n, nv)."""
        if not self.bounds:
            return self.weights
        in_q, in_v, lower, upper = self.bounds
        out = np.tile(self.weights, (len(q), 1))
        out[:, in_v] *= away_from_bound(q[:, in_q], direction[:, in_v], lower, upper)
        return out


def _gauss_newton(
    error: ClosureError, bounds: MoveBounds, q: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Gauss-Newton from q (n, nq): the last q and e."""
    q, e = _perturb_half_turns(error, q, bounds.weights)
    mu = np.full(len(q), 1e-3)
    for _ in range(MAX_STEPS):
        active = np.flatnonzero((max_norm(e) > 0.1 * tolerance) & (mu < MAX_DAMPING))
        if not len(active):
            break
        active_error = error.at_elements(active)
        Jc = active_error.jacobian(q[active])
        descent = -np.einsum("bij,bi->bj", Jc, e[active])
        step = _damped_step(Jc, e[active], mu[active], bounds.weights_at(q[active], descent))
        trial = bounds.clip(error.system.robot.model.integrate(q[active], step))
        with np.errstate(all="ignore"):
            new = active_error.residual(trial)
            squares = (e[active] ** 2).sum(axis=-1)
            better = (new**2).sum(axis=-1) < SUFFICIENT_DECREASE * squares
        q[active[better]], e[active[better]] = trial[better], new[better]
        mu[active] = np.where(better, np.maximum(mu[active] * 0.2, 1e-15), mu[active] * 4.0)
    return q, e


def _first_index(failed: np.ndarray, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The batch index of the first failed element of a flat batch."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(failed)), batch)) if batch else ()


def _perturb_half_turns(
    error: ClosureError, q: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Perturb guesses at exactly half a turn, where the error is infinite; deterministic."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        e = error.residual(q)
        for _ in range(10):
            infinite = ~(max_norm(e) < 1e3)
            if not infinite.any():
                break
            q[infinite] = error.system.robot.model.integrate(
                q[infinite], 0.1 * weights * rng.standard_normal(error.system.nv)
            )
            e = error.residual(q)
    return q, np.where(np.isfinite(e), e, 1e6)


def _damped_step(Jc: np.ndarray, e: np.ndarray, mu: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """-W Jc* (Jc W Jc* + mu I)^-1 e, of bounded length; mu is relative to the mean diagonal."""
    weighted = Jc * weights[..., None, :]
    gram = weighted @ np.swapaxes(Jc, -1, -2)
    scale = np.maximum(np.trace(gram, axis1=-2, axis2=-1) / max(gram.shape[-1], 1), 1e-300)
    gram = gram + (mu * scale)[:, None, None] * np.eye(gram.shape[-1])
    step = -np.einsum("bij,bi->bj", weighted, np.linalg.solve(gram, e[..., None])[..., 0])
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return step * np.minimum(1.0, MAX_STEP / np.maximum(longest, MAX_STEP))


def _check_closed(
    system: System, q: np.ndarray, e: np.ndarray, tolerance: float, batch: tuple[int, ...]
) -> None:
    failed = ~(max_norm(e) <= tolerance)
    if not failed.any():
        return
    i, index = int(np.argmax(failed)), _first_index(failed, batch)
    direction = violated_direction(system.at_elements(batch, index), q[i], e[i])
    raise StateError(
        f"the loops do not close{batch_element(index)}: {direction}, stays open by "
        f"{max_norm(e[i]):.3g}",
        "start from a guess closer to a closed configuration, hold fewer joints, or check that "
        "the mechanism can reach that far",
    )


def check_constraints(system: System, name: str, q: np.ndarray, v: np.ndarray) -> None:
    """Raise a StateError if q leaves loops open, or v opens them, by more than MAX_RESIDUAL."""
    residual = system.constraint_residual(q, v)
    size = np.maximum(1.0, max_norm(v))[..., None] * np.array([0.0, 1.0]) + np.array([1.0, 0.0])
    failed = ~(max_norm(residual) <= MAX_RESIDUAL * size)
    if not failed.any():
        return
    *place, kind = np.unravel_index(int(np.argmax(failed)), failed.shape)
    index = tuple(int(i) for i in place)
    one_q = np.broadcast_to(q, (*failed.shape[:-1], system.nq))[index]
    row = residual[(*index, kind)]
    direction = violated_direction(system.at_elements(failed.shape[:-1], index), one_q, row)
    fault = "opens at" if kind else "is open by"
    unit = "m/s or rad/s" if kind else "m or rad"
    raise StateError(
        f"{name}: {direction}{batch_element(index)} {fault} {max_norm(row):.3g} ({unit})",
        "system.project(q, v) closes small gaps, system.assemble(q) large ones; "
        "system.constraint_residual(q, v) has all residuals",
    )


def project(
    system: System, q: Numbers, v: Numbers, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Newton in the metric of the mass matrix, first on q, then on v, until the rows of every
    element are closed to `tolerance`."""
    q, v = system.state_arrays(q=q, v=v)
    tolerance = positive_number("tolerance", tolerance, "give metres and radians, say 1e-12")
    batch = system.batch_axes(q.shape[:-1])
    q = np.broadcast_to(q, (*batch, system.nq))
    for _ in range(NEWTON_STEPS):
        todo = max_norm(system.constraint_residual(q)) > tolerance
        if not np.any(todo):
            break
        q = np.array(q)
        q[todo] = system.robot.model.integrate(
            q[todo], _newton_step(system.at_elements(batch, todo), q[todo], np.zeros(system.nv))[0]
        )
    return q, _project_velocity(system, q, v, tolerance)


def _project_velocity(system: System, q: np.ndarray, v: np.ndarray, tolerance: float) -> np.ndarray:
    """v projected onto Jc v = 0."""
    v = v + _newton_step(system, q, v)[1]
    for _ in range(NEWTON_STEPS - 1):
        scale = np.maximum(1.0, max_norm(v))
        todo = max_norm(system.constraint_residual(q, v)[..., 1, :]) > tolerance * scale
        if not np.any(todo):
            break
        batch = v.shape[:-1]
        q_todo = np.broadcast_to(q, (*batch, system.nq))[todo]
        v[todo] = v[todo] + _newton_step(system.at_elements(batch, todo), q_todo, v[todo])[1]
    return v


def _newton_step(system: System, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of q and one of v. If Omega is singular, by multipliers of least norm; what these do
    not solve, by the dense system."""
    dq, dv, ill_conditioning = system.call_function(system.projection_function, (q, v))
    singular = ~(ill_conditioning < ILL_CONDITIONED)
    if not np.any(singular):
        return dq, dv
    batch = np.shape(ill_conditioning)
    system = system.at_elements(batch, singular)
    q = np.broadcast_to(q, (*batch, system.nq))[singular]
    v = np.broadcast_to(v, (*batch, system.nv))[singular]
    rows, steps = system.constraint_residual(q, v), (np.array(dq), np.array(dv))
    Omega = None if system.algebra.is_thin else system.call_function(system.delassus_function, (q,))
    for i, step in enumerate(steps):
        right = -rows[..., i, :]
        if Omega is None:
            step[singular] = dense_saddle.least_motion(system, q, right)
            continue
        negligible = dense_saddle.negligible_rows(system.constraint_jacobian(q))
        least = least_norm(Omega, right, negligible=negligible)
        new = system.multiplier_response(q, least.multipliers)[0]
        unsolved = max_norm(least.residual) > RESIDUAL_TOLERANCE * max_norm(right)
        if unsolved.any():
            new[unsolved] = dense_saddle.least_motion(
                system.at_elements(unsolved.shape, unsolved), q[unsolved], right[unsolved]
            )
        step[singular] = new
    return steps
