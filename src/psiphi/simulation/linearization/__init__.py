"""One step as a function, and the matrices A and B.

In: a robot and a state. Out: the next state; A and B. Read `step_function.py` first.

    step_function.py       `robot.step(q, v, tau, dt)`
    step_arguments.py      the arguments of a step: method, dt, state and batch axes
    ground_step.py         `robot.step(q, v, tau, dt, contacts=ground)`
    closed_step.py         `system.step` of closed chains
    linearize.py           `robot.linearize`: A and B, continuous or after one step
    linearize_function.py  A and B of a robot as one compiled function
    closed_linearize.py    `system.linearize` of closed chains
"""
