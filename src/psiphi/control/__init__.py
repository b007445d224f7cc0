"""What acts on a system: torques, controllers, losses, stops. A law is written once, and runs on arrays and in kernels.

Comes in: a robot or a closed chain, and what a user says of its torques. Goes out: tau at a time and a state, as numbers, and
the rules that say it, for a kernel to trace. Read `plant.py` first (what can be driven at all), then `law.py` (what a law of
control is made of), then

    controllers.py   the built-in laws, one class each
    task_space.py    the controller of frames; task_forces.py: its forces, in order of priority
    held_object.py   the controller of an object that arms hold
    energy_based.py  laws made from the energy of the error: Wen and Bayard's, and one decoupled in nu
    torques.py       tau as a user gives it; effort limits
    traced.py        a user's own law, as a tape
    memoryless.py    whether it may be tried: a function of its arguments alone; law_text.py: its text, law_words.py: the words
    losses.py        damping and friction, and which of them a step takes implicitly
    springs.py       the same of springs; pulling.py: their law; transmitting.py: losses and springs of embedded loops
    stops.py         joints that end at their limits
    field.py         all of it: the right side of the equations of motion
"""
