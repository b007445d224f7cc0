"""Coulomb friction, contacts that open and slide, restitution.

In: a closed chain with contacts. Out: which contacts act, and their forces. Read `contact_events.py` first.

    contact_events.py    Contacts that open, close, slide and hold while a motion goes on
    contact_rows.py      The rows of contacts that may open
    coulomb_friction.py  Coulomb's law at many contacts at once
    restitution.py       How fast a point leaves the plane it strikes
"""
