"""Coulomb friction, contacts that open and slide, restitution.

In: a closed chain with contacts. Out: the contacts that act, and their forces. Read
`contact_events.py` first.

    contact_events.py    contacts that open, close, slide and stick during a motion
    contact_rows.py      normal and tangent rows of contacts that may open
    coulomb_friction.py  Coulomb's law at many contacts at once
    restitution.py       Newton's law of restitution
"""
