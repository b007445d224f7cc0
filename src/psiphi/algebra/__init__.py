"""Operator equations.

In: a `Model`, and what the user writes. Out: an `Expression` in normal form, a proof. Read
`expressions/expression.py` first.

    expressions/  Letters, terms and expressions; type checks; printing
    dense/        The matrix of an expression at a state: the definition that tests compare with
    derivatives/  Derivatives of expressions by time, q or a vector
    rewriting/    Identities, completion, normal form and proof
    blocks/       Statements about blocks psi[k, j], and proofs by induction
"""
