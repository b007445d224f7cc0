"""From a tape to the text or machine code of one target.

Comes in: straight-line code, or loops of it. Goes out: text, and addresses of code that runs. Read `llvm.py` first (a tape as
LLVM IR), then `kernel.py` (the loop around it). Beside them

    segments.py, straight.py, rolled.py   code in pieces: of one tape, and of loops over links
    pack.py, trig.py, quick.py            arrays to lanes and back; sine and cosine; the door for one element
    joined.py, rollout.py                 many blocks in one frame, and the loop over steps around them
    jit.py                                LLVM's back end
    c.py                                  C99
"""
