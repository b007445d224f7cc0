"""Mesh files.

In: STL, OBJ and COLLADA files. Out: triangles, and convex hulls. Read `mesh_files.py` first.

    mesh_files.py  reads STL and OBJ files, with limits
    collada.py     reads COLLADA files
    mesh_hulls.py  the convex hulls of meshes, as shapes that can touch
    triangles.py   triangle meshes: merging vertices, reducing triangles, the triangle limit
"""
