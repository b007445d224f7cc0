"""`OptimalControl.solve` of arrays of torch and JAX, with the derivatives of their library.

In: a problem, its start, goals and parameters as arrays. Out: `OptimalArrays`.
Read `optimum_function.py` first.

    optimum_function.py  the optimum as a function of arrays, its pullback and pushforward
"""
