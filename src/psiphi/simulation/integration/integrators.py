"""Fixed steps on the configuration manifold: a method is what happens between evaluations of the dynamics.

    euler   v1 = v + h a(t, q, v);  q1 = q exp(h v1)                                semi-implicit, order 1
    rk4     the classical four stages on dq/dt = rate(q, v), dv/dt = a;  quaternions scaled to unit length after the step.
            The flow of dp/dt = p (w, 0) / 2 keeps |p|, and dynamics depend on p / |p| only, so the order is 4 there too
    implicit   Heun's two stages, v1 = v + h/2 (a1 + a2),  q1 = q exp(h/2 (v + v1)),  every loss and spring implicit: order 2
    midpoint   v1 = v + h a,  q1 = q exp(h/2 (v + v1)),  a at the middle (q exp(h/4 (v + v1)), (v + v1) / 2): order 2. A step of
            Newton, with the slopes of losses and springs alone, finds it: exact for linear ones, whose energy it keeps
    lie     four stages without commutators on the group itself (Celledoni, Marthinsen and Owren 2003, order 4): with
            F = (v, a) of each stage,  q2 = q exp(h/2 F1),  q3 = q exp(h/2 F2),  q4 = q2 exp(h F3 - h/2 F1),
            q1 = q exp(h/12 (3 F1 + 2 F2 + 2 F3 - F4)) exp(h/12 (-F1 + 2 F2 + 2 F3 + 3 F4))

Losses f(v) = B v that are stiff (`simulation/forces/damping_and_friction.py`) and springs s(q) of slope S that are firm (`simulation/forces/joint_springs.py`) are
taken implicitly, without further evaluations: the methods become linearly implicit ones (Rosenbrock and Wanner) with
W = [0 1; -M^-1 S  -M^-1 B] of (q, v). Stage i has the velocity u_i and solves

    (M + gamma h X) a_i = tau - C v_i - g - f(v_i) - s(q_i) - gamma h S v_i - sum_{j<i} gamma_ij h (S u_j + X a_j)
    u_i = v_i + h sum_{j<=i} gamma_ij a_j   where a spring is firm, v_i elsewhere,      X = B + gamma h S

which is forward dynamics with D + gamma h B + gamma^2 h^2 S in place of D, as if the joint had that rotor. B and S are those of
the step's begin: they may be any matrices, the order does not depend on them (Steihaug and Wolfbrandt 1979). With b_i,
alpha_ij, c_i of the method and gamma_i = sum_{j<=i} gamma_ij the conditions are

    order 2    sum b_i gamma_i = 0
    order 3    sum b_i alpha_ij gamma_j = sum b_i gamma_ij c_j = sum b_i gamma_ij gamma_j = 0, and sum b_i c_i gamma_i = 0,
               since M is that of each stage

Euler: gamma = 1. Midpoint: 1/2. Heun: gamma = 1 - sqrt(1/2). Four stages: gamma = 1/4 and the numbers below; the factor of a
step of v' = -B v then lies between 0 and 1, 0 where B is infinite, and no stage is faster than the step's begin. The swing of
a spring never grows (Hairer and Wanner 1996, table 6.4); the midpoint rule alone keeps it, all others damp what is faster than
the step.

Where q is a vector space, rk4 and lie are one method. A rule reads places by name and answers places: Q, V the state at the
step's begin, q, v that of the stage, u its joint velocity and a its acceleration, h the step. `advance` runs the rules on
arrays, a kernel traces them (`step_blocks.py`). No rule answers a place with another one that it also changes: on a tape, the store
may come before the load.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psiphi.model.manifold import Manifold
from psiphi.simulation.control.control_law import LawRule, Values, reads
from psiphi.simulation.forces.damping_and_friction import slope
from psiphi.simulation.forces.embedded_loop_forces import SWITCHES, steepness
from psiphi.simulation.forces.spring_law import firmness

State = tuple[np.ndarray, np.ndarray]


def faster(m: Manifold, V, a, h) -> Values:
    v = V + h * a
    return {"V": v, "v": v}


def moved(m: Manifold, Q, u, h) -> Values:
    q = m.unit(m.exp(Q, h * u))
    return {"Q": q, "q": q}


def slopes(m: Manifold, q, u, a) -> Values:
    return {"K": m.rate(q, u), "A": a}


def half_way(m: Manifold, Q, V, K, A, h) -> Values:
    return {"q": Q + 0.5 * h * K, "v": V + 0.5 * h * A}


def half_way_again(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    k = m.rate(q, u)
    return {"K": K + 2.0 * k, "A": A + 2.0 * a, "q": Q + 0.5 * h * k, "v": V + 0.5 * h * a}


def all_the_way(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    k = m.rate(q, u)
    return {"K": K + 2.0 * k, "A": A + 2.0 * a, "q": Q + h * k, "v": V + h * a}


def arrived(m: Manifold, Q, V, K, A, q, u, a, h) -> Values:
    sixth = h * (1.0 / 6.0)
    q1, v1 = m.unit(Q + sixth * (K + m.rate(q, u))), V + sixth * (A + a)
    return {"Q": q1, "V": v1, "q": q1, "v": v1}


def turning(m: Manifold, u, a) -> Values:
    """W: the velocity of stage 1."""
    return {"W": u, "A": a}


def half_turn(m: Manifold, Q, V, W, A, h) -> Values:
    """P: the configuration of stage 2."""
    q = m.exp(Q, 0.5 * h * W)
    return {"q": q, "P": q, "v": V + 0.5 * h * A}


def kept(m: Manifold, u) -> Values:
    """U: the sum of the velocities of stages 2 and 3."""
    return {"U": u}


def half_turn_again(m: Manifold, Q, V, A, u, a, h) -> Values:
    return {"A": A + 2.0 * a, "q": m.exp(Q, 0.5 * h * u), "v": V + 0.5 * h * a}


def whole_turn(m: Manifold, P, V, W, A, U, u, a, h) -> Values:
    return {"U": U + u, "A": A + 2.0 * a, "q": m.exp(P, h * u - 0.5 * h * W), "v": V + h * a}


def turned(m: Manifold, Q, V, W, A, U, u, a, h) -> Values:
    twelfth = h * (1.0 / 12.0)
    early, late = twelfth * (3.0 * W + 2.0 * U - u), twelfth * (2.0 * U - W + 3.0 * u)
    q1, v1 = m.unit(m.exp(m.exp(Q, early), late)), V + h * (1.0 / 6.0) * (A + a)
    return {"Q": q1, "V": v1, "q": q1, "v": v1}


def predicted(m: Manifold, Q, V, W, A, h) -> Values:
    return {"q": m.exp(Q, h * W), "v": V + h * A}


def corrected(m: Manifold, V, A, a, h) -> Values:
    v = V + 0.5 * h * (A + a)
    return {"V": v, "v": v}


def moved_between(m: Manifold, Q, W, u, h) -> Values:
    q = m.unit(m.exp(Q, 0.5 * h * (W + u)))
    return {"Q": q, "q": q}


def half_faster(m: Manifold, V, a, h) -> Values:
    return {"v": V + 0.5 * h * a}


def half_moved(m: Manifold, Q, u, h) -> Values:
    return {"q": m.exp(Q, 0.5 * h * u)}


def moved_apart(m: Manifold, Q, W, U, u, firm, h) -> Values:
    """Heun's q where springs are firm: there the velocities of both stages, elsewhere those of the step's ends."""
    q = m.unit(m.exp(Q, 0.5 * h * (W + u + firm * (U - u))))
    return {"Q": q, "q": q}


METHODS: dict[
    str, tuple[LawRule | int | str, ...]
] = {  # a number: the dynamics, at that many half steps; "u": u of v alone
    "euler": (0, faster, "u", moved),
    "implicit": (0, turning, predicted, 2, corrected, "u", moved_between),
    "midpoint": (0, half_faster, "u", half_moved, 1, half_faster, "u", moved, faster),
    "rk4": (0, slopes, half_way, 1, half_way_again, 1, all_the_way, 2, arrived),
    "lie": (0, turning, half_turn, 1, kept, half_turn_again, 1, whole_turn, 2, turned),
}


FIRM = METHODS | {
    "implicit": (0, turning, predicted, 2, kept, corrected, "u", moved_apart)
}  # where springs are implicit


def resisting(m: Manifold, X, a) -> Values:
    """R: what a stage leaves for those behind it, h (S u + X a)."""
    return {"R": X * a}


def springing(m: Manifold, u, a, lag, firm, lead, E, X) -> Values:
    """The same where springs are firm, and the stage's velocity; E = h S, lag = h sum_{j<i} gamma_ij a_j, lead = gamma h."""
    u = u + firm * lag + lead * a
    return {"u": u, "R": E * u + X * a}


def braked(m: Manifold, R) -> Values:
    """Heun."""
    return {"push": G_HEUN * R}


def lagged(m: Manifold, a, h) -> Values:
    return {"lag": G_HEUN * h * a}


def braked_first(m: Manifold, R) -> Values:
    """Four stages."""
    return {"push": G21 * R, "Y": G31 * R, "Z": G41 * R}


def braked_second(m: Manifold, R, Y, Z) -> Values:
    return {"push": Y + G32 * R, "Z": Z + G42 * R}


def braked_third(m: Manifold, Z) -> Values:
    """gamma_43 = 0."""
    return {"push": 1.0 * Z}


def lagged_first(m: Manifold, a, h) -> Values:
    """The same sums of a."""
    return {"lag": G21 * h * a, "L": G31 * h * a, "N": G41 * h * a}


def lagged_second(m: Manifold, a, h, L, N) -> Values:
    return {"lag": L + G32 * h * a, "N": N + G42 * h * a}


def lagged_third(m: Manifold, N) -> Values:
    return {"lag": 1.0 * N}


def renewed(m: Manifold, added, a) -> Values:
    """Midpoint, Newton's step: (M + gamma h X) a2 = (what acts in the middle) + gamma h X a1."""
    return {"push": -added * a}


def renewed_firmly(m: Manifold, added, a, V, F, h) -> Values:
    """The same: what acts in the middle is asked without gamma h S v."""
    return {"push": -added * a - F * (V + 0.5 * h * a)}


GAMMA = {"euler": 1.0, "implicit": 1.0 - math.sqrt(0.5), "midpoint": 0.5, "rk4": 0.25, "lie": 0.25}
G_HEUN = -2.0 * GAMMA["implicit"]
G21, G31, G41, G32, G42 = -0.25, 0.21875, 0.0625, -0.71875, -0.0625  # gamma_ij of four stages
ORDER = {
    "euler": 1,
    "implicit": 2,
    "midpoint": 2,
    "rk4": 3,
    "lie": 3,
}  # where losses or springs are implicit

StepRules = tuple[tuple[LawRule, ...], ...]  # after each evaluation
_FOUR: StepRules = (resisting, braked_first), (resisting, braked_second), (braked_third,)
BRAKES: dict[str, StepRules] = {
    "euler": (),
    "implicit": ((resisting, braked),),
    "midpoint": ((renewed,),),
    "rk4": _FOUR,
    "lie": _FOUR,
}
_FIRM_FOUR: StepRules = (
    (springing, braked_first, lagged_first),
    (springing, braked_second, lagged_second),
    (springing, braked_third, lagged_third),
    (springing,),
)
FIRM_BRAKES: dict[str, StepRules] = {
    "euler": (),
    "implicit": ((springing, braked, lagged), (springing,)),
    "midpoint": ((renewed_firmly,),),
    "rk4": _FIRM_FOUR,
    "lie": _FIRM_FOUR,
}


def stiffened(
    gamma: float, m: Manifold, h: Any, stiff: Any = None, firm: Any = None, **at: Any
) -> Values:
    """X and E = h S of the step's begin (times h), and what they add to D; `at` are v, q and the numbers of what acts."""
    losses = {name: at[name] for name in ("damping", "friction", "floor") if name in at}
    loops = {name: at[name] for name in ("drag", "rub", "floor") if name in at}
    X = 0.0 if stiff is None else h * stiff * slope(at["v"], **losses)
    if stiff is not None and {"drag", "rub"} & set(loops):
        X = X + h * stiff * steepness(m, at["q"], at["v"], **loops)
    if firm is None:
        return {"X": X, "added": gamma * X, "push": 0.0 * X}
    springs = {name: x for name, x in at.items() if name not in ("v", "q", *SWITCHES, *losses)}
    E = h * firm * firmness(m.positions(at["q"]), **springs)
    if "stretch" in at:
        E = E + h * firm * steepness(m, at["q"], at["v"], stretch=at["stretch"])
    lead, X = gamma * h * firm, X + gamma * h * E
    none = 0.0 * E
    return {
        "X": X,
        "E": E,
        "F": gamma * E,
        "lead": lead,
        "lag": none,
        "added": gamma * X,
        "push": none,
    }


def hindrance(push: Any, v: Any = None, F: Any = None) -> Any:
    """What a stage is asked for besides: of the stages before, and gamma h S v."""
    return push if F is None else push + F * v


def course(method: str, implicit: bool, firm: bool = False) -> list[LawRule | int | str]:
    """A step: rules and evaluations in order."""
    brakes = iter((FIRM_BRAKES if firm else BRAKES)[method] if implicit else ())
    out: list[LawRule | int | str] = []
    for item in (FIRM if firm else METHODS)[method]:
        out.append(item)
        out += next(brakes, ()) if isinstance(item, int) else ()
    return out


def rules(method: str, implicit: bool = False, firm: bool = False) -> list[LawRule]:
    """What a method does between evaluations."""
    return [item for item in course(method, implicit, firm) if callable(item)]


def advance(
    method: str,
    m: Manifold,
    field: Any,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    h: float,
    first: State,
) -> State:
    """The state after one step on arrays; field(t, q, v) is (u, a), and `first` its answer at the step's begin."""
    at: Values = {"Q": q, "V": v, "q": q, "v": v, "h": h}
    losses, begun = field.losses, False
    braced, firm = losses.implicit, losses.springs.implicit
    if braced:
        masks = ({} if losses.none else {"stiff": losses.stiff}) | (
            {"firm": losses.springs.firm} if firm else {}
        )
        at |= masks | stiffened(GAMMA[method], m, h, v=v, q=q, **masks, **field.acting)
        first = first[0], field.braced(q, v, at["added"], hindrance(at["push"], v, at.get("F")))
    for item in course(method, braced, firm):
        if callable(item):
            at |= item(m, *(at[name] for name in reads(item)))
        elif isinstance(item, int):
            more = (at["added"], hindrance(at["push"], at["v"], at.get("F"))) if braced else ()
            at["u"], at["a"] = (
                field(t + item * (0.5 * h), at["q"], at["v"], *more) if begun else first
            )
            begun = True
        else:
            at["u"] = field.system.velocity(at["q"], at["v"])
    return at["q"], at["v"]
