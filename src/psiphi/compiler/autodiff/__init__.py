"""Derivatives of equations and of tapes.

In: an equation or a tape. Out: jvp, vjp, jacobian and hessian.
Read `equation_derivatives.py` first.

    equation_derivatives.py       the derivative of a request, as a request
    analytic_rules.py             equations whose derivatives have analytic sweeps
    inverse_dynamics_jacobian.py  derivatives of inverse dynamics as matrices; the Coriolis matrix
    inverse_dynamics_jvp.py       jvp and vjp of inverse dynamics
    forward_dynamics_jacobian.py  derivatives of forward dynamics as matrices
    forward_dynamics_jvp.py       jvp and vjp of forward dynamics
    wrench_derivatives.py         wrenches on frames in these derivatives
    tape_derivatives.py           forward and reverse mode on a tape
    implicit_solve.py             solutions of equations as statements of a tape
"""
