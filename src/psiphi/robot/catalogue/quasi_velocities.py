"""Dynamics in the velocities nu and xi that diagonalise the mass matrix (S1; Jain and Rodriguez 1994), as equations.

    xi = (I + H phi K)* v,    nu = (D^1/2)* xi,    v* M v / 2 = nu* nu / 2 = xi* D xi / 2
    V = psi* H* xi,           v = xi - K* V
    D xi' + C(xi) = kappa = W tau,      W = I - H psi K
    nu' + C(nu) = eps = D^-1/2 W tau,   C(nu) = D^-1/2 C(xi) - Theta* nu,   Theta = (D^1/2)^-1 d(D^1/2)/dt

    C(xi) = W couple + H psi U° xi - H P g      couple = (H V x* - H') P+ V+,   U° = d(P H*)/dt + V x* P H*,  V+ = phi* V(p)

for joints of any kind, trees and rotor inertia (docs/diagonalised.md derives it). Without gravity nu* C(nu) = 0, and
C(nu) = c nu + D^-1/2 H psi b with c skew (S1 (48)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.model.model import Model

Loaded = Callable[[Expression], Expression]
tau, v, x = vector("tau"), vector("v"), vector("x")


@dataclass(frozen=True)
class Quasi:
    """The operators of one robot, and its velocities in terms of nu (or of xi): letters of the equations below."""

    s: Operators
    normal: bool
    place: tuple[tuple[str, ...], str] = ((), "world")

    @property
    def frame(self) -> Expression:
        """B of the frames asked for."""
        return self.s.B(*self.place[0], axes=self.place[1])

    @property
    def name(self) -> str:
        return "nu" if self.normal else "xi"

    @property
    def given(self) -> Expression:
        """nu, or xi."""
        return vector(self.name)

    @property
    def xi(self) -> Expression:
        return self.s.D_half.inv.T @ self.given if self.normal else self.given

    @property
    def V(self) -> Expression:
        return self.s.psi.T @ self.s.H.T @ self.xi

    @property
    def v(self) -> Expression:
        return self.xi - self.s.K.T @ self.V

    def scaled(self, force: Expression) -> Expression:
        """D^-1/2 f in nu, f in xi."""
        return self.s.D_half.inv @ force if self.normal else force

    def divided(self, force: Expression) -> Expression:
        """What a force over joints does to nu' (to xi')."""
        return self.s.D_half.inv @ force if self.normal else self.s.D.inv @ force

    def spread(self, force: Expression) -> Expression:
        """The undoing of `scaled`."""
        return self.s.D_half @ force if self.normal else force

    def push(self, loaded: Loaded, torque: Expression | None) -> Expression:
        """kappa - C, with wrenches on frames: D xi'."""
        s = self.s
        t = -s.couple if torque is None else torque - s.couple
        return t - s.H @ s.psi @ (s.K @ t + loaded(s.U_ring @ self.xi)) + s.H @ s.P @ s.g

    def drift(self) -> Expression | None:
        """Theta* nu: how the scale of nu changes by itself; nothing in xi."""
        return self.s.D_rate.T @ self.given if self.normal else None

    def plus_drift(self, expression: Expression) -> Expression:
        drift = self.drift()
        return expression if drift is None else expression + drift


def _rate(o: Quasi, loaded: Loaded) -> Expression:
    return o.plus_drift(o.divided(o.push(loaded, tau)))


def _bias(o: Quasi, loaded: Loaded) -> Expression:
    return -o.plus_drift(o.scaled(o.push(loaded, None)))


def _forward_dynamics(o: Quasi, loaded: Loaded) -> dict[str, Expression]:
    return {f"{o.name}_dot": _rate(o, loaded)}


def _motion(o: Quasi, loaded: Loaded) -> dict[str, Expression]:
    return {"v": o.v, f"{o.name}_dot": _rate(o, loaded)}


def _inverse_dynamics(o: Quasi, loaded: Loaded) -> dict[str, Expression]:
    s, rate = o.s, vector(f"{o.name}_dot")
    force = o.spread(rate + _bias(o, loaded)) if o.normal else s.D @ rate + _bias(o, loaded)
    return {"tau": force + s.H @ s.phi @ s.K @ force}


def _acceleration(o: Quasi, _) -> dict[str, Expression]:
    """a = W* (xi' - dK*/dt ...): from xi = v + K* phi* H* v, differentiated."""
    s, rate = o.s, vector(f"{o.name}_dot")
    xi_dot = s.D_half.inv.T @ (rate - s.D_rate.T @ o.given) if o.normal else rate
    turned = (s.H @ s.P_dot + s.H_dot @ s.P) @ (o.V - s.H.T @ o.xi) - s.H @ s.P @ s.H_dot.T @ o.xi
    u = xi_dot - s.D.inv @ turned - s.G.T @ s.a_local
    return {"a": u - s.K.T @ s.psi.T @ (s.H.T @ u + s.a_local)}


def _coriolis(o: Quasi, _) -> dict[str, Expression]:
    """c x, c = H psi F - F* (psi - I)* H* with F = Pi H* + P H'*: skew in nu."""
    s = o.s
    y = s.D_half.inv.T @ x if o.normal else x
    F, F_star = s.Pi @ s.H.T + s.P @ s.H_dot.T, s.H @ s.Pi.T + s.H_dot @ s.P
    product = s.H @ s.psi @ F @ y - F_star @ (s.psi.T @ s.H.T @ y - s.H.T @ y)
    return {"y": o.scaled(product) - s.D_rate.T @ x if o.normal else product}


def _reference(o: Quasi, *_) -> dict[str, Expression]:
    """m* v_ref and its time derivative along the motion: m* v_ref' + (dm/dt)* v_ref, by the rules of `time_derivative`."""
    s = o.s
    m = s.mass_half if o.normal else s.I + s.H @ s.phi @ s.K
    moved = m.T @ vector("v_ref")
    return {f"{o.name}_ref": moved, f"{o.name}_ref_dot": moved.dot()}


def _frame_velocity(o: Quasi, *_) -> dict[str, Expression]:
    return {"V": o.frame.T @ o.V}


def _jacobian(o: Quasi, *_) -> dict[str, Expression]:
    s = o.s
    motion = s.psi.T @ s.H.T @ s.D_half.inv.T if o.normal else s.psi.T @ s.H.T
    return {"J": o.frame.T @ motion}


@dataclass(frozen=True)
class QuasiQuantity:
    """A quantity in quasi-velocities: like `dynamics.Quantity`; a moving one computes V and v first."""

    equation: str
    results: Callable[[Quasi, Loaded], dict[str, Expression]]
    normal: bool
    given: tuple[str, ...] = ()
    moving: bool = True
    loaded: bool = False
    on_frame: bool = False
    rods: bool | None = True

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> Equation:
        o = Quasi(Operators(model), self.normal, (frames, axes))

        def loaded(force: Expression) -> Expression:
            return force - o.frame @ vector("f_ext", "frame") if frames else force

        results, given = self.results(o, loaded), (o.name, *self.given, "f_ext")
        if not self.moving:
            return Equation(results, model, given=given, equation=self.equation, by_link=True)
        moved, form = {"V": o.V, "v": o.v}, ("as written",)
        return Equation(
            results,
            model,
            False,
            given,
            self.equation,
            form,
            self.rods,
            by_link=True,
            velocities=moved,
        )


def _quantities(normal: bool) -> dict[str, QuasiQuantity]:
    """The table of equations, in nu or in xi."""
    u, f, D, l = ("nu", "eps", "", "D^-1/2 ") if normal else ("xi", "kappa", "D ", "")
    rate, pull = f"{u}_dot", dict(loaded=True)

    def row(equation: str, results: Callable, *given: str, **more) -> QuasiQuantity:
        return QuasiQuantity(equation, results, normal, given, **more)

    return {
        "forward_dynamics": row(f"{D}{u}' = {f} - C(q, {u})", _forward_dynamics, "tau", **pull),
        "motion": row(f"v of {u}, and {D}{u}' = {f} - C(q, {u})", _motion, "tau", **pull),
        "inverse_dynamics": row(
            f"tau of {f} = {D}{u}' + C(q, {u})", _inverse_dynamics, rate, **pull
        ),
        "bias": row(
            f"C(q, {u}), gravity included", lambda o, loaded: {"C": _bias(o, loaded)}, **pull
        ),
        "reference": row(
            f"{u} and {u}' of a motion wanted, as seen from q", _reference, "v_ref", "v_ref_dot"
        ),
        "acceleration": row(f"dv/dt of {u} and {u}'", _acceleration, rate),
        "coriolis_product": row(f"c(q, {u}) x", _coriolis, "x", rods=None),
        "rates": row(f"v = (I - H psi K)* xi of {u}", lambda o, _: {"v": o.v}, moving=False),
        "velocities": row(f"{u} of v", lambda o, _: {u: _velocities(o)}, moving=False),
        "forces": row(
            f"{f} = {l}(I - H psi K) tau", lambda o, _: {f: o.scaled(_whitened(o.s))}, moving=False
        ),
        "torques": row(f"tau of {f}", lambda o, _: {"tau": _torques(o, f)}, moving=False),
        "gravity": row(
            f"{l}(I - H psi K) g",
            lambda o, _: {"C": -o.scaled(o.s.H @ o.s.P @ o.s.g)},
            moving=False,
        ),
        "frame_velocity": row("V = B* psi* H* xi", _frame_velocity, moving=False, on_frame=True),
        "jacobian": row("V of a frame by " + u, _jacobian, moving=False, on_frame=True),
    }


def _whitened(s: Operators) -> Expression:
    return tau - s.H @ s.psi @ s.K @ tau


def _velocities(o: Quasi) -> Expression:
    s = o.s
    xi = v + s.K.T @ s.phi.T @ s.H.T @ v
    return s.D_half.T @ xi if o.normal else xi


def _torques(o: Quasi, name: str) -> Expression:
    force = o.spread(vector(name))
    return force + o.s.H @ o.s.phi @ o.s.K @ force


NAMES = {True: "diagonalised", False: "unnormalised"}
DIAGONAL: dict[str, QuasiQuantity] = {
    f"{NAMES[normal]}_{name}": quantity
    for normal in NAMES
    for name, quantity in _quantities(normal).items()
}
