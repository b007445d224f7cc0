"""Letters and words of a robot whose joints are not single: what embedded loops and links that bend
are held to alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psiphi.algebra.derivatives.configuration_derivative import derivative
from psiphi.algebra.derivatives.time_derivative import RATES
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import program, tree_of
from psiphi.compiler.sweeps.interpreter import interpret

WORDS = {
    "M^-1": lambda s: s.mass.inv,
    "J M^-1 J*": lambda s: s.J("tool", "elbow") @ s.mass.inv @ s.J("tool", "elbow").T,
    "W": lambda s: s.I - s.H @ s.psi @ s.K,
    "H psi B": lambda s: s.H @ s.psi @ s.B("tool"),
    "Coriolis": lambda s: s.coriolis,
}
OF_SINGLE_BODIES = ("S", "Delta_phi", "Delta_psi", "L", "Phi", "Psi")


def slope(value: Callable[[float], np.ndarray], h: float = 2e-4) -> np.ndarray:
    """d value/dt at 0, by four differences."""
    near, far = value(h) - value(-h), value(2 * h) - value(-2 * h)
    return (8 * near - far) / (12 * h)


def turns_as_its_rates_say(robot: Any, s: Any, within: float) -> None:
    """d/dt of every letter's matrix along v is the matrix of its rate."""
    o, tried = Operators(robot.model), 0
    for name in RATES:
        x = getattr(o, name)
        if name == "I" or x.term.args[0].bare in OF_SINGLE_BODIES:
            continue
        want = slope(lambda t, x=x: x.dense(robot.integrate(s.q, t * s.v)))
        got = x.dot().dense(s.q, s.v)
        assert np.abs(got - want).max() <= within * (1.0 + np.abs(want).max()), name
        tried += 1
    assert tried > 10


def swept(robot: Any, expression: Any, given: Mapping[str, np.ndarray]) -> np.ndarray:
    """What sweeps on numbers make of an expression."""
    equation = Equation({"y": expression}, robot.model)
    over = tree_of(equation)
    return interpret(
        program(equation, over), over, *(given[arg.name] for arg in equation.arguments()[0])
    )[0]


# letters of every kind
DIFFERENTIATED = {
    "M v": lambda s: s.mass @ s.vector("v"),
    "J v": lambda s: s.J("tool", "elbow") @ s.vector("v"),
    "C v": lambda s: s.coriolis @ s.vector("v"),
    "inverse dynamics": lambda s: (
        s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ s.vector("v") + s.a) + s.b)
    ),
    "M^-1 v": lambda s: s.mass.inv @ s.vector("v"),
}


def derivative_is_a_slope(
    robot: Any, s: Any, word: str, within: float, *, dense: bool = True
) -> None:
    """pp.derivative(e, "q"), by sweeps, by those of its transpose and as a matrix, is the slope of
    e itself along every free velocity; the other road to e is its matrix, or where there is none
    its own sweeps."""
    e = DIFFERENTIATED[word](Operators(robot.model))
    d = derivative(e, "q")

    def value(x: np.ndarray) -> np.ndarray:
        q = robot.integrate(s.q, x)
        return e.dense(q, s.v) if dense else swept(robot, e, {"q": q, "v": s.v})

    want = np.transpose([slope(lambda t, x=x: value(t * x)) for x in np.eye(robot.nv)])
    both = [swept(robot, d, {"q": s.q, "v": s.v}), swept(robot, d.T, {"q": s.q, "v": s.v}).T]
    for got in [*both, *([d.dense(s.q, s.v)] if dense else [])]:
        assert np.abs(got - want).max() <= within * (1.0 + np.abs(want).max())


def sweeps_are_the_matrix(robot: Any, s: Any, word: str) -> None:
    """Of one of the words."""
    expression = WORDS[word](Operators(robot.model))
    wanted = expression.dense(s.q, s.v) if word == "Coriolis" else expression.dense(s.q)
    found = swept(robot, expression, {"q": s.q, "v": s.v})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * (1.0 + np.abs(wanted).max()))
