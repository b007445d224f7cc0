"""A user's own law of control, traced: tau(t, q, v) run once on tape expressions instead of numbers.

Plain arithmetic, NumPy's sin, cos, sqrt, sums and products, psiphi's controllers and a robot's functions
leave a tape, which kernels compile and arrays run. A function that branches on a number, uses anything
else or has a memory raises an error that says why.

Where it asks the robot that moves, whose parameters are inputs, they are inputs of the tape: motions change with them by both.

The user says that a function is pure, by `pp.law` or compiled=True. It is checked all the same: the
function is traced twice, and the tape is run beside it, at rest and at random states, twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import name_of
from psiphi.compiler.ir.segments import split_segments
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller, Law, Step, Values, is_law_controller
from psiphi.simulation.plant import Plant, parameters_of

TRIES = 2  # random places and speeds at which the tape is run beside the function
NEAR = 1e-9  # how far the two may be apart, of their size
DIFFERS = "and its trace differ: it branches, or remembers something"
OTHERWISE = (
    "answers otherwise for several motions at once: there q[0] is a motion, not a coordinate"
)
PYTHON = "help(pp.law) says what compiles; pp.simulate(..., compiled=False) runs it in Python"


class TracedRule:
    """The rule rule(m, q, v, t) -> tau of a tape, on arrays or on tape expressions; with the robot's parameters where it reads
    them."""

    __module__ = "a user's"  # a foreign rule: its name does not say what it is (`Step.is_foreign`)

    def __init__(self, code: StraightCode):
        self.code, self.__name__ = code, "traced"
        leaves = {
            node[1] for node in map(code.tape.nodes.__getitem__, code.live) if node[0] is Op.LEAF
        }
        known = {str(i): arg for i, arg in enumerate(code.program.inputs)}
        self.read = {
            i: arg.name for i, arg in known.items() if arg.name in ("q", "v") or i in leaves
        }
        self.sizes = {arg.name: arg.size for i, arg in known.items() if i in self.read}
        self.places = tuple(self.sizes)

    def __call__(self, m: Any, **at: Any) -> Values:
        given = {i: entries(np.asarray(at[name])) for i, name in self.read.items()}
        tau = stack_entries(
            evaluate(self.code.tape, self.code.output_nodes, lambda place, i: given[place][i])
        )
        lead = np.broadcast_shapes(
            tau.shape[:-1], np.shape(at["q"])[:-1]
        )  # a constant one is that of all
        return {"tau": np.broadcast_to(tau, (*lead, len(self.code.output_nodes)))}

    @property
    def is_timed(self) -> bool:
        """Whether t matters."""
        return "t" in self.sizes


class TracedLaw(Controller):
    """A controller made of a function tau(t, q, v).

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> law = TracedLaw(robot, lambda t, q, v: robot.gravity(q) - 5 * v + np.sin(3 * t))
    >>> q = robot.random(seed=0)
    >>> bool(np.allclose(law(0.5, q, np.ones(6)), robot.gravity(q) - 5 + np.sin(1.5)))
    True
    """

    needs_kernel = False  # of a batch of motions, because the function takes single states only

    def __init__(self, system: Any, function: Any):
        super().__init__(system)
        plant = Plant(system)
        self.rule = rule = TracedRule(_traced(plant, function))
        _check(plant, function, rule)
        self.law = Law((Step(rule, sizes=rule.sizes),), ("t",) if rule.is_timed else ())
        self.reference = (lambda t: (np.array([t]),)) if rule.is_timed else None


def _traced(plant: Plant, function: Any) -> StraightCode:
    """The function's tape, the same twice."""
    first, second = (_trace(plant, function) for _ in range(2))
    if (first.tape.nodes, first.stores) != (second.tape.nodes, second.stores):
        raise StateError(
            f"{_name(function)} leaves another tape each time: it remembers something", PYTHON
        )
    try:
        split_segments(first)
    except NotImplementedError as error:
        raise StateError(f"{_name(function)} takes {error}, which kernels cannot", PYTHON) from None
    return first


def _trace(plant: Plant, function: Any) -> StraightCode:
    tape, numbers = Tape(strict=True), parameters_of(plant.robot)
    inputs = (Argument("q", (plant.nq,)), Argument("v", (plant.nv,)), Argument("t", (1,)))
    inputs = (*inputs, *(Argument(PARAMETERS, np.shape(x)[-1:]) for x in numbers))
    q, v, t, *more = (
        np.array([tape.leaf(str(i), j) for j in range(arg.size)]) for i, arg in enumerate(inputs)
    )
    for own, leaves in zip(numbers, more, strict=True):
        tape.alias(own, leaves)
    try:
        answer = np.asarray(function(t[0], q, v), dtype=object)
    except Exception as error:
        raise _untraceable(function, error) from error
    answer = plant.expand_law_torque(answer)
    if answer.shape != (plant.nv,) or not all(
        isinstance(x, Scalar | int | float | np.number) for x in answer
    ):
        cause = f"{_name(function)} answers shape {answer.shape} of a single state, expected ({plant.nv},) numbers"
        raise StateError(cause, PYTHON)
    stores = tuple((0, i, tape.operand(x)) for i, x in enumerate(answer))
    return StraightCode(
        Program("traced", inputs, (Argument("tau", (plant.nv,)),), ()), tape, stores
    )


def _untraceable(function: Any, error: Exception) -> StateError:
    """What to raise where a function raises an error on tape expressions; it keeps psiphi's own remedy."""
    cause, remedy = str(error).partition("\n")[0], PYTHON
    if isinstance(error, Error):
        cause, remedy = error.cause, f"{error.remedy}; {PYTHON}" if error.remedy else PYTHON
    return StateError(
        f"{_name(function)} cannot be traced: {type(error).__name__}: {cause}", remedy
    )


def _check(plant: Plant, function: Any, rule: TracedRule) -> None:
    """The tape beside the function: at rest, at the beginning, where people branch, and elsewhere; each twice."""
    rng = np.random.default_rng(0)
    places = [plant.robot.neutral(), *(plant.robot.random(rng) for _ in range(TRIES))]
    speeds = [np.zeros(plant.nv), *(rng.standard_normal(plant.nv) for _ in range(TRIES))]
    states = [(t, q, v) for t in (0.0, float(rng.random())) for q in places for v in speeds]
    for t, q, v in (*states, *states):
        with np.errstate(all="ignore"):
            asked = plant.expand_law_torque(
                np.asarray(function(t, q.copy(), v.copy()), dtype=float)
            )
            alike = _is_near(asked, rule, t, q, v, parameters_of(plant.robot))
        if not alike:
            raise StateError(f"{_name(function)} {DIFFERS}", PYTHON)


def _is_near(
    asked: np.ndarray,
    rule: TracedRule,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    numbers: tuple[Any, ...],
) -> bool:
    own = dict(zip((PARAMETERS,), numbers, strict=False))
    found = np.asarray(
        rule(None, q=q, v=v, t=np.full((*q.shape[:-1], 1), t), **own)["tau"], dtype=float
    )
    size = 1.0 + np.abs(asked[np.isfinite(asked)]).max(initial=0.0)
    return np.allclose(asked, found, rtol=0.0, atol=NEAR * size, equal_nan=True)


def _check_batch(plant: Plant, function: Any, rule: TracedRule) -> bool:
    """Whether a function takes several motions at once, as steps in Python ask it to; q[0] is then
    a motion, not a coordinate. One that answers otherwise for them is refused."""
    rng = np.random.default_rng(1)
    q, v = (
        np.stack([plant.robot.random(rng) for _ in range(plant.nv + 1)]),
        rng.standard_normal((plant.nv + 1, plant.nv)),
    )
    with np.errstate(all="ignore"):
        try:
            asked = np.broadcast_to(
                plant.expand_law_torque(np.asarray(function(0.3, q.copy(), v.copy()), dtype=float)),
                v.shape,
            )
        except Exception:
            return False
        alike = _is_near(asked, rule, 0.3, q, v, parameters_of(plant.robot))
    if not alike:
        raise StateError(
            f"{_name(function)} {OTHERWISE}",
            "write q[..., 0], which means the same for one motion and for many",
        )
    return True


def _name(function: Any) -> str:
    return f"the torque {name_of(function)}"


def as_law(system: Any, tau: Any, batch: bool) -> Any:
    """A user's own function as a law that compiles, everything else as it is; an error where it leaves no tape, or drives a
    `batch` of motions and does not mean the same for all of them at once."""
    if not callable(tau) or is_law_controller(tau) or not isinstance(system, Robot | System):
        return tau
    law = TracedLaw(system, tau)
    law.needs_kernel = batch and not _check_batch(Plant(system), tau, law.rule)
    return law
