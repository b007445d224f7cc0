"""Parts of a robot: joints that follow given accelerations, and the dynamics of some joints.

In: a robot, names of joints. Out: accelerations and torques. Read `hybrid_dynamics.py` first.

    hybrid_dynamics.py  `robot.hybrid_dynamics`: some joints are held, torques drive the others
    robot_part.py       `robot.part`: some joints, with vectors of their own
"""
