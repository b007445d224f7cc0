"""The limbs of a tree: branches that share only a trunk.

A sweep treats the limbs independently of each other, so they can run in parallel.
"""

from __future__ import annotations

from psiphi.compiler.sweeps.sweep_program import SweepTree
from psiphi.model.model import WORLD

TRUNK = -1  # the label of bodies that are in no limb
# a branch with a larger share of the degrees of freedom is split: its inner bodies join the trunk
MAX_LIMB_SHARE = 0.4


def limbs_of(tree: SweepTree) -> dict[str, dict[int, int]]:
    """{"q": {coordinate: limb}, "v": {velocity: limb}}, with limbs numbered from 0; coordinates of
    the trunk are left out."""
    slices = [tree.slices(k) for k in range(len(tree.links))]
    # degrees of freedom from each body outward
    below = [own["v"].stop - own["v"].start for own in slices]
    total = sum(below)
    for k in reversed(range(len(below))):
        if tree.parent[k] != WORLD:
            below[tree.parent[k]] += below[k]
    label: list[int] = []
    found = 0
    for k, size in enumerate(below):
        above = TRUNK if tree.parent[k] == WORLD else label[tree.parent[k]]
        begins = above == TRUNK and size <= MAX_LIMB_SHARE * total
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
