"""Programs over the tree: a sweep is a direction and a local step; the loop over the tree exists once.

Comes in: a `Tree` and a `Program`. Goes out: a tape (`drive.unroll`, small robots) or a few tapes in loops (`roll.py`, large
ones; `template.py` is the form of their values, `unread.py` drops those that nobody reads; `staged.py`: loops with straight
lines between them). Read `program.py` first, then `drive.py` (the loop) and `interpreter.py` (what a program means),
`legal.py` (what it may do), `limbs.py` (which parts of a tree can be swept side by side).
"""
