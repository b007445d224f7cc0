"""Inverse kinematics: configurations in which frames are where they are wanted.

Comes in: targets of frames, of the centre of mass, a posture. Goes out: configurations, which of them solve it, how far the
others are. Read `tasks.py` first (what is wanted, as residuals and their Jacobians), then

    descent.py    one damped Newton step on any scalars
    pursuit.py    many steps in one compiled loop, a problem a lane
    library.py    where to start: of some thousand configurations the one whose frames are nearest
    hunting.py    problems and starts, until all is solved or tried
    ranking.py    tasks in order of importance
    search.py     `pp.reach`, and what it answers
    asking.py     what the call was given, read
"""
