"""Kernels of the processor psiphi runs on.

In: code. Out: gufuncs, called on arrays. Read `cpu_target.py` first.

    cpu_target.py        The processor psiphi runs on, as a target
    fastcall_kernel.py   A loop's door for one element
    gufunc.py            A true NumPy gufunc from the addresses of native loops, through NumPy's C
                         API table
    gufunc_kernel.py     A whole kernel as LLVM IR
    input_pack.py        Between NumPy's arrays and the frame
    input_strides.py     Where inputs lie, as blocks are told
    loop_kernel.py       Rolled kernels
    output_transpose.py  From the frame to NumPy's arrays, wherever numbers stand in it
    rollout_kernel.py    A rollout as LLVM IR
    scalar_call.py       One element at once
    straight_kernel.py   Straight kernels
    threads.py           Big batches on all cores
"""
