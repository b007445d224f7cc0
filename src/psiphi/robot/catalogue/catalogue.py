"""The catalogue: every quantity that psiphi computes for a robot, as its equation.

A quantity of dynamics is an operator expression; the compiler rewrites and lowers it. Quantities
without an expression are sweeps over the tree (`tree_programs.py`), or are read from the result
of an expression (poses, centre of mass). For matrices, `columns` names the operator that gives
their columns: large robots use it in place of straight-line code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from psiphi._util.array_types import AnyScalar
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators, frame_poses, with_rotors
from psiphi.backends.cpu.cpu_target import HOST, CpuTarget
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import FORMS, Equation
from psiphi.compiler.lower import world_body
from psiphi.compiler.lower.frame_sweeps import pose_from_entries
from psiphi.compiler.passes import program
from psiphi.compiler.recursions.newton_euler import Rigid
from psiphi.compiler.sweeps.sweep_program import Argument, BodyView, Program
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.screws import add, cross, dot
from psiphi.robot.catalogue import tree_programs
from psiphi.robot.catalogue.frame_inertia import OperationalInertia
from psiphi.robot.catalogue.quasi_velocities import QUASI_QUANTITIES, QuasiQuantity
from psiphi.robot.catalogue.tree_programs import TreeSum

Results = dict[str, Expression]
F = TypeVar("F", bound=Function)
tau, v, a, x = (vector(name) for name in ("tau", "v", "a", "x"))


@dataclass(frozen=True)
class Quantity:
    """A quantity given by expressions, `results(s, subtract_f_ext, (frames, axes))`.

    `subtract_f_ext(force)` is the link force minus the external wrenches on the frames.
    """

    equation: str
    results: Callable[[Operators, Callable[[Expression], Expression], tuple], Results]
    vectors: tuple[str, ...] = ()
    at_rest: bool = False
    columns: str = ""
    movable_inertia: bool | None = True
    as_written: bool = False  # lowered without rewriting: an algorithm of a paper
    added: bool = False  # D + X in place of D; the diagonal X (nv,) is an input: `equations.py`

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> Equation:
        """The equation for one robot."""
        s = Operators(with_rotors(model) if self.added else model)

        def subtract_f_ext(force: Expression) -> Expression:
            return force - s.B(*frames, axes=axes) @ vector("f_ext", "frame") if frames else force

        return Equation(
            self.results(s, subtract_f_ext, (frames, axes)),
            model,
            at_rest=self.at_rest,
            input_order=(*self.vectors, "f_ext"),
            equation=self.equation,
            forms=("as written",) if self.as_written else FORMS,
            movable_inertia=self.movable_inertia,
            columns=self.columns,
            by_link=True,
            added=self.added,
        )


def _forward_dynamics(s: Operators, subtract_f_ext, _) -> Results:
    return {"a": s.mass.inv @ (tau - s.H @ s.phi @ subtract_f_ext(s.M @ s.phi.T @ s.a + s.b))}


def innovation_operator(s: Operators) -> Expression:
    """W = I - H psi K = (I + H phi K)^-1."""
    return s.I - s.H @ s.psi @ s.K


def _fd1(s: Operators, subtract_f_ext, _) -> Results:
    """S0 (4.17)-(4.22)."""
    W, torque = (
        innovation_operator(s),
        tau - s.H @ s.phi @ subtract_f_ext(s.M @ s.phi.T @ s.a + s.b),
    )
    z, epsilon = s.psi @ s.K @ torque, W @ torque
    nu = s.D.inv @ epsilon
    own = {"T": torque, "z": z, "epsilon": epsilon, "nu": nu, "lam": s.psi.T @ s.H.T @ nu}
    return {"a": W.T @ s.D.inv @ W @ torque, **own}


def _fd2(s: Operators, subtract_f_ext, target) -> Results:
    """S0 (5.5)-(5.7)."""
    found = _fd1(s, subtract_f_ext, target)
    zeta = s.phi.T @ s.a
    return {**found, "zeta": zeta, "link_accelerations": found["lam"] + zeta}


def _fd3(s: Operators, subtract_f_ext, _) -> Results:
    """S0 (5.8)-(5.10)."""
    zeta = s.phi.T @ s.a
    z = s.psi @ (s.K @ tau + subtract_f_ext(s.M @ zeta + s.b))
    epsilon = tau - s.H @ z
    nu = s.D.inv @ epsilon
    own = {"zeta": zeta, "z": z, "epsilon": epsilon, "nu": nu, "lam": s.psi.T @ s.H.T @ nu}
    return {"a": innovation_operator(s).T @ nu, **own}


def _fd4(s: Operators, subtract_f_ext, _) -> Results:
    """S0 (5.13)-(5.17). The recursion runs on z + P a and nu - G* a."""
    inner = s.psi @ (s.K @ tau + subtract_f_ext(s.P @ s.a + s.b))
    nu = s.D.inv @ (tau - s.H @ inner)
    alpha = s.psi.T @ (s.H.T @ nu + s.a)
    z = inner - s.P @ s.a  # (5.16)
    epsilon = tau - s.H @ z
    own = {"z": z, "epsilon": epsilon, "nu": s.D.inv @ epsilon, "link_accelerations": alpha}
    return {"a": nu - s.K.T @ alpha, **own}


def kalman_smoother(s: Operators, y: Expression, xi: Expression, eta: Expression) -> Results:
    """The Kalman filter tip to base and its smoother base to tip: S2 (8.2)-(8.13).

    y are the outputs, xi the inputs, eta the coinputs.
    """
    # (8.2), (8.3), (8.7) in one recursion
    z_minus = s.psi @ (s.K @ y + s.E_phi @ s.P_plus @ eta + xi)
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


def _kalman(s: Operators, subtract_f_ext, _) -> Results:
    """S2 Result 8.1, with the biases eta (5.6) and xi (4.4).

    Derivatives are in body axes; xi contains gravity and external wrenches.
    """
    eta, xi = s.a_local, subtract_f_ext(s.b_local)
    smoothed = kalman_smoother(s, tau, xi, eta)
    a = smoothed["residuals"] - s.K.T @ smoothed["lambda_minus"] - s.G.T @ eta  # (8.12)
    forces = smoothed["z_minus"] + s.P @ smoothed["lambda_minus"]  # (8.1)
    return {"a": a, **smoothed, "forces": forces, "eta": eta, "xi": xi}


def _kalman_gains(s: Operators, *_) -> Results:
    """Covariances and gains of the filter, S2 (8.4), (8.9) and (8.5), applied to columns."""
    X = vector("X", "link")
    return {"P_minus": s.P @ X, "P_plus": s.P_plus @ X, "gains": s.G @ x}


def _inverse_dynamics(s: Operators, subtract_f_ext, _) -> Results:
    return {
        "tau": s.H @ s.phi @ subtract_f_ext(s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b) + s.rotor @ a
    }


def _bias(s: Operators, subtract_f_ext, _) -> Results:
    return {"tau": s.H @ s.phi @ subtract_f_ext(s.M @ s.phi.T @ s.a + s.b)}


def _mass_half_rate_solve(s: Operators, *_) -> Results:
    """a with m* a - (dm/dt)* x = y, M = m m*: for e = -x and de/dt = a, d(m* e)/dt = y."""
    m = s.mass_half
    return {"a": m.inv.T @ (vector("y") + m.T.dot() @ x)}


def _factors(s: Operators, *_) -> Results:
    return {"L": s.I + s.H @ s.phi @ s.K, "D": s.D}


def _factor_product(s: Operators, *_) -> Results:
    return {"y": (s.I + s.H @ s.phi @ s.K) @ x, "d": s.D @ x}


def _operational_compliance(s: Operators, _, target) -> Results:
    frames, axes = target
    J = s.J(*frames, axes=axes)
    return {"X": J @ s.mass.inv @ J.T}


def _link_accelerations(s: Operators, *_) -> Results:
    return {"alpha": s.phi.T @ (s.H.T @ a + s.a)}


def _joint_forces(s: Operators, subtract_f_ext, _) -> Results:
    return {"f": s.phi @ subtract_f_ext(s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b)}


def _joint_torques(s: Operators, subtract_f_ext, _) -> Results:
    alpha = s.phi.T @ (s.H.T @ a + s.a)
    return {"tau": s.H @ s.phi @ subtract_f_ext(s.M @ alpha + s.b)}


def _jacobian(s: Operators, _, target) -> Results:
    frames, axes = target
    return {"J": s.J(*frames, axes=axes)}


def _wrench_torques(s: Operators, _, target) -> Results:
    """J* f_ext: the joint torques of wrenches on frames."""
    frames, axes = target
    return {"tau": s.H @ s.phi @ s.B(*frames, axes=axes) @ vector("f_ext", "frame")}


def _wrench_acceleration(s: Operators, _, target) -> Results:
    """M^-1 J* f_ext: how wrenches on frames change the acceleration."""
    frames, axes = target
    return {"a": s.mass.inv @ s.J(*frames, axes=axes).T @ vector("f_ext", "frame")}


def _half_wrench_response(s: Operators, _, target) -> Results:
    """y = m^-1 J* f_ext, so that J M^-1 J* is the product of two such y."""
    frames, axes = target
    return {"y": s.mass_half.inv @ s.J(*frames, axes=axes).T @ vector("f_ext", "frame")}


def _half_torque_response(s: Operators, *_) -> Results:
    return {"y": s.mass_half.inv @ tau}


def _half_response(s: Operators, *_) -> Results:
    return {"a": s.mass_half.inv.T @ vector("y")}


def _momentum_matrix(s: Operators, E: Expression) -> Expression:
    """The momentum of the bodies per joint velocity, about the point of E; without rotors."""
    return E @ s.phi @ s.M @ s.phi.T @ s.H.T


def _frame_acceleration(s: Operators, _, target) -> Results:
    frames, axes = target
    J = s.J(*frames, axes=axes)
    return {"A": J @ a + J.dot() @ v}


def _frame_motion(s: Operators, _, target) -> Results:
    """V and A - [0; g] in frame axes. A is the derivative of the components of V."""
    frames, _ = target
    B, J = s.B(*frames, axes="frame"), s.J(*frames, axes="frame")
    return {"V": J @ v, "A": J @ a + J.dot() @ v - B.T @ s.g}


def _frame_velocity(s: Operators, _, target) -> Results:
    frames, axes = target
    return {"V": s.J(*frames, axes=axes) @ v}


def _center_of_mass(tree: Tree, frames: tuple[str, ...]) -> Program:
    """c from the locked inertia E_0 phi M phi* E_0* = [[I, m c~], [-m c~, m]]."""

    def read(R: dict[tuple[str, int], Any]) -> dict[str, list]:
        entry = lambda i, j: R.get(("R", 6 * i + j), 0.0)  # noqa: E731
        total = Rigid(entry(3, 3), [entry(2, 4), entry(0, 5), entry(1, 3)], [])
        return {"c": world_body.center_of_mass(total)}

    return quantity_program("locked_inertia", tree).map_outputs((Argument("c", (3,)),), read)


def _frame_pose(tree: Tree, frames: tuple[str, ...]) -> Program:
    """T = [R, p; 0, 1], from the entries of E_0 phi B."""
    frame, outputs = tree.model.frame(frames[0]), (Argument("T", (4, 4)),)
    if frame.body == WORLD:  # B has no column for it
        T, inputs = frame.pose.matrix.ravel().tolist(), (tree_programs.q_argument(tree.model),)
        return Program(
            "frame_pose",
            inputs,
            outputs,
            (),
            finish=lambda body: body.write("T", 0, T),
            bodies=(),
            can_loop=False,
        )

    def read(entries: dict[tuple[str, int], Any]) -> dict[str, list]:
        R, p = pose_from_entries(lambda name, i: entries[name, i], 0, 1)
        rows = [x for row, y in zip(R, p, strict=True) for x in (*row, y)]
        return {"T": [*rows, 0.0, 0.0, 0.0, 1.0]}

    return quantity_program("frame_transforms", tree, frames).map_outputs(outputs, read)


def _frame_imu(tree: Tree, frames: tuple[str, ...]) -> Program:
    """y = [w; v' + w x v - g] from V = [w; v] and its derivative, in frame axes."""
    model, outputs = tree.model, (Argument("y", (6,)),)
    frame, moving = model.frame(frames[0]), quantity_program("frame_motion", tree, frames)
    if frame.body == WORLD:  # B has no column for it
        R = frame.pose.rotation.tolist()

        def at_rest(body: BodyView) -> None:
            body.write("y", 0, imu_signal([0.0] * 6, [0.0] * 3 + _minus_gravity(R, tree.gravity)))

        return Program(
            "frame_imu", moving.inputs, outputs, (), finish=at_rest, bodies=(), can_loop=False
        )

    def read(entries: dict[tuple[str, int], Any]) -> dict[str, list]:
        V, A = ([entries.get((name, i), 0.0) for i in range(6)] for name in "VA")
        return {"y": imu_signal(V, A)}

    return moving.map_outputs(outputs, read)


def imu_signal(V: Sequence[AnyScalar], A: Sequence[AnyScalar]) -> list[AnyScalar]:
    """[w; f] of an ideal inertial measurement unit: rate and specific force.

    V = [w; v] is its velocity in its own axes, A the derivative of these numbers less [0; g].
    """
    w = list(V[:3])
    return [*w, *add(list(A[3:]), cross(w, list(V[3:])))]


def _minus_gravity(R: list, gravity: Sequence[AnyScalar]) -> list:
    """-R* g."""
    return [-dot(column, list(gravity)) for column in zip(*R, strict=True)]


def quantity_program(
    name: str, tree: Tree, frames: tuple[str, ...] = (), axes: str = "world"
) -> Program:
    """The program of a quantity for the link axes of a tree."""
    return program(ALL_QUANTITIES[name].of(tree.model, frames, axes), tree)


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
        "C v = bias - gravity, dM/dt - 2 C skew-symmetric",
        lambda s, *_: {"C": s.coriolis},
        columns="coriolis_product",
        movable_inertia=None,
    ),
    "coriolis_product": Quantity(
        "C(q, v) x", lambda s, *_: {"y": s.coriolis @ x}, movable_inertia=None
    ),
    "link_accelerations": Quantity(
        "alpha = phi* (H* dv/dt + a)", _link_accelerations, ("a",), movable_inertia=None
    ),
    "joint_forces": Quantity("f = phi (M alpha + b)", _joint_forces, ("a",), movable_inertia=None),
    "joint_torques": Quantity(
        "H f = M a + C v + g - J* f_ext, without rotors",
        _joint_torques,
        ("a",),
        movable_inertia=None,
    ),
    "frame_acceleration": Quantity(
        "J a + dJ/dt v", _frame_acceleration, ("v", "a"), movable_inertia=None
    ),
    "frame_pose": TreeSum("T(q): world <- frame", _frame_pose, source="frame_transforms"),
    "frame_imu": TreeSum(
        "y = [w; v' + w x v - g] in frame axes",
        _frame_imu,
        on_spanning_tree=False,
        source="frame_motion",
    ),
    "frame_velocity": Quantity("V = B* phi* H* v", _frame_velocity),
    "operational_compliance": Quantity(
        "J M^-1 J* = B* psi* H* D^-1 H psi B", _operational_compliance
    ),
    "jacobian": Quantity("J = B* phi* H*", _jacobian),
    "energy": Quantity(
        "v* M v / 2 - sum m g.c",
        lambda s, *_: {"E": v.T @ s.mass @ v / 2 + s.U},
        ("v",),
        movable_inertia=None,
    ),
    "kinetic_energy": Quantity("v* M v / 2", lambda s, *_: {"E": v.T @ s.mass @ v / 2}, ("v",)),
    "momentum": Quantity(
        "h = E_0 phi M phi* H* v",
        lambda s, *_: {"h": _momentum_matrix(s, s.E_0) @ v},
        ("v",),
        movable_inertia=None,
    ),
    "centroidal_momentum": Quantity(
        "h = E_c phi M phi* H* v",
        lambda s, *_: {"h": _momentum_matrix(s, s.E_c) @ v},
        ("v",),
        movable_inertia=None,
    ),
    "centroidal_momentum_matrix": Quantity(
        "A = E_c phi M phi* H*",
        lambda s, *_: {"A": _momentum_matrix(s, s.E_c)},
        columns="centroidal_momentum",
        movable_inertia=None,
    ),
    "potential_energy": Quantity("- sum m g.c", lambda s, *_: {"E": s.U}, movable_inertia=None),
    "center_of_mass": TreeSum("c = sum m p / sum m", _center_of_mass, source="locked_inertia"),
}

METHODS: dict[str, Quantity] = {  # forward dynamics as written in the papers, for `method=`
    "FD1": Quantity(
        "T' = T - C v - g; a = W* D^-1 W T'", _fd1, ("tau",), movable_inertia=None, as_written=True
    ),
    "FD2": Quantity(
        "FD1, and alpha = psi* H* D^-1 W T' + phi* a",
        _fd2,
        ("tau",),
        movable_inertia=None,
        as_written=True,
    ),
    "FD3": Quantity(
        "a = W* D^-1 (T - H psi (K T + M phi* a + b))",
        _fd3,
        ("tau",),
        movable_inertia=None,
        as_written=True,
    ),
    "FD4": Quantity(
        "nu = D^-1 (T - H psi (K T + P a + b)); a = nu - K* psi* (H* nu + a)",
        _fd4,
        ("tau",),
        movable_inertia=None,
        as_written=True,
    ),
    "kalman": Quantity(
        "S2 (8.2)-(8.13): Kalman filter tip to base, smoother base to tip",
        _kalman,
        ("tau",),
        movable_inertia=None,
        as_written=True,
    ),
}


def _accelerations_only(row: Quantity) -> Quantity:
    """The same algorithm, with the joint accelerations as its only result."""
    return replace(row, results=lambda *arguments: {"a": row.results(*arguments)["a"]})


# {method: its quantity without other results}
BY_METHOD: dict[str, str] = {name: f"forward_dynamics by {name}" for name in METHODS}
# quantities that other functions use
INTERNAL_QUANTITIES: dict[str, Quantity | TreeSum | OperationalInertia] = {
    "added_inertia_dynamics": Quantity(
        "a = (M + X)^-1 (tau - C v - g), X diagonal", _forward_dynamics, ("tau",), added=True
    ),
    "added_inertia_compliance": Quantity(
        "J (M + X)^-1 J*, X diagonal", _operational_compliance, added=True
    ),
    "wrench_acceleration": Quantity("M^-1 J* f_ext", _wrench_acceleration),
    "added_inertia_wrench_acceleration": Quantity(
        "(M + X)^-1 J* f_ext, X diagonal", _wrench_acceleration, added=True
    ),
    "half_wrench_response": Quantity("m^-1 J* f_ext, M = m m*", _half_wrench_response),
    "added_inertia_half_wrench_response": Quantity(
        "m^-1 J* f_ext, M + X = m m*, X diagonal", _half_wrench_response, added=True
    ),
    "half_torque_response": Quantity("m^-1 tau, M = m m*", _half_torque_response),
    "added_inertia_half_torque_response": Quantity(
        "m^-1 tau, M + X = m m*, X diagonal", _half_torque_response, added=True
    ),
    "half_response": Quantity("m^-* y, M = m m*", _half_response),
    "added_inertia_half_response": Quantity(
        "m^-* y, M + X = m m*, X diagonal", _half_response, added=True
    ),
    "mass_half_product": Quantity(
        "y = m* x, M = m m*", lambda s, *_: {"y": s.mass_half.T @ x}, ("x",)
    ),
    "mass_half_rate_solve": Quantity(
        "a = m^-* (y + (dm/dt)* x), M = m m*",
        _mass_half_rate_solve,
        ("v", "x", "y"),
        movable_inertia=None,
    ),
    "link_poses": TreeSum("R(q), p(q) of every link: world <- link", tree_programs.link_poses),
    "frame_transforms": Quantity(
        "E_0 phi B: [R p~R; 0 R] of frames",
        lambda s, _, target: frame_poses(s, target[0]),
        movable_inertia=None,
        as_written=True,
    ),
    "frame_motion": Quantity(
        "J v, J a + dJ/dt v - B* g, in frame axes",
        _frame_motion,
        ("v", "a"),
        movable_inertia=None,
        as_written=True,
    ),
    "frame_velocities": Quantity("V = B* phi* H* v, of several frames", _frame_velocity),
    "locked_inertia": Quantity(
        "E_0 phi M phi* E_0*",
        lambda s, *_: {"R": s.E_0 @ s.phi @ s.M @ s.phi.T @ s.E_0.T},
        movable_inertia=None,
        as_written=True,
    ),
    "wrench_torques": Quantity("J* f_ext = H phi B f_ext", _wrench_torques),
    "regressor": TreeSum("tau = Y pi", tree_programs.regressor, on_spanning_tree=False),
    "regressor_blocks": TreeSum(
        "blocks of Y in tau = Y pi that can be nonzero",
        tree_programs.regressor_blocks,
        on_spanning_tree=False,
    ),
    "mass_pivots": TreeSum(
        "d of D(k) = L diag(d) L*; det M is the product of all d",
        tree_programs.mass_pivots,
        on_spanning_tree=False,
    ),
    "frame_jacobians": Quantity("J = B* phi* H*, of several frames", _jacobian),
    "operational_space_inertia": OperationalInertia(quantity_program),
    "kalman_gains": Quantity(
        "P X, P+ X, G x", _kalman_gains, ("X", "x"), movable_inertia=None, as_written=True
    ),
    **{BY_METHOD[name]: _accelerations_only(row) for name, row in METHODS.items()},
}
ALL_QUANTITIES: dict[str, Quantity | TreeSum | OperationalInertia | QuasiQuantity] = {
    **CATALOGUE,
    **METHODS,
    **INTERNAL_QUANTITIES,
    **QUASI_QUANTITIES,
}


def quantity_function(
    model: Model, request: QuantityRequest, lanes: int | None = None, kind: type[F] = Function
) -> F:
    """The compiled function of a quantity."""
    equation = ALL_QUANTITIES[request.name].of(model, request.frames, request.axes)
    return kind(request, equation, HOST if lanes is None else CpuTarget(lanes))
