"""Numbers of a model that are inputs of its functions.

In: a `Model` and groups of numbers. Out: free parameters. Read `free_parameters.py` first.

    free_parameters.py      Numbers of a robot that are inputs and no constants
    inertial_parameters.py  Parameters of a robot
"""
