"""Derivatives of expressions, which are expressions.

In: an `Expression`. Out: its derivative by time, by q or by a vector. Read `product_rule.py` first.

    product_rule.py              The derivative of a term from those of its letters
    time_derivative.py           d/dt: a row per letter, local and inertial
    configuration_derivative.py  Derivatives by q or by a vector of the expression
"""
