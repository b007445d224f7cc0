"""What a letter does at one body: pure functions over any scalar, on floats, arrays and tapes alike.

Comes in: a `Site` (a body of the tree, what its parent kept, what its children sent) and vectors over it. Goes out: vectors,
and what the body keeps. Read `local.py` first (each letter's step), then `together.py` (bodies whose joints move together),
`newton.py` (Newton and Euler's: velocities, accelerations and forces of one body; all that a joint carries as one),
`inertia_rates.py` (time derivatives of articulated inertias), `formed.py` (letters made of vectors) and `composites.py`
(derivatives of forces).
"""
