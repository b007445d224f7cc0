"""The 6-D algebra of one body: pure functions over any scalar (float, NumPy array, tape expression).

Comes in: numbers. Goes out: numbers. Spatial vectors are lists of six, angular part first. Read `screws.py` first:
every displacement psiphi meets is a product of axial screws, turns and shifts. Beside it

    along.py       several displacements, one after the other
    crosses.py     cross products of spatial vectors
    rotations.py   quaternions, rotation vectors and matrices
    choices.py     the smaller, the larger, the chosen one, without branches
    small.py       small dense matrices: factors and solves
    spectrum.py    functions of symmetric matrices, by their eigenvalues
    policies.py    what stands for an inverse where there is none
    entries.py     arrays as lists of scalars, and back
    stacks.py      values of several bodies as one
    duals.py       numbers with a rate, to differentiate what is written on scalars
"""
