"""From a tape to the text of one target.

Comes in: straight-line code, or loops of it. Goes out: text. What a target is, and which of them run here: `runtime/target.py`.

    c.py           C99, for other people's programs, of lines in c_lines.py; c_loops.py writes what is long: pieces, and loops
                   over links; c_columns.py matrices of large robots; c_files.py puts a header and a test program beside it
    casadi_c.py    C with CasADi's interface, Jacobian included
    plain.py       LLVM IR of one C function that calls nothing, for object code of other machines
    wasm.py        WebAssembly in a JavaScript module, for pages
    kernel.py      LLVM IR for the processor psiphi runs on; read it first. Its parts:
                   llvm.py (a tape as LLVM IR), pack.py, delivery.py (arrays to lanes and back, large ones past the caches),
                   whereabouts.py (where inputs lie that need not be packed, or are fetched ahead),
                   trig.py, quick.py (sine and cosine, the door for one element), straight.py, rolled.py (one tape; loops over
                   links), joined.py, rollout.py (many blocks in one frame, and the loop over steps around them)
    device.py      LLVM IR for graphics cards, one thread a state. Its parts:
                   staging.py (rows of arrays), team.py (a limb a warp), one_tape.py and device_rollout.py (several blocks as
                   one tape, and the loop over steps around it), reduction.py (huge angles without a C library),
                   constant_bank.py (numbers of long code)
    segments.py    a tape in pieces, for every target; ordering.py: in an order in which few numbers wait; interleaving.py: and
                   in which the processor waits for few; parking.py: where those wait that registers do not hold, on processors
                   and on cards
"""
