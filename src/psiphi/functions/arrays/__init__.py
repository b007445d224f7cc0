"""Arrays of other libraries: torch, JAX and Dask.

In: a compiled function, arrays of a library. Out: arrays of that library, with its derivatives. Read `array_dispatch.py` first.

    array_dispatch.py     The one door for arrays that are not NumPy's
    dask_arrays.py        Dask arrays
    function_registry.py  Functions by number
    jax_primitives.py     Functions as primitives of JAX
    torch_operators.py    Functions as operators of torch, with autograd, fake and vmap rules
    xla_cpu.py            A function as XLA calls it
    xla_cuda.py           A function as XLA calls it on a graphics card
"""
