"""Functions of closed chains with derivatives, by the implicit function theorem.

In: a `System`. Out: callables with derivatives. Read `closed_function.py` first.

    closed_call.py             base classes
    closed_function.py         forward dynamics and contact forces
    implicit_theorem.py        the theorem, with redundant constraints
    implicit_derivatives.py    first derivatives by the theorem
    closed_hessian.py          higher derivatives, by the tape
    closed_torque_function.py  inverse dynamics
"""
