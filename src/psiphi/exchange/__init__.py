"""Models of other libraries: MuJoCo's (`pp.from_mujoco`, and MJCF files through its compiler) and Pinocchio's.

In: an MjModel, an MjSpec, an .xml file, a pinocchio.Model. Out: a `Robot`, whose q and v are that library's but for the
conventions that `psiphi.interop` converts; what has no counterpart here is listed in `robot.report`, and is also a
`ModelWarning` where it would change the motion. Read `from_mujoco.py` first: bodies and joints; then

    mujoco_actuators.py    efforts and rotors of motors
    mujoco_equalities.py   connect, weld and joint couplings as loops (`robot.loops`) and mimics
    mujoco_remarks.py      what is listed: a row each
    mujoco_shapes.py       geoms as shapes, for viewers
    from_pinocchio.py      joints of a pinocchio.Model, a row a kind
"""
