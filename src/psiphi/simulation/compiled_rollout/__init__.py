"""One kernel for many steps.

In: a robot, a law, options. Out: a kernel, run on arrays. Read `rollout_program.py` first.

    constraint_blocks.py  The parts of a compiled step that closed chains add, their own dynamics
                          and the way back onto the constraints
    cuda_runner.py        Whole rollouts on a graphics card, in one launch
    initial_state.py      Where a motion begins
    law_function.py       A controller's law as a function of the state
    python_fallback.py    Some motions of a batch again, step by step in Python
    rollout_inputs.py     What drives a compiled rollout
    rollout_program.py    One compiled rollout as data
    rollout_runner.py     Whole rollouts in one compiled kernel, run
    step_blocks.py        The parts of a compiled step
"""
