"""Letters, terms and expressions of spatial operators.

In: a `Model`. Out: an `Expression`. Read `expression.py` first.

    expression.py            Expressions and their Python operators
    operators.py             The operators of a robot, `robot.operators`
    letters.py               The table of letters: spaces, structure, weight, printed forms
    terms.py                 Terms (trees of letters) and polynomials of words
    spaces.py                The spaces that operators act between
    block_structure.py       Where the blocks of an operator may be nonzero
    force_motion_duality.py  Which link vectors are forces and which are motions
    type_checks.py           Type checks of products, sums, inverses and names
    multilinear_forms.py     Operators made of vectors: cross products, derivatives of H
    notation.py              Unicode, LaTeX and Python text of a term
    operator_properties.py   Questions about an operator: is_causal, dot_test, ...
"""
