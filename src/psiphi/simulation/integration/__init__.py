"""Integrators, and the right-hand side of the equations of motion.

In: a state and a step. Out: the next state. Read `integrators.py` first.

    integrators.py       fixed-step methods on the configuration manifold
    state_derivative.py  joint velocity and acceleration at a time and a state
"""
