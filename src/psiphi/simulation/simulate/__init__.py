"""`pp.simulate`: fixed, adaptive and compiled steps, events.

In: a robot, a state, a controller. Out: a `Trajectory`. Read `simulate.py` first.

    adaptive_step.py       Steps of SciPy's choosing, for a tolerance
    compiled_steps.py      Simulations by compiled rollouts
    events.py              What is watched for, after every step
    fixed_step.py          The loop over steps, in Python
    progress_bar.py        How far a simulation is, on stderr
    simulate.py            The door
    simulation_problem.py  One simulation as it was asked for, and what every way of running it
                           shares
"""
