"""Every quantity as its equation.

In: a `Model` and the name of a quantity. Out: an equation for the compiler. Read `quantities.py` first.

    frame_inertia.py     The operational-space inertia Λ of frames, as a program in stages
    quantities.py        The catalogue
    quantity_request.py  Names of quantities, frames and axes, checked
    quasi_velocities.py  Dynamics in the velocities nu and xi that diagonalise the mass matrix (S1
    torque_regressor.py  The regressor of the joint torques
    tree_quantities.py   Quantities that are more than words of the algebra, as programs over the
                         tree
"""
