"""Closed chains: several arms holding one object, and loops between any frames of any trees.

In: robots and the frames that are held together. Out: a `System` that answers as a robot does, with its constraint forces.
Read `coupling.py` first (the equations), then `methods.py` (the stages), `kinds.py` (a constraint is a row of a table); what
happens where matrices are singular is in `forward.py`, `singular.py` and `saddle.py`.
"""

from psiphi.closed.making import Contact, Loop, connect, grasp
from psiphi.closed.system import System

__all__ = ["Contact", "Loop", "System", "connect", "grasp"]
