"""What a robot is.

In: links and joints. Out: an immutable `Model`. Read `model.py` first.

    body_matrices.py     Joints and bodies as 6-D matrices in public link axes, for one state or a
                         batch
    builder/             Builder calls become records, a tree, checks and a `Model`
    components.py        What a model is made of besides bodies
    diagnostics.py       Where a message of a reader stands
    editing/             A model and one change give a model
    flexible/            Beams, Craig-Bampton bodies and series-elastic joints
    inertias.py          Rotational inertias about the centre of mass as six floats (ixx, ixy, ixz,
                          iyy, iyz, izz)
    joint_types.py       The joint table
    loops/               Constraints, contacts and gears, and loops as cluster joints
    manifold.py          The configuration manifold of a robot
    mode_shapes.py       Places on a body that bends, and the joint they hang on it by
    model.py             What a robot IS
    motors.py            Which joints have motors
    parameters/          Numbers of a model that are inputs of its functions
    shapes.py            Visual and collision shapes of a URDF link
    spatial/             6-D algebra of one body on any scalar
    state_checks.py      What a state must be
    universal_joints.py  Universal joints as two hinges, with a body between them that has no mass
"""
