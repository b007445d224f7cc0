"""One kernel for many steps of a simulation.

In: a robot or closed chain, a torque or controller, options. Out: a kernel, run on arrays. Read
`rollout_program.py` first.

    rollout_program.py    the blocks of a rollout and their order
    step_blocks.py        blocks of integrators, laws, losses and catalogue quantities
    constraint_blocks.py  blocks of closed chains and joint stops
    contact_blocks.py     blocks of contacts with the ground
    contact_explanation.py  `robot.explain(contacts=ground)`: the solver, and its operations
    contact_step.py       one step on the ground, with what its contacts do
    rollout_inputs.py     the torque input of a rollout as arrays for the kernel
    rollout_runner.py     compiles and runs rollouts on the CPU
    python_fallback.py    re-runs in Python the batch elements that failed in the kernel
    cuda_runner.py        compiles and runs rollouts on the GPU
    initial_state.py      derivatives of q -> unit(q), the normalization of the initial q
    law_function.py       a controller's law as a compiled function of the state
"""
