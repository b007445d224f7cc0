"""Loops and gears of a robot as joints: `pp.embed`.

In: a `Robot` with loops or gears. Out: a `Robot`. Read `embed.py` first.

    embed.py             `pp.embed`
    embedding_origin.py  What an embedded robot was made of
    rotor_bodies.py      Rotors as bodies that spin
"""
