"""Dynamics in the quasi-velocities nu and xi, which diagonalise the mass matrix, as equations.

S1; Jain and Rodriguez (1994).

    xi = (I + H phi K)* v,    nu = (D^1/2)* xi,    v* M v / 2 = nu* nu / 2 = xi* D xi / 2
    V = psi* H* xi,           v = xi - K* V
    D xi' + C(xi) = kappa = W tau,      W = I - H psi K
    nu' + C(nu) = eps = D^-1/2 W tau

    C(xi) = W couple + H psi U° xi - H P g      C(nu) = D^-1/2 C(xi) - Theta* nu
    couple = (H V x* - H') P+ V+,               Theta = (D^1/2)^-1 d(D^1/2)/dt
    U° = d(P H*)/dt + V x* P H*,                V+ = phi* V(p)

They hold for joints of any kind, trees and rotor inertia (derived in docs/diagonalised.md). Without
gravity nu* C(nu) = 0, and C(nu) = c nu + D^-1/2 H psi b with c skew-symmetric (S1 (48)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.model.model import Model

SubtractWrenches = Callable[[Expression], Expression]  # link forces -> link forces - B f_ext
tau, v, x = vector("tau"), vector("v"), vector("x")


@dataclass(frozen=True)
class Quasi:
    """The operators of one robot, and its velocities V and v in terms of nu or xi."""

    s: Operators
    normalised: bool
    frames: tuple[str, ...] = ()
    axes: str = "world"

    @property
    def B(self) -> Expression:
        return self.s.B(*self.frames, axes=self.axes)

    @property
    def name(self) -> str:
        return "nu" if self.normalised else "xi"

    @property
    def velocity(self) -> Expression:
        """nu or xi."""
        return vector(self.name)

    @property
    def xi(self) -> Expression:
        return self.s.D_half.inv.T @ self.velocity if self.normalised else self.velocity

    @property
    def V(self) -> Expression:
        return self.s.psi.T @ self.s.H.T @ self.xi

    @property
    def v(self) -> Expression:
        return self.xi - self.s.K.T @ self.V

    def normalise(self, force: Expression) -> Expression:
        """D^-1/2 f in nu, f in xi."""
        return self.s.D_half.inv @ force if self.normalised else force

    def rate_of(self, force: Expression) -> Expression:
        """The share of a joint force in nu' or xi': D^-1/2 f or D^-1 f."""
        return self.s.D_half.inv @ force if self.normalised else self.s.D.inv @ force

    def denormalise(self, force: Expression) -> Expression:
        """The inverse of `normalise`."""
        return self.s.D_half @ force if self.normalised else force

    def net_force(self, subtract_f_ext: SubtractWrenches, torque: Expression | None) -> Expression:
        """D xi' = kappa - C, with external wrenches; without kappa if there is no torque."""
        s = self.s
        t = -s.couple if torque is None else torque - s.couple
        return t - s.H @ s.psi @ (s.K @ t + subtract_f_ext(s.U_ring @ self.xi)) + s.H @ s.P @ s.g

    def drift(self) -> Expression | None:
        """Theta* nu, from the time derivative of D^1/2; None in xi."""
        return self.s.D_rate.T @ self.velocity if self.normalised else None

    def add_drift(self, expression: Expression) -> Expression:
        drift = self.drift()
        return expression if drift is None else expression + drift


def _rate(o: Quasi, subtract_f_ext: SubtractWrenches) -> Expression:
    return o.add_drift(o.rate_of(o.net_force(subtract_f_ext, tau)))


def _bias(o: Quasi, subtract_f_ext: SubtractWrenches) -> Expression:
    return -o.add_drift(o.normalise(o.net_force(subtract_f_ext, None)))


def _forward_dynamics(o: Quasi, subtract_f_ext: SubtractWrenches) -> dict[str, Expression]:
    return {f"{o.name}_dot": _rate(o, subtract_f_ext)}


def _motion(o: Quasi, subtract_f_ext: SubtractWrenches) -> dict[str, Expression]:
    return {"v": o.v, f"{o.name}_dot": _rate(o, subtract_f_ext)}


def _inverse_dynamics(o: Quasi, subtract_f_ext: SubtractWrenches) -> dict[str, Expression]:
    s, rate = o.s, vector(f"{o.name}_dot")
    force = (
        o.denormalise(rate + _bias(o, subtract_f_ext))
        if o.normalised
        else s.D @ rate + _bias(o, subtract_f_ext)
    )
    return {"tau": force + s.H @ s.phi @ s.K @ force}


def _acceleration(o: Quasi, _) -> dict[str, Expression]:
    """a = W* (xi' - dK*/dt ...): from xi = v + K* phi* H* v, differentiated."""
    s, rate = o.s, vector(f"{o.name}_dot")
    xi_dot = s.D_half.inv.T @ (rate - s.D_rate.T @ o.velocity) if o.normalised else rate
    rates = (s.H @ s.P_dot + s.H_dot @ s.P) @ (o.V - s.H.T @ o.xi) - s.H @ s.P @ s.H_dot.T @ o.xi
    u = xi_dot - s.D.inv @ rates - s.G.T @ s.a_local
    return {"a": u - s.K.T @ s.psi.T @ (s.H.T @ u + s.a_local)}


def _coriolis(o: Quasi, _) -> dict[str, Expression]:
    """c x, c = H psi F - F* (psi - I)* H* with F = Pi H* + P H'*; skew-symmetric in nu."""
    s = o.s
    y = s.D_half.inv.T @ x if o.normalised else x
    F, F_star = s.Pi @ s.H.T + s.P @ s.H_dot.T, s.H @ s.Pi.T + s.H_dot @ s.P
    product = s.H @ s.psi @ F @ y - F_star @ (s.psi.T @ s.H.T @ y - s.H.T @ y)
    return {"y": o.normalise(product) - s.D_rate.T @ x if o.normalised else product}


def _reference(o: Quasi, *_) -> dict[str, Expression]:
    """m* v_ref and its time derivative m* v_ref' + (dm/dt)* v_ref along the motion."""
    s = o.s
    m = s.mass_half if o.normalised else s.I + s.H @ s.phi @ s.K
    reference = m.T @ vector("v_ref")
    return {f"{o.name}_ref": reference, f"{o.name}_ref_dot": reference.dot()}


def _frame_velocity(o: Quasi, *_) -> dict[str, Expression]:
    return {"V": o.B.T @ o.V}


def _jacobian(o: Quasi, *_) -> dict[str, Expression]:
    s = o.s
    motion = s.psi.T @ s.H.T @ s.D_half.inv.T if o.normalised else s.psi.T @ s.H.T
    return {"J": o.B.T @ motion}


@dataclass(frozen=True)
class QuasiQuantity:
    """A quantity in quasi-velocities, as `Quantity` in `catalogue.py`."""

    equation: str
    results: Callable[[Quasi, SubtractWrenches], dict[str, Expression]]
    normalised: bool
    vectors: tuple[str, ...] = ()
    moving: bool = True  # computes V and v first
    takes_wrenches: bool = False
    on_frame: bool = False
    movable_inertia: bool | None = True

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> Equation:
        o = Quasi(Operators(model), self.normalised, frames, axes)

        def subtract_f_ext(force: Expression) -> Expression:
            return force - o.B @ vector("f_ext", "frame") if frames else force

        options: dict[str, Any] = dict(
            input_order=(o.name, *self.vectors, "f_ext"), equation=self.equation, by_link=True
        )
        if self.moving:
            options |= dict(
                forms=("as written",),
                movable_inertia=self.movable_inertia,
                velocities={"V": o.V, "v": o.v},
            )
        return Equation(self.results(o, subtract_f_ext), model, **options)


def _quantities(normalised: bool) -> dict[str, QuasiQuantity]:
    """The table of equations in nu (normalised) or xi."""
    u, f, D, l = ("nu", "eps", "", "D^-1/2 ") if normalised else ("xi", "kappa", "D ", "")
    rate, wrenches = f"{u}_dot", dict(takes_wrenches=True)

    def row(equation: str, results: Callable, *vectors: str, **options: Any) -> QuasiQuantity:
        return QuasiQuantity(equation, results, normalised, vectors, **options)

    return {
        "forward_dynamics": row(f"{D}{u}' = {f} - C(q, {u})", _forward_dynamics, "tau", **wrenches),
        "motion": row(f"v of {u}, and {D}{u}' = {f} - C(q, {u})", _motion, "tau", **wrenches),
        "inverse_dynamics": row(
            f"tau of {f} = {D}{u}' + C(q, {u})", _inverse_dynamics, rate, **wrenches
        ),
        "bias": row(
            f"C(q, {u}), gravity included",
            lambda o, subtract_f_ext: {"C": _bias(o, subtract_f_ext)},
            **wrenches,
        ),
        "reference": row(
            f"m* v_ref and its derivative, {u} = m* v", _reference, "v_ref", "v_ref_dot"
        ),
        "acceleration": row(f"dv/dt of {u} and {u}'", _acceleration, rate),
        "coriolis_product": row(f"c(q, {u}) x", _coriolis, "x", movable_inertia=None),
        "rates": row(f"v = (I - H psi K)* xi of {u}", lambda o, _: {"v": o.v}, moving=False),
        "velocities": row(f"{u} of v", lambda o, _: {u: _velocities(o)}, moving=False),
        "forces": row(
            f"{f} = {l}(I - H psi K) tau",
            lambda o, _: {f: o.normalise(_innovations(o.s))},
            moving=False,
        ),
        "torques": row(f"tau of {f}", lambda o, _: {"tau": _torques(o, f)}, moving=False),
        "gravity": row(
            f"{l}(I - H psi K) g",
            lambda o, _: {"C": -o.normalise(o.s.H @ o.s.P @ o.s.g)},
            moving=False,
        ),
        "frame_velocity": row("V = B* psi* H* xi", _frame_velocity, moving=False, on_frame=True),
        "jacobian": row(f"J {u} = V", _jacobian, moving=False, on_frame=True),
    }


def _innovations(s: Operators) -> Expression:
    """W tau."""
    return tau - s.H @ s.psi @ s.K @ tau


def _velocities(o: Quasi) -> Expression:
    s = o.s
    xi = v + s.K.T @ s.phi.T @ s.H.T @ v
    return s.D_half.T @ xi if o.normalised else xi


def _torques(o: Quasi, name: str) -> Expression:
    force = o.denormalise(vector(name))
    return force + o.s.H @ o.s.phi @ o.s.K @ force


PREFIXES = {True: "diagonalised", False: "unnormalised"}
QUASI_QUANTITIES: dict[str, QuasiQuantity] = {
    f"{prefix}_{name}": quantity
    for normalised, prefix in PREFIXES.items()
    for name, quantity in _quantities(normalised).items()
}
