"""Solving for the multipliers of constraints.

In: a closed chain at a state. Out: accelerations and multipliers. Read `delassus_operator.py` first.

    constraint_solve.py       The solve with the constraints, as stages
    delassus_operator.py      The coupling of mechanisms through their constraints, on scalars of
                              any kind
    dense_saddle.py           The dense system (2.11) of S4, and its answer where neither Omega nor
                               the mass matrix has an inverse
    hub.py                    Many mechanisms around one
    hub_elimination.py        The hub eliminated last (`hub.py`), on scalars of any kind
    rccfd_methods.py          Forward dynamics of closed chains, as equations in stages
    redundant_constraints.py  States where Omega has no inverse
    relative_motion.py        Where constrained frames are and how they move, and the constraint
                              rows that follow from it
    semidefinite_solve.py     Solves with symmetric matrices that may lack rank, without branches
    stage_program.py          Functions of closed systems as programs
"""
