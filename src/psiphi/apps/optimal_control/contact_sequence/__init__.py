"""Contacts that hold at given steps: the contact sequence of a problem of optimal control.

In: frames of a robot, and a schedule of zeros and ones. Out: the constrained step, its slopes and
the forces. Read `held_contacts.py` first.

    held_contacts.py     a step with held frames, and its slopes, on a tape
    contact_schedule.py  checks `contacts=` and `schedule=`; what the forces need: `ContactForces`
"""
