"""What steps of loops leave for others, and nobody reads on the way to a result: it is not left, nor made.

On one tape that is what `Tape.live` says. Between the tapes of loops values go through slots, of records (what a body keeps,
for its children and for later sweeps) and of inboxes (what its children send): they are followed from the results backwards.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from psiphi.compiler.tape.ops import Op
from psiphi.model.model import WORLD

if TYPE_CHECKING:
    from psiphi.compiler.sweeps.link_loops import LinkClass, SweepLoop

KEPT, INBOX = "here", "inbox"


def drop_unread(
    stages: list[SweepLoop], finish: LinkClass | None, parents: list[int]
) -> tuple[int, int]:
    """Drop the stores that nobody reads, and close the gaps; returns the sizes of a record and of an inbox."""
    every = [(c, number) for number, stage in enumerate(stages) for c in stage.classes]
    every += (
        [(finish, len(stages) - 1)] if finish else []
    )  # the world reads the last sweep's messages
    read = _read([c for c, _ in every], _sources(stages, finish, parents))
    # one numbering for all records; one for the inboxes of each sweep, which live no longer
    boxes = [
        sorted({at for c, n in every if n == number for at in read[id(c), "up"]})
        for number in range(len(stages))
    ]
    record = sorted({at for c, _ in every for at in read[id(c), KEPT]})
    kept, sent = _numbered(record), [_numbered(slots) for slots in boxes]
    for c, number in every:
        places = {KEPT: kept, "parent": kept, INBOX: sent[number], "up": sent[number]}
        c.stores = [
            (base, places[base][at] if base in places else at, node, adds)
            for base, at, node, adds in c.stores
            if base not in places or at in read[id(c), base]
        ]
        # leaves of the tape have their old numbers: `given` says where each is read from
        live = c.tape.live(c.outputs, c.given)
        c.given = {node: (KEPT, kept[slot]) for node, (_, slot) in c.given.items() if slot in kept}
        for node in live:
            op, space, index = c.tape.nodes[node]
            if op is Op.LEAF:
                c.given[node] = (space, places[space][index] if space in places else index)
    return len(record), max(map(len, boxes), default=0)


def _numbered(slots: list[int]) -> dict[int, int]:
    return {slot: i for i, slot in enumerate(slots)}


def _sources(
    stages: list[SweepLoop], finish: LinkClass | None, parents: list[int]
) -> dict[tuple[int, str], set[int]]:
    """Whose stores a class reads: in records of its bodies and of their parents earlier sweeps', in inboxes the children's."""
    found: dict[tuple[int, str], set[int]] = defaultdict(set)
    # outward a step sees what its parent has kept in this sweep, too; inward what its children send in it
    sweeps: list[dict[int, LinkClass]] = []
    for stage in stages:
        now = {k: stage.classes[i] for k, i in zip(stage.order, stage.ids, strict=True)}
        sweeps.append(now)
        for k, c in now.items():
            parent = parents[k]
            found[id(c), KEPT] |= {id(earlier[k]) for earlier in sweeps[:-1]}
            found[id(c), "parent"] |= {id(sweep[parent]) for sweep in sweeps if parent in sweep}
            above = finish if parent == WORLD else now[parent]
            found[id(above), INBOX].add(id(c))
    return found


def _read(
    classes: list[LinkClass], sources: dict[tuple[int, str], set[int]]
) -> dict[tuple[int, str], set[int]]:
    """The slots of records and inboxes that each class fills and somebody reads on the way to a result."""
    read: dict[tuple[int, str], set[int]] = {
        (id(c), base): set() for c in classes for base in (KEPT, "up")
    }
    size = -1
    # from the results backwards: a message counts when it is read for what counts, until nothing new does
    while size < (size := sum(map(len, read.values()))):
        for c in classes:
            wanted = [
                node for base, at, node, _ in c.stores if at in read.get((id(c), base), (at,))
            ]
            for node in c.tape.live(wanted, c.given):
                op, space, index = c.tape.nodes[node]
                space, index = c.given.get(node, (space, index) if op is Op.LEAF else ("", 0))
                # whoever may have written there: bodies of one class may hang on several others
                for source in sources.get((id(c), space), ()):
                    read[source, "up" if space == INBOX else KEPT].add(index)
    return read
