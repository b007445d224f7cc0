"""The tree in the axes that cost least.

Comes in: a `Model`. Goes out: a `Tree` of links, each with the numbers its steps need. Read `framing.py` first (which freedom
buys what), then `decompose.py` (a placement as screws about z and x), `link.py` (a body's numbers, its path and joint map) and
`compound.py` (bodies that move together, as one link).
"""
