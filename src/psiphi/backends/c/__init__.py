"""C99, C for CasADi and acados, and object code for other machines.

In: a tape, or loops over links. Out: C text, object code. Read `c_source.py` first.

    c_source.py      C99 of a function
    c_lines.py       lines of C from the nodes of a tape
    c_loops.py       C of long tapes (several functions) and of large robots (loops over links)
    c_rollouts.py    C of loops over steps
    c_columns.py     C of a large robot's matrix: its operator on the columns of the identity
    c_files.py       header, source and test program for use in a controller
    casadi_c.py      C with the interface of CasADi and acados
    c_abi_kernel.py  LLVM IR of a function with C's calling convention
    object_code.py   object code for other machines, and static libraries
"""
