"""Kernels for NVIDIA GPUs.

In: code, arrays on a GPU. Out: PTX, launches, arrays on the GPU. Read `cuda_target.py` first.

    cuda_target.py          NVIDIA GPUs as a target
    cuda_kernel.py          a tape as a CUDA kernel, one thread per state
    shared_memory.py        rows of arrays to the threads of a warp through shared memory
    constant_memory.py      constants of a long kernel in constant memory
    warp_team.py            one state of a large robot on several warps
    cuda_rollout_kernel.py  a rollout as a CUDA kernel, one thread per motion
    nvptx.py                LLVM's NVPTX back end: IR -> PTX
    driver_bindings.py      ctypes bindings of NVIDIA's driver
    kernel_launch.py        launches a kernel on GPU arrays: checks, result arrays, `enqueue`
    device_arrays.py        GPU arrays of torch, CuPy and JAX
    dlpack.py               GPU memory owned by psiphi, and its export by DLPack
    deferred_arrays.py      stand-ins for arrays that exist only when an XLA program runs
"""
