"""The parts of a compiled step: straight-line tapes over named places of one frame.

    forward_dynamics, gravity, inverse_dynamics, ...     from the catalogue
    feedback     u = kp (q_ref - q) + kd (v_ref - v) [+ a_ref] [+ g], the first difference on the manifold
    cut          tau within the effort limits
    total        force = tau - damping v - friction v / sqrt(v^2 + speed^2)
    stages       what `integrators.py` does between two evaluations, the state (Q, V) and the stage (q, v, a) in the frame

No block stores a bare input over a place it also reads: a store may come before the load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.emitters.joined import Code, Spread
from psiphi.functions.robot import Robot
from psiphi.model.manifold import Manifold
from psiphi.spatial.choices import least, most
from psiphi.spatial.screws import root
from psiphi.sweeps.program import Argument, Program
from psiphi.sweeps.unroll import Straight
from psiphi.tape.tape import Tape

Values = dict[str, Any]  # by place: arrays or lists of tape expressions


def trace(name: str, sizes: dict[str, int], rule: Callable[..., Values]) -> Straight:
    """The tape of `rule(**inputs)`, arrays of tape expressions in, named arrays or lists of them out."""
    tape = Tape()
    inputs = tuple(_argument(key, size) for key, size in sizes.items())
    leaves = {arg.name: np.array([tape.leaf(str(i), j) for j in range(arg.size)]) for i, arg in enumerate(inputs)}
    results = rule(**leaves)
    outputs = tuple(_argument(key, len(values)) for key, values in results.items())
    stores = tuple(
        (number, index, tape.operand(value))
        for number, values in enumerate(results.values())
        for index, value in enumerate(values)
    )
    return Straight(Program(name, inputs, outputs, ()), tape, stores)


def spread(m: Manifold, part: Callable[[Manifold], Straight]) -> Spread:
    """A block that treats every joint by itself, in loops over the joints of a kind."""
    kinds = tuple((part(alone), places) for alone, places in m.kinds)
    first = kinds[0][0].program

    def whole(group: tuple[Argument, ...]) -> tuple[Argument, ...]:
        return tuple(_argument(name, n) for name, n in _sizes(m, " ".join(arg.name for arg in group)).items())

    return Spread(Program(first.name, whole(first.inputs), whole(first.outputs), ()), kinds)


def catalogued(robot: Robot, name: str, frames: tuple[str, ...] = ()) -> Code:
    """A quantity of the catalogue."""
    return robot.function(name, frames).source.code


def feedback(m: Manifold, accelerates: bool = False, floats: bool = False) -> Straight:
    """u from the state, the reference and the gains; `floats` adds g."""
    sizes = _sizes(m, "q v kp kd q_ref v_ref" + " a_ref" * accelerates + " g" * floats)

    def rule(q, v, kp, kd, q_ref, v_ref, a_ref=0.0, g=0.0) -> Values:
        return {"u": kp * m.log(q, q_ref) + kd * (v_ref - v) + a_ref + g}

    return trace("feedback", sizes, rule)


def cut(m: Manifold) -> Straight:
    """tau between -effort and effort."""

    def rule(tau, effort) -> Values:
        return {"tau": [least(most(x, -limit), limit) for x, limit in zip(tau, effort, strict=True)]}

    return trace("cut", _sizes(m, "tau effort"), rule)


def total(m: Manifold, losses: tuple[str, ...]) -> Straight:
    """tau less the losses there are: damping, friction."""

    def rule(tau, v, damping=None, friction=None, floor=0.0) -> Values:
        force = tau if damping is None else tau - damping * v
        return {"force": force if friction is None else force - friction * (v / root(v * v + floor))}

    return trace("total", _sizes(m, " ".join(("tau", "v", *losses, *["floor"] * ("friction" in losses)))), rule)


def start(m: Manifold) -> Straight:
    """The first stage's state becomes the step's."""
    return trace("start", {"q": m.nq, "v": m.nv}, lambda q, v: {"Q": q, "V": v})


def euler(m: Manifold) -> dict[str, Straight]:
    """v1 = v + h a; q1 = q exp(h v1)."""

    def rule(Q, V, a, h) -> Values:
        v = V + h * a
        q = m.unit(m.exp(Q, h * v))
        return {"Q": q, "V": v, "q": q, "v": v}

    return {"step": trace("step", _sizes(m, "Q V a h"), rule)}


def rk4(m: Manifold) -> dict[str, Straight]:
    """`kept` and `half` after stage 1, `second` and `third` after stages 2 and 3, `fourth` ends the step."""

    def kept(q, v, a) -> Values:
        return {"K": m.rate(q, v), "A": a}

    def half(Q, V, K, A, h) -> Values:
        return {"q": Q + 0.5 * h * K, "v": V + 0.5 * h * A}

    def middle(far: float) -> Callable[..., Values]:
        def rule(Q, V, K, A, q, v, a, h) -> Values:
            k = m.rate(q, v)
            return {"K": K + 2.0 * k, "A": A + 2.0 * a, "q": Q + far * h * k, "v": V + far * h * a}

        return rule

    def fourth(Q, V, K, A, q, v, a, h) -> Values:
        sixth = h * (1.0 / 6.0)
        q1, v1 = m.unit(Q + sixth * (K + m.rate(q, v))), V + sixth * (A + a)
        return {"Q": q1, "V": v1, "q": q1, "v": v1}

    every = _sizes(m, "Q V K A q v a h")
    return {
        "kept": trace("kept", _sizes(m, "q v a"), kept),
        "half": trace("half", _sizes(m, "Q V K A h"), half),
        "second": trace("second", every, middle(0.5)),
        "third": trace("third", every, middle(1.0)),
        "fourth": trace("fourth", every, fourth),
    }


def lie(m: Manifold) -> dict[str, Straight]:
    """The same names, on the group; P is the configuration of stage 2, U the sum of the velocities 2 and 3."""

    def kept(a) -> Values:
        return {"A": a}

    def half(Q, V, A, h) -> Values:
        q = m.exp(Q, 0.5 * h * V)
        return {"q": q, "P": q, "v": V + 0.5 * h * A}

    def second(Q, V, A, v, a, h) -> Values:
        return {"A": A + 2.0 * a, "q": m.exp(Q, 0.5 * h * v), "v": V + 0.5 * h * a}

    def third(P, V, A, U, v, a, h) -> Values:
        return {"U": U + v, "A": A + 2.0 * a, "q": m.exp(P, h * v - 0.5 * h * V), "v": V + h * a}

    def fourth(Q, V, A, U, v, a, h) -> Values:
        twelfth = h * (1.0 / 12.0)
        early, late = twelfth * (3.0 * V + 2.0 * U - v), twelfth * (2.0 * U - V + 3.0 * v)
        q1, v1 = m.unit(m.exp(m.exp(Q, early), late)), V + h * (1.0 / 6.0) * (A + a)
        return {"Q": q1, "V": v1, "q": q1, "v": v1}

    return {
        "kept": trace("kept", _sizes(m, "a"), kept),
        "half": trace("half", _sizes(m, "Q V A h"), half),
        "passed": trace("passed", _sizes(m, "v"), lambda v: {"U": v}),
        "second": trace("second", _sizes(m, "Q V A v a h"), second),
        "third": trace("third", _sizes(m, "P V A U v a h"), third),
        "fourth": trace("fourth", _sizes(m, "Q V A U v a h"), fourth),
    }


STAGES: dict[str, Callable[[Manifold], dict[str, Straight]]] = {"euler": euler, "rk4": rk4, "lie": lie}
ORDER: dict[str, tuple[str | int, ...]] = {  # a number: evaluate the dynamics, at that many half steps
    "euler": (0, "step"),
    "rk4": (0, "kept", "half", 1, "second", 1, "third", 2, "fourth"),
    "lie": (0, "kept", "half", 1, "passed", "second", 1, "third", 2, "fourth"),
}
NUMBERS = ("h", "floor")  # places of one number
CONFIGURATIONS = ("Q", "K", "P", "q", "q_ref")  # of size nq; all others have size nv


def _sizes(m: Manifold, names: str) -> dict[str, int]:
    return {name: 1 if name in NUMBERS else m.nq if name in CONFIGURATIONS else m.nv for name in names.split()}


def _argument(name: str, size: int) -> Argument:
    return Argument(name, (size,), "" if name in NUMBERS else "q" if name in CONFIGURATIONS else "v")
