"""Helpers that are independent of robots.

In: Python values. Out: checked values and texts of messages. Read `validate.py` first.

    validate.py        Checks of arguments: arrays, numbers, names, flags, paths
    array_types.py     Types of array arguments and results
    errors.py          The exception classes
    text.py            Parts of messages: short reprs, tables, names that are close
    escape.py          Escapes names for C, HTML, XML, JSON, CSV, LaTeX and terminals
    extras.py          Imports of optional packages
    deprecation.py     Old public names, which still work for one minor version
    internal_names.py  Hides internal attributes from dir()
    late_methods.py    Methods that are implemented in a later package than their class
    memory_layout.py   Arrays whose memory layout suits compiled code
    free_memory.py     How much memory is free
    files.py           Atomic writes of files
    plots.py           Matplotlib figures without pyplot
"""
