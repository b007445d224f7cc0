"""Tapes on other people's scalars: the code of any function as SymPy expressions, or as a CasADi function.

Comes in: a compiled function of a robot. Goes out: `Symbolic`, or `casadi.Function`. A tape is a list of operations, and
`tape/evaluation.py` runs it on anything; here is what the operations mean elsewhere. Read `symbolic.py` first, then

    named.py           the same sweeps on masses, lengths and inertias that are symbols
    textbook.py        sines and cosines as textbooks write them
    casadi_bridge.py   CasADi
    array_bridges.py   JAX and torch, in their own operations
"""
