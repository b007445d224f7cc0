"""Helpers that know nothing of psiphi.

In: Python values. Out: checked values, messages. Read `validate.py` first.

    array_types.py    Types of arrays at the public functions
    deprecation.py    Old public names, which keep working for one minor version
    errors.py         One exception tree
    escape.py         Names on their way into other languages
    extras.py         Packages that are needed only when asked for, imported then, with the extra
                      that brings them
    files.py          Files that are written whole or not at all
    free_memory.py    How much memory is free
    late_methods.py   Methods that are implemented in a later package than their class
    memory_layout.py  Numbers laid as code reads them, number by number with all elements side by
                      side
    plots.py          Matplotlib figures without pyplot
    text.py           Words for messages
    validate.py       What a call may be given
"""
