"""The door: a robot's functions, and functions of expressions.

Comes in: arrays, and the name of a quantity or an expression. Goes out: arrays, or words that say what is wrong.

    robot.py          a robot's functions; read it first        diagonalised.py   the same in quasi-velocities
    framed.py         those of frames, and momenta              called.py         how each is found, called, explained
    expressions.py    `pp.function`                              typed.py          expressions typed as text
    coordinated.py    configurations moved, compared and scaled: by code, where they are
    differentiable.py a compiled function to be called, and its derivatives
    guard.py          reads arguments                            check.py          `check=True`
    identification.py inertial parameters, and which of them torques tell; identified.py is its door
    free.py           a robot whose numbers are inputs           parametrised.py   such numbers, made and checked
    by_columns.py     matrices of large robots                   operational.py    the policies at singularities
"""
