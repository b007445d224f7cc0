"""Compiled functions: argument checks, calls and derivatives.

In: a `Model`, an equation, arrays. Out: arrays, or an error that says what is wrong. Read
`compiled_function.py` first.

    compiled_function.py        One quantity of one model as a NumPy function
    differentiable_function.py  A compiled function with argument checks and derivatives
    bound_function.py           A compiled function with values for its free parameters
    expression_function.py      `pp.function`: an operator expression as a function
    evaluation_plans.py         Methods to evaluate an expression; the first that applies is chosen
    factor_plans.py             Long expressions: factor by factor, or term by term
    argument_checks.py          Checks of arguments before a call, and their error messages
    result_checks.py            `check=True`: checks of results after a call
    scalar_fast_path.py         Calls for one state without NumPy's overhead
    arrays/                     Arrays of torch, JAX and Dask
    export/                     Functions in the operations of SymPy, CasADi, JAX and torch
"""
