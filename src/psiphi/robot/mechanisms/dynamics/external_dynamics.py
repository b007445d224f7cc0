"""Closed chains of mechanisms whose free dynamics come from elsewhere: a function, another
simulator, a network (S4 section 4: any forward dynamics of the free arms).

    r(lambda) = Jc a(lambda) + bias,   a_i(lambda) = f_i(q_i, v_i, tau_i + (Jc* lambda)_i)
    Omega Delta = -r,                  lambda <- lambda + Delta

The functions f_i need not be linear in the torques: the columns of Omega = dr/dlambda are
differences, and the step is repeated until r = 0. For rigid bodies one step is exact, and its
remainder is rounding. Constraints, their rates and the other mechanisms are psiphi's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, SingularError, StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag, read_array
from psiphi.model.model import WORLD, Body, Frame, Joint
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.model.state_checks import batch_element
from psiphi.robot.robot import Robot

if TYPE_CHECKING:
    from psiphi.model.loops.constraints import Constraint
    from psiphi.robot.mechanisms.system import System

FreeDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]  # (q, v, tau) -> a
MAX_STEPS = 30
TOLERANCE = 1e-9  # of r, relative to the accelerations of the rows
RCOND = 1e-9  # singular values of Omega below this fraction of the largest count as zero


class Mechanism(NamedTuple):
    """A mechanism with its own dynamics: its entries of q and v, and the function."""

    name: str
    q: np.ndarray
    v: np.ndarray
    function: FreeDynamics


class ExternalDynamics:
    """A closed chain, some of whose mechanisms move by functions; made by `system.with_dynamics`.

    It has the methods that simulations need. Their steps are in Python.
    """

    def __init__(self, system: System, mechanisms: tuple[Mechanism, ...], batched: bool):
        self.system, self.mechanisms, self.batched = system, mechanisms, batched

    def __repr__(self) -> str:
        names = ", ".join(mechanism.name for mechanism in self.mechanisms)
        return f"<{self.system.name!r} with external dynamics of {names}>"

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def robot(self) -> Robot:
        return self.system.robot

    @property
    def nq(self) -> int:
        return self.system.nq

    @property
    def nv(self) -> int:
        return self.system.nv

    @property
    def joints(self) -> tuple[Joint, ...]:
        return self.system.joints

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.system.bodies

    @property
    def frames(self) -> Mapping[str, Frame]:
        return self.system.frames

    @property
    def contacts(self) -> tuple[Constraint, ...]:
        return self.system.contacts

    @property
    def passive(self) -> tuple[str, ...]:
        return self.system.passive

    @property
    def actuated(self) -> np.ndarray:
        return self.system.actuated

    def project(
        self, q: Numbers, v: Numbers, tolerance: float = 1e-12
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state projected onto the constraints, in the metric of psiphi's own mass matrix."""
        return self.system.project(q, v, tolerance)

    def constraint_residual(self, q: Numbers, v: Numbers | None = None) -> np.ndarray:
        """The position errors and rates of the rows, as of `System`."""
        return self.system.constraint_residual(q, v)

    def contact_ratio(self, q: Numbers, forces: Numbers) -> np.ndarray:
        """The used fraction of each friction cone, as of `System`."""
        return self.system.contact_ratio(q, forces)

    def energy(self, q: Numbers, v: Numbers) -> Any:
        """The energy of psiphi's own models."""
        return self.system.energy(q, v)

    def forward_dynamics(
        self, q: Numbers, v: Numbers, tau: Numbers, forces: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """a (..., nv) with Jc a + bias = 0; with `forces` also the contact wrenches (..., l, 6), as
        of `System.forward_dynamics`."""
        q, v, tau = self.system.state_arrays(q=q, v=v, tau=tau)
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1])
        states = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v, tau)]
        rows = [x.reshape(-1, x.shape[-1]) for x in states]
        found = [self._solve(*state, index=i) for i, state in enumerate(zip(*rows, strict=True))]
        a, lam = (
            np.array([pair[k] for pair in found]).reshape(*batch, size)
            for k, size in enumerate((self.nv, self.system.nc))
        )
        if not flag("forces", forces):
            return a
        return a, self.system.multiplier_response(states[0], lam)[1]

    def _solve(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, index: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """a and the multipliers of one state."""
        Jc, bias = self.system.constraint_jacobian(q), self.system.bias_on_constraints(q, v)
        lam = np.zeros(len(bias))
        size = np.linalg.norm(Jc, axis=-1)
        steps = (1.0 + max_norm(tau)) / np.where(size > 0.0, size, 1.0)
        a, left, best = self._free(q, v, tau), np.inf, np.inf
        for _ in range(MAX_STEPS):
            r = Jc @ a + bias
            scale = 1.0 + max_norm(np.abs(Jc) @ np.abs(a)) + max_norm(bias)
            left = float(max_norm(r)) / scale
            if left <= TOLERANCE and left >= 0.1 * best:  # no more to gain
                return a, lam
            best = min(best, left)
            loads = tau + Jc.T @ lam + steps[:, None] * Jc
            change = self._free(*(np.broadcast_to(x, (len(r), len(x))) for x in (q, v)), loads) - a
            Omega = (change @ Jc.T).T / steps
            lam = lam - np.linalg.pinv(Omega, rcond=RCOND) @ r
            a = self._free(q, v, tau + Jc.T @ lam)
        raise SingularError(
            f"no contact forces make the mechanisms satisfy the constraints"
            f"{batch_element((index,))} ({left:.3g} of the accelerations is missing)",
            "check the functions of with_dynamics, and that the arms are not singular",
        )

    def _free(self, q: np.ndarray, v: np.ndarray, loads: np.ndarray) -> np.ndarray:
        """The accelerations of all mechanisms without constraints, at joint forces `loads`."""
        a = np.array(self.robot.forward_dynamics(q, v, loads))
        for mechanism in self.mechanisms:
            a[..., mechanism.v] = self._call(
                mechanism, q[..., mechanism.q], v[..., mechanism.v], loads[..., mechanism.v]
            )
        return a

    def _call(self, mechanism: Mechanism, *state: np.ndarray) -> np.ndarray:
        """a of one mechanism, checked."""
        batch, count = state[0].shape[:-1], len(mechanism.v)
        try:
            if self.batched or not batch:
                value = mechanism.function(*state)
            else:
                # copies: a simulator may return the same buffer every time
                value = [deepcopy(mechanism.function(*one)) for one in zip(*state, strict=True)]
        except Error:
            raise
        except Exception as error:
            raise StateError(
                f"the dynamics of {mechanism.name} failed: {type(error).__name__}: {error}",
                "check the function of with_dynamics: (q, v, tau) -> a",
            ) from error
        array, fault = read_array(value, (count,))
        if not fault and array.shape != (*batch, count):
            fault = f"has shape {array.shape}, expected {(*batch, count)}"
        if fault:
            raise StateError(
                f"the acceleration of {mechanism.name} {fault}",
                f"return a, {count} numbers for each state",
            )
        return array


def with_dynamics(
    system: System, mechanisms: Mapping[str, FreeDynamics], batched: bool = False
) -> ExternalDynamics:
    """The same closed chain, the free dynamics of some mechanisms given by functions."""
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        raise StateError(
            f"mechanisms is {shown(mechanisms)}, expected a dict of functions",
            'give {"left": function, ...}, by the names of the mechanisms',
        )
    names = tuple(dict.fromkeys(body.name.partition("/")[0] for body in system.bodies))
    is_single = not all("/" in body.name for body in system.bodies)
    known = (system.robot.name,) if is_single else names
    found = []
    for name, function in mechanisms.items():
        if name not in known:
            raise StateError(f"no mechanism {shown(name)} in {system.name}", nearest(name, known))
        if not callable(function):
            raise StateError(
                f"the dynamics of {name} is {shown(function)}, expected a function",
                "give a function (q, v, tau) -> a",
            )
        bodies = [
            k
            for k, body in enumerate(system.bodies)
            if is_single or body.name.startswith(f"{name}/")
        ]
        parents = {system.robot.parent[k] for k in bodies}
        assert parents <= {WORLD, *bodies}, "mechanisms are trees of their own"
        q, v = (
            np.concatenate([np.arange(s.start, s.stop) for s in slices])
            for slices in (
                [system.joints[k].q_slice for k in bodies],
                [system.joints[k].v_slice for k in bodies],
            )
        )
        found.append(Mechanism(name, q, v, function))
    return ExternalDynamics(system, tuple(found), flag("batched", batched))
