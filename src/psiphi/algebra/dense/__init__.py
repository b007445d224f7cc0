"""Letters and expressions as dense matrices: the definition that tests compare with.

In: an `Expression` and numbers. Out: matrices. Read `dense_value.py` first.

    dense_value.py         The matrix of an expression at a state
    dense_letters.py       The matrices of the letters, by their definitions
    dense_letter_rates.py  The matrices of letters that depend on velocity
    dense_joints.py        H, phi, M and rotors of bodies and of clusters of bodies
    dense_inverse.py       Numerical inverses, and tests for singular matrices
    rank_check.py          Raises an error for inverses that exist at no state
"""
