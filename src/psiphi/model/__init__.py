"""What the robot IS: a tree of bodies, joints, inertias and frames, as plain immutable data.

Comes in: a URDF file (`urdf.load_urdf`), or calls of `builder.Builder`, through which every reader goes.
Goes out: a `model.Model`, sorted base to tip (`parent[k] < k`), fixed joints merged, checked; what was odd is in `report`.

Read `model.py` first (the data), then `joints.py` (the joint table), `manifold.py` (where configurations move), then
`builder.py` (how a model is made) and `checks.py` (what is accepted, what is refused, what can be repaired). The room is
large since every reader and every edit goes through the same records; by what they are for:

what a model is
    skeleton.py                         what it is made of besides bodies: poses, joints, frames
    definitions.py                      joints and bodies as 6-D matrices, as definitions are written
    states.py                           finite numbers, unit quaternions
    nonlinear.py, elastic.py            springs that are more than a number; joints whose motor drives through one
    motors.py                           which joints have motors
    freed.py                            numbers that are inputs: which, and where they stand
    hinged.py                           universal joints as two hinges each
    kinds.py                            what two frames that are held together may still do
    clusters.py, cluster_laws.py        joints that move together, and their laws; compound_joints.py: as a manifold sees them
    mode_shapes.py, modal_laws.py       places on a body that bends, their laws; bending.py: how a builder hangs it on a link

how one is made
    values.py, records.py, log.py       what a builder is given, what it remembers, and where its messages stand
    tree.py, assembly.py, movable.py    from records to a tree, from the tree to a model; whether every joint can be moved
    opening.py, joining.py              from a model back to a builder's records; several models as one forest
    places.py, posing.py, inertias.py   poses and inertias as plain floats; poses as they may be given

how one is read
    urdf.py, urdf_plus.py, dh.py        readers; loops and gears of URDF files
    vocabulary.py, fields.py, xml.py    the words of URDF; shapes.py: what is drawn
    paths.py, packages.py               where meshes and descriptions lie
"""
