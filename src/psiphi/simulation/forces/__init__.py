"""Forces at joints: damping, friction, springs, impacts at limits.

In: coefficients and a state. Out: torques. Read `damping_and_friction.py` first.

    damping_and_friction.py  What joints lose to their motion, and which of it a step takes
                             implicitly
    embedded_loop_forces.py  What joints of embedded loops lose, and what their springs pull, at
                             the coordinates that are free (docs/embedding.md)
    joint_limit_impact.py    `limits="block"`
    joint_springs.py         Springs of joints, and which of them a step takes implicitly
    spring_law.py            The law of a spring, on arrays of any scalars (`joint_springs.py`
"""
