"""From a polynomial of operators to a program of sweeps.

Comes in: a rewritten polynomial (words of letters, see `psiphi.operators.polynomial`). Goes out: a `Program`. Read
`graph.py` first (Horner factoring into shared nodes), then `schedule.py` (which sweep computes which node), `local.py` (what
a letter does at one body), `vectors.py` and `matrices.py` (the two kinds of results).
"""
