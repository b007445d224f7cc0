"""The runtime: text becomes machine code, and its loops NumPy functions.

Comes in: the text of a target. Goes out: gufuncs, called on arrays. Read `target.py` first (all targets).

    target.py       targets, by name
    host.py         the processor psiphi runs on, as a target
    jit.py          LLVM's back end: text -> object code -> addresses in this process
    objects.py      object code and static libraries for other machines
    gufunc.py       a NumPy gufunc from the addresses of loops
    quickcall.py    one element at once, without NumPy's overhead
    threads.py      big batches on all cores
    lazy_arrays.py  Dask arrays: calls on their blocks, made later, perhaps elsewhere
    cache.py        object code on disk
    laid.py         numbers laid as code reads them, and arrays that stay as they are
    memory.py       how much memory is free

    cuda.py         graphics cards of NVIDIA, as a target; nvptx.py: LLVM's back end for them
    launching.py    a call on arrays of a graphics card: read it first of these
    device_arrays.py  how torch, CuPy and JAX show such arrays and make new ones
    dlpack.py       memory of a card that no library holds, or that is lent to one
    promised.py     arrays that are not there yet: what is sent to a card is written down
    driver.py       the card's driver, by ctypes
"""
