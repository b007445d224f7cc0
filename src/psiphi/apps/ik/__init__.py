"""Inverse kinematics: `pp.reach`.

In: a robot and targets of its frames. Out: configurations. Read `reach.py` first.

    reach.py            `pp.reach` and its result
    ik_request.py       checks the arguments of `pp.reach` and turns them into tasks with goals
    ik_tasks.py         task types: residuals and their Jacobians, on any scalars
    task_priorities.py  solves tasks in order of importance
    ik_solver.py        tries starts until every problem is solved or no start is left
    start_seeds.py      table of starting configurations
    newton_step.py      one damped Newton step towards all tasks, on any scalars
    newton_loop.py      many Newton steps in one compiled loop
"""
