"""What may happen to a contact that opens and closes, in the words of events."""

from __future__ import annotations

from typing import NamedTuple

MADE, LOST, SLIDES, HOLDS = "contact made", "contact lost", "contact slides", "contact holds"
BOUNCES = "contact bounces"
CHANGES = MADE, LOST, SLIDES, HOLDS, BOUNCES


class Change(NamedTuple):
    """What happened to a contact: `value` is the impulse (N s) that made it, the force (N) it would have needed, or that of
    friction; how long ago, in seconds."""

    name: str
    what: str
    value: float
    ago: float = 0.0
