"""Timed paths through postures or poses: `pp.path`.

In: postures or poses, and limits. Out: a `TimedPath`. Read `path.py` first.

    path.py                `pp.path`: checks the arguments, then curve, bounds and timing
    pose_waypoints.py      postures from poses of frames, by inverse kinematics
    splines.py             cubic and quintic splines
    quaternion_splines.py  splines of spherical, planar and free joints
    path_limits.py         limits of speed, acceleration and torque along a curve q(s)
    time_optimal.py        the least time along a curve within its bounds (Pham and Pham 2018)
    timed_path.py          `TimedPath`: a curve and its timing, as a function of time
"""
