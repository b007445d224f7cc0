"""Second derivatives of rotations and displacements, backwards and then forwards, beside
differences of gradients: of no turn at all, of one that is rounding, of small ones and of large
ones."""

import numpy as np
import pytest

from psiphi.compiler.autodiff.tape_derivatives import pull_back, push_forward
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial.rotations import (
    exponential,
    inverse_left_jacobian_product,
    left_jacobian_product,
    logarithm,
    multiply,
)

SIZES = [0.0, 1e-300, 1e-36, 1e-19, 1e-17, 1e-12, 1e-8, 1e-4, 0.2, 0.23, 0.44, 0.46, 1.0, 3.0]
AHEAD = np.array([0.36, 0.48, 0.0, 0.8])  # a quaternion
POINTS = (1, 45.0), (2, -9.0), (3, 1.0)  # of a difference of sixth order, over 60 h


def turned(w, v):
    """A body's way, and back, in one: the rotation of one quaternion to another."""
    p = multiply(AHEAD.tolist(), exponential(w))
    back, spread = logarithm(multiply([-0.36, -0.48, 0.0, 0.8], p))
    return [*back, *inverse_left_jacobian_product(back, spread, v)]


RULES = {
    "exponential": lambda w, v: exponential(w),
    "swept": left_jacobian_product,
    "logarithm": lambda w, v: logarithm([w[0] + v[0] * w[1], w[1], w[2], 1.0 + v[1] * w[0] * w[2]])[
        0
    ],
    "unswept": lambda w, v: inverse_left_jacobian_product(w, logarithm(exponential(w))[1], v),
    "of two quaternions": turned,
}


class Bent:
    """A rule of six numbers on a tape: the gradient of its weighted sum, and what that changes by
    along some way."""

    def __init__(self, rule, weights, way):
        tape = Tape()
        x = [tape.leaf("x", i) for i in range(6)]
        bar = pull_back(
            tape,
            {tape.operand(y): float(w) for y, w in zip(rule(x[:3], x[3:]), weights, strict=False)},
        )
        gradient = [tape.operand(bar.get(leaf.index, 0.0)) for leaf in x]
        moved = push_forward(
            tape, gradient, {leaf.index: float(dx) for leaf, dx in zip(x, way, strict=True)}
        )
        self.tape, self.slope, self.bend = tape, gradient, [tape.operand(y) for y in moved]

    def at(self, nodes, x):
        return np.array(evaluate(self.tape, nodes, lambda _, i: x[i]))

    def differences(self, x, way, h=1e-2):
        total = sum(
            s * c * self.at(self.slope, x + s * k * h * way) for k, c in POINTS for s in (1.0, -1.0)
        )
        return total / (60.0 * h)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RULES)
def test_gradients_change_as_they_say(name, size):
    rng = np.random.default_rng(1)
    for _ in range(3):
        x, way, weights = rng.standard_normal((3, 6))
        x[:3] *= size / np.linalg.norm(x[:3])
        x[3:] *= 0.3
        rule = Bent(RULES[name], weights, 0.3 * way)
        np.testing.assert_allclose(
            rule.at(rule.bend, x), rule.differences(x, 0.3 * way), atol=3e-10
        )
        single = rule.at(rule.bend, x.astype(np.float32))
        np.testing.assert_allclose(single, rule.at(rule.bend, x), atol=3e-5)
