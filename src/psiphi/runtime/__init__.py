"""The runtime: compiled loops as NumPy functions.

Comes in: addresses of native loops, or functions that compile them. Goes out: gufuncs, called on arrays.

    gufunc.py       a NumPy gufunc from the addresses of loops; read it first
    quickcall.py    one element at once, without NumPy's overhead
    threads.py      big batches on all cores
    cache.py        object code on disk

    launching.py    a call on arrays of a graphics card: read it first of these
    device_arrays.py  how torch, CuPy and JAX show such arrays and make new ones; dlpack.py: memory lent to JAX
    driver.py       the card's driver, by ctypes
"""
