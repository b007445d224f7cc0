"""From a polynomial of operators to a program of sweeps.

Comes in: a rewritten polynomial (words of letters, see `psiphi.operators.polynomial`), every vector over links settled as force
or motion. Goes out: a `Program`. Read `graph.py` first (Horner factoring into shared nodes), then `schedule.py` (which sweep
computes which node), `local.py` (what a letter does at one body; `newton.py` and `rates.py` are its longer steps, `frames.py`
those of B, `ground.py` those of ℰ₀ and ℰ_c, `turning.py` that of ω̃), then the kinds of results: `vectors.py` (also numbers;
`gathering.py` is what no single body has: frames of several bodies, sums at the world), `matrices.py` (with the shapes of
`words.py`), `columns.py` (matrices without one), `quasi.py` (velocities that are computed). `loops.py` prints it all as the
papers' pseudo-code.
"""
