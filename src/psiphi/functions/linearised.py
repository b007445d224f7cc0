"""How a state grows, (A, B) of `robot.linearize`, as one function: the slopes of forward dynamics, laid where they stand.

    A = [-ad_v  I  ]    B = [  0  ]
        [ a_q  a_v ]        [a_tau]

ad_v, of joints where q is no vector, is a law of theirs that is traced downstream (`rollouts/joint_slopes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from psiphi.arguments import batch_axes
from psiphi.compiler.derivatives import Derivative
from psiphi.compiler.passes import Ready, code
from psiphi.functions import guard
from psiphi.functions.differentiable import Differentiable, ready
from psiphi.model.model import Model
from psiphi.model.skeleton import part_of
from psiphi.optional import need
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument
from psiphi.tape.differentiate import copied
from psiphi.tape.tape import Tape

NAME = "linearize"
LaidNumber = tuple[int, int, int]  # of a result, of a number in it, of a node


@dataclass(frozen=True, eq=False)
class GrowthMatrices(Ready):
    """A and B of a robot, as the compiler takes them; `slopes` are those of its accelerations."""

    slopes: Derivative

    @property
    def model(self) -> Model:
        return self.slopes.model

    @property
    def equation(self) -> str:
        return "A, B with dx/dt = A x + B dtau"

    @property
    def key(self) -> str:
        return self.slopes.key

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        n = self.model.nv
        return self.slopes.arguments()[0], (Argument("A", (2 * n, 2 * n)), Argument("B", (2 * n, n)))

    def ready(self) -> Straight:
        slopes, (inputs, outputs) = code(self.slopes), self.arguments()
        tape = copied(slopes.tape)
        stores = {(number, index): tape.operand(0.0) for number, arg in enumerate(outputs) for index in range(arg.size)}
        stores |= {(number, index): node for number, index, node in (*self._laid(slopes.stores), *self._moved(tape))}
        program = replace(slopes.program, inputs=inputs, outputs=outputs)
        return replace(slopes, program=program, tape=tape, stores=tuple((*at, node) for at, node in stores.items()))

    def _laid(self, stores: tuple[LaidNumber, ...]) -> Iterator[LaidNumber]:
        """a_q and a_v below in A, a_tau below in B."""
        n = self.model.nv
        for number, index, node in stores:
            i, j = divmod(index, n)
            yield (1, (n + i) * n + j, node) if number == 2 else (0, (n + i) * 2 * n + number * n + j, node)

    def _moved(self, tape: Tape) -> Iterator[LaidNumber]:
        """[-ad_v I], above in A."""
        n, sloped = self.model.nv, need("psiphi.rollouts.joint_slopes", "slopes of joints", "psiphi").SlopedLaw
        for i in range(n):
            yield 0, i * 2 * n + n + i, tape.operand(1.0)
        for number, joint in enumerate(self.model.manifold.bent):
            q, v = ([tape.leaf(place, i) for i in part_of(joint, of)] for place, of in (("0", "q"), ("1", "v")))
            rows = iter(sloped(self.model, number, "bracket")._bracket(tape, q, v)[0])
            for i in part_of(joint, "v"):
                for j in part_of(joint, "v"):
                    yield 0, i * 2 * n + j, tape.operand(next(rows))


def function(robot: Any) -> Differentiable:
    """The compiled pair, of a robot that is not large."""
    slopes = robot.function("forward_dynamics").jacobian("q", "v", "tau").source.asked
    return ready(robot._functions, NAME, partial(GrowthMatrices, slopes))


def linearized(robot: Any, *state: Any) -> tuple[Any, Any]:
    """(A, B) at states (q, v, tau) of NumPy's arrays; float32 where all are, by way of float64."""
    own, more = function(robot), robot._more
    found = own.at_once(*state, *more)
    if found is not None:
        return found
    arrays = guard.plain(robot._model, NAME, own.inputs, (*state, *more))
    single = all(getattr(x, "dtype", None) == np.float32 for x in arrays[:3])
    if guard.turns(own.source) and type(arrays[0]) is np.ndarray:
        robot.upright(NAME, arrays[0])
    batch_axes(NAME, {arg.name: np.shape(x)[:-1] for arg, x in zip(own.inputs, arrays, strict=True)})
    with np.errstate(all="ignore"):
        found = own.run([x.astype(float) for x in arrays])
    guard.quicken(own, arrays)
    return tuple(x.astype(np.float32) for x in found) if single else found
