"""What each letter does at one body, on floats, arrays and tapes alike.

In: a body, what its parent kept and its children sent. Out: vectors, and what the body keeps. Read `body_step.py` first.

    body_step.py         What each letter does at one body, in the body's working axes
                         (docs/mathematics.md sections 1 to 4)
    cluster_step.py      What a cluster of bodies does that one body does not
    composite_bodies.py  Derivatives of Newton and Euler's equations at one body
    inertia_rates.py     Derivatives along the motion at one body
    multilinear_step.py  What letters made of vectors do at one body, or at its frames
    newton_euler.py      Newton and Euler at one body
"""
