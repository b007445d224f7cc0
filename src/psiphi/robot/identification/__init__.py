"""Inertial parameters from measured torques.

In: a `Robot` and measurements. Out: parameters with their deviations. Read `identify.py` first.

    base_parameters.py        What a robot's torques tell of its inertia
    identification_result.py  What was identified
    identify.py               `pp.identify`
    measurements.py           MeasuredRows motions as rows of a linear system
    physical_consistency.py   The parameters that bodies can have, nearest to what was measured
    regressor_methods.py      A robot's torques by its inertial parameters
"""
