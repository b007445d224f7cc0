"""The derivatives of an optimal motion by its start, goals and parameters: `jvp` and `vjp`.

The conditions of optimality, linearized at the motion with exact second derivatives, are those of a
linear-quadratic problem with gaps,

    q = d(l_x + A* lam)/dtheta,  r = d(l_u + B* lam)/dtheta,  d = df/dtheta,  x_0 = dx_0/dtheta,

whose solution is (dx, du, dlam). Torques at a bound do not change. States at a kept limit whose
multiplier is positive do not change either, C dx = 0: their multipliers m are those of the linear
problem C dx(m) = 0, solved by conjugate gradients, a sweep each, with the weight STIFF on C dx.
For `vjp`, one solution z for q = -w_x, r = -w_u gives the gradients by all theta,

    -(q_theta* z_x + r_theta* z_u + d_theta* z_lam)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import real_array
from psiphi.apps.optimal_control.control_kernels import last_row
from psiphi.apps.optimal_control.cost_terms import CostTerm
from psiphi.compiler.sweeps.sweep_program import PARAMETERS

if TYPE_CHECKING:
    from psiphi.apps.optimal_control.optimal_motion import OptimalMotion

FLAT = "joints with quaternions"
STIFF = 30.0  # weight of states at limits, as a share of the Hessians of the costs
ROUNDS, EXACT = 200, 1e-13  # of conjugate gradients: at most, and the relative residual


def transposed(A: np.ndarray) -> np.ndarray:
    return np.swapaxes(A, -1, -2)


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x, by rows of a batch."""
    return np.einsum("...ij,...j->...i", A, x)


class OptimumDerivatives:
    """The linear-quadratic problem at a batch of motions, factored once."""

    def __init__(self, motion: OptimalMotion):
        problem = self.problem = motion.problem
        self.motion, self.batch = motion, motion.batch
        robot = problem.robot
        if not robot.manifold.is_flat:
            what = "embedded loops" if robot.manifold.cluster_joints else FLAT
            cause = f"derivatives of an optimal motion of {robot.name}, which has {what}"
            raise StateError(f"{cause}, are not implemented", "use differences of two solutions")
        if problem.contacts:
            cause = "derivatives of an optimal motion with contacts are not implemented"
            raise StateError(cause, "use differences of two solutions")
        if not np.any(motion.converged):
            cause = "derivatives of a motion that has not converged"
            raise StateError(cause, "give solve more iterations")
        count = int(np.prod(self.batch))
        self.count, self.steps, self.h = count, problem.steps, problem.dt
        self.n, self.m = robot.nv, len(problem.motors)
        self.q, self.v, self.u = (
            x.reshape(count, *x.shape[len(self.batch) :]) for x in (motion.q, motion.v, motion.u)
        )
        self.numbers = problem.numbers_of(motion)
        self.free = 1.0 - motion.at_bounds.reshape(self.u.shape)
        self.parameter_count = 0
        if motion.parameters is not None:
            self.parameter_count = motion.parameters.shape[-1]
        with np.errstate(all="ignore"):  # elements that diverge
            self._cost_derivatives()
            self._limit_derivatives()
            self._step_derivatives()
            self._factor()

    # -- the problem

    def _cost_derivatives(self) -> None:
        """Gradients and Hessians of the costs, (B, N, ...) and (B, ...)."""
        problem, count, N = self.problem, self.count, self.steps
        kernels = problem.solver.family(False, False)
        x, m = 2 * self.n, self.m
        sizes = {"": x + m, "final_": x}
        arrays: dict[str, np.ndarray] = {}
        places = self.numbers.places(N)
        places |= {"q": self.q[:, :-1], "v": self.v[:, :-1], "u": self.u}
        places |= {"final_q": self.q[:, -1:], "final_v": self.v[:, -1:]}
        for prefix, size in sizes.items():
            others = kernels.blocks.sizes[f"{prefix}goal"] + self.parameter_count
            for name, columns in (("gradient", 1), ("hessian", size), ("mixed", others)):
                row = np.zeros((count, size * columns) if prefix else (count, N, size * columns))
                arrays[prefix + name] = row
                places[prefix + name] = last_row(row) if prefix else row
        kernels.second.run(places, N, 1)
        self.gradient, self.final_gradient = arrays["gradient"], arrays["final_gradient"]
        H = arrays["hessian"].reshape(count, N, x + m, x + m)
        self.final_hessian = arrays["final_hessian"].reshape(count, x, x)
        self.mixed = arrays["mixed"].reshape(count, N, x + m, -1)
        self.final_mixed = arrays["final_mixed"].reshape(count, x, -1)
        self.hessian = self.h * H

    def _limit_derivatives(self) -> None:
        """Gradients of the limits of the states; those of soft limits have Hessians, too, and the
        kept ones that act get the weight `stiffness` (B, N + 1, 2 nv)."""
        problem, x = self.problem, 2 * self.n
        self.stiffness = np.zeros((self.count, self.steps + 1, x))
        if not problem.limits:
            return
        state = np.concatenate([self.q, self.v], axis=-1)
        shape = (self.count, self.steps + 1, len(problem.limits))
        multipliers = self.motion.multipliers.reshape(shape)
        size = np.abs(self.hessian).max(axis=(1, 2, 3))
        size = np.maximum(size, np.abs(self.final_hessian).max(axis=(1, 2)))
        weight = STIFF * size[:, None]
        slope, curvature = np.zeros(self.stiffness.shape), np.zeros(self.stiffness.shape)
        for k, (i, sign, bound) in enumerate(problem.limits):
            if problem.limit_kind == "soft":
                excess = problem.limit_weight * np.maximum(sign * (state[..., i] - bound), 0.0)
                slope[..., i] += sign * excess
                curvature[..., i] += self.h * problem.limit_weight * (excess > 0.0)
            else:
                slope[..., i] += sign * multipliers[..., k]
                self.stiffness[..., i] += weight * (multipliers[..., k] > 0.0)
        self.stiffness[:, 0] = 0.0  # the start is given
        self.gradient[..., :x] += slope[:, :-1]
        self.final_gradient = self.final_gradient + self.h * slope[:, -1]
        index = np.arange(x)
        more = curvature + self.stiffness
        self.hessian[..., index, index] += more[:, :-1]
        self.final_hessian[..., index, index] += more[:, -1]

    def _step_derivatives(self) -> None:
        """A, B, the adjoints, and the curvature of the dynamics."""
        n, h, motors = self.n, self.h, list(self.problem.motors)
        robot = self.problem.robot
        function = robot.unbound_function("forward_dynamics")
        tau = np.zeros((*self.u.shape[:-1], n))
        tau[..., motors] = self.u
        inputs = [self.q[:, :-1], self.v[:, :-1], tau]
        names = ["q", "v", "tau"]
        if self.parameter_count:
            inputs.append(self.numbers.constant[PARAMETERS])
            names.append(PARAMETERS)
        a_q, a_v, a_tau, *a_p = function.jacobian(*names)(*inputs)
        eye = np.eye(n)
        top = np.concatenate([eye + h * h * a_q, h * (eye + h * a_v)], axis=-1)
        self.A = np.concatenate([top, np.concatenate([h * a_q, eye + h * a_v], -1)], axis=-2)
        S = a_tau[..., motors]
        self.B = np.concatenate([h * h * S, h * S], axis=-2)
        self.D = np.zeros((self.count, self.steps, 2 * n, 0))
        if a_p:
            self.D = np.concatenate([h * h * a_p[0], h * a_p[0]], axis=-2)
        lam = np.zeros((self.count, self.steps + 1, 2 * n))
        lam[:, -1] = self.final_gradient
        for k in reversed(range(self.steps)):
            slope = h * self.gradient[:, k, : 2 * n]
            lam[:, k] = slope + times(transposed(self.A[:, k]), lam[:, k + 1])
        weight = h * (lam[:, 1:, n:] + h * lam[:, 1:, :n])
        H = function.hessian(*names)(*inputs, weight)
        index = [*range(2 * n), *(2 * n + i for i in motors)]
        self.hessian = self.hessian + H[..., index, :][..., index]
        bent = H[..., index, 3 * n :]  # by (x, u) and the parameters
        goals = self.mixed.shape[-1] - self.parameter_count
        self.mixed = self.h * self.mixed
        self.mixed[..., goals:] += bent

    def _factor(self) -> None:
        """P, K and the inverse of H on the free torques, for all nodes."""
        x, m, F = 2 * self.n, self.m, self.free
        P = np.zeros((self.count, self.steps + 1, x, x))
        K = np.zeros((self.count, self.steps, m, x))
        inverse, cross = np.zeros((self.count, self.steps, m, m)), np.zeros(K.shape)
        self.is_minimum = np.array(self.motion.converged).reshape(self.count)
        P[:, -1] = self.final_hessian
        for k in reversed(range(self.steps)):
            A, B, H, f = self.A[:, k], self.B[:, k], self.hessian[:, k], F[:, k]
            PA = P[:, k + 1] @ A
            Qxx = H[:, :x, :x] + transposed(A) @ PA
            Qux = H[:, x:, :x] + transposed(B) @ PA
            Quu = H[:, x:, x:] + transposed(B) @ P[:, k + 1] @ B
            mask = f[:, :, None] * f[:, None, :]
            Q = Quu * mask + np.eye(m) * (1.0 - f)[:, :, None]
            safe = np.asarray(np.isfinite(Q).all(axis=(-1, -2)))
            Q = np.where(safe[:, None, None], Q, np.eye(m))
            values = np.linalg.eigvalsh(0.5 * (Q + transposed(Q)))
            least = np.array(values[:, 0])
            positive = np.greater(least, 0.0)
            self.is_minimum &= safe & positive
            Q = np.where(positive[:, None, None], Q, np.eye(m))
            inverse[:, k] = np.linalg.inv(Q) * mask
            K[:, k], cross[:, k] = -inverse[:, k] @ Qux, Qux
            new = Qxx + transposed(Qux) @ K[:, k]
            P[:, k] = 0.5 * (new + transposed(new))
        self.P, self.K, self.inverse, self.cross = P, K, inverse, cross
        if not self.is_minimum.any():
            cause = "the Hessian at the motion is not positive: it is no strict minimum"
            raise StateError(f"derivatives of an optimal motion: {cause}", "solve more accurately")

    def _sweep(
        self, q: np.ndarray, r: np.ndarray, d: np.ndarray, end: np.ndarray, x0: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """dx (B, N + 1, 2 nv), du, dlam (B, N + 1, 2 nv), and p at the start; states at their
        limits do not change."""
        found = self._free_sweep(q, r, d, end, x0)
        acts = self.stiffness > 0.0
        if not acts.any():
            return found
        zeros = [np.zeros_like(part) for part in (q, r, d, end, x0)]

        def response(m: np.ndarray) -> np.ndarray:
            """-C dx of the multipliers m alone."""
            q, r, d, end, x0 = zeros
            moved = self._free_sweep(q + m[:, :-1], r, d, end + m[:, -1], x0)[0]
            return np.where(acts, -moved, 0.0)

        m, residual = np.zeros(acts.shape), np.where(acts, found[0], 0.0)
        residual = np.where(np.isfinite(residual), residual, 0.0)
        direction, size = residual, _square(residual)
        least = EXACT**2 * size
        for _ in range(ROUNDS):
            open_ = size > least  # problems that are solved keep what they have
            if not open_.any():
                break
            change = np.where(open_[:, None, None], response(direction), 0.0)
            power = np.einsum("bij,bij->b", direction, change)
            open_ &= power > 0.0
            alpha = np.where(open_, size / np.where(open_, power, 1.0), 0.0)[:, None, None]
            m, residual = m + alpha * direction, residual - alpha * change
            new = np.where(open_, _square(residual), 0.0)
            share = np.where(open_, new / np.where(open_, size, 1.0), 0.0)
            direction, size = residual + share[:, None, None] * direction, new
        return self._free_sweep(q + m[:, :-1], r, d, end + m[:, -1], x0)

    def _free_sweep(
        self, q: np.ndarray, r: np.ndarray, d: np.ndarray, end: np.ndarray, x0: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The solution without limits."""
        N, p = self.steps, end
        step, ps = np.zeros(r.shape), np.zeros((self.count, N + 1, 2 * self.n))
        ps[:, N] = p
        for k in reversed(range(N)):
            moved = p + times(self.P[:, k + 1], d[:, k])
            Qu = r[:, k] + times(transposed(self.B[:, k]), moved)
            step[:, k] = -times(self.inverse[:, k], Qu)
            p = q[:, k] + times(transposed(self.A[:, k]), moved)
            p = p + times(transposed(self.cross[:, k]), step[:, k])
            ps[:, k] = p
        x, u = np.zeros(ps.shape), np.zeros(r.shape)
        x[:, 0] = x0
        for k in range(N):
            u[:, k] = step[:, k] + times(self.K[:, k], x[:, k])
            x[:, k + 1] = times(self.A[:, k], x[:, k]) + times(self.B[:, k], u[:, k]) + d[:, k]
        return x, u, ps + times(self.P, x), p

    # -- goals and parameters side by side, as the costs read them

    @property
    def terms(self) -> dict[str, tuple[CostTerm, ...]]:
        return {"": self.problem.running, "final_": self.problem.final}

    @property
    def goal_terms(self) -> dict[str, CostTerm]:
        """{goal: a term that reads it}."""
        every = (*self.problem.running, *self.problem.final)
        return {term.name: term for term in every if term.has_goal}

    def jvp(self, changes: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The changes of q, v and u."""
        known = ["q", "v", *self.goal_terms, *["parameters"] * bool(self.parameter_count)]
        for name in changes:
            if name not in known:
                cause = f"jvp: {name!r} is no input of the problem"
                raise StateError(cause, nearest(name, known))
        count, N, n, x = self.count, self.steps, self.n, 2 * self.n
        x0 = np.zeros((count, x))
        for name, place in (("q", slice(0, n)), ("v", slice(n, x))):
            if name in changes:
                x0[:, place] = self._flat(f"the change of {name}", changes[name], (n,))
        p = np.zeros((count, self.parameter_count))
        if "parameters" in changes:
            p = self._flat("the change of parameters", changes["parameters"], p.shape[1:])
        goals = {
            name: self._goal_change(term, changes[name])
            for name, term in self.goal_terms.items()
            if name in changes
        }
        rows = self._other_rows("", goals, p)
        ends = self._other_rows("final_", goals, p)[:, -1]
        linear = times(self.mixed, rows)
        d = times(self.D, np.repeat(p[:, None], N, axis=1))
        end = times(self.final_mixed, ends)
        dx, du, _, _ = self._sweep(linear[..., :x], linear[..., x:], d, end, x0)
        return {
            name: self._shaped(y) for name, y in (("q", dx[..., :n]), ("v", dx[..., n:]), ("u", du))
        }

    def vjp(self, weights: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The gradients of sum(weight * result) by start, goals and parameters."""
        known = ["q", "v", "u"]
        for name in weights:
            if name not in known:
                raise StateError(f"vjp: {name!r} is no result", nearest(name, known))
        count, N, n, x = self.count, self.steps, self.n, 2 * self.n
        w = np.zeros((count, N + 1, x))
        for name, place in (("q", slice(0, n)), ("v", slice(n, x))):
            if name in weights:
                w[..., place] = self._flat(f"the weight of {name}", weights[name], (N + 1, n))
        r = np.zeros((count, N, self.m))
        if "u" in weights:
            r = -self.free * self._flat("the weight of u", weights["u"], (N, self.m))
        zero = np.zeros((count, x))
        zx, zu, zl, p = self._sweep(-w[:, :-1], r, np.zeros((count, N, x)), -w[:, -1], zero)
        found = {"q": -p[:, :n], "v": -p[:, n:]}
        z = np.concatenate([zx[:, :-1], zu], axis=-1)
        rows = -times(transposed(self.mixed), z)
        ends = -times(transposed(self.final_mixed), zx[:, -1])
        if self.parameter_count:
            split = self.parameter_count
            gradient = rows[..., -split:].sum(axis=1) + ends[..., -split:]
            by_step = -times(transposed(self.D), zl[:, 1:])
            found["parameters"] = gradient + by_step.sum(axis=1)
        for name, term in self.goal_terms.items():
            found[name] = self._goal_gradient(name, term, rows, ends)
        return {name: self._shaped(y) for name, y in found.items()}

    def _other_rows(
        self, prefix: str, goals: Mapping[str, np.ndarray], p: np.ndarray
    ) -> np.ndarray:
        """(B, N or 1, goals + parameters): the changes as the running or final costs read them."""
        N = self.steps if not prefix else 1
        nodes = slice(0, -1) if not prefix else slice(-1, None)
        parts = [np.zeros((self.count, N, 0))]
        for term in self.terms[prefix]:
            change = np.zeros((self.count, 1, term.goal_size))
            if term.has_goal and term.name in goals:
                change = goals[term.name]
                change = change[:, nodes] if change.shape[1] > 1 else change
            parts.append(np.broadcast_to(change, (self.count, N, term.goal_size)))
        parts.append(np.broadcast_to(p[:, None], (self.count, N, p.shape[-1])))
        return np.concatenate(parts, axis=-1)

    def _goal_change(self, term: CostTerm, value: Any) -> np.ndarray:
        """(B, rows, size): a change of a goal, as the costs read it."""
        core, rows = goal_shape(term), (self.steps + 1,) * term.cost.along
        change = self._flat(f"the change of {term.name}", value, (*rows, *core))
        change = change if term.cost.along else change[:, None]
        if term.cost.kind in ("pose", "orientation"):
            R = change[..., :3, :3]
            is_pose = term.cost.kind == "pose"
            t = change[..., :3, 3:] if is_pose else np.zeros((*R.shape[:-1], 1))
            change = np.concatenate([R, t], axis=-1).reshape(*change.shape[:2], 12)
        if term.cost.kind == "direction":
            change = self._across(term.name, change)
        return change

    def _across(self, name: str, change: np.ndarray) -> np.ndarray:
        """The part of a change of a direction that keeps its length."""
        goal = self.motion.goals[name]
        d = np.broadcast_to(goal, (*self.batch, *goal.shape[-2:])).reshape(self.count, -1, 3)
        return change - d * (d * change).sum(axis=-1, keepdims=True)

    def _goal_gradient(
        self, name: str, term: CostTerm, rows: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """The gradient by a goal, in the shape in which `solve` reads it."""
        N, size = self.steps, term.goal_size
        total = np.zeros((self.count, N + 1, size))
        for prefix, terms in self.terms.items():
            place = 0
            for each in terms:
                part = slice(place, place + each.goal_size)
                place += each.goal_size
                if each.has_goal and each.name == name:
                    nodes = slice(0, N) if not prefix else slice(N, N + 1)
                    total[:, nodes] += rows[..., part] if not prefix else ends[:, None, part]
        if not term.cost.along:
            total = total.sum(axis=1, keepdims=True)
        if term.cost.kind == "direction":
            total = self._across(name, total)
        if term.cost.kind in ("pose", "orientation"):
            T = total.reshape(self.count, -1, 3, 4)
            bottom = np.zeros((*T.shape[:2], 1, 4))
            total = (
                T[..., :3] if term.cost.kind == "orientation" else np.concatenate([T, bottom], 2)
            )
        return total if term.cost.along else total[:, 0]

    def _flat(self, what: str, value: Any, core: tuple[int, ...]) -> np.ndarray:
        """(B, *core) of an array that broadcasts to the batch."""
        remedy = f"give shape (..., {', '.join(map(str, core))})"
        array = real_array(what, value, core, remedy)
        try:
            array = np.broadcast_to(array, (*self.batch, *core))
        except ValueError:
            cause = f"{what} has batch axes {array.shape[: array.ndim - len(core)]}"
            raise StateError(f"{cause}, the motions {self.batch}", remedy) from None
        return array.reshape(self.count, *core)

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        """With the batch axes; NaN for problems that have no derivative."""
        lost = ~self.is_minimum.reshape(self.count, *(1,) * (x.ndim - 1))
        return np.where(lost, np.nan, x).reshape((*self.batch, *x.shape[1:]))


def _square(x: np.ndarray) -> np.ndarray:
    return np.einsum("bij,bij->b", x, x)


def goal_shape(term: CostTerm) -> tuple[int, ...]:
    """The shape of one goal in `solve`."""
    return {"pose": (4, 4), "orientation": (3, 3)}.get(term.cost.kind, (term.goal_size,))
