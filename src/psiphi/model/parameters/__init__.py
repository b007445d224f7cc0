"""Numbers of a model that are inputs of its functions.

In: a `Model` and groups of parameters. Out: free parameters. Read `free_parameters.py` first.

    free_parameters.py      The groups of parameters, and their places in the array of parameters
    inertial_parameters.py  Parameters from masses, payloads or at random; physical consistency
"""
