"""Programs over the tree: a sweep is a direction and a local step.

In: a `Tree` and a `Program`. Out: a tape, or loops over classes of links. Read `sweep_program.py`
first.

    sweep_program.py   The language of sweeps
    tree_loop.py       The one loop over the tree, and straight-line code
    interpreter.py     The meaning of a program, on NumPy arrays
    program_checks.py  Checks of programs, for tests
    link_loops.py      Large robots: loops over classes of links
    value_template.py  Templates of the values in records and messages
    dead_values.py     Removal of stores that nothing reads
    stage_loops.py     Large robots: loops with straight-line code between them
    limbs.py           The branches of a tree that can run in parallel
"""
