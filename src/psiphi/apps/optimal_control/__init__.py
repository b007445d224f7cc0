"""Optimal control: `pp.OptimalControl`, `pp.cost`, `pp.MPC`.

In: a robot, costs, bounds, starts and goals. Out: motions of least cost with their gains, in
batches. Read `optimal_control.py` first.

    optimal_control.py      `pp.OptimalControl`: the problem, and `solve`
    cost.py                 `pp.cost`: the costs as users write them
    cost_terms.py           costs bound to a robot: rows and slopes, on a tape
    problem_request.py      checks the arguments of problems and of `solve`
    riccati_step.py         one step of the Riccati recursion in blocks, on any scalars
    control_blocks.py       the loops over the nodes, as blocks of tape
    control_kernels.py      compiles and runs these loops
    ddp_solver.py           the iteration: damping, line search, convergence
    state_limits.py         limits of positions and speeds: augmented Lagrangian
    optimal_motion.py       `OptimalMotion`: the result
    optimum_derivatives.py  its derivatives by start, goals and parameters
    feedback_controller.py  its controller u + K dx
    contact_sequence/       contacts that hold by a schedule
    receding_horizon.py     `pp.MPC`: solves a problem at every node
    export/                 `pp.MPC` as C
    arrays/                 `solve` of arrays of torch and JAX
"""
