"""CPU time of SymPy matrices of a PUMA 560 and of a CasADi function of a Panda, and its error.

python benchmarks/symbols.py        (pip install sympy casadi)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import psiphi as pp

T = TypeVar("T")


def seconds(make: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = make()
    return time.process_time() - start, result


if __name__ == "__main__":
    puma, panda = pp.load("puma560"), pp.load("panda")
    for name in ("mass_matrix", "mass_matrix_inverse", "bias"):
        for parameters in (False, True):
            took, _ = seconds(
                lambda name=name, parameters=parameters: puma.symbolic(name, parameters=parameters)
            )
            kind = "named parameters" if parameters else "numbers"
            print(f"PUMA 560, {name}, {kind}: {took:.2f} s of CPU time")
    took, function = seconds(lambda: panda.to_casadi("forward_dynamics"))
    print(f"Panda, forward dynamics as a CasADi function: {took:.2f} s of CPU time")
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(100):
        q, v, tau = panda.random(rng), *rng.standard_normal((2, panda.nv))
        ours = panda.forward_dynamics(q, v, tau)
        worst = max(
            worst, float(np.abs(np.ravel(function(q, v, tau)) - ours).max() / np.abs(ours).max())
        )  # type: ignore[operator]
    print(
        "largest difference from the compiled code at 100 states, "
        f"relative to the largest acceleration: {worst:.1e}"
    )
