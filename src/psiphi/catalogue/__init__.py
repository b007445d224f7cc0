"""The catalogue: what psiphi computes of a robot, each quantity as its equation.

Comes in: a model and the name of a quantity. Goes out: an equation for the compiler.

    dynamics.py            every quantity, as an expression; read it first
    tree_sums.py           what is more than words: all links, pivots, regressors
    frame_inertia.py       the inertia one feels at frames
    quasi_velocities.py    the same in the velocities that diagonalise the mass matrix
"""
