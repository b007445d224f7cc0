"""A model and one change give a model.

In: a `Model` and names of joints, links or frames. Out: a `Model`. Read `reconstruction.py` first.

    reconstruction.py        From an edited builder to a robot
    name_patterns.py         Names of joints, links and frames, and patterns of names
    replacement.py           Replace inertias, frames, the base
    joint_lock.py            Fix joints at a configuration
    subtree.py               Keep or remove subtrees
    attachment.py            Attach a body or another robot
    flexible_replacement.py  Replace a rigid link by a flexible body
"""
