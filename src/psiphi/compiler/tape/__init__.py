"""Scalar straight-line code in static single-assignment form.

In: Python arithmetic on `Scalar`. Out: operations, folded and shared, with exact counts.
Read `tape.py` first.

    ops.py              the operations of a tape, and their columns in a count
    tape.py             `Tape`, its expressions (`Scalar`), and `Count`
    tape_checks.py      the invariants of a tape
    tape_evaluation.py  the interpreter of tapes, on numbers, arrays or other scalars
    array_trace.py      traces a rule on arrays to straight-line code
"""
