"""A compiled function in other libraries' own operations.

In: a compiled function. Out: SymPy expressions, a `casadi.Function`, functions of JAX and torch. Read `sympy_export.py` first.

    array_operations.py     A function in another library's own operations, `to_jax` and `to_torch`
    casadi_export.py        A function as a `casadi.Function`
    symbolic_parameters.py  A function's sweeps with named parameters
    sympy_export.py         A function as SymPy expressions
    textbook_form.py        Expressions of joint angles as textbooks write them
"""
