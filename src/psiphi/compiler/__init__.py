"""The compiler. It does not depend on the target.

In: named results, each an expression of one robot. Out: tapes and loops. Read `passes.py` first.

    passes.py           The compiler on one page
    equations.py        Requests of the compiler
    axes/               The tree, in the link axes that cost least
    lower/              Expressions to sweep programs
    recursions/         The step of each letter at one body, on floats, arrays and tape scalars
    sweeps/             Programs over the tree, run on arrays, on a tape, or in loops
    tape/               Straight-line scalar code in single-assignment form
    ir/                 Programs of several tapes and loops
    autodiff/           Derivatives of equations and of tapes
    parameter_split.py  The part of the code that depends on free parameters only
    explanation.py      The way of an equation through the passes, as text
    pseudocode.py       A lowered expression as the papers' pseudo-code
"""
