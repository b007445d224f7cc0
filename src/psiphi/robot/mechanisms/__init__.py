"""Closed chains: `pp.grasp`, `pp.connect` and `System`.

In: robots, and the frames that are connected. Out: a `System`, with the methods of a robot. Read
`system.py` first.

    grasp_and_connect.py   `pp.grasp` and `pp.connect`, which make a `System`
    held_object.py         the object of `pp.grasp` as a mechanism
    system.py              `System`: the public methods
    system_programs.py     its compiled functions
    forest.py              its data: robot, constraints, motors, bound parameters
    dynamics/              forward and inverse dynamics, load distribution
    solve/                 multipliers: Omega, the hub, redundant rows
    closed_functions/      functions with derivatives, by the implicit function theorem
    loop_closure.py        `assemble` and `project`
    contact_quantities.py  configuration, friction and effective inertia of contacts
    system_explanation.py  `explain`
"""
