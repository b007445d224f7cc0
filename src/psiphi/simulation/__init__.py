"""Motions: forces, controllers, integrators, rollouts, contacts.

In: a `Robot` or `System`, a state, a controller. Out: a `Trajectory` or the states of a rollout, with derivatives. Read `simulate/simulate.py` first.

    compiled_rollout/     One kernel for many steps
    contact/              Coulomb friction, contacts that open and slide, restitution
    control/              Laws of control
    forces/               Forces at joints
    integration/          Integrators, and the right side of the equations of motion
    linearization/        One step as a function, and the matrices A and B
    plant.py              What can be simulated
    rollout/              `pp.rollout` and its results
    rollout_derivatives/  Adjoint, tangent and second order of rollouts
    simulate/             `pp.simulate`
    simulation_errors.py  When a simulation breaks off
    start_checks.py       What a simulation starts from
    trajectory/           Recorded motions
"""
