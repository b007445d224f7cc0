"""Constraints, contacts and gears, and loops as cluster joints.

In: frames, and the motions held between them. Out: constraints and clusters. Read `constraints.py` first.

    closure_types.py            What two frames may still do relative to each other
    cluster_joints.py           The joints of a model whose loops are embedded, as a manifold sees
                                them
    cluster_kinematics.py       X, dX/dt β and the closing of a cluster, on scalars
    cluster_search.py           Which bodies make one cluster, and the order in which bodies stand
                                then
    clusters.py                 Bodies whose joints move together
    constraints.py              The constraints of a system
    contacts_and_loops.py       What the ways to a closed system are given, read with care
    forest_model.py             Several mechanisms as one forest
    gears.py                    Joints that follow others
    independent_coordinates.py  A cluster made whole
"""
