"""6-D algebra of one body on any scalar: screws, rotations, small matrices, dual numbers.

In: floats, arrays or tape expressions. Out: the same. Read `screws.py` first.

    body_stacks.py     Values of several bodies as one
    branch_free.py     Choices without branches, and the arctangent
    cross_products.py  Cross products of spatial vectors, angular part first
    dual_numbers.py    Numbers with a rate
    eigenvalues.py     Functions of symmetric matrices without branches
    pseudo_inverse.py  What to do where X = Q diag(w) Q*, symmetric and non-negative, has no
                       inverse
    rotations.py       Rotations and displacements, generic over scalars
    scalar_arrays.py   Arrays (..., n) as lists of n scalars, and back
    screw_paths.py     What paths of displacements do, from the outer end to the inner one or back
    screws.py          Displacements between frames and what they do to motions, forces, inertias
                       and poses
    small_matrices.py  Small dense matrices of any scalar
    transforms.py      Rotations and places as plain floats, for the thousands of small products
                       made while a model is built
"""
