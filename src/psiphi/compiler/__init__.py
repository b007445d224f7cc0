"""The compiler: from an equation to a NumPy function.

Comes in: named results, each an expression of one robot. Goes out: a gufunc, and the way there in words.

    equations.py    what is asked: results, arguments, forms
    source.py       from a program to machine code, through the cache; `Function` is the gufunc
    plans.py        how an expression that is no single program is evaluated
"""
