"""What the robot IS: a tree of bodies, joints, inertias and frames, as plain immutable data.

Comes in: a URDF file (`urdf.load_urdf`), or calls of `builder.Builder`, through which every reader goes.
Goes out: a `model.Model`, sorted base to tip (`parent[k] < k`), fixed joints merged, checked; what was odd is in `report`.

Read `model.py` first (the data), then `joints.py` (the joint table), then `builder.py` (how a model is made) and
`checks.py` (what is accepted, what is refused, what can be repaired).
"""
