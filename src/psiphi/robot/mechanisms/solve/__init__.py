"""The multipliers of the constraints.

In: a closed chain in one state. Out: accelerations and multipliers. Read `delassus_operator.py`
first.

    delassus_operator.py      Jc, the bias and the Delassus operator Omega
    relative_motion.py        poses and motions of the constrained frames, constraint rows
    rccfd_methods.py          forward dynamics as equations in stages: RCCFD1 to RCCFD3 and more
    stage_program.py          programs of stages: sweeps and small dense algebra
    constraint_solve.py       the stages that solve for the multipliers
    hub.py                    the mechanism that is eliminated last
    hub_elimination.py        its elimination
    semidefinite_solve.py     branch-free solves that skip redundant rows
    redundant_constraints.py  multipliers of least norm for a singular Omega
    dense_saddle.py           the dense system, also for a singular mass matrix
"""
