"""Symbols: seconds of SymPy matrices of a PUMA 560 and of a CasADi function of a Panda; how far that is from compiled code.

python benchmarks/symbols.py        (pip install sympy casadi)
"""

from __future__ import annotations

import time

import numpy as np

import psiphi as pp


def seconds(make) -> tuple[float, object]:
    start = time.process_time()
    made = make()
    return time.process_time() - start, made


if __name__ == "__main__":
    puma, panda = pp.load("puma560"), pp.load("panda")
    for name in ("mass_matrix", "mass_matrix_inverse", "bias"):
        for parameters in (False, True):
            took, _ = seconds(
                lambda name=name, parameters=parameters: puma.symbolic(name, parameters=parameters)
            )
            print(
                f"PUMA 560, {name}, {'named parameters' if parameters else 'numbers'}: {took:.2f} s of one processor"
            )
    took, function = seconds(lambda: panda.to_casadi("forward_dynamics"))
    print(f"Panda, forward dynamics as a CasADi function: {took:.2f} s of one processor")
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(100):
        q, v, tau = panda.random(rng), *rng.standard_normal((2, panda.nv))
        ours = panda.forward_dynamics(q, v, tau)
        worst = max(
            worst, float(np.abs(np.ravel(function(q, v, tau)) - ours).max() / np.abs(ours).max())
        )  # type: ignore[operator]
    print(
        f"largest difference from the compiled code at 100 states, relative to the largest acceleration: {worst:.1e}"
    )
