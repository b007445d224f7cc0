"""Motions of robots and closed chains in time.

Comes in: a system, an initial state, torques. Goes out: a `Trajectory`. Read `simulate.py` first (the door), then `march.py`
(the loop over steps), `methods.py` (one function a method), `torques.py` (what drives and brakes), `events.py` (what is
watched for). `rollout.py` compiles the whole loop into one kernel, from the blocks of `blocks.py`.
"""

from psiphi.simulation.controllers import PD, ComputedTorque, GravityCompensation
from psiphi.simulation.failure import Interrupted, SimulationError
from psiphi.simulation.operational import OperationalSpace
from psiphi.simulation.rollout import rollout
from psiphi.simulation.simulate import simulate
from psiphi.simulation.trajectory import Event, Sample, Trajectory

__all__ = [
    "PD",
    "ComputedTorque",
    "Event",
    "GravityCompensation",
    "Interrupted",
    "OperationalSpace",
    "Sample",
    "SimulationError",
    "Trajectory",
    "rollout",
    "simulate",
]
