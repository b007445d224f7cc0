"""Kernels of NVIDIA graphics cards.

In: code, arrays in the memory of a card. Out: PTX, launches, arrays on the card. Read `cuda_target.py` first.

    constant_memory.py      Numbers of a long kernel in the constant memory of a graphics card
    cuda_driver.py          The driver of NVIDIA's graphics cards, by ctypes
    cuda_kernel.py          A tape as the kernel of a graphics card
    cuda_rollout_kernel.py  A rollout as the kernel of a graphics card
    cuda_target.py          Graphics cards of NVIDIA as a target
    deferred_arrays.py      Arrays of a card that are not there yet
    device_arrays.py        Arrays on graphics cards, by library
    dlpack.py               Memory of a card that no library of arrays holds
    kernel_launch.py        A call on arrays of a graphics card
    nvptx.py                LLVM's NVPTX back end
    shared_memory.py        Rows of arrays on a graphics card, (n, size)
    warp_team.py            A state of a large robot done by several warps of a graphics card
"""
