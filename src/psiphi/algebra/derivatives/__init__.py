"""Derivatives of expressions, which are expressions.

In: an `Expression`. Out: its derivative in time or by q. Read `product_rule.py` first.

    configuration_derivative.py  Derivatives of expressions by q or by one of their vectors
    product_rule.py              The product rule
    time_derivative.py           Time derivatives of operators
"""
