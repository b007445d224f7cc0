"""Motions of robots and closed chains in time.

Comes in: a system, an initial state, what acts. Goes out: a `Trajectory`. Read `simulate.py` first (the door: `pp.simulate`),
then `march.py` (the loop over steps in Python). Around them:

    start.py      initial states, steps and times, read and checked
    running.py    a simulation as it was asked for, and what every way of running it shares
    adaptive.py   steps of SciPy's choosing
    fast.py       steps by a compiled kernel, in pieces
    rolling.py    the second door, `pp.rollout`: the kernel alone; rolled_states.py: what it gives, with derivatives;
                  rolled_arrays.py: the same of arrays of torch, JAX and Dask, rolled_slopes.py: its derivatives there;
                  card_states.py: the same on a graphics card; closed_steps.py: one step of a closed chain, linearised
    bar.py        how far it is, for a person who waits
    events.py     what is watched for
    touching.py   contacts that open and close, slide and hold; gripping.py: their rows; bouncing.py: how they bounce
    failure.py    when it breaks off
"""

from psiphi.simulation.failure import Interrupted, MotionWarning, SimulationError
from psiphi.simulation.rolling import rollout
from psiphi.simulation.simulate import simulate

__all__ = ["Interrupted", "MotionWarning", "SimulationError", "rollout", "simulate"]
