"""From polynomials of operators to sweep programs.

In: a rewritten polynomial of letters. Out: a `Program`. Read `horner_graph.py` first.

    column_sweeps.py          Matrices whose words have no shape of their own
    frame_gather.py           Values over frames that no single body has
    frame_sweeps.py           Frames in sweeps
    horner_graph.py           Horner factoring
    matrix_sweeps.py          Matrix-valued expressions
    node_value.py             What a node of a graph is worth at one body, direction by direction
    omega_sides.py            ω̃ = diag(w~, w~) is one matrix for forces and motions
    quasi_velocity_sweeps.py  Velocities that are computed, not given
    sweep_schedule.py         Which sweep computes which node
    vector_sweeps.py          Vector-valued expressions
    word_shapes.py            The shapes of matrix words
    world_body.py             The world as the last body
"""
