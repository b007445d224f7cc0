"""Random expressions for hypothesis: the same little program runs on tape handles and on
numbers."""

from __future__ import annotations

import operator

import numpy as np
from hypothesis import strategies as st

from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.model.spatial.branch_free import less

CONSTANTS = (0.0, 1.0, -1.0, 2.5, -0.5)
LEAVES = 3


def over(a, b):
    """a / b as the tape does it: by a constant's reciprocal."""
    return a / b if isinstance(b, (Scalar, np.float64)) else a * (1.0 / b)


def root(a):
    return a.sqrt() if isinstance(a, Scalar) else np.sqrt(a)


def sine(a):
    return a.sin() if isinstance(a, Scalar) else np.sin(a)


def cosine(a):
    return a.cos() if isinstance(a, Scalar) else np.cos(a)


OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": over,
    "neg": lambda a, b: -a,
    "sin": lambda a, b: sine(a),
    "cos": lambda a, b: cosine(a),
    "sqrt": lambda a, b: root(a),
    "<": less,
}


def programs(operations=tuple(OPERATIONS), max_size: int = 40) -> st.SearchStrategy:
    """Lists of (operation, operand, operand)."""
    step = st.tuples(
        st.sampled_from(sorted(operations)), st.integers(0, 10**6), st.integers(0, 10**6)
    )
    return st.lists(step, min_size=1, max_size=max_size)


POINTS = st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=LEAVES, max_size=LEAVES)


def run(tape: Tape, program, point, space: str = "x") -> tuple[list, list, int]:
    """The program on handles and on numbers: (handles, numbers, operations done). Steps out of
    range are left out."""
    handles: list = [tape.leaf(space, i) for i in range(LEAVES)] + list(CONSTANTS)
    numbers: list = [np.float64(x) for x in point] + list(CONSTANTS)
    done = 0
    for name, i, j in program:
        i, j = i % len(handles), j % len(handles)
        with np.errstate(all="ignore"):
            if (name == "/" and numbers[j] == 0) or (name == "sqrt" and numbers[i] < 0):
                continue
            number = OPERATIONS[name](numbers[i], numbers[j])
        if not np.isfinite(number) or abs(number) > 1e9:
            continue
        handle = OPERATIONS[name](handles[i], handles[j])
        if not isinstance(handle, Scalar):
            handle, number = float(handle), float(number)  # folded: a constant from here on
        handles.append(handle)
        numbers.append(number)
        done += 1
    return handles, numbers, done
