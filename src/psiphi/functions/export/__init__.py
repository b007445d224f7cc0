"""A compiled function in other libraries' own operations.

In: a compiled function. Out: SymPy expressions, a `casadi.Function`, functions of JAX and torch.
Read `sympy_export.py` first.

    sympy_export.py         A function as SymPy expressions
    textbook_form.py        Expressions of joint angles as textbooks write them
    symbolic_parameters.py  Code with the masses and lengths of the links as named symbols
    casadi_export.py        A function as a `casadi.Function`
    array_operations.py     A function in the operations of JAX or torch: `to_jax`, `to_torch`
"""
