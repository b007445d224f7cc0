"""Closing loops: from a rough guess (`assemble`), and from a state that drifted (`project`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import as_names, positive_number
from psiphi.model.spatial.branch_free import away_from_bound
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.model.state_checks import element
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.redundant_constraints import CLOSE, STRAIN, direction, least_norm

STEPS = 300  # damped Gauss-Newton steps before giving up
LONGEST = 0.5  # the most a coordinate moves in one step: radians, metres
STUCK = 1e9  # damping at which no step helps any more
WORTH = 1 - 1e-9  # a step that closes less of the gap than this is none
STARTS = 16  # how often it is tried: from the guess, then
SHAKEN = 0.2, 2.0  # so far from it
NEWTON = 8  # steps of a projection


class ClosureError:
    """e(q) and Jc(q) of a system."""

    def __init__(self, system: Any, count: int):
        self.jacobian_function, self.residual_function = (
            system.jacobian_function,
            system.residual_function,
        )
        self.system, self._rest, self._lead = system, np.zeros(system.nv), (count,)

    def of(self, which: np.ndarray) -> ClosureError:
        """That of some elements."""
        return ClosureError(self.system.at_elements(self._lead, which), len(which))

    def open(self, q: np.ndarray) -> np.ndarray:
        return self.system.call_function(self.residual_function, (q, self._rest))[..., 0, :]

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return self.system.call_function(self.jacobian_function, (q,))


def assemble(system: Any, q_guess, hold, tolerance: float) -> np.ndarray:
    """The loops closed near a guess, or an error that says what stays open."""
    (q,) = system.state_arrays(q=q_guess)
    for function in (system.residual_function, system.jacobian_function):
        function.source.compile("d")  # before the first step is taken
    tolerance = positive_number("tolerance", tolerance, "give metres and radians, say 1e-11")
    lead = system.batch_axes(q.shape[:-1])
    with np.errstate(all="ignore"):
        guess = np.broadcast_to(system.robot.model.normalize(q), (*lead, system.nq)).reshape(
            -1, system.nq
        )
    move = np.ones(system.nv)
    for name in as_names("hold", hold):
        own = system.robot.joint(name).v_slice
        if own.start == own.stop:
            cause = f"hold has {name}, which an embedded loop moves, or a gear"
            raise StateError(
                cause, "hold joints that are free, as robot.coordinate_names lists them"
            )
        move[own] = 0.0
    lost: Any = ~np.isfinite(guess).all(axis=-1)
    if lost.any():
        where = element(_place(lost, lead))
        raise StateError(
            f"the guess is not finite, or has a quaternion of zeros{where}",
            "give numbers, and unit quaternions",
        )
    q, e, _ = close(system.at_elements(lead, np.ones(lead, dtype=bool)), guess, move, tolerance)
    _check_closed(system, q, e, tolerance, lead)
    return q.reshape(*lead, system.nq)


def close(
    system: Any,
    guess: np.ndarray,
    move: np.ndarray,
    tolerance: float,
    limits: bool = False,
    starts: int = STARTS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """min |e(q)| from guesses (n, nq): dq = -W Jc* (Jc W Jc* + mu I)^-1 e, mu per element by what helped; W = `move` (nv,)
    leaves out what is held and, with `limits`, what stands at a limit and would leave it.

    An element that gets stuck starts again from its guess, shaken a little, then more. The answer is q, e, and how many starts.
    """
    gap, room = (
        ClosureError(system, len(guess)),
        MoveBounds.within_limits(system.robot, move) if limits else MoveBounds(move),
    )
    guess = room.inside(np.array(guess))
    q, e, tries = (
        np.array(guess),
        np.full((len(guess), system.nc), np.inf),
        np.zeros(len(guess), dtype=int),
    )
    rng = np.random.default_rng(0)
    for far in np.concatenate([[0.0], np.linspace(*SHAKEN, max(starts - 1, 0))]):
        todo = np.flatnonzero(~(max_norm(e) <= tolerance))
        if not len(todo):
            break
        start = guess[todo]
        if far:
            start = room.inside(
                system.robot.model.integrate(
                    start, far * move * rng.standard_normal((len(todo), system.nv))
                )
            )
        new, left = _descend(gap.of(todo), room, start, tolerance)
        better = max_norm(left) < max_norm(e[todo])
        q[todo[better]], e[todo[better]] = new[better], left[better]
        tries[todo] += 1
    return system.robot.model.normalize(q), e, tries


@dataclass(frozen=True, eq=False)
class MoveBounds:
    """How coordinates may move: W (nv,), and the bounds of some, (places in q, places in v, lower, upper)."""

    move: np.ndarray
    bounds: tuple[np.ndarray, ...] = ()

    @classmethod
    def within_limits(cls, robot: Any, move: np.ndarray) -> MoveBounds:
        where, by = robot.manifold.flat
        some = (move[by] > 0.0) & (
            np.isfinite(robot.lower[where]) | np.isfinite(robot.upper[where])
        )
        return cls(
            move, (where[some], by[some], robot.lower[where[some]], robot.upper[where[some]])
        )

    def inside(self, q: np.ndarray) -> np.ndarray:
        """q with its coordinates within the bounds."""
        if self.bounds:
            where, _, lower, upper = self.bounds
            q[:, where] = np.clip(q[:, where], lower, upper)
        return q

    def free(self, q: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """W at q, for steps along `slope`."""
        if not self.bounds:
            return self.move
        where, by, lower, upper = self.bounds
        out = np.tile(self.move, (len(q), 1))
        out[:, by] *= away_from_bound(q[:, where], slope[:, by], lower, upper)
        return out


def _descend(
    gap: ClosureError, room: MoveBounds, q: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Gauss-Newton from q (n, nq): where it ended, and how far the rows are open there."""
    q, e = _off_half_turns(gap, q, room.move)
    mu = np.full(len(q), 1e-3)
    for _ in range(STEPS):
        at = np.flatnonzero((max_norm(e) > 0.1 * tolerance) & (mu < STUCK))
        if not len(at):
            break
        there = gap.of(at)
        Jc = there.jacobian(q[at])
        step = _step(Jc, e[at], mu[at], room.free(q[at], -np.einsum("bij,bi->bj", Jc, e[at])))
        trial = room.inside(gap.system.robot.model.integrate(q[at], step))
        with np.errstate(all="ignore"):
            new = there.open(trial)
            better = (new**2).sum(axis=-1) < WORTH * (e[at] ** 2).sum(axis=-1)
        q[at[better]], e[at[better]] = trial[better], new[better]
        mu[at] = np.where(better, np.maximum(mu[at] * 0.2, 1e-15), mu[at] * 4.0)
    return q, e


def _place(lost: np.ndarray, lead: tuple[int, ...]) -> tuple[int, ...]:
    """Where the first lost element of a flat batch stands."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lead)) if lead else ()


def _off_half_turns(
    gap: ClosureError, q: np.ndarray, move: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors are infinite at exactly half a turn: such guesses are nudged, always the same way."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        with np.errstate(all="ignore"):
            e = gap.open(q)
        lost = ~(max_norm(e) < 1e3)
        if not lost.any():
            break
        q[lost] = gap.system.robot.model.integrate(
            q[lost], 0.1 * move * rng.standard_normal(gap.system.nv)
        )
    return q, np.where(np.isfinite(e), e, 1e6)


def _step(Jc: np.ndarray, e: np.ndarray, mu: np.ndarray, move: np.ndarray) -> np.ndarray:
    held = Jc * move[..., None, :]
    gram = held @ np.swapaxes(Jc, -1, -2)
    scale = np.maximum(np.trace(gram, axis1=-2, axis2=-1) / max(gram.shape[-1], 1), 1e-300)
    gram = gram + (mu * scale)[:, None, None] * np.eye(gram.shape[-1])
    step = -np.einsum("bij,bi->bj", held, np.linalg.solve(gram, e[..., None])[..., 0])
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return step * np.minimum(1.0, LONGEST / np.maximum(longest, LONGEST))


def _check_closed(
    system: Any, q: np.ndarray, e: np.ndarray, tolerance: float, lead: tuple[int, ...]
) -> None:
    lost = ~(max_norm(e) <= tolerance)
    if not lost.any():
        return
    i, place = int(np.argmax(lost)), _place(lost, lead)
    what = direction(system.at_elements(lead, place), q[i], e[i])
    raise StateError(
        f"the loops do not close{element(place)}: {what}, stays open by {max_norm(e[i]):.3g}",
        "guess a configuration nearer to closing, hold fewer joints, or check that the mechanism reaches that far",
    )


def project(system: Any, q, v, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Newton in the metric of the mass matrix: first q, then v, each element until its rows are closed to `tolerance`."""
    q, v = system.state_arrays(q=q, v=v)
    tolerance = positive_number("tolerance", tolerance, "give metres and radians, say 1e-12")
    lead = system.batch_axes(q.shape[:-1])
    q = np.broadcast_to(q, (*lead, system.nq))
    for _ in range(NEWTON):
        todo = max_norm(system.constraint_residual(q)) > tolerance
        if not np.any(todo):
            break
        q = np.array(q)
        q[todo] = system.robot.model.integrate(
            q[todo], _newton(system.at_elements(lead, todo), q[todo], np.zeros(system.nv))[0]
        )
    return q, _at_rest(system, q, v, tolerance)


def _at_rest(system: Any, q: np.ndarray, v: np.ndarray, tolerance: float) -> np.ndarray:
    """v without what opens the constraints."""
    v = v + _newton(system, q, v)[1]
    for _ in range(NEWTON - 1):
        todo = max_norm(system.constraint_residual(q, v)[..., 1, :]) > tolerance * np.maximum(
            1.0, max_norm(v)
        )
        if not np.any(todo):
            break
        there, lead = np.broadcast_to(q, (*v.shape[:-1], system.nq))[todo], v.shape[:-1]
        v[todo] = v[todo] + _newton(system.at_elements(lead, todo), there, v[todo])[1]
    return v


def _newton(system: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of q and of v; where Omega is singular by least norm, and what that leaves open by the dense system."""
    dq, dv, strain = system.call_function(system.projection_function, (q, v))
    bad = ~(strain < STRAIN)
    if not np.any(bad):
        return dq, dv
    lead = np.shape(strain)
    system = system.at_elements(lead, bad)
    q, v = np.broadcast_to(q, (*lead, system.nq))[bad], np.broadcast_to(v, (*lead, system.nv))[bad]
    rows, steps = system.constraint_residual(q, v), (np.array(dq), np.array(dv))
    Omega = None if system.algebra.is_thin else system.call_function(system.delassus_function, (q,))
    for i, step in enumerate(steps):
        right = -rows[..., i, :]
        if Omega is None:
            step[bad] = dense_saddle.least_motion(system, q, right)
            continue
        least = least_norm(Omega, right, dust=dense_saddle.is_dust(system.constraint_jacobian(q)))
        mended = system.multiplier_response(q, least.multipliers)[0]
        unsure = max_norm(least.left) > CLOSE * max_norm(right)
        if unsure.any():
            mended[unsure] = dense_saddle.least_motion(
                system.at_elements(unsure.shape, unsure), q[unsure], right[unsure]
            )
        step[bad] = mended
    return steps
