"""Coulomb friction, contacts that open and slide, restitution.

In: a robot on a ground, or a closed chain with contacts. Out: the contacts that act, and their
forces. Read `ground_contact.py` first.

    ground_contact.py    the contact points of a robot on a ground, in one step of time
    contact_space.py     coordinates of the forces of contacts: wrenches on the frames
    contact_solver.py    the impulses of several contacts: sweeps, and Newton's method for patches
    contact_newton.py    a step of Newton's method for all contacts
    cone_solver.py       one contact by the laws of Signorini and Coulomb, exactly
    contact_modes.py     the contacts of a solved step as equations, for derivatives
    placement.py         `robot.on_ground`, and the check that a motion starts above ground
    residual_sum.py      by how much the steps of a motion violate the laws of contact

    contact_events.py    contacts that open, close, slide and stick during a motion
    contact_rows.py      normal and tangent rows of contacts that may open
    coulomb_friction.py  Coulomb's law at many contacts at once
    restitution.py       Newton's law of restitution
"""
