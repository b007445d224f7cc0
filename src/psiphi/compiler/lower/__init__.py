"""Expressions to sweep programs.

In: a rewritten polynomial of letters. Out: a `Program`. Read `horner_graph.py` first.

    horner_graph.py           Horner factoring: a polynomial as a graph of nodes
    sweep_schedule.py         The sweep in which each node is computed
    vector_sweeps.py          Vector-valued expressions and numbers
    node_value.py             The value of a node at one body
    quasi_velocity_sweeps.py  Velocities that are expressions of quasi-velocities
    frame_sweeps.py           Frames: wrenches to bodies, motions to frames
    frame_gather.py           Frame values that are collected at the world
    world_body.py             The world: sums over the roots, centre of mass
    omega_sides.py            The sides of ω̃: forces or motions
    word_shapes.py            The shapes of matrix words
    matrix_sweeps.py          Matrix-valued expressions
    column_sweeps.py          Other matrices: one vector expression per column
"""
