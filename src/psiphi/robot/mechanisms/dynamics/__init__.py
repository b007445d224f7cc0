"""Forward and inverse dynamics of closed chains, and who carries which load.

In: a `System` and arrays. Out: accelerations, torques, forces. Read `closed_forward_dynamics.py` first.

    closed_forward_dynamics.py  Forward dynamics with loops
    closed_inverse_dynamics.py  Control of closed chains as programs
    load_distribution.py        Inverse dynamics with loops
    method_choice.py            Which form of a function runs
    object_dynamics.py          Control of a held object as a program
    system_stages.py            The functions of a closed system as programs in stages
"""
