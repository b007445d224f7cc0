"""Letters and words of a robot whose joints are not single: what embedded loops and links that bend are held to alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import framed, program
from psiphi.operators import RATES, Operators
from psiphi.sweeps.interpreter import interpret

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
    o, tried = Operators(robot._model), 0
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
    equation = Equation({"y": expression}, robot._model)
    over = framed(equation)
    return interpret(program(equation, over), over, *(given[arg.name] for arg in equation.arguments()[0]))[0]


def sweeps_are_the_matrix(robot: Any, s: Any, word: str) -> None:
    """Of one of the words."""
    expression = WORDS[word](Operators(robot._model))
    wanted = expression.dense(s.q, s.v) if word == "Coriolis" else expression.dense(s.q)
    found = swept(robot, expression, {"q": s.q, "v": s.v})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * (1.0 + np.abs(wanted).max()))
