"""Programs over the tree: a sweep is a direction and a local step; the loop over the tree exists once.

Comes in: a `Model` and a `Program`. Goes out: a tape (`unroll.py`, small robots) or a few tapes in loops (`roll.py`,
large ones; `template.py` is the form of their values). Read `program.py` first, then `drive.py` (the loop) and `interpreter.py`
(what a program means), then `framing.py` (which axes the links get, by `decompose.py`) and `link.py` (a body's numbers).
"""
