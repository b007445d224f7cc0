"""LLVM text from tapes, and LLVM's compiler.

In: a tape. Out: LLVM text, object code, addresses. Read `llvm_emitter.py` first.

    angle_reduction.py  Sine and cosine of huge angles without a C library
    jit.py              LLVM's back end, and nothing of ours
    llvm_emitter.py     LLVM IR from segments
    register_spills.py  Registers by hand
    sincos.py           Sine and cosine as vector code
"""
