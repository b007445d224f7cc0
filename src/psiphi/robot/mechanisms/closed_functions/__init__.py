"""Functions of closed chains with derivatives, by the implicit function theorem.

In: a `System`. Out: callables with derivatives. Read `closed_function.py` first.

    closed_call.py             What every function of a closed system has
    closed_function.py         What a closed system computes, as a function with derivatives
    closed_hessian.py          Derivatives of derivatives of closed systems
    closed_torque_function.py  Inverse dynamics of a closed chain as a function with derivatives
    implicit_derivatives.py    First derivatives of what a closed system computes
    implicit_theorem.py        Derivatives of closed chains, by the implicit function theorem on
                               their equations of motion
"""
