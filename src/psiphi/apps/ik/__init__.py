"""Inverse kinematics: `pp.reach`.

In: a robot and targets of its frames. Out: configurations. Read `reach.py` first.

    ik_request.py       What `pp.reach` was given, read
    ik_solver.py        Problems and starts, until all is solved or tried
    ik_tasks.py         What is wanted of a robot, as residuals and their Jacobians on any scalars
    newton_loop.py      Many steps of a descent in one compiled loop
    newton_step.py      One damped Newton step towards all tasks, on any scalars
    reach.py            `pp.reach`
    start_seeds.py      Where to start
    task_priorities.py  Tasks in their order
"""
