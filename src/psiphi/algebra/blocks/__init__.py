"""Statements about blocks psi[k, j]: their normal form, and proofs by induction.

In: blocks of expressions. Out: normal forms and proofs. Read `block_element.py` first.

    block_element.py      Blocks s.psi[k, j], their products and sums along a path
    body_indices.py       Bodies named by letters, and facts about their order: k > j
    block_terms.py        The factors of blocks, and polynomials of them
    block_expansion.py    Blocks of expressions in terms of blocks of letters
    block_normal_form.py  The normal form of a polynomial of blocks
    block_induction.py    Proofs by normal form and by induction along a path
    block_values.py       The numerical values of blocks on a robot
    block_table.py        The matrix of an expression with labelled blocks, and its plot
"""
