"""A model and one change give a model.

In: a `Model`, joints or links. Out: a `Model`. Read `reconstruction.py` first.

    attachment.py            More of a robot
    flexible_replacement.py  Links that bend
    joint_lock.py            Joints that stand still
    joint_vectors.py         What all joints say together
    name_patterns.py         Which joints, links and frames are meant
    reconstruction.py        A changed description as a robot again
    replacement.py           Small changes
    subtree.py               Less of a robot
"""
