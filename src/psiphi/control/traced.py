"""A user's own law of control, traced: tau(t, q, v) run once on tape expressions instead of numbers.

Plain arithmetic, NumPy's sin, cos, sqrt, sums and products, psiphi's controllers and a robot's functions leave a tape, which
kernels compile and arrays run. What branches on a number, leaves this vocabulary or remembers something leaves none, and says
why; pp.simulate then asks the function itself at every stage.

Where it asks the robot that moves, whose parameters are inputs, they are inputs of the tape: motions change with them by both.

A function is trusted only so far: it is traced twice, and the tape is run beside it, at rest and at random states, twice.
`lawful` calls it, since a kernel is insisted on; `tried` reads it first (`memoryless.py`), so that a function with a memory is
called for the motion alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.closed.system import System
from psiphi.control.law import Controller, Law, Step, Values, is_lawful
from psiphi.control.memoryless import doubt
from psiphi.control.plant import Plant, parameters_of
from psiphi.control.torques import Torque
from psiphi.emitters.segments import cut
from psiphi.errors import Error, StateError
from psiphi.functions.robot import Robot
from psiphi.spatial.entries import entries, stacked
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import PARAMETERS, Argument, Program
from psiphi.tape.evaluation import evaluate
from psiphi.tape.ops import Op
from psiphi.tape.tape import Scalar, Tape

TRIES = 2  # random places and speeds at which the tape is run beside the function
NEAR = 1e-9  # how far the two may be apart, of their size
FEW = 16  # motions of a batch of which the tape is run
DIFFERS = "and its trace differ: it branches, or remembers something"
OTHERWISE = "answers otherwise for several motions at once: there q[0] is a motion, not a coordinate"
PYTHON = "pp.simulate without compiled=True asks it at every stage"


class TracedRule:
    """The rule rule(m, q, v, t) -> tau of a tape, on arrays or on tape expressions; with the robot's parameters where it reads
    them."""

    __module__ = "a user's"  # a foreign rule: its name does not say what it is (`Step.is_foreign`)

    def __init__(self, code: Straight):
        self.code, self.__name__ = code, "traced"
        leaves = {node[1] for node in map(code.tape.nodes.__getitem__, code.live) if node[0] is Op.LEAF}
        known = {str(i): arg for i, arg in enumerate(code.program.inputs)}
        self.read = {i: arg.name for i, arg in known.items() if arg.name in ("q", "v") or i in leaves}
        self.sizes = {arg.name: arg.size for i, arg in known.items() if i in self.read}
        self.places = tuple(self.sizes)

    def __call__(self, m: Any, **at: Any) -> Values:
        given = {i: entries(np.asarray(at[name])) for i, name in self.read.items()}
        tau = stacked(evaluate(self.code.tape, self.code.ends, lambda place, i: given[place][i]))
        lead = np.broadcast_shapes(tau.shape[:-1], np.shape(at["q"])[:-1])  # a constant one is that of all
        return {"tau": np.broadcast_to(tau, (*lead, len(self.code.ends)))}

    @property
    def is_timed(self) -> bool:
        """Whether t matters."""
        return "t" in self.sizes


class Traced(Controller):
    """A controller made of a function tau(t, q, v).

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> law = Traced(robot, lambda t, q, v: robot.gravity(q) - 5 * v + np.sin(3 * t))
    >>> q = robot.random(seed=0)
    >>> bool(np.allclose(law(0.5, q, np.ones(6)), robot.gravity(q) - 5 + np.sin(1.5)))
    True
    """

    def __init__(self, system: Any, function: Any):
        super().__init__(system)
        plant = Plant(system)
        self.rule = rule = TracedRule(_traced(plant, function))
        _check(plant, function, rule)
        self.law = Law((Step(rule, sizes=rule.sizes),), ("t",) if rule.is_timed else ())
        self.reference = (lambda t: (np.array([t]),)) if rule.is_timed else None


def _traced(plant: Plant, function: Any) -> Straight:
    """The function's tape, the same twice."""
    first, second = (_trace(plant, function) for _ in range(2))
    if (first.tape.nodes, first.stores) != (second.tape.nodes, second.stores):
        raise StateError(f"{_name(function)} leaves another tape each time: it remembers something", PYTHON)
    try:
        cut(first)
    except NotImplementedError as error:
        raise StateError(f"{_name(function)} takes {error}, which kernels cannot", PYTHON) from None
    return first


def _trace(plant: Plant, function: Any) -> Straight:
    tape, numbers = Tape(strict=True), parameters_of(plant.robot)
    inputs = (Argument("q", (plant.nq,)), Argument("v", (plant.nv,)), Argument("t", (1,)))
    inputs = (*inputs, *(Argument(PARAMETERS, np.shape(x)[-1:]) for x in numbers))
    q, v, t, *more = (np.array([tape.leaf(str(i), j) for j in range(arg.size)]) for i, arg in enumerate(inputs))
    for own, leaves in zip(numbers, more, strict=True):
        tape.stand(own, leaves)
    try:
        answer = np.asarray(function(t[0], q, v), dtype=object)
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise StateError(f"{_name(function)} cannot be traced: {type(error).__name__}: {text}", PYTHON) from error
    answer = plant.answered(answer)
    if answer.shape != (plant.nv,) or not all(isinstance(x, Scalar | int | float | np.number) for x in answer):
        cause = f"{_name(function)} answers shape {answer.shape} of a single state, expected ({plant.nv},) numbers"
        raise StateError(cause, PYTHON)
    stores = tuple((0, i, tape.operand(x)) for i, x in enumerate(answer))
    return Straight(Program("traced", inputs, (Argument("tau", (plant.nv,)),), ()), tape, stores)


def _check(plant: Plant, function: Any, rule: TracedRule) -> None:
    """The tape beside the function: at rest, at the beginning, where people branch, and elsewhere; each twice."""
    rng = np.random.default_rng(0)
    places = [plant.robot.neutral(), *(plant.robot.random(rng) for _ in range(TRIES))]
    speeds = [np.zeros(plant.nv), *(rng.standard_normal(plant.nv) for _ in range(TRIES))]
    states = [(t, q, v) for t in (0.0, float(rng.random())) for q in places for v in speeds]
    for t, q, v in (*states, *states):
        with np.errstate(all="ignore"):
            asked = plant.answered(np.asarray(function(t, q.copy(), v.copy()), dtype=float))
            alike = _is_near(asked, rule, t, q, v, parameters_of(plant.robot))
        if not alike:
            raise StateError(f"{_name(function)} {DIFFERS}", PYTHON)


def _is_near(asked: np.ndarray, rule: TracedRule, t: float, q: np.ndarray, v: np.ndarray, numbers: tuple[Any, ...]) -> bool:
    own = dict(zip((PARAMETERS,), numbers, strict=False))
    found = np.asarray(rule(None, q=q, v=v, t=np.full((*q.shape[:-1], 1), t), **own)["tau"], dtype=float)
    size = 1.0 + np.abs(asked[np.isfinite(asked)]).max(initial=0.0)
    return np.allclose(asked, found, rtol=0.0, atol=NEAR * size, equal_nan=True)


def _check_batch(plant: Plant, function: Any, rule: TracedRule) -> None:
    """Steps in Python ask for all motions at once: q[0] is then a motion, not a coordinate. A function that takes single states
    only is traced as such; one that answers, but otherwise, is not."""
    rng = np.random.default_rng(1)
    q, v = np.stack([plant.robot.random(rng) for _ in range(plant.nv + 1)]), rng.standard_normal((plant.nv + 1, plant.nv))
    with np.errstate(all="ignore"):
        try:
            asked = np.broadcast_to(plant.answered(np.asarray(function(0.3, q.copy(), v.copy()), dtype=float)), v.shape)
        except Exception:
            return
        alike = _is_near(asked, rule, 0.3, q, v, parameters_of(plant.robot))
    if not alike:
        raise StateError(f"{_name(function)} {OTHERWISE}", "write q[..., 0], which means the same for one motion and for many")


def _name(function: Any) -> str:
    return f"the torque {getattr(function, '__name__', type(function).__name__)}"


def lawful(system: Any, tau: Any, batch: bool) -> Any:
    """A user's own function as a law that compiles, everything else as it is; an error where it leaves no tape, or drives a
    `batch` of motions and does not mean the same for all of them at once."""
    if not callable(tau) or is_lawful(tau) or not isinstance(system, Robot | System):
        return tau
    law = Traced(system, tau)
    if batch:
        _check_batch(Plant(system), tau, law.rule)
    return law


def tried(torque: Torque, q: np.ndarray, v: np.ndarray, beside: dict[str, Any]) -> tuple[Traced | None, str]:
    """A user's own function as a law that compiles, or why it is asked at every stage of a motion from (q, v). It is called
    only if it cannot remember anything, nor functions that are called `beside` it, which might change what it reads."""
    function, plant, rng = torque.function, torque.plant, np.random.default_rng(1)
    for name, other in {"": function, **beside}.items():
        if reason := doubt(other):
            return None, f"{name}: {reason}" if name else reason
    try:
        law = Traced(plant.given, function)
        for t in (0.0, *rng.random(TRIES)):
            with np.errstate(all="ignore"):
                asked = torque(0, float(t), q, v)
                own = (np.broadcast_to(x, (*torque.batch, x.shape[-1])) for x in parameters_of(plant.robot))
                asked, *few = (np.reshape(x, (-1, x.shape[-1]))[:FEW] for x in (asked, q, v, *own))
                if not _is_near(asked, law.rule, float(t), few[0], few[1], tuple(few[2:])):
                    return None, f"it {OTHERWISE if torque.batch else DIFFERS}"
            q, v = plant.robot.random(rng, torque.batch), rng.standard_normal((*torque.batch, plant.nv))
    except Exception as error:
        cause = error.cause if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        return None, cause.replace(_name(function), "it").partition("\n")[0]
    return law, ""
