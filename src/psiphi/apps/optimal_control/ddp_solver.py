"""Batched differential dynamic programming: the iteration around the compiled loops.

    backward, look, choose the candidate of least cost, take it, change the damping

A problem is a row of every array, and no decision depends on another row, so that a problem has
the same solution alone and in any batch, to the last bit. Problems that are solved leave the batch.

The Hessian is Gauss-Newton's for EARLY iterations, and until a step gains less than NEAR of the
cost; then the curvature of the dynamics is added. If a pivot is not positive or no candidate is
better, Gauss-Newton is used again. Gaps (multiple shooting) shrink by 1 - alpha; the merit is then
cost + penalty |gaps|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from psiphi.apps.optimal_control.control_blocks import CANDIDATES, STEP_LENGTHS
from psiphi.apps.optimal_control.control_kernels import ControlKernels, last_row

FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 1e-6, 1e-9, 1e12
GROWTH, DECAY = 8.0, 4.0  # of the damping after no step, and after a step of at least LONG
FASTEST = 3  # the growth is GROWTH, GROWTH^2, ..., GROWTH^FASTEST in a row
LONG, NEAR = 0.25, 0.01
EARLY = 8  # iterations that always use Gauss-Newton: most arms are solved by then
SETTLED = 1e-2  # damping above which a small step does not mean convergence
LEAST_PIVOT = 1e-9  # relative
CLOSED = 1e-8  # sum of the gaps (rad, m, rad/s, m/s) below which they are closed
SHRINK = 0.75  # share of unsolved problems at which the others leave the batch
CHUNK = 1024  # problems at a time, to bound the memory of gains


@dataclass
class ProblemNumbers:
    """What a batch of problems is given, besides states and torques: {place: (B, rows, n)}."""

    constant: dict[str, np.ndarray]
    per_node: dict[str, np.ndarray]

    def select(self, index: np.ndarray | slice) -> ProblemNumbers:
        """Those of some problems."""

        def some(x: np.ndarray) -> np.ndarray:
            if x.strides[0] == 0:
                count = len(np.empty(len(x), dtype=bool)[index])
                return np.broadcast_to(x[:1], (count, *x.shape[1:]))
            return x[index]

        return ProblemNumbers(
            {name: some(x) for name, x in self.constant.items()},
            {name: some(x) for name, x in self.per_node.items()},
        )

    def places(self, steps: int) -> dict[str, np.ndarray]:
        """All arrays, those for each node with `steps` rows."""
        rows = {
            name: np.broadcast_to(x, (len(x), steps, x.shape[-1])) if x.shape[1] == 1 else x
            for name, x in self.per_node.items()
        }
        return self.constant | rows


@dataclass
class Motions:
    """States (B, N + 1, n), torques (B, N, nu), gaps (B, N, 2 nv) or None, costs (B,)."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    cost: np.ndarray
    d: np.ndarray | None = None

    def select(self, index: np.ndarray | slice) -> Motions:
        d = None if self.d is None else self.d[index]
        return Motions(self.q[index], self.v[index], self.u[index], self.cost[index], d)

    def put(self, index: np.ndarray | slice, other: Motions) -> None:
        """Replace some problems."""
        for name in ("q", "v", "u", "cost", "d"):
            if getattr(self, name) is not None:
                getattr(self, name)[index] = getattr(other, name)


@dataclass
class SolverState:
    """What the solver knows about each problem, (B,) each."""

    damping: np.ndarray
    curved: np.ndarray  # whether the curvature of the dynamics is added
    done: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray
    penalty: np.ndarray
    gap: np.ndarray  # sum of |gaps|
    failures: np.ndarray  # iterations without a step, in a row

    @classmethod
    def start(cls, count: int, damping: np.ndarray | float, gap: np.ndarray) -> SolverState:
        flags, zeros = np.zeros(count, dtype=bool), np.zeros(count)
        first = np.array(np.broadcast_to(damping, count), dtype=float)
        whole = zeros.astype(int)
        return cls(first, flags, flags.copy(), flags.copy(), whole, zeros.copy(), gap, whole.copy())

    def select(self, index: np.ndarray | slice) -> SolverState:
        return SolverState(*(x[index] for x in vars(self).values()))

    def put(self, index: np.ndarray | slice, other: SolverState) -> None:
        for name, x in vars(self).items():
            x[index] = getattr(other, name)


@dataclass
class Gains:
    """k (B, N, nu) and K (B, N, nu 2 nv), with (B,): the expected decrease, the residual, the least
    pivot."""

    k: np.ndarray
    K: np.ndarray
    decrease: np.ndarray
    residual: np.ndarray
    pivot: np.ndarray

    @classmethod
    def empty(cls, count: int, steps: int, motors: int, state: int) -> Gains:
        shapes = (count, steps, motors), (count, steps, motors * state), (count, 1)
        k, K, one = map(np.zeros, shapes)
        return cls(k, K, one, one.copy(), np.ones((count, 1)))

    def put(self, index: np.ndarray, other: Gains) -> None:
        for name, x in vars(self).items():
            x[index] = getattr(other, name)


KernelFamily = Callable[[bool, bool], ControlKernels]  # (has_gaps, curvature) -> kernels


@dataclass(frozen=True)
class Solver:
    """Solves batches of one problem.

    `hessian` is "gauss", "full" or "auto"; `dt` and `steps` are those of the problem.
    """

    family: KernelFamily
    dt: float
    steps: int
    hessian: str

    # -- single loops

    def _kernels(self, has_gaps: bool, curvature: bool = False) -> ControlKernels:
        return self.family(has_gaps, curvature)

    def _h(self, count: int) -> np.ndarray:
        return np.broadcast_to(np.array([[[self.dt]]]), (count, 1, 1))

    def _node_arrays(self, x: Motions, numbers: ProblemNumbers) -> dict[str, np.ndarray]:
        places = numbers.places(self.steps)
        places |= {"q": x.q[:, :-1], "v": x.v[:, :-1], "u": x.u, "h": self._h(len(x.u))}
        return places if x.d is None else places | {"d": x.d}

    def gains(
        self, x: Motions, numbers: ProblemNumbers, damping: np.ndarray, curvature: bool = False
    ) -> Gains:
        """k and K at these motions, from the last node to the first."""
        kernels = self._kernels(x.d is not None, curvature)
        blocks, count = kernels.blocks, len(x.u)
        out = Gains.empty(count, self.steps, len(blocks.motors), blocks.state_size)
        places = self._node_arrays(x, numbers)
        for name in kernels.backward.places[1]:
            places[name] = places[name][:, ::-1]
        places |= {"final_q": x.q[:, -1:], "final_v": x.v[:, -1:]}
        places |= {"mu": damping[:, None, None], "theta": np.ones((count, 1, 1))}
        places |= {"k": out.k[:, ::-1], "K": out.K[:, ::-1]}
        places |= {name: last_row(getattr(out, name)) for name in ("decrease", "residual", "pivot")}
        kernels.backward.run(places, self.steps, 1)
        return out

    def _mixed_gains(self, x: Motions, numbers: ProblemNumbers, progress: SolverState) -> Gains:
        """The gains of each problem with its own Hessian."""
        curved = progress.curved
        if curved.all() or not curved.any():
            return self.gains(x, numbers, progress.damping, bool(curved.any()))
        blocks = self._kernels(x.d is not None).blocks
        out = Gains.empty(len(x.u), self.steps, len(blocks.motors), blocks.state_size)
        for flag in (False, True):
            index = np.flatnonzero(curved == flag)
            damping = progress.damping[index]
            out.put(index, self.gains(x.select(index), numbers.select(index), damping, flag))
        return out

    def _forward_places(
        self, x: Motions, numbers: ProblemNumbers, k: np.ndarray, K: np.ndarray
    ) -> dict:
        last = np.zeros((1, self.steps, 1))
        last[0, -1] = 1.0
        places = self._node_arrays(x, numbers) | {"k": k, "K": K}
        return places | {
            "q0": x.q[:, :1],
            "v0": x.v[:, :1],
            "last": np.broadcast_to(last, (len(x.u), self.steps, 1)),
        }

    def candidate_costs(self, x: Motions, numbers: ProblemNumbers, gains: Gains) -> np.ndarray:
        """(B, CANDIDATES), infinite where a motion diverges."""
        if self._kernels(x.d is not None).blocks.contacts:
            return self._taken_costs(x, numbers, gains)
        places = self._forward_places(x, numbers, gains.k, gains.K)
        J = np.empty((len(x.u), 1, CANDIDATES))
        self._kernels(x.d is not None).look.run(places | {"J": J}, self.steps, self.steps)
        return np.where(np.isfinite(J[:, 0]), J[:, 0], np.inf)

    def _taken_costs(self, x: Motions, numbers: ProblemNumbers, gains: Gains) -> np.ndarray:
        """The same by `take`, one candidate after the other: a step with contacts is long, and
        `look` would contain it eight times. The candidates of a single problem are its lanes."""
        lengths = np.array(STEP_LENGTHS)
        if len(x.u) == 1:
            index = np.zeros(CANDIDATES, dtype=int)
            parts = x.select(index), numbers.select(index), gains.k[index], gains.K[index]
            J = self.take(*parts, lengths).cost[None]
        else:
            every = [np.full(len(x.u), alpha) for alpha in lengths]
            J = np.array([self.take(x, numbers, gains.k, gains.K, a).cost for a in every]).T
        return np.where(np.isfinite(J), J, np.inf)

    def take(
        self,
        x: Motions,
        numbers: ProblemNumbers,
        k: np.ndarray,
        K: np.ndarray,
        alpha: np.ndarray,
        first: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Motions:
        """The motions with u + alpha k + K dx from the first states of x, or from `first`."""
        places, count = self._forward_places(x, numbers, k, K), len(x.u)
        q, v, u = (np.empty(part.shape) for part in (x.q, x.v, x.u))
        q[:, 0], v[:, 0] = (x.q[:, 0], x.v[:, 0]) if first is None else first
        places |= {"q0": q[:, :1], "v0": v[:, :1]}
        J = np.empty((count, 1))
        places |= {"alpha": alpha[:, None, None], "Q": q[:, 1:], "V": v[:, 1:], "U": u}
        kernels = self._kernels(x.d is not None)
        force = last_row(np.empty((count, kernels.blocks.sizes["F"])))
        kernels.take.run(places | {"J": last_row(J), "F": force}, self.steps, 1)
        d = None if x.d is None else (1.0 - alpha)[:, None, None] * x.d
        return Motions(q, v, u, J[:, 0], d)

    def each_step(
        self, x: Motions, numbers: ProblemNumbers
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after each step from its own node, and the forces of contacts: (B, N, n) each."""
        blocks, (count, N) = self._kernels(False).blocks, x.u.shape[:2]
        places = self._node_arrays(replace(x, d=None), numbers)
        places |= {name: np.zeros((1, 1, 1)) for name in ("k", "K", "alpha")}
        places["last"] = np.ones((1, 1, 1))
        sizes = blocks.sizes
        flat = {}
        for name, y in places.items():
            size = sizes.get(name) or int(y.shape[-1])
            rows = np.broadcast_to(y, (count, N, size))
            flat[name] = rows.reshape(count * N, 1, size)
        flat |= {"q0": flat["q"], "v0": flat["v"]}
        J = np.empty((count * N, 1, 1))
        out = {name: np.empty((count * N, 1, sizes[name])) for name in ("Q", "V", "U", "F")}
        self._kernels(False).take.run(flat | out | {"J": J}, 1, 1)
        q, v, f = (out[name].reshape(count, N, sizes[name]) for name in ("Q", "V", "F"))
        return q, v, f

    def term_costs(self, x: Motions, numbers: ProblemNumbers) -> tuple[np.ndarray, np.ndarray]:
        """(B, running terms) and (B, final terms)."""
        kernels, count = self._kernels(False), len(x.u)
        blocks = kernels.blocks
        shapes = (count, max(1, len(blocks.running))), (count, max(1, len(blocks.final)))
        running, final = np.zeros(shapes[0]), np.zeros(shapes[1])
        places = self._node_arrays(replace(x, d=None), numbers)
        places |= {"final_q": x.q[:, -1:], "final_v": x.v[:, -1:]}
        places |= {"costs": last_row(running), "final_costs": last_row(final)}
        kernels.value.run(places, self.steps, 1)
        return running, final

    # -- the iteration

    def solve(
        self,
        x: Motions,
        numbers: ProblemNumbers,
        progress: SolverState,
        iterations: int,
        tolerance: float,
        callback: Callable[[np.ndarray, Motions], None] | None = None,
        most: int | None = None,
    ) -> None:
        """Iterate on all problems that are not done; x and progress are changed in place. A problem
        with `most` iterations, those of earlier calls included, is done, too.

        `callback(index, motions)` sees the problems of the batch after each iteration.
        """
        for start in range(0, len(x.u), CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(x.u)))
            self._solve_chunk(x, numbers, progress, iterations, tolerance, rows, callback, most)

    def _solve_chunk(
        self,
        x: Motions,
        numbers: ProblemNumbers,
        progress: SolverState,
        iterations: int,
        tolerance: float,
        index: np.ndarray,
        callback: Callable[[np.ndarray, Motions], None] | None,
        most: int | None,
    ) -> None:
        index = index[~progress.done[index]]
        mine, given, state = x.select(index), numbers.select(index), progress.select(index)
        for _ in range(iterations):
            active = ~state.done
            if not active.any():
                break
            if active.sum() <= SHRINK * len(active):
                x.put(index, mine)
                progress.put(index, state)
                index, keep = index[active], np.flatnonzero(active)
                mine, given, state = mine.select(keep), given.select(keep), state.select(keep)
            mine = self._iterate(mine, given, state, tolerance)
            if most is not None:
                state.done |= state.iterations >= most
            if callback is not None:
                callback(index, mine)
        x.put(index, mine)
        progress.put(index, state)

    def _iterate(
        self, x: Motions, numbers: ProblemNumbers, state: SolverState, tolerance: float
    ) -> Motions:
        """One iteration; the new motions. Problems that are done keep theirs."""
        active = ~state.done
        state.curved &= self.hessian != "gauss"
        gains = self._mixed_gains(x, numbers, state)
        decrease, flawed = gains.decrease[:, 0], ~(gains.pivot[:, 0] > LEAST_PIVOT)
        flawed |= ~np.isfinite(decrease)
        costs = self.candidate_costs(x, numbers, gains)
        lengths = np.array(STEP_LENGTHS)
        old, merit = x.cost, costs
        if x.d is not None:
            share = 4.0 * np.abs(decrease) / np.maximum(state.gap, 1e-12)
            open_gaps = state.gap > CLOSED
            state.penalty = np.maximum(state.penalty, np.where(open_gaps, share, 0.0))
            merit = costs + state.penalty[:, None] * ((1.0 - lengths) * state.gap[:, None])
            old = old + state.penalty * state.gap
        best = merit.argmin(axis=1)
        new, alpha = merit[np.arange(len(best)), best], lengths[best]
        better = active & ~flawed & (new < old - 1e-14 * np.abs(old))
        taken = self.take(x, numbers, gains.k, gains.K, alpha)
        finite = np.isfinite(taken.q[:, -1]).all(-1) & np.isfinite(taken.v[:, -1]).all(-1)
        better &= finite & np.isfinite(taken.cost)
        lost = np.flatnonzero(~better)
        taken.put(lost, x.select(lost))
        self._judge(state, better, alpha, old, new, decrease, flawed, tolerance)
        if x.d is not None:
            state.gap = np.where(better, (1.0 - alpha) * state.gap, state.gap)
            state.done &= ~active | (state.gap < CLOSED) | (state.damping > LARGEST_DAMPING)
            state.converged &= ~active | (state.gap < CLOSED)
        return taken

    def _judge(
        self,
        state: SolverState,
        better: np.ndarray,
        alpha: np.ndarray,
        old: np.ndarray,
        new: np.ndarray,
        decrease: np.ndarray,
        flawed: np.ndarray,
        tolerance: float,
    ) -> None:
        """Damping, Hessian and convergence after an iteration."""
        active, size = ~state.done, np.abs(old) + 1e-12
        with np.errstate(invalid="ignore"):
            drop = np.where(better, old - new, 0.0)
        settled = state.damping < SETTLED
        small = ~flawed & (decrease <= tolerance * size)
        slow = better & (drop <= tolerance * size) & (alpha >= 0.5)
        finished = active & settled & (small | slow)
        long = alpha >= LONG
        lower = np.maximum(state.damping / DECAY, LEAST_DAMPING)
        factor = GROWTH ** np.minimum(state.failures + 1, FASTEST)
        higher = np.maximum(state.damping, FIRST_DAMPING) * factor
        failed = active & ~better & ~state.curved
        state.failures = np.where(failed, state.failures + 1, np.where(active, 0, state.failures))
        after_step = np.where(long, lower, state.damping)
        after_none = np.where(state.curved, state.damping, higher)
        damping = np.where(better, after_step, after_none)
        state.damping = np.where(active, damping, state.damping)
        if self.hessian == "full":
            state.curved = state.curved | better | ~active
        elif self.hessian == "auto":
            near = better & long & (drop < NEAR * size) & (state.iterations + 1 >= EARLY)
            state.curved = np.where(active, near | (better & state.curved), state.curved)
        state.iterations += active
        state.converged |= finished
        state.done |= finished | (active & (state.damping > LARGEST_DAMPING))


def still(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> Motions:
    """States that stay at the start, as the nominal motion of a first rollout."""
    count, steps = u.shape[:2]
    Q, V = (np.broadcast_to(x[:, None], (count, steps + 1, x.shape[-1])) for x in (q, v))
    return Motions(Q, V, u, np.zeros(count))
