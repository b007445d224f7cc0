"""Fixed steps on the configuration manifold: a method is what happens between evaluations of the dynamics.

    euler   v1 = v + h a(t, q, v);  q1 = q exp(h v1)                                semi-implicit, order 1
    rk4     the classical four stages on dq/dt = rate(q, v), dv/dt = a;  quaternions scaled to unit length after the step.
            The flow of dp/dt = p (w, 0) / 2 keeps |p|, and dynamics depend on p / |p| only, so the order is 4 there too
    implicit   Heun's two stages, v1 = v + h/2 (a1 + a2),  q1 = q exp(h/2 (v + v1)),  every loss implicit: order 2
    lie     four stages without commutators on the group itself (Celledoni, Marthinsen and Owren 2003, order 4): with
            F = (v, a) of each stage,  q2 = q exp(h/2 F1),  q3 = q exp(h/2 F2),  q4 = q2 exp(h F3 - h/2 F1),
            q1 = q exp(h/12 (3 F1 + 2 F2 + 2 F3 - F4)) exp(h/12 (-F1 + 2 F2 + 2 F3 + 3 F4))

Losses f(v) = B v that are stiff (`control/losses.py`) are taken implicitly, without further evaluations: the methods become
linearly implicit ones (Rosenbrock and Wanner) with W = -M^-1 B. Stage i solves

    (M + gamma h B) a_i = tau - C v_i - g - f(v_i) - h B sum_{j<i} gamma_ij a_j

which is forward dynamics with D + gamma h B in place of D, as if the joint had that rotor. B is b(v) at the step's begin: it
may be any matrix, the order does not depend on it (Steihaug and Wolfbrandt 1979). With b_i, alpha_ij, c_i of the method and
gamma_i = sum_{j<=i} gamma_ij the conditions are

    order 2    sum b_i gamma_i = 0
    order 3    sum b_i alpha_ij gamma_j = sum b_i gamma_ij c_j = sum b_i gamma_ij gamma_j = 0, and sum b_i c_i gamma_i = 0,
               since M is that of each stage

Euler: gamma = 1. Heun: gamma = 1 - sqrt(1/2). Four stages: gamma = 1/4 and the numbers below; the factor of a step of v' = -B v
then lies between 0 and 1, 0 where B is infinite, and no stage is faster than the step's begin.

Where q is a vector space, rk4 and lie are one method. A rule reads places by name and answers places: Q, V the state at the
step's begin, q, v that of the stage, u its joint velocity and a its acceleration, h the step. `advance` runs the rules on
arrays, a kernel traces them (`parts.py`). No rule answers a place with another one that it also changes: on a tape, the store
may come before the load.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psiphi.control.law import Rule, Values, reads
from psiphi.control.losses import slope
from psiphi.model.manifold import Manifold

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


METHODS: dict[str, tuple[Rule | int | str, ...]] = {  # a number: the dynamics, at that many half steps; "u": u of v alone
    "euler": (0, faster, "u", moved),
    "implicit": (0, turning, predicted, 2, corrected, "u", moved_between),
    "rk4": (0, slopes, half_way, 1, half_way_again, 1, all_the_way, 2, arrived),
    "lie": (0, turning, half_turn, 1, kept, half_turn_again, 1, whole_turn, 2, turned),
}


def braked(m: Manifold, X, a) -> Values:
    """Heun: gamma_21 = -2 gamma."""
    return {"push": -2.0 * GAMMA["implicit"] * X * a}


def braked_first(m: Manifold, X, a) -> Values:
    """Four stages: gamma_21 = -1/4, gamma_31 = 7/32, gamma_41 = 1/16."""
    return {"push": -0.25 * X * a, "Y": 0.21875 * X * a, "Z": 0.0625 * X * a}


def braked_second(m: Manifold, X, Y, Z, a) -> Values:
    """gamma_32 = -23/32, gamma_42 = -1/16."""
    return {"push": Y - 0.71875 * X * a, "Z": Z - 0.0625 * X * a}


def braked_third(m: Manifold, Z) -> Values:
    """gamma_43 = 0."""
    return {"push": 1.0 * Z}


GAMMA = {"euler": 1.0, "implicit": 1.0 - math.sqrt(0.5), "rk4": 0.25, "lie": 0.25}
ORDER = {"euler": 1, "implicit": 2, "rk4": 3, "lie": 3}  # where losses are implicit
_FOUR = (braked_first, braked_second, braked_third)
BRAKES: dict[str, tuple[Rule, ...]] = {"euler": (), "implicit": (braked,), "rk4": _FOUR, "lie": _FOUR}  # after each stage


def stiffened(gamma: float, v: Any, h: Any, stiff: Any, **losses: Any) -> Values:
    """X = h B at the step's begin, and what it adds to D."""
    X = h * stiff * slope(v, **losses)
    return {"X": X, "added": gamma * X, "push": 0.0 * X}


def course(method: str, implicit: bool) -> list[Rule | int | str]:
    """A step: rules and evaluations in order."""
    brakes, out = iter(BRAKES[method] if implicit else ()), []
    for item in METHODS[method]:
        out.append(item)
        if isinstance(item, int) and (brake := next(brakes, None)) is not None:
            out.append(brake)
    return out


def rules(method: str, implicit: bool = False) -> list[Rule]:
    """What a method does between evaluations."""
    return [item for item in course(method, implicit) if callable(item)]


def advance(method: str, m: Manifold, field: Any, t: float, q: np.ndarray, v: np.ndarray, h: float, first: State) -> State:
    """The state after one step on arrays; field(t, q, v) is (u, a), and `first` its answer at the step's begin."""
    at: Values = {"Q": q, "V": v, "q": q, "v": v, "h": h}
    braced, begun = field.losses.implicit, False
    if braced:
        at |= stiffened(GAMMA[method], v, h, field.losses.stiff, **field.acting)
        first = first[0], field.braced(q, v, at["added"])
    for item in course(method, braced):
        if callable(item):
            at |= item(m, *(at[name] for name in reads(item)))
        elif isinstance(item, int):
            more = (at["added"], at["push"]) if braced else ()
            at["u"], at["a"] = field(t + item * (0.5 * h), at["q"], at["v"], *more) if begun else first
            begun = True
        else:
            at["u"] = field.system.velocity(at["q"], at["v"])
    return at["q"], at["v"]
