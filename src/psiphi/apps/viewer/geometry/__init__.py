"""Solids, meshes and where links are.

In: a robot, its files. Out: triangles and solids with poses. Read `solids.py` first.

    collada.py       COLLADA scenes into triangles
    link_poses.py    Where every link is
    mesh_files.py    Mesh files into triangles
    solids.py        What is drawn
    stick_figure.py  A robot without shapes, drawn out of its kinematics and inertias
    triangles.py     Triangles
    urdf_visuals.py  The shapes of a URDF description as pieces on the bodies of a model
"""
