"""Targets: each emits code, and some run it.

In: tapes, loops and rollouts. Out: code that runs, or text. Read `target.py` first.

    target.py        what a target is, and the table of all targets
    llvm/            LLVM IR from tapes, and LLVM's compiler
    cpu/             kernels for the CPU psiphi runs on, as NumPy gufuncs
    cuda/            kernels for NVIDIA GPUs, and arrays on them
    c/               C99, CasADi's and acados' C, object code for other machines
    wasm/            WebAssembly with its JavaScript module
    build.py         a request compiled for a target, or loaded from the cache
    compile_notice.py  a line about a compilation that takes more than a second
    kernel_cache.py  object code on disk, so that a second process starts without compiling
"""
