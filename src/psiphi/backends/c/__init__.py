"""C99, CasADi's and acados' C, and object code for other machines.

In: code. Out: text, libraries. Read `c_source.py` first.

    c_abi_kernel.py  One function of C's calling convention as LLVM IR, for object code of any
                     machine
    c_columns.py     C of a large robot's matrix
    c_files.py       A function for somebody's controller, as files
    c_lines.py       Nodes of a tape as lines of C
    c_loops.py       C of what is too long for one straight-line function
    c_source.py      C99 from a tape
    casadi_c.py      A C file with CasADi's own interface
    object_code.py   Object code for other machines, and static libraries of it
"""
