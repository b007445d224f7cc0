"""From a tape to the text or machine code of one target.

Comes in: straight-line code, or loops of it. Goes out: text, and addresses of code that runs. Read `target.py` first: what a
target is, and all there are.

    c.py        C99, for other people's programs
    host.py     the processor psiphi runs on, by LLVM. Its parts:
                llvm.py (a tape as LLVM IR), kernel.py (the loop around it), pack.py, trig.py, quick.py (arrays to lanes and
                back, sine and cosine, the door for one element), straight.py, rolled.py (one tape; loops over links),
                joined.py, rollout.py (many blocks in one frame, and the loop over steps around them), jit.py (LLVM's back end)
    cuda.py     graphics cards of NVIDIA, by LLVM. Its parts:
                device.py (a tape as a kernel, one thread a state), parking.py (more numbers than registers), one_tape.py and
                device_rollout.py (several blocks as one tape, and the loop over steps around it), reduction.py (huge angles
                without a C library), nvptx.py (LLVM's back end for cards)
    segments.py    a tape in pieces, for every target
"""
