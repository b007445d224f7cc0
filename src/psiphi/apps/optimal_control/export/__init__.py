"""`pp.MPC` as C: every step takes the same time, and nothing is allocated.

In: a controller. Out: header, source and test program. Read `mpc_source.py` first.

    mpc_source.py   the C of the controller: its loops over the nodes, and the iteration around them
    mpc_template.py the text of the iteration
"""
