"""Simulation: controllers, integrators, contacts, rollouts and their derivatives.

In: a `Robot` or `System`, a state, a controller. Out: a `Trajectory`, or the states of a rollout
with derivatives. Read `simulate/simulate.py` first.

    simulate/             `pp.simulate`: fixed, adaptive and compiled steps, events
    plant.py              one interface to robots, closed chains and user-defined systems
    start_checks.py       checks of the initial state, the step and the duration
    simulation_errors.py  errors that carry the motion so far, and warnings
    control/              controllers and control laws
    forces/               damping, friction, springs and limits of joints
    integration/          integrators, and the right-hand side of the equations of motion
    contact/              Coulomb friction, contacts that open and slide, restitution
    trajectory/           recorded motions: files, tables, plots, energy balance
    sensors/              IMU, joint torque, contact force: `motion.measure(...)`
    rollout/              `pp.rollout` and its results
    compiled_rollout/     many steps as one compiled kernel
    rollout_derivatives/  adjoint, tangent and second order of rollouts
    linearization/        one step as a function, and its matrices A and B
"""
