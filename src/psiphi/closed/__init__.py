"""Closed chains: several arms holding one object, and loops between any frames of any trees.

In: robots and the frames that are held together. Out: a `System` that answers as a robot does, with its constraint forces.
Read `coupling.py` first (the equations), then `methods.py` (the stages), `model/kinds.py` (a constraint is a row of a table);
what happens where matrices are singular is in `forward.py`, `singular.py` and `saddle.py`. The rest:

    making.py, reading.py, grips.py     the ways to a closed system, what they are given, and what is held
    constraints.py, relative.py         the constraints, and where their frames are
    wiring.py, circuits.py              the functions as programs in stages
    solving.py, loose.py                their small solves, and where rows follow from others
    hub.py, elimination.py              many arms around one object, without Omega
    choosing.py                         which of the forms runs, by count
    sharing.py, driving.py              inverse dynamics: who carries what; what motors must do
    carrying.py                         an object that moves as wanted: what its arms do, and who carries what
    closed_function.py, implicit.py     functions with derivatives: the door, and the theorem
    closed_derivatives.py, closed_tape.py   first derivatives by it; further ones, of the traced code
    closed_torques.py                   inverse dynamics as such a function
    closed_call.py                      what all of these have: arrays of any library, derivatives again
    closing.py, contacts.py             loops that are assembled or drifted; contacts by themselves
    coulomb.py                          which contacts push, hold and slide, and with what forces
    forest.py, programs.py              what a closed system is, and what it has compiled
    system.py, explaining.py            the door, and what it tells
"""

from psiphi.closed.making import Contact, Loop, connect, grasp
from psiphi.closed.system import System

__all__ = ["Contact", "Loop", "System", "connect", "grasp"]
