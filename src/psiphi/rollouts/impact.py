"""`limits="block"` in a kernel: the rules of `control/stops.py` as blocks, which run where a lane needs them."""

from __future__ import annotations

from psiphi.control.stops import SWEEPS, Stops
from psiphi.emitters.joined import Named
from psiphi.emitters.rollout import Repeat
from psiphi.functions.robot import Robot
from psiphi.rollouts.parts import catalogued, trace

STOPS = Repeat("stops", "touch", "hit", ("mass", "impact"), "sweep", "done", SWEEPS, "bounce")


def blocks(stops: Stops, robot: Robot) -> Named:
    """{block: (tape, {its argument: place})}."""
    nq, nv, n = robot.nq, robot.nv, len(stops.q)
    sizes = {
        stops.touch: {"q": nq, "v": nv},
        stops.impact: {"v": nv, "M_inv": nv * nv, "side": n},
        stops.sweep: {"compliance": n * n, "speed": n, "side": n, "impulse": n, "done": 1},
        stops.bounce: {"v": nv, "M_inv": nv * nv, "side": n, "impulse": n},
    }
    traced: Named = {rule.__name__: (trace(rule.__name__, each, rule), {}) for rule, each in sizes.items()}
    return traced | {"mass": (catalogued(robot, "mass_matrix_inverse"), {})}
