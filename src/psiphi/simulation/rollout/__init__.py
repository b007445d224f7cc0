"""`pp.rollout` and its results.

In: a robot or closed chain, initial states, a torque or controller. Out: states, with derivatives.
Read `rollout.py` first.

    rollout.py         `pp.rollout`: reads the arguments, runs the kernel on the CPU or the GPU
    rollout_result.py  the states and their derivatives
    cuda_result.py     the same on the GPU
    rollout_arrays.py  rollouts of torch, JAX and Dask arrays
"""
