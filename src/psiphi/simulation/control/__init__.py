"""Laws of control.

In: a robot or closed chain, gains and references. Out: torques at a time and a state. Read `control_law.py` first.

    control_law.py            A law of control as data
    joint_controllers.py      Built-in controllers, each its equation
    law_trace.py              A user's own law of control, traced
    marked_law.py             `pp.law`: a function that is pure, and may be compiled
    object_controller.py      Control of an object that several arms hold
    passivity_controllers.py  Laws made from the energy of the error, not from cancelling the
                              dynamics (Wen and Bayard 1988
    task_forces.py            The forces of tasks, in order of priority
    task_space_controller.py  Control of frames
    torque_input.py           What drives a system
"""
