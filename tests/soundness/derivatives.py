"""The derivatives of one expression on one robot: of its compiled function, and of the expression
itself, by each argument.

jvp is held against differences of sixth order of the function (which `examine.py` holds against the
oracle), as close as two steps of them agree; vjp and jacobian against jvp, and `pp.derivative`,
compiled and dense, against jacobian. Refusals in words are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import psiphi as pp
from tests.soundness import robots
from tests.soundness.examine import (
    PATIENCE,
    STATES,
    Case,
    Outcome,
    Patience,
    crash,
    limited,
    values,
    widths,
)
from tests.soundness.recipes import text

WEIGHTS = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}  # of differences at 1, 2 and 3 steps
STEPS = 1e-2, 3e-3, 1e-3
CLOSE, AGREE = (
    1e-8,
    100.0,
)  # of the largest entry, or of 1; and how often the difference of two differences


def slopes(case: Case) -> Outcome:
    """What becomes of its derivatives."""
    try:
        with limited(PATIENCE):
            return _slopes(case)
    except Patience:
        return Outcome("slow", f"more than {PATIENCE} s", PATIENCE)
    except pp.Error as error:
        return Outcome("refused", f"made: {error}")
    except Exception as error:
        return crash("made", error)


def _slopes(case: Case) -> Outcome:
    robot = robots.build(*case.robot)
    q, v = robots.state(robot, case.robot.seed, STATES)
    given = values(case.node, widths(robot, case.node), case.robot.seed) | {"q": q, "v": v}
    e = eval(text(case.node), {"s": robot.operators, "pp": pp})
    f = pp.function(e)
    names = [arg.name for arg in f.inputs]
    if not np.isfinite(f(*(given[name] for name in names))).all():
        return Outcome("singular")
    kinds = []
    for name in names:
        try:
            outcome = _by(name, names, given, e, f, robot)
        except pp.Error as error:
            outcome = Outcome("refused", f"by {name}: {error}")
        except Exception as error:
            outcome = crash(f"by {name}", error)
        if not outcome.ok:
            return outcome
        kinds.append(outcome)
    return next((outcome for outcome in kinds if outcome.kind == "right"), kinds[0])


def _by(
    name: str, names: list[str], given: dict[str, np.ndarray], e: Any, f: Any, robot: pp.Robot
) -> Outcome:
    rng, at = np.random.default_rng(11), [given[x] for x in names]
    x = rng.standard_normal((STATES, robot.nv if name == "q" else given[name].shape[-1]))
    value, found = (np.asarray(y) for y in f.jvp(name)(*at, x))

    def moved(h: float) -> np.ndarray:
        there = robot.integrate(given["q"], h * x) if name == "q" else given[name] + h * x
        return np.asarray(f(*(there if other == name else given[other] for other in names)))

    truth, blur = _differences(moved)
    scale = np.abs(truth).max(initial=0.0) + np.abs(value).max(initial=1.0)
    if not np.abs(found - truth).max(initial=0.0) <= AGREE * blur + CLOSE * scale:
        return Outcome(
            "wrong",
            f"jvp by {name}: off by {np.abs(found - truth).max():.3g} (tolerance "
            f"{AGREE * blur:.1g})",
        )
    w = rng.standard_normal(value.shape)
    slope = np.asarray(f.vjp(name)(*at, w)[-1])
    if not np.allclose(
        (w * found).reshape(STATES, -1).sum(1),
        (slope * x).sum(1),
        rtol=1e-7,
        atol=CLOSE * scale * w.size,
    ):
        return Outcome("wrong", f"vjp by {name} is not the adjoint of jvp")
    matrix = np.asarray(f.jacobian(name)(*at))
    if not np.allclose(
        (matrix * x.reshape(STATES, *[1] * (value.ndim - 1), -1)).sum(-1),
        found,
        rtol=1e-7,
        atol=CLOSE * scale,
    ):
        return Outcome("wrong", f"jacobian by {name} is not jvp")
    return _written(name, given, e, matrix, scale)


def _written(
    name: str, given: dict[str, np.ndarray], e: Any, matrix: np.ndarray, scale: float
) -> Outcome:
    """`pp.derivative`, where the expression has one."""
    try:
        d = pp.derivative(e, name)
        g = pp.function(d)
        own = [arg.name for arg in g.inputs]
        found = np.asarray(g(*(given[x] for x in own)))
    except pp.Error:
        return Outcome("right")
    if not np.allclose(found, matrix, rtol=1e-7, atol=CLOSE * scale):
        return Outcome(
            "wrong", f"pp.derivative by {name}, compiled: off by {np.abs(found - matrix).max():.3g}"
        )
    dense = d.dense(given["q"][0], given["v"][0], **{x: given[x][0] for x in own if x not in "qv"})
    if not np.allclose(
        np.reshape(dense, matrix[0].shape), matrix[0], rtol=1e-7, atol=CLOSE * scale
    ):
        return Outcome("wrong", f"pp.derivative by {name}, dense")
    return Outcome("right")


def _differences(f: Callable[[float], np.ndarray]) -> tuple[np.ndarray, float]:
    """The derivative at 0, of the two steps that agree best, and how well they do."""
    every = [sum(w * (f(k * h) - f(-k * h)) for k, w in WEIGHTS.items()) / h for h in STEPS]
    pairs = [
        (float(np.abs(a - b).max(initial=0.0)), i + 1) for i, (a, b) in enumerate(pairwise(every))
    ]
    blur, best = min(pairs)
    return np.asarray(every[best]), blur
