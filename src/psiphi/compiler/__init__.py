"""The compiler, which knows no target.

In: named results, each an expression of one robot. Out: tapes and loops. Read `passes.py` first.

    autodiff/           Derivatives of equations and of tapes
    axes/               The tree in the link axes that cost least
    equations.py        What is asked of the compiler
    explanation.py      An equation's way through the passes, in words
    ir/                 Programs above the tape
    lower/              From polynomials of operators to sweep programs
    parameter_split.py  What code makes of the robot's free numbers alone, apart from the rest
    passes.py           The compiler, on one page
    pseudocode.py       A lowered expression as the papers' pseudo-code
    recursions/         What each letter does at one body, on floats, arrays and tapes alike
    sweeps/             Programs over the tree
    tape/               Scalar straight-line code in single-assignment form
"""
