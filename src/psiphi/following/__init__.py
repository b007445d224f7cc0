"""Motions to follow: curves through postures, and how fast a robot may run along them.

Comes in: postures or poses, a robot, its limits. Goes out: a `TimedPath`, q, v, a at any time: a reference for controllers.
Read `splines.py` first (curves), then

    bent.py         curves of joints whose q is no vector
    bounds.py       what speeds, accelerations and torques say of the motion along a curve
    fastest.py      the least time they leave: two passes over the curve, compiled, a curve a lane
    timed_path.py   a curve with its times
    through_poses.py  poses instead of postures
    laying.py       `pp.path`
"""
