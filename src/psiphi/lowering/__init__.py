"""From a polynomial of operators to a program of sweeps.

Comes in: a rewritten polynomial (words of letters, see `psiphi.operators.terms`), every vector over links settled as force
or motion. Goes out: a `Program`. Read `graph.py` first (Horner factoring into shared nodes), then `schedule.py` (which sweep
computes which node). What letters do at one body are `steps/`; those that need to know where frames stand are here:

    frames.py, ground.py            the steps of B; of ℰ₀, ℰ_c and U; turning.py that of ω̃
    vectors.py, evaluating.py       results that are vectors or numbers, and what each node of theirs is worth at one body
    gathering.py                    what no single body has: frames of several bodies, sums at the world
    matrices.py, words.py           results that are matrices, and the shapes of their words; columns.py those without one
    regression.py                   torques by inertial parameters, which no operator says
    slopes.py, forward_slopes.py    derivatives of inverse and of forward dynamics, as matrices;
    changes.py, inverse_changes.py  of forward and of inverse dynamics along a vector, and their gradients
    loads.py                        wrenches on frames, in all four
    quasi.py                        velocities that are computed
    loops.py                        it all as the papers' pseudo-code
"""
