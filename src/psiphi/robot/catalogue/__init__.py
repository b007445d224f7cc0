"""Every quantity as its equation.

In: a `Model` and the name of a quantity. Out: an equation for the compiler.
Read `catalogue.py` first.

    catalogue.py         The catalogue: one row for each quantity
    quasi_velocities.py  Dynamics in the quasi-velocities nu and xi (S1)
    tree_programs.py     Quantities without an expression: link poses, pivots, regressors
    frame_inertia.py     The operational-space inertia Λ of frames
    mass_metric.py       The mass matrix as a metric: Christoffel and Riemann symbols
    torque_regressor.py  The regressor of the joint torques
    quantity_request.py  Checks names of quantities, frames and axes
"""
