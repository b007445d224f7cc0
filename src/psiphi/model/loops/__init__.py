"""Constraints, contacts and gears, and loops as cluster joints.

In: pairs of frames and the type of joint between them. Out: constraints and clusters. Read
`constraints.py` first.

    constraints.py              The constraints of a system
    closure_types.py            Table of joint types between two frames: weld, ball, hinge, ...
    contacts_and_loops.py       `pp.Contact` and `pp.Loop`, and the checks that read them
    gears.py                    `pp.Gear`: joints that follow others
    forest_model.py             Several mechanisms as one model
    clusters.py                 Clusters: bodies whose joints move together
    cluster_search.py           Which bodies form a cluster, and the order of bodies with clusters
    cluster_kinematics.py       X, dX/dt β and loop closure of a cluster, on scalars
    cluster_joints.py           A cluster as one joint of the manifold
    independent_coordinates.py  A closed configuration and the free coordinates of a cluster
"""
