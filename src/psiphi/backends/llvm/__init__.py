"""LLVM IR from tapes, and LLVM's compiler.

In: a segment of a tape. Out: LLVM IR, object code, addresses. Read `llvm_emitter.py` first.

    llvm_emitter.py     LLVM IR of a segment, scalar or in SIMD lanes
    register_spills.py  the same with register spills by Belady's rule
    lane_functions.py   random numbers, and selections that stop NaN
    sincos.py           sine and cosine as vector code
    angle_reduction.py  sine and cosine of huge angles without a C library
    shared_functions.py functions that kernels share, compiled once per process
    jit.py              IR -> object code -> addresses in this process
"""
