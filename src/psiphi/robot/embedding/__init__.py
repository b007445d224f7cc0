"""Loops and gears of a robot embedded as joints: `pp.embed`.

In: a `Robot` with loops or gears. Out: a `Robot`. Read `embed.py` first.

    embed.py             `pp.embed`
    embedding_origin.py  What `pp.embed` was given, for edits of an embedded robot
    rotor_bodies.py      Rotors of motors as spinning bodies
"""
