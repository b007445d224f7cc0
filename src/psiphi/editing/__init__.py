"""Changing a robot: robots never change, each verb returns a new one. In: a robot and words. Out: a robot.

A robot remembers what it was built from, link by link (`Model.description`). A verb opens that in a `Builder`, changes records,
and builds and checks again: frames, shapes, postures and names come along, and what cannot move is refused.
Read `editable.py` first (the verbs, as a robot has them), then

    picking.py         names and patterns: which joints, links and frames are meant; where a frame sits
    locking.py         joints that stand still at a posture
    cutting.py         a subtree alone, or a robot without some of it
    attaching.py       bodies, tools and robots, welded or on a joint
    changing.py        frames, gravity, base, inertia, postures
    flexing.py         links that bend
    rebuilding.py      the changed description as a robot again
    joint_vectors.py   limits, damping, ... of all joints as vectors; names and places of coordinates
    saving.py          into a file: urdf_writing.py, mjcf_writing.py; xml_writing.py is what both write with
    srdf.py            postures from an SRDF file
"""
