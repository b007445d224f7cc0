"""`pp.rollout` and its results.

In: a robot, initial states, a controller. Out: states, with derivatives. Read `rollout.py` first.

    cuda_result.py     What `pp.rollout` gives on a graphics card
    rollout.py         The second door
    rollout_arrays.py  `pp.rollout` of arrays of torch or JAX
    rollout_result.py  What `pp.rollout` gives
"""
