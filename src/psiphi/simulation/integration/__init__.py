"""Integrators, and the right side of the equations of motion.

In: a state and a step. Out: the next state. Read `integrators.py` first.

    integrators.py       Fixed steps on the configuration manifold
    state_derivative.py  The right side of the equations of motion
"""
