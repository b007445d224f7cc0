"""The limbs of a tree: branches that meet in a trunk and else know nothing of each other.

What a sweep does in one limb needs nothing from another, so limbs can be done side by side where there are many hands.
"""

from __future__ import annotations

from typing import Any

from psiphi.model.model import WORLD

TRUNK = -1  # the label of what is in no limb
LARGEST = 0.4  # of all degrees of freedom: a branch that has more belongs to the trunk, as far as it is one


def limbs_of(tree: Any) -> dict[str, dict[int, int]]:
    """{"q": {coordinate: its limb}, "v": {velocity: its limb}}, limbs by number; what the trunk has is not named."""
    slices = [tree.slices(k) for k in range(len(tree.links))]
    below = [
        own["v"].stop - own["v"].start for own in slices
    ]  # degrees of freedom from here on outwards
    total = sum(below)
    for k in reversed(range(len(below))):
        if tree.parent[k] != WORLD:
            below[tree.parent[k]] += below[k]
    label: list[int] = []
    found = 0
    for k, size in enumerate(below):
        above = TRUNK if tree.parent[k] == WORLD else label[tree.parent[k]]
        begins = above == TRUNK and size <= LARGEST * total
        label.append(found if begins else above)
        found += begins
    return {
        name: {
            i: limb
            for limb, own in zip(label, slices, strict=True)
            if limb != TRUNK
            for i in _range(own.get(name))
        }
        for name in "qv"
    }


def _range(part: slice | None) -> range:
    return range(part.start, part.stop) if part else range(0)
