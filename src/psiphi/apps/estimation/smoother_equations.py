"""Filter and smoother as operator expressions, lowered to sweeps like any other.

    z- = psi (K y + E_phi P+ eta + xi)      predicted states: E(x_k | outputs of stages outboard)
    e- = y - H z-                           innovations, white, covariance D
    e+ = D^-1 e-                            residuals
    z+ = z- + G e- + P+ eta                 filtered states, which include the stage's own outputs
    lambda- = psi* (H* e+ + tau_bar* eta)   co-states;   lambda+ = E_phi* lambda-
    x = z+ + P+ lambda+                     smoothed states: E(x_k | all outputs)
    u = e+ - G* (lambda+ + eta)             Cov(y)^-1 (y - E y); joint accelerations of a robot

They are the words of forward dynamics with `method="kalman"`; `psiphi.compiler.lower` makes both
programs. P does not depend on the data: gains and P+ come from `filter_covariances.py`, and data
need one inward and one outward recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.operators import Operators
from psiphi.apps.estimation.stage_links import Symmetric, TreeShape, cut
from psiphi.compiler.lower.vector_sweeps import Lowered, Result
from psiphi.compiler.recursions.body_step import Gain
from psiphi.compiler.sweeps.sweep_program import Argument, BodyView, Program, Sweep
from psiphi.robot.catalogue.catalogue import kalman_smoother


@lru_cache(maxsize=1)
def smoother_equations() -> dict[str, tuple[Expression, str]]:
    """The expressions of the fields of an `Estimate`, and their spaces: force, motion or joint."""
    s, y, xi, eta = Operators(), vector("tau"), vector("xi", "link"), vector("eta", "link")
    found = kalman_smoother(s, y, xi, eta)
    inboard, residuals = found["lambda_plus"], found["residuals"]
    return {
        "predicted": (found["z_minus"], "force"),
        "filtered": (found["z_plus"], "force"),
        "smoothed": (found["z_plus"] + s.P_plus @ inboard, "force"),
        "innovations": (found["innovations"], "joint"),
        "residuals": (residuals, "joint"),
        "costates": (found["lambda_minus"], "motion"),
        "inboard_costates": (inboard, "motion"),
        "multipliers": (residuals - s.G.T @ inboard - s.G.T @ eta, "joint"),
    }


def smoother_program(shape: TreeShape) -> Program:
    """The sweeps of the equations, with the gains as an input instead of their recursion."""
    equations = smoother_equations().items()
    lowered = Lowered([Result(name, e.poly(), space) for name, (e, space) in equations])
    lowered.schedule = replace(lowered.schedule, articulate=None)
    places = {"q": "q", "gains": "gains", "tau": "v", "xi": "x", "eta": "x"}
    inputs = tuple(_argument(shape, name, place) for name, place in places.items())
    outputs = tuple(
        _argument(shape, name, "v" if space == "joint" else "x") for name, (_, space) in equations
    )
    program = lowered.program("smoother", shape, inputs, outputs)
    sweeps = tuple(Sweep(sweep.direction, _with_gains(sweep.step)) for sweep in program.sweeps)
    return replace(program, sweeps=sweeps, can_loop=True)  # stages have no working axes


def _argument(shape: TreeShape, name: str, place: str) -> Argument:
    return Argument(name, (shape.total(place),), place)


def _with_gains(step: Callable[[BodyView], None]) -> Callable[[BodyView], None]:
    """The step after P+ and the gain of the stage have been read from the input `gains`."""

    def step_with_gains(body: BodyView) -> None:
        n, m = body.link.size, body.link.width
        G, L, d_inv, P_plus = cut(body.input_slice("gains", "gains"), n * m, m * m, m, n * n)
        factors = [L[i * m : i * m + m] for i in range(m)], d_inv
        gain = Gain([], factors, [G[r * m : r * m + m] for r in range(n)], ())
        body.store(P_plus=Symmetric.from_rows(n, P_plus), gain=gain)
        step(body)

    return step_with_gains
