"""The meaning of letters and expressions as matrices: the definition that tests compare with.

In: an `Expression` and numbers. Out: matrices. Read `dense_value.py` first.

    dense_inverse.py       Inverses with numbers, and where there is none
    dense_joints.py        What has a joint, as matrices
    dense_letter_rates.py  The letters that need a velocity, as matrices
    dense_letters.py       The letters as matrices, straight from their definitions
    dense_value.py         What an expression means
    rank_check.py          Inverses that cannot exist
"""
