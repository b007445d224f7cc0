"""Controllers and control laws.

In: a robot or closed chain, gains and references. Out: torques at a time and a state. Read
`control_law.py` first.

    control_law.py            a control law as data: steps over named values
    joint_controllers.py      gravity compensation, PD, computed torque
    passivity_controllers.py  laws that shape the energy of the error (Wen and Bayard 1988)
    task_space_controller.py  operational-space control of frames
    task_forces.py            the forces of several tasks in order of priority
    object_controller.py      motion, impedance and contact forces of an object that arms hold
    closed_chains/            independent joints, tasks and load shares of closed chains
    standing_gains.py         the gains with which a legged robot stands
    prescribed_motion.py      joints that follow given motions, and the forces that this takes
    law_arrays.py             the arrays of a law that is traced: comparisons without branches
    marked_law.py             `pp.law`: marks a user-defined law as pure, so that it may be compiled
    law_trace.py              the trace of a user-defined law
    user_function.py          functions of (t, q, v) in a batch of motions
    torque_input.py           torques as arrays or functions, and effort limits
"""
