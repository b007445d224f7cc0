"""Identification: the inertial parameters of a robot from what was measured of its motion.

Comes in: a robot, q, v, a and torques (and wrenches, where a force plate or a sensor gave some). Goes out: an `Identification`:
base parameters with standard deviations, numbers that bodies can have, a robot with them, a report. Read `identify.py` first.

    identify.py         the door: `pp.identify`; weighted least squares
    measured.py         data as rows of a linear system, and what they can tell
    nearest_bodies.py   the nearest parameters that bodies can have
    findings.py         what was found, in words and pictures
"""
