"""Forces at joints: damping, friction, springs, impacts at limits.

In: coefficients and a state. Out: torques. Read `damping_and_friction.py` first.

    damping_and_friction.py  losses, and the choice of those that a step takes implicitly
    joint_springs.py         springs, and the choice of those that a step takes implicitly
    spring_law.py            torque, slope and energy of a spring
    embedded_loop_forces.py  losses and springs of joints in embedded loops (docs/embedding.md)
    external_forces.py       wrenches on frames, constant or functions of time
    joint_limit_impact.py    `limits="block"`: inelastic impacts at joint limits
"""
