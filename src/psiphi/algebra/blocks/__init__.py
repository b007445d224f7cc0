"""Statements about blocks psi[k, j]: their normal form, and proofs by induction.

In: blocks of expressions. Out: normal forms and proofs. Read `block_table.py` first.

    block_element.py      Blocks of operators, by the letters of their bodies
    block_expansion.py    Blocks of expressions as what they are made of
    block_induction.py    Proofs of statements about blocks
    block_normal_form.py  Blocks in normal form
    block_table.py        An expression's matrix, block by block, with the names of joints, links
                          and frames
    block_terms.py        What statements about blocks are made of
    block_values.py       What blocks are on a robot at a state
    body_indices.py       Bodies by letters, and what is known of how they stand
"""
