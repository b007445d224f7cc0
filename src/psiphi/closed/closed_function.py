"""What a closed system computes, as a function with derivatives: `implicit.py` has the mathematics.

>>> import numpy as np, psiphi as pp
>>> arm = pp.load("pelican")
>>> pinned = pp.connect(arm, [pp.Loop("distance", "tool", "world", length=0.3)])
>>> f, q = pinned.function("forward_dynamics"), pinned.assemble([0.5, 1.0])
>>> a, da = f.jvp("tau")(q, np.zeros(2), np.ones(2), [1.0, 0.0])
>>> bool(np.allclose(da, f.jacobian("tau")(q, np.zeros(2), np.ones(2))[:, 0]))
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.arguments import real
from psiphi.closed import forward, implicit, wiring
from psiphi.closed.singular import STRAIN
from psiphi.errors import SingularError, StateError
from psiphi.functions import guard
from psiphi.functions.differentiable import Differentiable
from psiphi.wording import nearest, shown

ACCELERATIONS, FORCES = NAMES = ("forward_dynamics", "contact_forces")
Shape = tuple[int, ...]


class ClosedFunction:
    """a(q, v, tau), or the contact forces, of a closed system; with `frames`, f_ext (..., frames, 6) is the last argument.

    Changes of q are tangent vectors; those of tau have as many numbers as tau came with (nv, or na)."""

    def __init__(self, system: Any, name: str, frames: tuple[str, ...] = (), axes: str = "world"):
        guard.check_axes(axes)
        self.system, self.name, self.frames, self.axes = system, name, frames, axes
        self.inputs = wiring.given(system.algebra, frames)
        self.shape: Shape = (system.nv,) if name == ACCELERATIONS else (len(system.contacts), 6)

    def __repr__(self) -> str:
        return f"<{self.name} of {self.system.name!r}: {', '.join(arg.name for arg in self.inputs)}>"

    def __call__(self, *values: Any) -> np.ndarray:
        return self.solved(self.read(values, {})[0]).result

    def jacobian(self, *names: str) -> ClosedDerivative:
        """f(arguments) -> d result / d argument, (..., *shape, n) each; of q n = nv, in its tangent space."""
        return ClosedJacobian(self, self._chosen(names))

    def jvp(self, *names: str) -> ClosedDerivative:
        """f(arguments, changes) -> (result, its change)."""
        return ClosedPush(self, self._chosen(names))

    def vjp(self, *names: str) -> ClosedDerivative:
        """f(arguments, weight) -> (result, gradients of its weighted sum, one a name)."""
        return ClosedPull(self, self._chosen(names))

    def hessian(self, *names: str) -> Any:
        """Second derivatives of closed systems are not there."""
        raise StateError(f"{self.name}: a closed system has first derivatives alone", "take differences of vjp")

    def _chosen(self, names: tuple[str, ...]) -> tuple[str, ...]:
        known = [arg.name for arg in self.inputs]
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise StateError(f"{self.name}: derivative by {shown(name)}, which is no argument", nearest(name, known))
        if len(set(names)) < len(names):
            raise StateError(f"{self.name}: derivative by {shown(names)}, one of them twice", "name every argument once")
        return names or tuple(known)

    def read(self, values: Any, more: dict[str, Shape]) -> tuple[tuple[np.ndarray, ...], list[np.ndarray], bool]:
        """The arguments and what comes behind them (`more`: shapes), of one batch; whether tau was of the motors alone."""
        guard.on_host(self.name, *values)
        if len(values) != len(self.inputs) + len(more):
            names = ", ".join([*(arg.name for arg in self.inputs), *more])
            raise StateError(f"{self.name}: {len(values)} arguments came, expected ({names})", "give them in this order")
        arrays = list(self.system._state(q=values[0], v=values[1], tau=values[2]))
        shapes = {arg.name: arg.shape for arg in self.inputs} | more
        for (name, shape), value in list(zip(shapes.items(), values, strict=True))[3:]:
            if name == "dtau":
                arrays += self.system._state(tau=value)
            else:
                arrays.append(real(name, value, shape, f"give it the shape (..., {', '.join(map(str, shape))})"))
        leads = {name: x.shape[: x.ndim - len(shapes[name])] for name, x in zip(shapes, arrays, strict=True)}
        lead = self.system._batch(guard.batch_axes(self.name, leads))
        whole = [np.broadcast_to(x, (*lead, *shape)) for x, shape in zip(arrays, shapes.values(), strict=True)]
        return tuple(whole[: len(self.inputs)]), whole[len(self.inputs) :], np.shape(values[2])[-1] != self.system.nv

    def solved(self, values: tuple[np.ndarray, ...]) -> Solved:
        """The accelerations and multipliers there, by the policies of `forward.py`."""
        loads = {name: values[3][..., i, :] for i, name in enumerate(self.frames)} or None
        q, v, tau = values[:3]
        found = forward.details(self.system, q, v, tau, loads, self.axes, None, False)
        result = found["a"] if self.name == ACCELERATIONS else found["forces"]
        whole = (*values, found["a"], found["multipliers"])
        solvable = np.asarray(found["solvable"])
        return Solved(whole, result, np.asarray(found["unique"]) & solvable, solvable)


@dataclass(frozen=True)
class Solved:
    """The arguments of the laws, of one batch; what is asked for there; where K has an inverse; where there is an answer."""

    values: tuple[np.ndarray, ...]
    result: np.ndarray
    regular: np.ndarray
    solvable: np.ndarray


class ClosedDerivative:
    """A derivative of a function of a closed system: its own callable."""

    kind = ""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        self.name = f"{of.name}: {self.kind} by {', '.join(names)}"

    def __repr__(self) -> str:
        return f"<{self.name} of {self.system.name!r}>"

    def more(self) -> dict[str, Shape]:
        """Names and shapes of what comes behind the arguments."""
        return {}

    def __call__(self, *values: Any) -> Any:
        state, behind, motors = self.of.read(values, self.more())
        found = self.evaluate(self.of.solved(state), behind)
        pick = {"tau": self.system.actuated} if motors else {}
        found = [x[..., pick[name]] if name in pick else x for name, x in found]
        return found[0] if len(found) == 1 else tuple(found)

    def evaluate(self, at: Solved, behind: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
        """(argument, derivative) pairs; results themselves are called ""."""
        raise NotImplementedError

    def laws(self) -> Differentiable:
        of, forces = self.of, self.of.name == FORCES
        key = "laws", of.frames, of.axes, forces
        return self.system._function(
            key, lambda: implicit.laws(self.system.algebra, of.frames, of.axes, forces), Differentiable
        )

    def run(self, function: Any, *values: np.ndarray, system: Any = None) -> tuple[np.ndarray, ...]:
        """The results of a compiled function; free numbers stand behind its own arguments."""
        n, own = len(self.of.inputs) + 2, system or self.system
        found = own._run(function, (*values[:n], *own.robot._more, *values[n:]))
        return found if isinstance(found, tuple) else (found,)

    def answer(self, at: Solved, dr2: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """How the result changes with the laws (..., size, nv + m + size or less), and besides with q where multipliers of
        least norm are to stay so (..., size, nv). `dr2` are changes of r2 that must be possible."""
        system, nv, m = self.system, self.system.nv, self.system.nc
        lead, q, forces = at.regular.shape, at.values[0], self.of.name == FORCES
        matrix, slack, good = np.full((*lead, nv + m * forces, nv + m), np.nan), np.zeros((*lead, m, nv)), at.regular
        if good.any():
            made = system._function(("inverse", forces), lambda: implicit.inverse(system.algebra, forces))
            matrix, strain = map(np.array, system._call(made, (q,)))
            good = good & (strain < STRAIN) & np.isfinite(matrix).all(axis=(-2, -1))
        rest = ~good
        if rest.any():
            matrix[rest], slack[rest] = self._looked_at(at, rest, dr2, matrix.shape[-2])
        if not forces:
            return matrix, np.zeros((*lead, nv, nv))
        unit = system._over_samples()._corrected(q[..., None, :], np.eye(m))[1].reshape(*lead, m, -1)
        by_lam = np.swapaxes(unit, -1, -2)
        own = np.broadcast_to(np.eye(by_lam.shape[-2]), (*lead, by_lam.shape[-2], by_lam.shape[-2]))
        return np.concatenate([by_lam @ matrix[..., nv:, :], own], axis=-1), by_lam @ slack

    def _looked_at(self, at: Solved, rest: np.ndarray, dr2: np.ndarray | None, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The first rows of -K^-1, or of what takes its place, and the slack, where Omega is of no use; NaN: no answer."""
        system, q = self.system._of(rest.shape, rest), at.values[0][rest]
        mass, Jc = system.robot.mass_matrix(q), system.constraint_jacobian(q)
        matrix, slack = np.full((len(q), *[system.nv + system.nc] * 2), np.nan), np.zeros(Jc.shape)
        whole, loose = at.regular[rest], (at.solvable & ~at.regular)[rest]
        matrix[whole] = implicit.regular(mass[whole], Jc[whole])
        if loose.any():
            matrix[loose], slack[loose] = self._redundant(at, mass[loose], Jc[loose], at.solvable & ~at.regular, dr2)
        return matrix[:, :rows], slack

    def _redundant(self, at: Solved, mass: np.ndarray, Jc: np.ndarray, rest: np.ndarray, dr2: np.ndarray | None) -> Any:
        """The same of (a, lambda) where rows follow from others: states of one rank at a time."""
        system = self.system._of(rest.shape, rest)
        values = tuple(x[rest] for x in at.values)
        by_q, by_v = self.run(self.laws().jacobian("q", "v"), *values, system=system)[2:4]
        own, found = implicit.ranks(Jc), (np.full((len(Jc), *[system.nv + system.nc] * 2), np.nan), np.zeros(Jc.shape))
        rate = system._function("rates", lambda: implicit.rates(system.algebra), Differentiable).jacobian("q")
        for rank in np.unique(own):
            here = own == rank
            more = system._of(here.shape, here).robot._more
            turned = lambda q, x, more=more: system._run(rate, (q, x, *more))  # noqa: E731
            parts = implicit.Split(Jc[here], int(rank))
            point = implicit.Point(values[0][here], values[1][here], turned, Jc[here], parts, implicit.holding(system.algebra))
            good = np.ones(here.sum(), dtype=bool)
            if {"q", "v"} & set(self.names):
                good = point.smooth(by_q[here], by_v[here])
            if dr2 is not None:
                change = dr2[rest][here][..., None]
                good &= parts.keeps(change, np.abs(change).max(axis=(-2, -1)))
            found[0][here] = np.where(good[:, None, None], parts.answer(mass[here]), np.nan)
            found[1][here] = point.slack(values[-1][here])
        if not at.regular.ndim and np.isnan(found[0]).any():
            raise SingularError(
                f"{self.name}: no derivative here: constraints that follow from others do not stay so along this change",
                "change q and v together, as the constraints allow (Jc dq = 0), or start from another configuration",
            )
        return found


class ClosedJacobian(ClosedDerivative):
    """d result / d argument = answer d(laws)/d argument."""

    kind = "jacobian"

    def evaluate(self, at: Solved, behind: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
        answer, slack = self.answer(at)
        laws = self.run(self.laws().jacobian(*self.names), *at.values)
        found = []
        for i, name in enumerate(self.names):
            whole: Any = slack if name == "q" else 0.0
            start = 0
            for part in laws[i :: len(self.names)]:
                whole = whole + answer[..., start : start + part.shape[-2]] @ part
                start += part.shape[-2]
            found.append((name, whole.reshape(*at.regular.shape, *self.of.shape, whole.shape[-1])))
        return found


class ClosedPush(ClosedDerivative):
    """d result = answer d(laws)."""

    kind = "jvp"

    def more(self) -> dict[str, Shape]:
        nv = self.system.nv
        sizes = {"q": (nv,), "v": (nv,), "tau": (nv,), "f_ext": (len(self.of.frames), 6)}
        return {f"d{name}": sizes[name] for name in self.names}

    def evaluate(self, at: Solved, behind: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
        changes = dict(zip(self.names, behind, strict=True))
        laws = self.run(self.laws().jvp(*self.names), *at.values, *changes.values())
        laws = laws[len(laws) // 2 :]
        answer, slack = self.answer(at, laws[1])
        whole = answer @ np.concatenate(laws, axis=-1)[..., None]
        if "q" in changes:
            whole = whole + slack @ changes["q"][..., None]
        return [("", at.result), ("", whole.reshape(at.result.shape))]


class ClosedPull(ClosedDerivative):
    """Gradients: the laws', of weights answer* w."""

    kind = "vjp"

    def more(self) -> dict[str, Shape]:
        return {"weight": self.of.shape}

    def evaluate(self, at: Solved, behind: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
        answer, slack = self.answer(at)
        w = behind[0].reshape(*at.regular.shape, 1, -1)
        weights, nv, m = (w @ answer)[..., 0, :], self.system.nv, self.system.nc
        parts = np.split(weights, [nv, nv + m], axis=-1)[: 2 if self.of.name == ACCELERATIONS else 3]
        gradients = self.run(self.laws().vjp(*self.names), *at.values, *parts)[len(parts) :]
        found = [("", at.result)]
        for name, gradient in zip(self.names, gradients, strict=True):
            found.append((name, gradient + (w @ slack)[..., 0, :] if name == "q" else gradient))
        return found


def lasting(system: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Which motions (B, samples, n) have constraints whose rank stays, on them and beside where they begin: (B,)."""
    own = implicit.ranks(system._over_samples().constraint_jacobian(q))
    found = (own == own[:, :1]).all(axis=-1)
    loose = np.flatnonzero(found & (own[:, 0] < system.nc))
    if len(loose):
        rest = np.zeros((len(loose), system.nv))
        some = system._of((len(q),), loose)
        gradients = ClosedFunction(some, ACCELERATIONS).vjp("q", "v")(q[loose, 0], v[loose, 0], rest, rest)[1:]
        found[loose] = np.isfinite(np.concatenate(gradients, axis=-1)).all(axis=-1)
    return found
