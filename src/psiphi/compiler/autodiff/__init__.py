"""Derivatives of equations and of tapes.

In: an equation or a tape. Out: jvp, vjp, jacobian and hessian. Read `equation_derivatives.py` first.

    analytic_rules.py             Equations whose derivatives have sweeps of their own, by what
                                  they say
    equation_derivatives.py       Derivatives of what is asked, as something that is asked
    forward_dynamics_jacobian.py  Derivatives of forward dynamics as matrices, by those of inverse
                                  dynamics at the accelerations it gives
    forward_dynamics_jvp.py       Forward dynamics with its change along a vector, and with the
                                  gradient of a weighted sum
    inverse_dynamics_jacobian.py  Derivatives of inverse dynamics as matrices
    inverse_dynamics_jvp.py       Inverse dynamics with its change along a vector, and with the
                                  gradient of a weighted sum
    tape_derivatives.py           Derivatives of a tape, written on a tape
    wrench_derivatives.py         Wrenches on frames in derivatives of dynamics
"""
