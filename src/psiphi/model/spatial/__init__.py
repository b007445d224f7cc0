"""6-D algebra of one body on any scalar: screws, rotations, small matrices, dual numbers.

In: floats, arrays or tape expressions. Out: the same. Read `screws.py` first.

    screws.py          Displacements between frames; transforms of motions, forces, inertias, poses
    screw_paths.py     The same along a path of displacements
    cross_products.py  Cross products of spatial vectors, angular part first
    rotations.py       Quaternions: product, exponential, logarithm, conversions
    transforms.py      Rotations and placements as plain floats, used while a model is built
    small_matrices.py  Small dense matrices: products, L D L* factors and solves
    body_stacks.py     Vectors and inertias of several bodies as one value
    scalar_arrays.py   Arrays (..., n) as lists of n scalars, and back
    branch_free.py     Minimum, maximum, sign and arctangent without branches
    dual_numbers.py    Dual numbers: forward-mode derivatives
    eigenvalues.py     Functions of symmetric matrices without branches
    pseudo_inverse.py  Inverses of singular symmetric matrices: four policies
"""
