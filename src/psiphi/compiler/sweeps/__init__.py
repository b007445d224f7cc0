"""Programs over the tree: a sweep is a direction and a local step.

In: a `Tree` and a `Program`. Out: a tape, or loops over classes of links. Read `sweep_program.py` first.

    dead_values.py     What steps of loops leave for others, and nobody reads on the way to a
                       result
    interpreter.py     What a program means
    limbs.py           The limbs of a tree
    link_loops.py      Large robots
    program_checks.py  What a program may do
    stage_loops.py     Stages of a large robot
    sweep_program.py   The language of sweeps
    tree_loop.py       The loop over the tree
    value_template.py  The form of a value
"""
