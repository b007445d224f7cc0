"""Adjoint, tangent and second order of rollouts.

In: a rollout that was computed, weights or changes. Out: gradients, changes, products with the Hessian. Read `rollout_adjoint.py` first.

    cuda_adjoint.py      Derivatives of motions that ran on a graphics card, taken there
    rollout_adjoint.py   Derivatives of a motion that has run
    rollout_vjp_jvp.py   The derivatives of a motion as functions of arrays of torch or JAX
    second_order.py      Second derivatives of a rollout as a rollout
    step_derivatives.py  A rollout's derivatives as rollouts
"""
