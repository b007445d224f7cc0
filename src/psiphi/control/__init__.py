"""What acts on a system: torques, controllers, losses, stops.

Comes in: a robot or a closed chain, and what a user says of its torques. Goes out: tau at a time and a state, as numbers.
Read `plant.py` first (what can be driven at all), then `controllers.py` (one class a law), then

    task_space.py   the controller of a frame, and what it does near singularities
    torques.py      tau as a user gives it; damping, friction and effort limits
    stops.py        joints that end at their limits
"""
