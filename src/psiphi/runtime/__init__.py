"""The runtime: compiled loops as NumPy functions.

Comes in: addresses of native loops, or functions that compile them. Goes out: gufuncs, called on arrays.

    gufunc.py       a NumPy gufunc from the addresses of loops; read it first
    quickcall.py    one element at once, without NumPy's overhead
    threads.py      big batches on all cores
    cache.py        object code on disk
"""
