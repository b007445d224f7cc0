"""Models of robots.

In: links and joints. Out: an immutable `Model`. Read `model.py` first.

    model.py             `Model`
    components.py        The parts of a model: poses, bodies, joints, frames
    named_parts.py       Joints and bodies by number or name
    joint_types.py       The joint table
    manifold.py          The configuration manifold of a robot
    builder/             `Builder`: from calls to records, a tree, checks and a `Model`
    spatial/             6-D algebra of one body on any scalar
    inertias.py          Rotational inertias
    body_matrices.py     6-D matrices of joints and bodies in link frames
    motors.py            Which joints have motors
    state_checks.py      Checks of states: finite, unit quaternions, closed loops
    loops/               Constraints, contacts, gears, and loops as cluster joints
    contact/             `pp.Ground`, and shapes on links that touch it
    flexible/            Beams, Craig-Bampton bodies and series-elastic joints
    mode_shapes.py       Nodes of a flexible body, and their modal joint
    universal_joints.py  Universal joints as two revolute joints
    editing/             A model and one change give a model
    parameters/          Numbers of a model that are inputs of its functions
    shapes.py            Visual and collision shapes of links
    diagnostics.py       Messages of readers, with file, line and element
"""
