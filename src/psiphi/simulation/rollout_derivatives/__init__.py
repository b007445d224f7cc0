"""Gradients, directional derivatives and second derivatives of rollouts.

In: a rollout that has run, weights or changes. Out: gradients, changes, Hessian-vector products.
Read `rollout_adjoint.py` first.

    rollout_adjoint.py    derivatives of a motion that has run on the CPU
    step_derivatives.py   the adjoint and the tangent of a rollout, as rollouts
    implicit_contacts.py  the contacts of a step as equations, in place of the loop that solves them
    second_order.py       the second derivatives of a rollout, as rollouts
    cuda_adjoint.py       derivatives of a motion that has run on the GPU
    rollout_vjp_jvp.py    derivatives as functions of arrays of torch or JAX
"""
