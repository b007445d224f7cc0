"""Solids, meshes and link poses.

In: a robot and its meshes (`io/meshes/`). Out: solids with poses. Read `solids.py` first.

    solids.py        coloured solids, each fixed to a body, and their surfaces
    link_poses.py    poses of all links at all times
    urdf_visuals.py  solids from the shapes of a URDF file
    stick_figure.py  solids of a robot without shapes, from its kinematics and inertias
    terrain.py       the heights of a ground
"""
