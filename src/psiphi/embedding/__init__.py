"""Loops, gears and followers as joints: from a robot and what ties its joints together to a robot again.

Comes in: a robot, `pp.Loop`s between its frames, `pp.Gear`s between its joints. Goes out: a robot whose `embedding` (see
`model/clusters.py`) tells which joints move together; the compiler takes each cluster for one body with one joint. Read
`embed.py` first (the door), `gears.py` and `rotors.py` (what it may be given), then `gathering_bodies.py` (which bodies are one
cluster, and their order) and `partition.py` (a closed configuration, the constraints that count, which coordinates are free);
`origin.py` is how such a robot is changed.
"""

from psiphi.embedding.embed import embed
from psiphi.embedding.gears import Gear
from psiphi.embedding.rotors import Rotor

__all__ = ["Gear", "Rotor", "embed"]
