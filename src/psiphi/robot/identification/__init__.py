"""Inertial parameters from measured torques.

In: a `Robot` and measurements. Out: parameters with their deviations. Read `identify.py` first.

    identify.py               `pp.identify`: weighted least squares
    measurements.py           Measured motions as rows of a linear system
    base_parameters.py        The combinations of parameters that torques depend on
    physical_consistency.py   The physically consistent parameters nearest to the measurements
    identification_result.py  The result, with a report, a plot and the identified robot
    regressor_methods.py      The methods of `Robot` for regressors and base parameters
"""
