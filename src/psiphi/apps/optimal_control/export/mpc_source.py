"""C99 of `pp.MPC`: header, source, and a test program with the torques that psiphi computes.

    NAME_plan                                        the motion, its gains, the solver's memory
    int NAME_start(plan, q, v, torques, ..., u)      the first solution, from a guess of the torques
    int NAME_step(plan, q, v, passed, ..., u)        `passed` nodes later: the next torques
    ...                                              goals, and the parameters of the robot

The loops over the nodes are those of `control_blocks.py`. The number of iterations is fixed, so
that every step takes the same time. All memory is in the plan and on the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.escape import c_comment
from psiphi.apps.optimal_control import ddp_solver, state_limits
from psiphi.apps.optimal_control.control_blocks import CANDIDATES, STEP_LENGTHS, ControlBlocks
from psiphi.apps.optimal_control.cost_terms import CostTerm
from psiphi.apps.optimal_control.export.mpc_template import ITERATION, TEST
from psiphi.apps.optimal_control.problem_request import (
    desired_value,
    read_goals,
    read_start,
)
from psiphi.backends.c.c_files import table
from psiphi.backends.c.c_lines import Dialect
from psiphi.backends.c.c_rollouts import RolloutCode
from psiphi.backends.c.c_source import check_function
from psiphi.compiler.sweeps.sweep_program import PARAMETERS

if TYPE_CHECKING:
    from psiphi.apps.optimal_control.receding_horizon import MPC

LOOPS = "backward", "look", "take"
PLACES = (  # of the loops that the driver in C knows
    *("q", "v", "u", "k", "K", "h", "mu", "alpha", "J", "last", "low", "high", "Q", "V", "U"),
    *("decrease", "residual", "q0", "v0", "goal", "weight", "shift", "rho", PARAMETERS),
    *("final_q", "final_v", "final_goal", "final_weight", "final_shift"),
)
CASES = 4  # of the test program: the first solution and three steps
TOLERANCE = 1e-8
RowPlace = tuple[str, int]  # a pointer, and the distance between two rows


def mpc_files(control: MPC, name: str, q: Numbers, v: Numbers) -> dict[str, str]:
    """{file name: text}; the test program starts at q, v."""
    check_function(name)
    return MpcSource(control, name).files(q, v)


class MpcSource:
    """The C of one controller."""

    def __init__(self, control: MPC, name: str):
        self.control, self.name, self.problem = control, name, control.problem
        problem, dialect = self.problem, Dialect.of("d")
        if problem.limit_kind == "kept":
            raise StateError(
                'C of MPC with "kept" limits of positions or speeds is not implemented',
                'write limits="soft" or speed="soft", or a cost: pp.cost.of',
            )
        if problem.hessian != "gauss":
            raise StateError(
                f'C of MPC has the Gauss-Newton Hessian, and the problem has "{problem.hessian}"',
                'make it with hessian="gauss": then every step takes the same time',
            )
        self.blocks: ControlBlocks = problem.solver.family(False, False).blocks
        self.loops = {loop: RolloutCode(getattr(self.blocks, loop)) for loop in LOOPS}
        places = {place for loop in self.loops.values() for place, *_ in loop.parameters}
        if unknown := sorted(places.difference(PLACES)):
            raise StateError(
                f"C of MPC is not implemented for this problem: its loops read {unknown}",
                "leave out what the problem has besides costs, bounds and soft limits",
            )
        self.dialect = dialect
        self.N, self.m = problem.steps, len(problem.motors)
        self.nq, self.nv = problem.robot.nq, problem.robot.nv
        self.is_free = problem.robot.freed is not None
        self.sizes = self.blocks.sizes

    # -- goals

    @property
    def goal_terms(self) -> dict[str, CostTerm]:
        """{goal: a term that reads it}, in the order of the parameters."""
        every = (*self.problem.running, *self.problem.final)
        found: dict[str, CostTerm] = {}
        for term in every:
            if term.has_goal:
                found.setdefault(term.name, term)
        return found

    @property
    def goal_words(self) -> dict[str, str]:
        """{goal: the name of its parameter}."""
        found: dict[str, str] = {}
        for goal in self.goal_terms:
            word = f"goal_{re.sub(r'[^A-Za-z0-9]+', '_', goal)}"
            found[goal] = word if word not in found.values() else f"{word}_{len(found)}"
        return found

    def goal_rows(self, goal: str) -> int:
        return self.N + 1 if self.goal_terms[goal].cost.along else 1

    @property
    def parameters(self) -> list[str]:
        """The pointers that `start` and `step` take besides the state."""
        return [*self.goal_words.values(), *[PARAMETERS] * self.is_free]

    def _goal_function(self) -> Iterator[str]:
        """Constant goals as tables, and the function that places all goals side by side."""
        lines: list[str] = []
        for prefix, terms in (("", self.problem.running), ("final_", self.problem.final)):
            place, size = 0, self.sizes[f"{prefix}goal"]
            for i, term in enumerate(terms):
                if not term.goal_size:
                    continue
                count, row = term.goal_size, f"s->{prefix}goal[{place}]"
                place += count
                if term.has_goal:
                    word, along = self.goal_words[term.name], term.cost.along
                    here = f"{word}[k * {count}]" if along else f"{word}[0]"
                    last = f"{word}[{self.N * count}]" if along else f"{word}[0]"
                else:
                    word = f"{self.name}_{prefix or 'running_'}at{i}"
                    yield from table(word, count, [desired_value(term)[0]], "d")
                    here = last = f"{word}[0]"
                if prefix:
                    lines.append(f"    {self.name}_copy(&{row}, &{last}, {count});")
                else:
                    target = f"&s->goal[(k * {size}) + {place - count}]"
                    lines.append(f"    for (int k = 0; k < {self.N}; ++k) {{")
                    lines.append(f"        {self.name}_copy({target}, &{here}, {count});")
                    lines.append("    }")
        yield ""
        words = "".join(f", const double *{word}" for word in self.goal_words.values())
        yield f"static void {self.name}_goals({self.name}_plan *s{words})"
        yield "{"
        yield from lines or ["    (void)s;"]
        yield "}"
        yield ""

    # -- calls of the loops

    def _rows(self, reverse: bool) -> dict[str, RowPlace]:
        """{place: pointer and row} of the arrays for each node; from the last to the first if
        `reverse`."""
        sizes = {"q": self.nq, "v": self.nv, "u": self.m, "k": self.m}
        sizes |= {"K": self.m * 2 * self.nv, "goal": self.sizes["goal"]}
        if not reverse:
            return {x: (f"s->{x}", n) for x, n in sizes.items()} | {
                "last": (f"{self.name}_last", 1)
            }
        return {x: (f"&s->{x}[{(self.N - 1) * n}]", -n) for x, n in sizes.items()}

    def call(self, loop: str) -> str:
        """The call of a loop."""
        name, N = self.name, self.N
        once = {"h": f"{name}_dt", "mu": "&damping", "alpha": "&alpha", PARAMETERS: PARAMETERS}
        once |= {x: f"{name}_{x}" for x in ("weight", "final_weight", "low", "high")}
        once |= {"final_q": f"&s->q[{N * self.nq}]", "final_v": f"&s->v[{N * self.nv}]"}
        once |= {"final_goal": "s->final_goal", "rho": f"{name}_rho"}
        once |= {"final_shift": f"{name}_shift"}
        once |= {"q0": "s->q2", "v0": "s->v2"} if loop == "take" else {"q0": "s->q", "v0": "s->v"}
        rows = self._rows(loop == "backward") | {"shift": (f"{name}_shift", 0)}
        results = {
            "backward": rows | {"decrease": ("&decrease", 0), "residual": ("&residual", 0)},
            "look": {"J": ("costs", 0)},
            "take": {
                "Q": (f"&s->q2[{self.nq}]", self.nq),
                "V": (f"&s->v2[{self.nv}]", self.nv),
                "U": ("s->u2", self.m),
                "J": ("&cost", 0),
            },
        }[loop]
        words = [str(N)]
        for place, has_rows, is_result in self.loops[loop].parameters:
            if not has_rows:
                words.append(once[place])
                continue
            pointer, row = (results if is_result else rows)[place]
            words += [pointer, str(row)]
        return f"{name}_{loop}({', '.join(words)})"

    # -- files

    @property
    def _numbers(self) -> dict[str, Any]:
        """What the template needs."""
        control, s = self.control, ddp_solver
        given = "".join([", const double *parameters"] * self.is_free)
        return {
            "name": self.name,
            "steps": self.N,
            "nq": self.nq,
            "nv": self.nv,
            "nu": self.m,
            "given": given,
            "passed": ", parameters" * self.is_free,
            "goals": "".join(f", const double *{word}" for word in self.parameters),
            "goal_names": "".join(f", {word}" for word in self.goal_words.values()),
            "candidates": CANDIDATES,
            "lengths": ", ".join(map(repr, STEP_LENGTHS)),
            "iterations": control.iterations,
            "first": control.first,
            "tolerance": repr(max(control.tolerance, 1e-14)),
            "settled": s.SETTLED,
            "growth": s.GROWTH,
            "fastest": s.FASTEST,
            "first_damping": s.FIRST_DAMPING,
            "least_damping": s.LEAST_DAMPING,
            "largest_damping": s.LARGEST_DAMPING,
            "decay": s.DECAY,
            "long": s.LONG,
            **{loop: self.call(loop) for loop in LOOPS},
        }

    def files(self, q: Numbers, v: Numbers) -> dict[str, str]:
        """{file name: text}."""
        name = self.name
        return {
            f"{name}.h": "\n".join([*self.header(), ""]),
            f"{name}.c": "\n".join([*self.source(), ""]),
            f"{name}_test.c": self.test_program(q, v),
        }

    def header(self) -> Iterator[str]:
        name, N, m, x = self.name, self.N, self.m, 2 * self.nv
        members = {"q": (N + 1) * self.nq, "v": (N + 1) * self.nv, "u": N * m, "k": N * m}
        members |= {"K": N * m * x, "q2": (N + 1) * self.nq, "v2": (N + 1) * self.nv, "u2": N * m}
        members |= {"goal": N * self.sizes["goal"], "final_goal": self.sizes["final_goal"]}
        members = {place: count for place, count in members.items() if count}
        guard = f"PSIPHI_{name.upper()}_H"
        frames = 8 * max(loop.frame_size for loop in self.loops.values())
        memory = 8 * (3 + sum(members.values()))
        robot, problem = self.problem.robot, self.problem
        yield f"#ifndef {guard}"
        yield f"#define {guard}"
        yield "#ifdef __cplusplus"
        yield 'extern "C" {'
        yield "#endif"
        yield ""
        yield f"/* {c_comment(f'Model predictive control of {robot.name}: {problem!r}')}"
        yield f" * {self.control.iterations} iterations a step, {self.flops} operations; every step"
        yield " * has the same operations. SI units. Nothing is allocated."
        live = max(loop.max_live for loop in self.loops.values())
        yield f" * A plan has {memory} bytes. A frame has {frames} bytes of stack; in addition, at"
        yield f" * most {live} numbers are live at a time."
        yield " *"
        yield f" *   q        {self.nq} numbers, quaternions of length 1"
        yield f" *   v        {self.nv} numbers"
        yield f" *   torques  {N} x {m} numbers, the first guess"
        yield f" *   passed   how many nodes of {problem.dt:g} s have passed since the last step"
        for goal, word in self.goal_words.items():
            rows, size = self.goal_rows(goal), self.goal_terms[goal].goal_size
            kind = self.goal_terms[goal].cost.kind
            shape = f"{rows} x {size} numbers" if rows > 1 else f"{size} numbers"
            matrix = ": the rows of [R p]" if size == 12 else ""
            yield f" *   {word}  {shape}, {c_comment(kind)}{matrix}"
        if self.is_free:
            yield f" *   parameters  {self.sizes[PARAMETERS]} numbers, of the robot"
        motors = ", ".join(robot.velocity_names[i] for i in problem.motors)
        yield f" *   u        {m} torques: {c_comment(motors)}"
        yield " *"
        yield " * The results are 1, and 0 if the motion from q, v diverges. */"
        yield "typedef struct {"
        yield from (f"    double {place}[{count}];" for place, count in members.items())
        yield "    double cost, damping, residual;"
        yield f"}} {name}_plan;"
        yield ""
        goals = "".join(f", const double *{word}" for word in self.parameters)
        yield (
            f"int {name}_start({name}_plan *s, const double *q, const double *v, "
            f"const double *torques{goals}, double *u);"
        )
        yield (
            f"int {name}_step({name}_plan *s, const double *q, const double *v, int passed{goals}, "
            "double *u);"
        )
        yield ""
        yield "#ifdef __cplusplus"
        yield "}"
        yield "#endif"
        yield "#endif"

    @property
    def flops(self) -> int:
        """Operations of a step."""
        count, n = self.problem.flops, self.control.iterations
        each = count["backward"] + count["look"] + count["take"]
        return self.N * (n * each + count["take"] + count["backward"])

    def source(self) -> Iterator[str]:
        name = self.name
        yield f"/* {c_comment(f'Model predictive control of {self.problem.robot.name}')} */"
        yield f'#include "{name}.h"'
        yield "#include <math.h>"
        yield "#include <stddef.h>"
        yield ""
        yield from self._tables()
        for loop, code in self.loops.items():
            yield from code.lines(f"{name}_{loop}", self.dialect)
        text = ITERATION.format(**self._numbers)
        copy, rest = text.split("\n\n", 1)
        yield copy
        yield ""
        yield from self._goal_function()
        yield rest

    def _tables(self) -> Iterator[str]:
        """dt, weights, bounds, and the mark of the last node."""
        numbers = {"dt": np.array([self.problem.dt])}
        for prefix, terms in (("", self.problem.running), ("final_", self.problem.final)):
            weights = [term.weights for term in terms]
            if weights:
                numbers[f"{prefix}weight"] = np.concatenate(weights)
        if self.problem.bounds is not None:
            numbers |= dict(zip(("low", "high"), self.problem.bounds, strict=True))
        if self.problem.limits:  # soft: a penalty with a constant weight, and no shifts
            numbers["rho"] = np.array([state_limits.FIRST * self.problem.limit_weight])
            numbers["shift"] = np.zeros(len(self.problem.limits))
        for word, row in numbers.items():
            yield from table(f"{self.name}_{word}", len(row), [row], "d")
        if any(place == "last" for place, *_ in self.loops["take"].parameters):
            yield f"static const double {self.name}_last[{self.N}] = {{[{self.N - 1}] = 1.0}};"
        yield ""

    def test_program(self, q: Numbers, v: Numbers) -> str:
        """States of a simulation with the steps of the problem, and the torques of psiphi."""
        control, problem = self.control, self.problem
        given = control.parameters
        robot = problem.bound_robot(None if given is None else np.asarray(given, dtype=float))
        (state, speed), states, torques, goals = read_start(problem.robot, q, v), [], [], []
        if state.ndim > 1 or speed.ndim > 1:
            raise StateError("the start of the test program has batch axes", "give one state")
        guess = problem.first_torques(state, control.torques, control.parameters)
        alone = control.copy()
        for i in range(CASES):
            t = i * problem.dt
            tau = alone(t, state, speed)
            states.append((state, speed))
            torques.append(tau[list(problem.motors)])
            goals.append(self._given_goals(alone.goals_at(t)))
            state, speed = robot.step(state, speed, tau, problem.dt, method="euler")
        tables: list[str] = []
        for word, rows in (("q", [x[0] for x in states]), ("v", [x[1] for x in states])):
            tables += table(f"test_{word}", CASES * len(rows[0]), rows, "d")
        tables += table("test_u", CASES * self.m, torques, "d")
        tables += table("test_torques", guess.size, [guess], "d")
        arguments = []
        for word in self.goal_words.values():
            rows = [np.ravel(found[word]) for found in goals]
            tables += table(f"test_{word}", CASES * rows[0].size, rows, "d")
            arguments.append(f", &test_{word}[i * {rows[0].size}]")
        if self.is_free:
            values = control.parameters
            values = problem.robot.parameter_arguments[0] if values is None else values
            row = np.asarray(values, dtype=float)
            tables += table("test_parameters", row.size, [row], "d")
            arguments.append(", test_parameters")
        return TEST.format(
            name=self.name, tables="\n".join(tables), cases=CASES, nq=self.nq, nv=self.nv,
            nu=self.m, arguments="".join(arguments), tolerance=TOLERANCE,
        )  # fmt: skip

    def _given_goals(self, goals: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """{parameter: numbers}, as the C reads them."""
        terms: Sequence[CostTerm] = (*self.problem.running, *self.problem.final)
        read = read_goals(terms, goals, self.N)
        found = {}
        for goal, word in self.goal_words.items():
            rows = read[goal]
            if rows.ndim > 2:
                raise StateError("a goal of the controller has batch axes", "give one goal")
            found[word] = rows
        return found
