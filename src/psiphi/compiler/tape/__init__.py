"""Scalar straight-line code in single-assignment form.

In: Python arithmetic on `Scalar`. Out: operations, folded and shared, with exact counts. Read `ops.py` first.

    array_trace.py      A rule on arrays of tape expressions, traced to straight-line code
    ops.py              The operations of a tape, and the column of a count each belongs to
    tape.py             The tape
    tape_checks.py      What a tape may hold
    tape_evaluation.py  What a tape means
"""
