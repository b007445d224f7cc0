"""Builder calls become records, a tree, checks and a `Model`.

In: calls of a `Builder`. Out: a checked `Model`. Read `builder.py` first.

    assembly.py           From the walked tree to a `Model`
    builder.py            The one place where models are made
    builder_values.py     What a builder call may be given
    description.py        From a model back to what a builder collects
    mobility_check.py     Can every joint be moved? Exactly when each D(k) of the articulated-
                          inertia sweep is positive definite
    model_checks.py       The policy
    nonlinear_springs.py  Springs of joints that are more than a number
    pose_values.py        A pose as it may be given
    records.py            What a builder remembers of each call until the model is built
    tree_walk.py          From records to a tree
"""
