"""`Robot` and `System`, with their functions.

In: a `Model`, or the name of a file. Out: arrays. Read `robot.py` first.

    bundled_robots.py         Robots that come with psiphi, one function each, and generators of
                              chains and trees for tests and benchmarks
    catalogue/                Every quantity as its equation
    coordinate_functions.py   Configurations moved, compared and scaled as compiled functions
    coordinate_methods.py     A robot whose configurations are arrays of any library
    diagonal_dynamics.py      `robot.diagonalised`
    editing_methods.py        A model that can be changed
    embedding/                Loops and gears of a robot as joints
    frame_methods.py          A robot's frames, and the momenta of its bodies
    free_robot.py             A robot with numbers that are inputs
    identification/           Inertial parameters from measured torques
    joint_law_derivatives.py  The laws of one joint with their slopes, as compiled functions for
                              arrays of every library
    load.py                   The ways in, each ending in a `Robot`
    matrix_by_columns.py      Matrices of large robots, too large to write out in code
    mechanisms/               Closed chains
    operational_inertia.py    The operational-space inertia (J M^-1 J*)^-1, and what to do where J
                              M^-1 J* has no inverse
    quantity_methods.py       A robot's functions by their names
    robot.py                  The robot at the door
"""
