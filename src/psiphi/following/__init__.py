"""Motions to follow: curves through postures, and how fast a robot may run along them.

Comes in: postures, a robot, its limits. Goes out: a `TimedPath`, q, v and a at any time, which controllers take as reference.
Read `splines.py` first (curves), then

    bent.py         curves of joints whose q is no vector
    bounds.py       what speeds, accelerations and torques say of the motion along a curve
    fastest.py      the least time they leave: two passes over the curve, compiled, a curve a lane
    timed_path.py   a curve with its times
    laying.py       `pp.path`
"""
