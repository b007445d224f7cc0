"""The compiler, the catalogue of equations, the runtime, and the robot's door.

Comes in: a model and a quantity, or an expression. Goes out: a NumPy function.

    the door         `robot.py` (a robot's functions), `expressions.py` (`pp.function`), `diagonalised.py`, `derive.py` (text);
                     `guard.py` reads arguments, `check.py` is `check=True`, `operational.py` the policies at singularities
    the catalogue    `dynamics.py` (each quantity as its equation), `diagonal.py` (in quasi-velocities), `kinematics.py` (sums)
    the compiler     `equations.py` (an equation's cheapest form), `plans.py` (how an expression is evaluated),
                     `compiler.py` (from a program to machine code), `columns.py` (matrices of large robots)
    the runtime      `gufunc.py`, `quickcall.py`, `threads.py`, `cache.py`

Read `dynamics.py` first, then `equations.py` and `compiler.py`.
"""
