"""`pp.simulate`: fixed, adaptive and compiled steps, events.

In: a robot, a state, a controller. Out: a `Trajectory`. Read `simulate.py` first.

    simulate.py            `pp.simulate`: reads the arguments and chooses how to run
    simulation_problem.py  what to simulate, and the base classes of the runs
    fixed_step.py          fixed steps in Python
    adaptive_step.py       steps that SciPy chooses for a tolerance
    compiled_steps.py      many steps as one compiled kernel
    events.py              divergence, limits, lost grasps and user-defined events
    speed_limits.py        speeds above which a motion has diverged
    stop_samples.py        joint stops at the samples of a motion
    contact_samples.py     contacts with the ground at the samples of a motion, and their events
    progress_bar.py        a progress bar on stderr
"""
