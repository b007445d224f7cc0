"""Operator equations.

In: a `Model`, and what the user writes. Out: an `Expression` in normal form, proofs. Read `expressions/expression.py` first.

    blocks/       Statements about blocks psi[k, j]
    dense/        The meaning of letters and expressions as matrices
    derivatives/  Derivatives of expressions, which are expressions
    expressions/  Letters, terms and expressions of spatial operators
    rewriting/    Identities, completion, normal form and proof
"""
