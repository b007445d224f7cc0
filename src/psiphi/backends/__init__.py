"""Targets: each emits code and runs it.

In: tapes, loops and programs. Out: code that runs, or text. Read `target.py` first.

    c/               C99, CasADi's and acados' C, and object code for other machines
    cpu/             Kernels of the processor psiphi runs on
    cuda/            Kernels of NVIDIA graphics cards
    kernel_cache.py  Object code on disk, one file per entry, so that a second process starts
                     without compiling
    llvm/            LLVM text from tapes, and LLVM's compiler
    target.py        What a target is
    wasm/            WebAssembly with its JavaScript module
"""
