"""Files and the models of other libraries.

In: a file, or a model of MuJoCo or Pinocchio. Out: a `Model`; `save.py` writes files. Read
`urdf/urdf.py` first.

    urdf/              URDF, URDF+ and SRDF: readers and writer
    mujoco/            MJCF and MuJoCo models: reader and writer
    from_pinocchio.py  Reader of Pinocchio models
    peer_models.py     Types for the models of MuJoCo and Pinocchio
    dh.py              Serial arms from Denavit-Hartenberg rows
    meshes/            Mesh files, and the convex hulls of meshes
    robots/            Tables of the bundled robots, and generators of chains and trees
    save.py            `robot.save`: writes a robot to a URDF or MJCF file
    conventions/       `pp.interop`: arrays in the conventions of Pinocchio and MuJoCo
"""
