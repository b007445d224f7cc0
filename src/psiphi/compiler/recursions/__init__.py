"""What each letter does at one body, on floats, arrays and tape scalars.

In: a body, the record of its parent and the messages of its children. Out: vectors, and what the
body stores for later. Read `body_step.py` first.

    body_step.py         The step of each letter at one body
    newton_euler.py      Newton-Euler equations of one body; composite bodies
    inertia_rates.py     Derivatives of the articulated inertia along the motion
    cluster_step.py      The steps of a cluster: bodies whose joints move together
    multilinear_step.py  Letters with vectors in their slots, at one body or at its frames
    composite_bodies.py  Derivatives of the Newton-Euler equations: composites of moving bodies
"""
