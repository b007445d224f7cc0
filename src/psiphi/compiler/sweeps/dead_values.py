"""Dead-store elimination in loops: values that no step reads on the way to a result are not stored.

For one tape, `Tape.live` does this. Between the tapes of loops, values pass through slots: of
records (what a body stores for its children and for later sweeps) and of inboxes (what its children
send). They are followed from the results backwards.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from psiphi.compiler.tape.ops import Op
from psiphi.model.model import WORLD

if TYPE_CHECKING:
    from psiphi.compiler.sweeps.link_loops import LinkClass, SweepLoop

RECORD, INBOX = "here", "inbox"


def drop_dead_stores(
    sweeps: list[SweepLoop], finish: LinkClass | None, parents: list[int]
) -> tuple[int, int]:
    """Drop the stores that nothing reads, and close the gaps. Returns the sizes of a record and of
    an inbox."""
    every = [(c, number) for number, sweep in enumerate(sweeps) for c in sweep.classes]
    # the world reads the messages of the last sweep
    every += [(finish, len(sweeps) - 1)] if finish else []
    live_slots = _live_slots([c for c, _ in every], _sources(sweeps, finish, parents))
    # one numbering for all records; one for the inboxes of each sweep, which live for one sweep
    inboxes = [
        sorted({slot for c, n in every if n == number for slot in live_slots[id(c), "up"]})
        for number in range(len(sweeps))
    ]
    record = sorted({slot for c, _ in every for slot in live_slots[id(c), RECORD]})
    new_slot, new_inbox_slot = _renumber(record), [_renumber(slots) for slots in inboxes]
    for c, number in every:
        places = {
            RECORD: new_slot,
            "parent": new_slot,
            INBOX: new_inbox_slot[number],
            "up": new_inbox_slot[number],
        }
        c.stores = [
            (base, places[base][offset] if base in places else offset, node, accumulate)
            for base, offset, node, accumulate in c.stores
            if base not in places or offset in live_slots[id(c), base]
        ]
        # leaves of the tape keep their old numbers: `loads` says from where each is read
        live = c.tape.live(c.outputs, c.loads)
        c.loads = {
            node: (RECORD, new_slot[slot])
            for node, (_, slot) in c.loads.items()
            if slot in new_slot
        }
        for node in live:
            op, space, index = c.tape.nodes[node]
            if op is Op.LEAF:
                c.loads[node] = (space, places[space][index] if space in places else index)
    return len(record), max(map(len, inboxes), default=0)


def _renumber(slots: list[int]) -> dict[int, int]:
    return {slot: i for i, slot in enumerate(slots)}


def _sources(
    sweeps: list[SweepLoop], finish: LinkClass | None, parents: list[int]
) -> dict[tuple[int, str], set[int]]:
    """The classes whose stores a class reads: through records, those of its bodies and of their
    parents in earlier sweeps; through inboxes, those of its children."""
    found: dict[tuple[int, str], set[int]] = defaultdict(set)
    # outward, a step also reads what its parent stored in this sweep; inward, what its children
    # sent
    class_of: list[dict[int, LinkClass]] = []  # by sweep
    for sweep in sweeps:
        now = {k: sweep.classes[i] for k, i in zip(sweep.order, sweep.class_ids, strict=True)}
        class_of.append(now)
        for k, c in now.items():
            parent = parents[k]
            found[id(c), RECORD] |= {id(earlier[k]) for earlier in class_of[:-1]}
            found[id(c), "parent"] |= {id(one[parent]) for one in class_of if parent in one}
            above = finish if parent == WORLD else now[parent]
            found[id(above), INBOX].add(id(c))
    return found


def _live_slots(
    classes: list[LinkClass], sources: dict[tuple[int, str], set[int]]
) -> dict[tuple[int, str], set[int]]:
    """The slots of records and inboxes that each class writes and that are read on the way to a
    result."""
    read: dict[tuple[int, str], set[int]] = {
        (id(c), base): set() for c in classes for base in (RECORD, "up")
    }
    size = -1
    # fixed point, from the results backwards: a slot is live if a live value reads it
    while size < (size := sum(map(len, read.values()))):
        for c in classes:
            wanted = [
                node
                for base, offset, node, _ in c.stores
                if offset in read.get((id(c), base), (offset,))
            ]
            for node in c.tape.live(wanted, c.loads):
                op, space, index = c.tape.nodes[node]
                space, index = c.loads.get(node, (space, index) if op is Op.LEAF else ("", 0))
                # all possible writers: bodies of one class may have parents of several classes
                for source in sources.get((id(c), space), ()):
                    read[source, "up" if space == INBOX else RECORD].add(index)
    return read
