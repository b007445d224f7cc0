"""Traces of user-defined laws: tau(t, q, v) runs once on tape expressions instead of numbers.

Arithmetic, NumPy's elementary functions, comparisons and selections (`law_arrays.py`), psiphi's
controllers and the functions of a robot are recorded on a tape, which kernels compile and arrays
run. A function that branches on a number, uses anything else or has internal state raises an error
that says why.

If the function calls functions of the simulated robot, and the parameters of that robot are inputs,
then they are inputs of the tape too, and derivatives by the parameters include the law.

The user says that a function is pure, by `pp.law` or compiled=True. psiphi checks it nevertheless:
the function is traced twice, and the tape is compared with the function twice, at rest and at
random states.
"""

from __future__ import annotations

from collections.abc import Callable
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
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import (
    Controller,
    Law,
    Step,
    Values,
    is_law_controller,
)
from psiphi.simulation.control.law_arrays import LawArray, flat_entries
from psiphi.simulation.control.marked_law import unwrap_law
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.simulation_errors import user_line

RANDOM_STATES = 2  # random positions and velocities at which the tape is compared
TOLERANCE = 1e-9  # between the function and the tape, relative
MAX_CHECKED = 64  # rules that are kept
_checked: dict[Any, TracedRule] = {}
DIFFERS = "and its trace differ: it branches on a number, or has internal state"
REMEDY = "help(pp.law) says what compiles; pp.simulate(..., compiled=False) runs it in Python"

TorqueFunction = Callable[[Any, Any, Any], Any]  # tau(t, q, v), on numbers or tape expressions


class TracedRule:
    """rule(m, q, v, t) -> tau of a tape, on arrays or on tape expressions; with the parameters of
    the robot if the tape reads them."""

    __module__ = "user"  # not psiphi: the name does not identify the rule (`Step.is_foreign`)

    def __init__(self, code: StraightCode):
        self.code, self.__name__ = code, "traced"
        leaves = {
            node[1] for node in map(code.tape.nodes.__getitem__, code.live) if node[0] is Op.LEAF
        }
        inputs = {str(i): arg for i, arg in enumerate(code.program.inputs)}
        self.inputs = {
            i: arg.name for i, arg in inputs.items() if arg.name in ("q", "v") or i in leaves
        }
        self.sizes = {arg.name: arg.size for i, arg in inputs.items() if i in self.inputs}
        self.places = tuple(self.sizes)

    def __call__(self, m: Manifold | None, **values: Any) -> Values:
        columns = {i: entries(np.asarray(values[name])) for i, name in self.inputs.items()}
        nodes = self.code.output_nodes
        tau = stack_entries(
            evaluate(self.code.tape, nodes, lambda space, index: columns[space][index])
        )
        # a constant tau is the same for all states of a batch
        lead = np.broadcast_shapes(tau.shape[:-1], np.shape(values["q"])[:-1])
        return {"tau": np.broadcast_to(tau, (*lead, len(nodes)))}

    @property
    def is_timed(self) -> bool:
        """Whether tau depends on t."""
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

    def __init__(self, system: Robot | System, function: TorqueFunction):
        super().__init__(system)
        plant = Plant(system)
        self.rule = rule = _checked_rule(plant, function)
        self.law = Law((Step(rule, sizes=rule.sizes),), ("t",) if rule.is_timed else ())
        self.reference = (lambda t: (np.array([t]),)) if rule.is_timed else None


def _checked_rule(plant: Plant, function: TorqueFunction) -> TracedRule:
    """The rule of a function: traced, and compared with the function unless the same source gave
    the same tape before. The trace is always made anew, since gains may have changed."""
    first = _trace(plant, function)
    source = getattr(getattr(function, "__func__", function), "__code__", type(function))
    tape = tuple(first.tape.nodes), first.stores, first.program.inputs
    key = source, plant.nq, plant.nv, tape
    rule = _checked.pop(key, None)
    if rule is None:
        _trace_again(plant, function, first)
        rule = TracedRule(first)
        _check_trace(plant, function, rule)
    _checked[key] = rule  # the last one used is the last one
    if len(_checked) > MAX_CHECKED:
        _checked.pop(next(iter(_checked)), None)
    return rule


def _trace_again(plant: Plant, function: TorqueFunction, first: StraightCode) -> None:
    """Raise an error if a second trace differs, or if kernels do not support the tape."""
    if any(node[0] is Op.CONST and np.isnan(node[1]) for node in first.tape.nodes):
        raise StateError(f"{_name(function)} computes with NaN", "check where it comes from")
    second = _trace(plant, function)
    if (first.tape.nodes, first.stores) != (second.tape.nodes, second.stores):
        raise StateError(
            f"{_name(function)} has another trace each time: it has internal state", REMEDY
        )
    try:
        split_segments(first)
    except NotImplementedError as error:
        raise StateError(
            f"{_name(function)} takes {error}, which kernels do not support", REMEDY
        ) from None


def _trace(plant: Plant, function: TorqueFunction) -> StraightCode:
    tape, parameters = Tape(strict=True), parameters_of(plant.robot)
    inputs = (Argument("q", (plant.nq,)), Argument("v", (plant.nv,)), Argument("t", (1,)))
    inputs = (*inputs, *(Argument(PARAMETERS, np.shape(x)[-1:]) for x in parameters))
    q, v, t, *more = (
        np.array([tape.leaf(str(i), j) for j in range(arg.size)]) for i, arg in enumerate(inputs)
    )
    for values, leaves in zip(parameters, more, strict=True):
        tape.alias(values, leaves)
    try:
        tau = flat_entries(function(LawArray.of(t[0]), LawArray.of(q), LawArray.of(v)))
    except Exception as error:
        raise _trace_error(plant, function, error) from error
    tau = plant.expand_law_torque(tau)
    if tau.shape != (plant.nv,) or not all(
        isinstance(x, Scalar | int | float | np.number) for x in tau
    ):
        raise StateError(
            f"{_name(function)} returns shape {tau.shape} for a single state, "
            f"expected ({plant.nv},) numbers",
            REMEDY,
        )
    stores = tuple((0, i, tape.operand(x)) for i, x in enumerate(tau))
    return StraightCode(
        Program("traced", inputs, (Argument("tau", (plant.nv,)),), ()), tape, stores
    )


def _trace_error(plant: Plant, function: TorqueFunction, error: Exception) -> StateError:
    """The error for a function that fails on tape expressions: its own line, if it fails on numbers
    in the same way. psiphi's errors keep their remedy."""
    cause, remedy = str(error).partition("\n")[0], REMEDY
    if isinstance(error, Error):
        cause, remedy = error.cause, f"{error.remedy}; {REMEDY}" if error.remedy else REMEDY
    cause = f"{type(error).__name__}: {cause}"
    own = _error_on_numbers(plant, function)
    if type(own) is type(error) and str(own) == str(error) and not isinstance(error, Error):
        line = user_line(error)
        where = f"see {line}" if line else "a law is a function of (t, q, v)"
        return StateError(f"{_name(function)} failed: {cause}", where)
    line = user_line(error)
    remedy = f"see {line}; {remedy}" if line else remedy
    return StateError(f"{_name(function)} cannot be traced: {cause}", remedy)


def _error_on_numbers(plant: Plant, function: TorqueFunction) -> Exception | None:
    """The error of a function at rest, if it raises one."""
    try:
        with np.errstate(all="ignore"):
            function(0.0, plant.robot.neutral(), np.zeros(plant.nv))
    except Exception as error:
        return error
    return None


def _check_trace(plant: Plant, function: TorqueFunction, rule: TracedRule) -> None:
    """Compare tape and function at t = 0, q neutral and v = 0, on which functions often branch, and
    at random values; each state twice."""
    rng = np.random.default_rng(0)
    positions = [plant.robot.neutral(), *(plant.robot.random(rng) for _ in range(RANDOM_STATES))]
    velocities = [
        np.zeros(plant.nv),
        *(rng.standard_normal(plant.nv) for _ in range(RANDOM_STATES)),
    ]
    times = (0.0, float(rng.random()))
    states = [(t, q, v) for t in times for q in positions for v in velocities]
    for t, q, v in (*states, *states):
        with np.errstate(all="ignore"):
            tau = plant.expand_law_torque(np.asarray(function(t, q.copy(), v.copy()), dtype=float))
            agrees = _agrees(tau, rule, t, q, v, parameters_of(plant.robot))
        if not agrees:
            raise StateError(f"{_name(function)} {DIFFERS}", REMEDY)


def _agrees(
    tau: np.ndarray,
    rule: TracedRule,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    parameters: tuple[Any, ...],
) -> bool:
    """Whether the rule returns tau, up to rounding."""
    values = dict(zip((PARAMETERS,), parameters, strict=False))
    values |= {"q": q, "v": v, "t": np.full((*q.shape[:-1], 1), t)}
    traced = np.asarray(rule(None, **values)["tau"], dtype=float)
    size = 1.0 + np.abs(tau[np.isfinite(tau)]).max(initial=0.0)
    return np.allclose(tau, traced, rtol=0.0, atol=TOLERANCE * size, equal_nan=True)


def _name(function: TorqueFunction) -> str:
    return f"the torque {name_of(function)}"


def as_law(system: object, tau: Any) -> Any:
    """A user-defined function as a law that compiles; any other torque is returned unchanged.

    It is an error if the function cannot be traced.
    """
    if not callable(tau) or is_law_controller(tau) or not isinstance(system, Robot | System):
        return tau
    return TracedLaw(system, unwrap_law(tau))
