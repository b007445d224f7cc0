"""Files and the models of other libraries.

In: a file, or a model of MuJoCo or Pinocchio. Out: a `Model`, and files again. Read `urdf/urdf.py` first.

    conventions/       psiphi's arrays in the conventions of Pinocchio and MuJoCo, and back,
                       exactly
    dh.py              Serial arms from Denavit-Hartenberg rows, in either convention
    from_pinocchio.py  Pinocchio's model as a robot
    mujoco/            MJCF and MuJoCo's models
    robots/            Tables of the bundled robots, and generators of chains and trees
    save.py            A robot into a file
    urdf/              URDF, URDF+ and SRDF
"""
