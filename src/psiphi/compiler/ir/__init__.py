"""Programs above the tape: segments, blocks in one frame, loops, instruction order.

In: tapes and loops. Out: programs for every target. Read `block_frame.py` first.

    block_frame.py        Many blocks joined in one frame
    instruction_order.py  The order in which a tape's numbers are computed
    latency_order.py      Neighbours in an order change places, so that a processor need not wait
    loop_nodes.py         Programs of several blocks
    loop_tables.py        Memory of code in loops over links
    segments.py           Straight-line code in pieces
    tape_fusion.py        Several blocks as one tape
"""
