"""The callable: arguments, call path, derivatives.

In: a `Model`, an equation, arrays. Out: arrays, or an error that says what is wrong. Read `compiled_function.py` first.

    argument_checks.py          What the doors do with arguments that do not fit
    arrays/                     Arrays of other libraries
    build.py                    From code to a library that runs on a target, through the cache
    compiled_function.py        One quantity of one model as a NumPy function
    differentiable_function.py  A compiled function that can be called by itself, and has
                                derivatives
    evaluation_plans.py         How an expression is evaluated
    export/                     A compiled function in other libraries' own operations
    expression_function.py      `pp.function`
    factor_plans.py             What is too long to be one piece of code, part by part
    scalar_fast_path.py         Calls for one state without NumPy's overhead
    value_checks.py             `check=True`
"""
