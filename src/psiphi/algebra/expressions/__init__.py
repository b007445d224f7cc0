"""Letters, terms and expressions of spatial operators.

In: a `Model`. Out: an `Expression`. Read `expression.py` first.

    block_structure.py       Where an operator's blocks may be nonzero, and what products make of
                             it
    expression.py            What the user writes
    force_motion_duality.py  Forces and motions
    letters.py               The letters of the algebra
    multilinear_forms.py     Operators made of vectors
    notation.py              Three ways to print a term
    operator_properties.py   Questions about an operator, as functions
    operators.py             The operators of one robot
    spaces.py                The spaces operators act between
    terms.py                 What an expression is made of
    type_checks.py           What may be written
"""
