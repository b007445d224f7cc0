"""What the robot IS: a tree of bodies, joints, inertias and frames, as plain immutable data.

Comes in: a URDF file (`urdf.load_urdf`), or calls of `builder.Builder`, through which every reader goes.
Goes out: a `model.Model`, sorted base to tip (`parent[k] < k`), fixed joints merged, checked; what was odd is in `report`.

Read `model.py` first (the data), then `joints.py` (the joint table), `manifold.py` (where configurations move), then
`builder.py` (how a model is made) and `checks.py` (what is accepted, what is refused, what can be repaired). Below them

    skeleton.py                         what a model is made of besides bodies: poses, joints, frames
    values.py, records.py, log.py       what a builder is given, what it remembers, and where its messages stand
    tree.py, assembly.py                from records to a tree, and from the tree to a model
    opening.py, joining.py              from a model back to a builder's records; several models as one forest
    places.py, posing.py, inertias.py   poses and inertias as plain floats; poses as they may be given
    definitions.py                      joints and bodies as 6-D matrices, as definitions are written
    states.py                           finite numbers, unit quaternions
    freed.py                            numbers that are inputs: which, and where they stand
    nonlinear.py, elastic.py            springs that are more than a number; joints whose motor drives through one
    movable.py, motors.py               whether every joint can be moved, and which have motors
    kinds.py                            what two frames that are held together may still do
    clusters.py, cluster_laws.py        joints that move together, and their laws; compound_joints.py: as a manifold sees them
    mode_shapes.py, modal_laws.py       places on a body that bends, their laws; bending.py: how a builder hangs it on a link
    urdf_plus.py                        loops and gears of URDF files
    urdf.py, dh.py                      readers; vocabulary.py, fields.py, shapes.py, xml.py: the words of URDF
    paths.py, packages.py               where meshes and descriptions lie
"""
