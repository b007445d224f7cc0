"""Scalar straight-line code: what a sweep becomes for one robot.

Comes in: Python arithmetic on `Scalar` handles (the spatial functions run on them unchanged). Goes out: a list of
operations in single-assignment form, already folded, shared and free of dead code, with exact operation counts.
Read `ops.py` first (what it is), then `tape.py` (how it folds), then `evaluation.py` (what it means) and `valid.py`
(what it may hold). `differentiate.py` writes a tape's derivatives.
"""
