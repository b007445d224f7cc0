"""Programs above the tape: order of instructions, segments, several blocks in one frame, loops.

In: tapes and loops. Out: programs that any target can emit. Read `segments.py` first.

    segments.py           straight-line code as segments: what an emitter reads
    instruction_order.py  the order of a tape's instructions: few live values
    latency_order.py      neighbouring instructions reordered to hide latency
    loop_tables.py        the frame layout and the tables of loops over links
    block_frame.py        several blocks in one frame of values
    lane_blocks.py        blocks of random numbers, selections that stop NaN, and tables
    loop_nodes.py         programs of several blocks: one step, a rollout, a loop inside a step
    tape_cut.py           where to cut a tape into an early and a late part
    stage_split.py        straight-line code as stages, with other code between them
    tape_fusion.py        several blocks fused into one tape
"""
