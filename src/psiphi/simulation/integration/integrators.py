"""Fixed-step integrators on the configuration manifold.

A method is a sequence of evaluations of the dynamics, with rules between them:

    euler     v1 = v + h a(t, q, v),  q1 = q exp(h v1): semi-implicit, order 1
    moreau    euler with the impulses of contacts in v1 (Moreau and Jean). Free bodies move along
              straight lines: their momentum is exact. Order 1
    rk4       the four classical stages on dq/dt = rate(q, v), dv/dt = a; order 4. Quaternions are
              scaled to unit length after the step. The flow of dp/dt = p (w, 0) / 2 preserves |p|,
              and the dynamics depend on p / |p| only, so the order holds for quaternions too
    implicit  Heun's two stages: v1 = v + h/2 (a1 + a2),  q1 = q exp(h/2 (v + v1)); order 2. All
              losses and springs are implicit
    midpoint  v1 = v + h a,  q1 = q exp(h/2 (v + v1)),  a at (q exp(h/4 (v + v1)), (v + v1) / 2);
              order 2. One Newton step with the slopes of losses and springs solves the equation: it
              is exact for linear ones and preserves their energy
    lie       four stages on the group, without commutators (Celledoni, Marthinsen and Owren 2003);
              order 4. With F = (v, a) of each stage:
              q2 = q exp(h/2 F1),  q3 = q exp(h/2 F2),  q4 = q2 exp(h F3 - h/2 F1),
              q1 = q exp(h/12 (3 F1 + 2 F2 + 2 F3 - F4)) exp(h/12 (-F1 + 2 F2 + 2 F3 + 3 F4))

If q is a vector space, rk4 and lie are the same method.

Stiff losses f(v) = B v (`forces/damping_and_friction.py`) and stiff springs s(q) of slope S
(`forces/joint_springs.py`) are implicit, without further evaluations of the dynamics. The methods
become linearly implicit (Rosenbrock-Wanner) with W = [0 1; -M^-1 S  -M^-1 B] on (q, v). Stage i has
the velocity u_i and solves

    (M + gamma h X) a_i = tau - C v_i - g - f(v_i) - s(q_i) - gamma h S v_i
                          - sum_{j<i} gamma_ij h (S u_j + X a_j)
    u_i = v_i + h sum_{j<=i} gamma_ij a_j   if the spring is implicit, else v_i
    X = B + gamma h S

This is forward dynamics with D + gamma h B + gamma^2 h^2 S in place of the rotor inertias D. B and
S are evaluated at the start of the step. They may be any matrices, the order does not depend on
them (W-methods, Steihaug and Wolfbrandt 1979). With b_i, alpha_ij, c_i of the method and
gamma_i = sum_{j<=i} gamma_ij, the conditions are

    order 2    sum b_i gamma_i = 0
    order 3    sum b_i alpha_ij gamma_j = sum b_i gamma_ij c_j = sum b_i gamma_ij gamma_j = 0,
               and sum b_i c_i gamma_i = 0, because each stage has its own M

gamma is 1 for euler, 1/2 for midpoint, 1 - sqrt(1/2) for implicit. The methods with four stages
have gamma = 1/4 and the coefficients below; one step of v' = -B v then multiplies v by a factor
between 0 and 1 (0 for infinite B), and no stage is faster than the start of the step. An
oscillation of a spring never grows (Hairer and Wanner 1996, table 6.4). The midpoint rule preserves
its amplitude; the other methods damp oscillations that are faster than the step.

A rule reads values by name and returns values by name: Q, V are the state at the start of the step;
q, v that of the stage, u its joint velocity, a its acceleration; h is the step. `advance` runs the
rules on arrays, a kernel traces them (`compiled_rollout/step_blocks.py`). A rule must not return an
input under another name if it also changes that input: on a tape, the store may precede the load.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold
from psiphi.simulation.control.control_law import LawRule, Values, rule_places
from psiphi.simulation.forces.damping_and_friction import loss_coefficient
from psiphi.simulation.forces.embedded_loop_forces import LOOP_SWITCHES, slope_bound
from psiphi.simulation.forces.spring_law import spring_slope
from psiphi.simulation.integration.state_derivative import State, StateDerivative


def advance_velocity(m: Manifold, V, a, h) -> Values:
    v = V + h * a
    return {"V": v, "v": v}


def advance_configuration(m: Manifold, Q, u, h) -> Values:
    q = m.unit(m.exp(Q, h * u))
    return {"Q": q, "q": q}


def straight_configuration(m: Manifold, Q, u, h) -> Values:
    q, v = m.unit(m.straight(Q, h * u)), m.transport(u, h * u)
    return {"Q": q, "V": v, "q": q, "v": v}


def rk4_stage_1(m: Manifold, q, u, a) -> Values:
    return {"K": m.rate(q, u), "A": a}


def rk4_stage_2(m: Manifold, Q, V, K, A, h) -> Values:
    return {"q": Q + 0.5 * h * K, "v": V + 0.5 * h * A}


def rk4_stage_3(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    k = m.rate(q, u)
    return {"K": K + 2.0 * k, "A": A + 2.0 * a, "q": Q + 0.5 * h * k, "v": V + 0.5 * h * a}


def rk4_stage_4(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    k = m.rate(q, u)
    return {"K": K + 2.0 * k, "A": A + 2.0 * a, "q": Q + h * k, "v": V + h * a}


def rk4_step(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    sixth = h * (1.0 / 6.0)
    q1, v1 = m.unit(Q + sixth * (K + m.rate(q, u))), V + sixth * (A + a)
    return {"Q": q1, "V": v1, "q": q1, "v": v1}


def first_stage(m: Manifold, u, a) -> Values:
    """W and A: the velocity and acceleration of stage 1."""
    return {"W": u, "A": a}


def lie_stage_2(m: Manifold, Q, V, W, A, h) -> Values:
    """P is the configuration of stage 2."""
    q = m.exp(Q, 0.5 * h * W)
    return {"q": q, "P": q, "v": V + 0.5 * h * A}


def store_velocity(m: Manifold, u) -> Values:
    """U is the sum of the velocities of stages 2 and 3."""
    return {"U": u}


def lie_stage_3(m: Manifold, Q, V, A, u, a, h) -> Values:
    return {"A": A + 2.0 * a, "q": m.exp(Q, 0.5 * h * u), "v": V + 0.5 * h * a}


def lie_stage_4(m: Manifold, P, V, W, A, U, u, a, h) -> Values:
    return {"U": U + u, "A": A + 2.0 * a, "q": m.exp(P, h * u - 0.5 * h * W), "v": V + h * a}


def lie_step(m: Manifold, Q, V, W, A, U, u, a, h) -> Values:
    twelfth = h * (1.0 / 12.0)
    early, late = twelfth * (3.0 * W + 2.0 * U - u), twelfth * (2.0 * U - W + 3.0 * u)
    q1, v1 = m.unit(m.exp(m.exp(Q, early), late)), V + h * (1.0 / 6.0) * (A + a)
    return {"Q": q1, "V": v1, "q": q1, "v": v1}


def heun_predictor(m: Manifold, Q, V, W, A, h) -> Values:
    return {"q": m.exp(Q, h * W), "v": V + h * A}


def heun_corrector(m: Manifold, V, A, a, h) -> Values:
    v = V + 0.5 * h * (A + a)
    return {"V": v, "v": v}


def heun_configuration(m: Manifold, Q, W, u, h) -> Values:
    q = m.unit(m.exp(Q, 0.5 * h * (W + u)))
    return {"Q": q, "q": q}


def midpoint_velocity(m: Manifold, V, a, h) -> Values:
    return {"v": V + 0.5 * h * a}


def midpoint_configuration(m: Manifold, Q, u, h) -> Values:
    return {"q": m.exp(Q, 0.5 * h * u)}


def heun_configuration_with_springs(m: Manifold, Q, W, U, u, implicit_springs, h) -> Values:
    """Heun's q: the mean of the stage velocities if the spring is implicit, else of v and v1."""
    q = m.unit(m.exp(Q, 0.5 * h * (W + u + implicit_springs * (U - u))))
    return {"Q": q, "q": q}


# A number j is an evaluation of the dynamics, j half steps after the start; "u" is u(v) only.
# fmt: off
METHODS: dict[str, tuple[LawRule | int | str, ...]] = {
    "euler": (0, advance_velocity, "u", advance_configuration),
    "implicit": (0, first_stage, heun_predictor, 2, heun_corrector, "u", heun_configuration),
    "midpoint": (0, midpoint_velocity, "u", midpoint_configuration,
                 1, midpoint_velocity, "u", advance_configuration, advance_velocity),
    "rk4": (0, rk4_stage_1, rk4_stage_2, 1, rk4_stage_3, 1, rk4_stage_4, 2, rk4_step),
    "lie": (0, first_stage, lie_stage_2, 1, store_velocity, lie_stage_3, 1, lie_stage_4,
            2, lie_step),
}
METHODS_WITH_SPRINGS = METHODS | {  # if springs are implicit
    "implicit": (0, first_stage, heun_predictor, 2, store_velocity, heun_corrector, "u",
                 heun_configuration_with_springs),
}
# fmt: on
CONTACTS = "contacts"  # dynamics with contacts: v after the step
CONTACT_METHOD = "moreau"  # with contacts=; a kernel only
CONTACT_STEP: tuple[LawRule | int | str, ...] = (0, CONTACTS, "u", straight_configuration)


def jacobian_product(m: Manifold, X, a) -> Values:
    """R = h (S u + X a) of a stage, for the later stages; X has the factor h."""
    return {"R": X * a}


def jacobian_product_with_springs(
    m: Manifold, u, a, previous_stage, implicit_springs, spring_gain, E, X
) -> Values:
    """R and u of a stage with implicit springs: E = h S, spring_gain = gamma h,
    previous_stage = h sum_{j<i} gamma_ij a_j."""
    u = u + implicit_springs * previous_stage + spring_gain * a
    return {"u": u, "R": E * u + X * a}


def heun_stage_force(m: Manifold, R) -> Values:
    return {"stage_force": G_HEUN * R}


def heun_previous_stage(m: Manifold, a, h) -> Values:
    return {"previous_stage": G_HEUN * h * a}


def stage_force_2(m: Manifold, R) -> Values:
    """Y, Z: the sums of gamma_ij R_j for stages 3 and 4."""
    return {"stage_force": G21 * R, "Y": G31 * R, "Z": G41 * R}


def stage_force_3(m: Manifold, R, Y, Z) -> Values:
    return {"stage_force": Y + G32 * R, "Z": Z + G42 * R}


def stage_force_4(m: Manifold, Z) -> Values:
    """gamma_43 = 0."""
    return {"stage_force": 1.0 * Z}


def previous_stages_2(m: Manifold, a, h) -> Values:
    """L, N: the sums of gamma_ij h a_j for stages 3 and 4."""
    return {"previous_stage": G21 * h * a, "L": G31 * h * a, "N": G41 * h * a}


def previous_stages_3(m: Manifold, a, h, L, N) -> Values:
    return {"previous_stage": L + G32 * h * a, "N": N + G42 * h * a}


def previous_stages_4(m: Manifold, N) -> Values:
    return {"previous_stage": 1.0 * N}


def newton_force(m: Manifold, added, a) -> Values:
    """Newton step of midpoint: (M + gamma h X) a2 = (forces at the midpoint) + gamma h X a1."""
    return {"stage_force": -added * a}


def newton_force_with_springs(m: Manifold, added, a, V, F, h) -> Values:
    """The Newton step with springs; cancels the gamma h S v of `implicit_force`."""
    return {"stage_force": -added * a - F * (V + 0.5 * h * a)}


GAMMA = {
    "euler": 1.0,
    "moreau": 1.0,
    "implicit": 1.0 - math.sqrt(0.5),
    "midpoint": 0.5,
    "rk4": 0.25,
    "lie": 0.25,
}
G_HEUN = -2.0 * GAMMA["implicit"]
G21, G31, G41, G32, G42 = -0.25, 0.21875, 0.0625, -0.71875, -0.0625  # gamma_ij of four stages
ORDER = {
    "euler": 1,
    "moreau": 1,
    "implicit": 2,
    "midpoint": 2,
    "rk4": 3,
    "lie": 3,
}  # with implicit losses

StepRules = tuple[tuple[LawRule, ...], ...]  # the rules after each evaluation
_FOUR: StepRules = (
    (jacobian_product, stage_force_2),
    (jacobian_product, stage_force_3),
    (stage_force_4,),
)
IMPLICIT_RULES: dict[str, StepRules] = {
    "euler": (),
    "moreau": (),
    "implicit": ((jacobian_product, heun_stage_force),),
    "midpoint": ((newton_force,),),
    "rk4": _FOUR,
    "lie": _FOUR,
}
_FOUR_WITH_SPRINGS: StepRules = (
    (jacobian_product_with_springs, stage_force_2, previous_stages_2),
    (jacobian_product_with_springs, stage_force_3, previous_stages_3),
    (jacobian_product_with_springs, stage_force_4, previous_stages_4),
    (jacobian_product_with_springs,),
)
IMPLICIT_RULES_WITH_SPRINGS: dict[str, StepRules] = {
    "euler": (),
    "moreau": (),
    "implicit": (
        (jacobian_product_with_springs, heun_stage_force, heun_previous_stage),
        (jacobian_product_with_springs,),
    ),
    "midpoint": ((newton_force_with_springs,),),
    "rk4": _FOUR_WITH_SPRINGS,
    "lie": _FOUR_WITH_SPRINGS,
}


def implicit_terms(
    gamma: float,
    m: Manifold,
    h: np.ndarray | float,
    implicit_losses: np.ndarray | None = None,
    implicit_springs: np.ndarray | None = None,
    **values: np.ndarray,
) -> Values:
    """The values that implicit stages read: X and E = h S at the start of the step, both with the
    factor h, and what they add to D. `values` are v, q and the numbers of the forces that act."""
    losses = {name: values[name] for name in ("damping", "friction", "floor") if name in values}
    loops = {name: values[name] for name in ("loop_damping", "loop_friction") if name in values}
    X: Any = 0.0
    if implicit_losses is not None:
        X = h * implicit_losses * loss_coefficient(values["v"], **losses)
        if loops:
            floor = values.get("floor")
            bound = slope_bound(m, values["q"], values["v"], **loops, floor=floor)
            X = X + h * implicit_losses * bound
    if implicit_springs is None:
        return {"X": X, "added": gamma * X, "stage_force": 0.0 * X}
    others = ("v", "q", *LOOP_SWITCHES, *losses)
    springs = {name: x for name, x in values.items() if name not in others}
    E: Any = h * implicit_springs * spring_slope(m.positions(values["q"]), **springs)
    if "loop_springs" in values:
        bound = slope_bound(m, values["q"], values["v"], loop_springs=values["loop_springs"])
        E = E + h * implicit_springs * bound
    spring_gain, X = gamma * h * implicit_springs, X + gamma * h * E
    zero = 0.0 * E
    return {
        "X": X,
        "E": E,
        "F": gamma * E,
        "spring_gain": spring_gain,
        "previous_stage": zero,
        "added": gamma * X,
        "stage_force": zero,
    }


def implicit_force(
    stage_force: np.ndarray, v: np.ndarray | float = 0.0, F: np.ndarray | None = None
) -> np.ndarray:
    """The force that is subtracted from the torque of a stage: the terms of earlier stages, and
    F v = gamma h S v if springs are implicit."""
    return stage_force if F is None else stage_force + F * v


def step_sequence(
    method: str, implicit: bool, implicit_springs: bool = False
) -> list[LawRule | int | str]:
    """The rules and evaluations of one step, in order."""
    table = IMPLICIT_RULES_WITH_SPRINGS if implicit_springs else IMPLICIT_RULES
    after_evaluation = iter(table[method] if implicit else ())
    out: list[LawRule | int | str] = []
    methods = METHODS_WITH_SPRINGS if implicit_springs else METHODS
    for item in CONTACT_STEP if method == CONTACT_METHOD else methods[method]:
        out.append(item)
        out += next(after_evaluation, ()) if isinstance(item, int) else ()
    return out


def step_rules(
    method: str, implicit: bool = False, implicit_springs: bool = False
) -> list[LawRule]:
    """The rules of a method, without the evaluations."""
    return [item for item in step_sequence(method, implicit, implicit_springs) if callable(item)]


def advance(
    method: str,
    m: Manifold,
    field: StateDerivative,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    h: float,
    first: State,
) -> State:
    """The state after one step, on arrays. field(t, q, v) is (u, a); `first` is its value at the
    start of the step."""
    at: Values = {"Q": q, "V": v, "q": q, "v": v, "h": h}
    losses, is_first = field.losses, True
    implicit, springs = losses.implicit, losses.springs.implicit
    if implicit:
        masks = {} if losses.is_empty else {"implicit_losses": losses.implicit_losses}
        masks |= {"implicit_springs": losses.springs.implicit_springs} if springs else {}
        at |= masks | implicit_terms(GAMMA[method], m, h, v=v, q=q, **masks, **field.active)
        force = implicit_force(at["stage_force"], v, at.get("F"))
        first = first[0], field.implicit_stage(q, v, at["added"], force)
    for item in step_sequence(method, implicit, springs):
        if callable(item):
            at |= item(m, *(at[name] for name in rule_places(item)))
        elif not isinstance(item, int):
            at["u"] = field.plant.velocity(at["q"], at["v"])
        elif is_first:
            (at["u"], at["a"]), is_first = first, False
        else:
            more = ()
            if implicit:
                more = at["added"], implicit_force(at["stage_force"], at["v"], at.get("F"))
            at["u"], at["a"] = field(t + item * (0.5 * h), at["q"], at["v"], *more)
    return at["q"], at["v"]
