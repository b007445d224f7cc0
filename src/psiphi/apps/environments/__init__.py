"""Environments for reinforcement learning: `pp.environment`.

In: a robot, a ground, an actuation, and terms: observations, rewards, terminations, resets. Out: an
`Environment`, whose control step is one compiled kernel. Read `environment.py` first.

    environment.py          `pp.environment` and `Environment`: pure functions on batches of states
    environment_input.py    The arguments of `pp.environment`, read and checked
    terms/                  Observations, rewards, terminations: words and traced functions
    state_resets.py         The state at the start of an episode
    randomization.py        Numbers of the robot, controller and ground of an episode
    step_events.py          New commands, pushes, the delay of actions
    environment_program.py  The blocks of a control step, and their order
    environment_kernel.py   Compiles and runs a control step
    cuda_environment.py     A control step on a GPU, in three kernels
    episode.py              One episode, run alone and recorded
    environment_function.py Steps of torch and JAX arrays; pure functions of JAX
    torch_env.py            Tensors, in the conventions of Isaac Lab, skrl and rsl_rl
    vector_env.py           `gymnasium.vector.VectorEnv` and `gymnasium.Env`
"""
