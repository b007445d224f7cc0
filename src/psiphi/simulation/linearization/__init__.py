"""One step as a function, and the matrices A and B.

In: a robot and a state. Out: the next state; A and B. Read `step_function.py` first.

    closed_linearize.py    How a change of a closed chain's state grows in one step
    linearize.py           `robot.linearize`
    linearize_function.py  A and B of `robot.linearize` as one compiled function
    step_function.py       `robot.step(q, v, tau, dt)`
"""
