"""Paths in time: `pp.path`.

In: postures or poses, and limits. Out: a `TimedPath`. Read `path.py` first.

    path.py                `pp.path`
    path_limits.py         What limits say of the motion along a curve q(s)
    pose_waypoints.py      Poses instead of postures
    quaternion_splines.py  Curves of joints whose q is no vector
    splines.py             Curves through points
    time_optimal.py        The least time along a curve within its bounds (Pham and Pham 2018)
    timed_path.py          A curve with its times
"""
