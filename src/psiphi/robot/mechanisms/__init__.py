"""Closed chains: `pp.grasp`, `pp.connect` and `System`.

In: robots, and the frames that are held together. Out: a `System`, which answers as a robot does. Read `system.py` first.

    closed_functions/      Functions of closed chains with derivatives, by the implicit function
                           theorem
    contact_quantities.py  Contacts seen by themselves
    dynamics/              Forward and inverse dynamics of closed chains, and who carries which
                           load
    forest.py              What a closed system is
    grasp_and_connect.py   The ways to a closed system
    held_object.py         What arms hold
    loop_closure.py        Closing loops
    solve/                 Solving for the multipliers of constraints
    system.py              The closed system at the door
    system_explanation.py  A closed system's forward dynamics, told
    system_programs.py     What a closed system has compiled
"""
