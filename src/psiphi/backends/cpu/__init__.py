"""Kernels for the CPU psiphi runs on.

In: code. Out: NumPy gufuncs, called on arrays. Read `cpu_target.py` first.

    cpu_target.py        the CPU as a target: IR, object code, addresses in this process
    gufunc_kernel.py     the gufunc loop around the code of one block of batch elements, as IR
    straight_kernel.py   the block of a straight-line tape
    loop_kernel.py       the block of loops over the links of a large robot
    rollout_kernel.py    many steps of a simulation in one kernel
    input_pack.py        NumPy arrays to the frame of a block, and back
    output_transpose.py  results at any places of the frame to NumPy arrays
    input_strides.py     inputs that a block reads where they are, and prefetches
    gufunc.py            a NumPy gufunc from the addresses of native loops
    threads.py           large batches on all cores
    fastcall_kernel.py   a C function for one batch element without NumPy's gufunc overhead
    scalar_call.py       that C function as a Python callable
"""
