"""Solids, meshes and link poses.

In: a robot and its mesh files. Out: solids with poses, and triangles. Read `solids.py` first.

    solids.py        coloured solids, each fixed to a body, and their surfaces
    link_poses.py    poses of all links at all times
    urdf_visuals.py  solids from the shapes of a URDF file
    stick_figure.py  solids of a robot without shapes, from its kinematics and inertias
    mesh_files.py    reads STL and OBJ files
    collada.py       reads COLLADA files
    terrain.py       the heights of a ground
    triangles.py     triangle meshes: merging vertices, reducing triangles, the triangle limit
"""
