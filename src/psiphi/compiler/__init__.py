"""The compiler: from an equation to a NumPy function.

Comes in: named results, each an expression of one robot. Goes out: a gufunc, and the way there in words.

    passes.py       the compiler's page, pass by pass; read it first
    equations.py    what is asked: results, arguments, forms
    recognised.py   equations whose derivatives have sweeps of their own
    derivatives.py  jvp, vjp, jacobian and hessian of what is asked
    halves.py       what code makes of a robot's free numbers alone, apart from the rest
    explained.py    an equation's way through the passes, in words
    source.py       one quantity as a gufunc, through the cache
    plans.py        how an expression that is no single program is evaluated; in_factors.py: what is too long to multiply out
"""
