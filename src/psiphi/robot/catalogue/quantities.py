"""The catalogue: every quantity psiphi computes of a robot, as its equation.

A dynamics quantity is nothing but its operator expression; the compiler rewrites and lowers it. Places are read off words, and
what is more than words is a small sum over the tree (`tree_quantities.py`). `columns` names the operator whose columns a matrix is,
for robots too large to write the matrix out in code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators, frame_places, heavier
from psiphi.backends.cpu.cpu_target import HOST, CpuTarget
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import FORMS, Equation
from psiphi.compiler.lower import world_body
from psiphi.compiler.lower.frame_sweeps import place_of
from psiphi.compiler.passes import program
from psiphi.compiler.recursions.newton_euler import Rigid
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.model.model import WORLD, Model
from psiphi.robot.catalogue import tree_quantities
from psiphi.robot.catalogue.frame_inertia import OperationalInertia
from psiphi.robot.catalogue.quasi_velocities import DIAGONAL, QuasiQuantity
from psiphi.robot.catalogue.tree_quantities import TreeSum

Results = dict[str, Expression]
F = TypeVar("F", bound=Function)
tau, v, a, x = (vector(name) for name in ("tau", "v", "a", "x"))


@dataclass(frozen=True)
class Quantity:
    """A quantity that is an expression: `results(s, pushed, B)`, with `pushed` the external forces on the links."""

    equation: str
    results: Callable[[Operators, Callable[[Expression], Expression], tuple], Results]
    given: tuple[str, ...] = ()
    at_rest: bool = False
    columns: str = ""
    rods: bool | None = True
    written: bool = False  # lowered as it is written, to show a paper's own algorithm
    added: bool = False  # D + X in place of D, the diagonal X (nv,) an input: see `equations.py`

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> Equation:
        """The equation on one robot."""
        s = Operators(heavier(model) if self.added else model)

        def loaded(force: Expression) -> Expression:
            """Less the wrenches f_ext on frames."""
            return force - s.B(*frames, axes=axes) @ vector("f_ext", "frame") if frames else force

        return Equation(
            self.results(s, loaded, (frames, axes)),
            model,
            self.at_rest,
            (*self.given, "f_ext"),
            self.equation,
            ("as written",) if self.written else FORMS,
            self.rods,
            self.columns,
            by_link=True,
            added=self.added,
        )


def _forward_dynamics(s: Operators, loaded, _) -> Results:
    return {"a": s.mass.inv @ (tau - s.H @ s.phi @ loaded(s.M @ s.phi.T @ s.a + s.b))}


def whitened(s: Operators) -> Expression:
    """W = I - H psi K = (I + H phi K)^-1."""
    return s.I - s.H @ s.psi @ s.K


def _fd1(s: Operators, loaded, _) -> Results:
    W, torque = whitened(s), tau - s.H @ s.phi @ loaded(s.M @ s.phi.T @ s.a + s.b)
    return {"a": W.T @ s.D.inv @ W @ torque}


def _fd2(s: Operators, loaded, _) -> Results:
    W, torque = whitened(s), tau - s.H @ s.phi @ loaded(s.M @ s.phi.T @ s.a + s.b)
    nu = s.D.inv @ W @ torque
    return {"a": W.T @ nu, "link_accelerations": s.psi.T @ s.H.T @ nu + s.phi.T @ s.a}


def _fd3(s: Operators, loaded, _) -> Results:
    zeta = s.phi.T @ s.a
    return {
        "a": whitened(s).T @ s.D.inv @ (tau - s.H @ s.psi @ (s.K @ tau + loaded(s.M @ zeta + s.b)))
    }


def _fd4(s: Operators, loaded, _) -> Results:
    nu = s.D.inv @ (tau - s.H @ s.psi @ (s.K @ tau + loaded(s.P @ s.a + s.b)))
    alpha = s.psi.T @ (s.H.T @ nu + s.a)
    return {"a": nu - s.K.T @ alpha, "link_accelerations": alpha}


def filtered(s: Operators, y: Expression, xi: Expression, eta: Expression) -> Results:
    """A Kalman filter inward and its smoother outward, of the outputs y, inputs xi and coinputs eta: S2 (8.2)-(8.13)."""
    z_minus = s.psi @ (
        s.K @ y + s.E_phi @ s.P_plus @ eta + xi
    )  # (8.2), (8.3), (8.7) in one recursion
    innovations = y - s.H @ z_minus  # (8.6)
    residuals = s.D.inv @ innovations  # (8.8)
    lambda_minus = s.psi.T @ (s.H.T @ residuals + s.tau_bar.T @ eta)  # (8.10), (8.11), (8.13)
    return {
        "z_minus": z_minus,
        "z_plus": z_minus + s.G @ innovations + s.P_plus @ eta,  # (8.7)
        "innovations": innovations,
        "residuals": residuals,
        "lambda_minus": lambda_minus,
        "lambda_plus": s.E_phi.T @ lambda_minus,  # (8.11)
    }


def _kalman(s: Operators, loaded, _) -> Results:
    """S2 Result 8.1, with S2's biases: eta (5.6) and xi (4.4), derivatives in body axes, gravity and loads among the forces."""
    eta, xi = s.a_local, loaded(s.b_local)
    found = filtered(s, tau, xi, eta)
    a = found["residuals"] - s.K.T @ found["lambda_minus"] - s.G.T @ eta  # (8.12)
    return {
        "a": a,
        **found,
        "forces": found["z_minus"] + s.P @ found["lambda_minus"],
        "eta": eta,
        "xi": xi,
    }  # (8.1)


def _kalman_gains(s: Operators, *_) -> Results:
    """What the filter knows before there are data: (8.4), (8.9) and (8.5), column by column."""
    X = vector("X", "link")
    return {"P_minus": s.P @ X, "P_plus": s.P_plus @ X, "gains": s.G @ x}


def _inverse_dynamics(s: Operators, loaded, _) -> Results:
    return {"tau": s.H @ s.phi @ loaded(s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b) + s.rotor @ a}


def _bias(s: Operators, loaded, _) -> Results:
    return {"tau": s.H @ s.phi @ loaded(s.M @ s.phi.T @ s.a + s.b)}


def _faded(s: Operators, *_) -> Results:
    """a with m* a + (dm/dt)* x = y: how a velocity error -x must change for m* x to change by -y, M = m m*."""
    m = s.mass_half
    return {"a": m.inv.T @ (vector("y") + m.T.dot() @ x)}


def _factors(s: Operators, *_) -> Results:
    return {"L": s.I + s.H @ s.phi @ s.K, "D": s.D}


def _factor_product(s: Operators, *_) -> Results:
    return {"y": (s.I + s.H @ s.phi @ s.K) @ x, "d": s.D @ x}


def _compliance(s: Operators, _, place) -> Results:
    frames, axes = place
    J = s.J(*frames, axes=axes)
    return {"X": J @ s.mass.inv @ J.T}


def _link_accelerations(s: Operators, *_) -> Results:
    return {"alpha": s.phi.T @ (s.H.T @ a + s.a)}


def _joint_forces(s: Operators, loaded, _) -> Results:
    return {"f": s.phi @ loaded(s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b)}


def _jacobian(s: Operators, _, place) -> Results:
    frames, axes = place
    return {"J": s.J(*frames, axes=axes)}


def _borne(s: Operators, _, place) -> Results:
    """What wrenches on frames ask of the joints."""
    frames, axes = place
    return {"tau": s.H @ s.phi @ s.B(*frames, axes=axes) @ vector("f_ext", "frame")}


def _momentum_matrix(s: Operators, at: Expression) -> Expression:
    """Momentum by joint rates: what the bodies have, summed at the world; rotors are no bodies."""
    return at @ s.phi @ s.M @ s.phi.T @ s.H.T


def _frame_acceleration(s: Operators, _, place) -> Results:
    J = s.J(*place[0], axes=place[1])
    return {"A": J @ a + J.dot() @ v}


def _frame_velocity(s: Operators, _, place) -> Results:
    frames, axes = place
    return {"V": s.J(*frames, axes=axes) @ v}


def _center_of_mass(tree: Tree, frames: tuple[str, ...]) -> Program:
    """Of E_0 phi M phi* E_0* = [[I, m c~], [-m c~, m]]."""

    def read(R: dict[tuple[str, int], Any]) -> dict[str, list]:
        entry = lambda i, j: R.get(("R", 6 * i + j), 0.0)  # noqa: E731
        return {
            "c": world_body.center(Rigid(entry(3, 3), [entry(2, 4), entry(0, 5), entry(1, 3)], []))
        }

    return sweeps_of("locked_inertia", tree).read((Argument("c", (3,)),), read)


def _frame_pose(tree: Tree, frames: tuple[str, ...]) -> Program:
    """T = [R, p; 0, 1], of the entries of E_0 phi B."""
    spot, outputs = tree.model.frame(frames[0]), (Argument("T", (4, 4)),)
    if spot.body == WORLD:  # wrenches on the world are no body's
        still, inputs = spot.pose.matrix.ravel().tolist(), (tree_quantities.q_of(tree.model),)
        return Program(
            "frame_pose",
            inputs,
            outputs,
            (),
            finish=lambda site: site.write("T", 0, still),
            bodies=(),
            local=False,
        )

    def read(found: dict[tuple[str, int], Any]) -> dict[str, list]:
        R, p = place_of(lambda name, i: found[name, i], 0, 1)
        return {
            "T": [x for row, y in zip(R, p, strict=True) for x in (*row, y)] + [0.0, 0.0, 0.0, 1.0]
        }

    return sweeps_of("frame_places", tree, frames).read(outputs, read)


def sweeps_of(name: str, tree: Tree, frames: tuple[str, ...] = (), axes: str = "world") -> Program:
    """The program of a quantity of the catalogue over a framed tree."""
    return program(EVERY[name].of(tree.model, frames, axes), tree)


CATALOGUE: dict[str, Quantity | TreeSum] = {
    "forward_dynamics": Quantity(
        "a = M^-1 (tau - C v - g + J* f_ext)", _forward_dynamics, ("tau",)
    ),
    "inverse_dynamics": Quantity("tau = M a + C v + g - J* f_ext", _inverse_dynamics, ("a",)),
    "bias": Quantity("C v + g", _bias),
    "gravity": Quantity("g(q) = H phi M phi* E g", _bias, at_rest=True),
    "mass_matrix": Quantity(
        "M = H phi M phi* H*", lambda s, *_: {"M": s.mass}, columns="mass_product"
    ),
    "mass_matrix_inverse": Quantity(
        "M^-1 = (I - H psi K)* D^-1 (I - H psi K)",
        lambda s, *_: {"M_inv": s.mass.inv},
        columns="mass_solve",
    ),
    "mass_matrix_factors": Quantity(
        "M = L D L*, L = I + H phi K", _factors, columns="factor_product"
    ),
    "mass_product": Quantity("M a", lambda s, *_: {"tau": s.mass @ a}),
    "mass_solve": Quantity(
        "M^-1 tau = (I - H psi K)* D^-1 (I - H psi K) tau", lambda s, *_: {"a": s.mass.inv @ tau}
    ),
    "factor_product": Quantity("(I + H phi K) x, D x", _factor_product),
    "coriolis": Quantity(
        "C v = bias - gravity, dM/dt - 2 C skew",
        lambda s, *_: {"C": s.coriolis},
        columns="coriolis_product",
        rods=None,
    ),
    "coriolis_product": Quantity("C(q, v) x", lambda s, *_: {"y": s.coriolis @ x}, rods=None),
    "link_accelerations": Quantity(
        "alpha = phi* (H* dv/dt + a)", _link_accelerations, ("a",), rods=None
    ),
    "joint_forces": Quantity("f = phi (M alpha + b)", _joint_forces, ("a",), rods=None),
    "frame_acceleration": Quantity("J a + dJ/dt v", _frame_acceleration, ("v", "a"), rods=None),
    "frame_pose": TreeSum("T(q): world <- frame", _frame_pose, word="frame_places"),
    "frame_velocity": Quantity("V = B* phi* H* v", _frame_velocity),
    "operational_compliance": Quantity("J M^-1 J* = B* psi* H* D^-1 H psi B", _compliance),
    "jacobian": Quantity("J = B* phi* H*", _jacobian),
    "energy": Quantity(
        "v* M v / 2 - sum m g.c", lambda s, *_: {"E": v.T @ s.mass @ v / 2 + s.U}, ("v",), rods=None
    ),
    "kinetic_energy": Quantity("v* M v / 2", lambda s, *_: {"E": v.T @ s.mass @ v / 2}, ("v",)),
    "momentum": Quantity(
        "h = E_0 phi M phi* H* v",
        lambda s, *_: {"h": _momentum_matrix(s, s.E_0) @ v},
        ("v",),
        rods=None,
    ),
    "centroidal_momentum": Quantity(
        "h = E_c phi M phi* H* v",
        lambda s, *_: {"h": _momentum_matrix(s, s.E_c) @ v},
        ("v",),
        rods=None,
    ),
    "centroidal_momentum_matrix": Quantity(
        "A = E_c phi M phi* H*",
        lambda s, *_: {"A": _momentum_matrix(s, s.E_c)},
        columns="centroidal_momentum",
        rods=None,
    ),
    "potential_energy": Quantity("- sum m g.c", lambda s, *_: {"E": s.U}, rods=None),
    "center_of_mass": TreeSum("c = sum m p / sum m", _center_of_mass, word="locked_inertia"),
}

METHODS: dict[str, Quantity] = {  # forward dynamics as the papers write it, for `method=`
    "FD1": Quantity("T' = T - C v - g; a = W* D^-1 W T'", _fd1, ("tau",), rods=None, written=True),
    "FD2": Quantity(
        "FD1, and alpha = psi* H* D^-1 W T' + phi* a", _fd2, ("tau",), rods=None, written=True
    ),
    "FD3": Quantity(
        "a = W* D^-1 (T - H psi (K T + M phi* a + b))", _fd3, ("tau",), rods=None, written=True
    ),
    "FD4": Quantity(
        "nu = D^-1 (T - H psi (K T + P a + b)); a = nu - K* psi* (H* nu + a)",
        _fd4,
        ("tau",),
        rods=None,
        written=True,
    ),
    "kalman": Quantity(
        "S2 (8.2)-(8.13): a Kalman filter inward, its smoother outward",
        _kalman,
        ("tau",),
        rods=None,
        written=True,
    ),
}


def _alone(row: Quantity) -> Quantity:
    """The same algorithm for the joint accelerations and nothing else."""
    return replace(row, results=lambda *given: {"a": row.results(*given)["a"]})


BY_METHOD: dict[str, str] = {name: f"forward_dynamics by {name}" for name in METHODS}
PARTS: dict[str, Quantity | TreeSum | OperationalInertia] = {
    "heavier_dynamics": Quantity(
        "a = (M + X)^-1 (tau - C v - g), X diagonal", _forward_dynamics, ("tau",), added=True
    ),
    "white_velocity": Quantity(
        "y = m* x, M = m m*", lambda s, *_: {"y": s.mass_half.T @ x}, ("x",)
    ),
    "fading": Quantity("a = m^-* (y + (dm/dt)* x), M = m m*", _faded, ("v", "x", "y"), rods=None),
    "link_poses": TreeSum("R(q), p(q) of every link: world <- link", tree_quantities.link_poses),
    "frame_places": Quantity(
        "E_0 phi B: [R p~R; 0 R] of frames",
        lambda s, _, place: frame_places(s, place[0]),
        rods=None,
        written=True,
    ),
    "frame_velocities": Quantity("V = B* phi* H* v, of several frames", _frame_velocity),
    "locked_inertia": Quantity(
        "E_0 phi M phi* E_0*",
        lambda s, *_: {"R": s.E_0 @ s.phi @ s.M @ s.phi.T @ s.E_0.T},
        rods=None,
        written=True,
    ),
    "borne": Quantity("J* f_ext = H phi B f_ext", _borne),
    "regressor": TreeSum("tau = Y pi", tree_quantities.regressor, by_body=False),
    "regressor_blocks": TreeSum(
        "tau = Y pi, where Y is not zero", tree_quantities.regressor_blocks, by_body=False
    ),
    "mass_pivots": TreeSum(
        "d of D(k) = L diag(d) L*: det M is their product",
        tree_quantities.mass_pivots,
        by_body=False,
    ),
    "frame_jacobians": Quantity("J = B* phi* H*, of several frames", _jacobian),
    "operational_space_inertia": OperationalInertia(sweeps_of),
    "kalman_gains": Quantity("P X, P+ X, G x", _kalman_gains, ("X", "x"), rods=None, written=True),
    **{BY_METHOD[name]: _alone(row) for name, row in METHODS.items()},
}
EVERY: dict[str, Quantity | TreeSum | OperationalInertia | QuasiQuantity] = {
    **CATALOGUE,
    **METHODS,
    **PARTS,
    **DIAGONAL,
}


def catalogued(
    model: Model, request: QuantityRequest, lanes: int | None = None, kind: type[F] = Function
) -> F:
    """The function of a quantity of the catalogue."""
    asked = EVERY[request.name].of(model, request.frames, request.axes)
    return kind(request, asked, HOST if lanes is None else CpuTarget(lanes))
