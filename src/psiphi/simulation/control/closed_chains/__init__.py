"""Laws of joints and frames for closed chains.

In: a `System`, its constraint rows and their rates. Out: rules of laws, on arrays and in kernels.
Read `independent_joints.py` first.

    independent_joints.py  the joints whose motion determines that of all others
    feasible_motion.py     motions that satisfy the constraints: of a reference, of a task
    torque_shares.py       how the contacts share the load
"""
