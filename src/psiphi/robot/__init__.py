"""`Robot` and `System`, with their functions.

In: a `Model`, or the name of a file. Out: arrays. Read `robot.py` first.

    robot.py                  `Robot`: a model with its dynamics functions
    load.py                   Functions that make a `Robot`: files, names, DH rows, `Builder`
    bundled_robots.py         Bundled robots, and generators of chains and trees
    catalogue/                Every quantity as its equation
    quantity_methods.py       Functions by name: look up, call, check
    frame_methods.py          Functions of frames, operational-space inertia, momenta
    coordinate_methods.py     Functions of configurations: integrate, difference, rate
    coordinate_functions.py   The same, compiled
    parts/                    `robot.hybrid_dynamics` and `robot.part`: some joints of a robot
    editing_methods.py        Methods that change a robot
    free_robot.py             `FreeRobot`: a robot with free parameters
    diagonal_dynamics.py      `robot.diagonalised`: dynamics in quasi-velocities
    matrix_by_columns.py      Matrices of large robots, column by column
    operational_inertia.py    Policies for a singular operational-space inertia
    joint_law_derivatives.py  Derivatives of the laws of one joint
    mechanisms/               Closed chains: `System`, `pp.connect`, `pp.grasp`
    embedding/                Loops and gears embedded as joints: `pp.embed`
    identification/           Inertial parameters from measured torques: `pp.identify`
"""
