"""Arrays of other libraries: torch, JAX and Dask.

In: a compiled function, arrays of a library. Out: arrays of that library, with its derivatives.
Read `array_dispatch.py` first.

    array_dispatch.py     The entry point for arrays that are not NumPy's
    function_registry.py  Functions by number, their protocols, rules that torch and JAX share
    torch_operators.py    Functions as torch operators, with autograd, fake and vmap rules
    jax_primitives.py     Functions as JAX primitives
    xla_cpu.py            The machine code that XLA calls on the CPU
    xla_cuda.py           The machine code that XLA calls on the GPU
    dask_arrays.py        Dask arrays
"""
