"""`Builder`: calls become records, a tree, checks and a `Model`.

In: calls of a `Builder`. Out: a checked `Model`. Read `builder.py` first.

    builder.py            `Builder`, which makes all models
    builder_values.py     Arguments of builder calls as floats
    pose_values.py        Pose arguments
    nonlinear_springs.py  Springs with a table or a polynomial
    records.py            The records of the calls
    model_checks.py       Checks of links, joints and models; repairs
    welded_tree.py        From records to a tree; fixed joints weld links to one body
    assembly.py           From the tree to a `Model`
    mobility_check.py     Checks that the mass matrix is invertible
    description.py        From a model back to records
"""
