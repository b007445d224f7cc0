"""The form of a value: nested lists and dataclasses whose numbers are constants or have places in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.model.spatial.screws import Inertia


@dataclass(frozen=True)
class Template:
    """`value` with each number replaced by a float or a place (base, slot); `key` is the same, hashable."""

    value: Any
    key: tuple

    @staticmethod
    def of(value, place: Callable) -> Template:
        # two values have one form when their numbers stand in the same places: then one traced step serves both
        placed = _map(value, lambda leaf: _Leaf(place(leaf)))
        return Template(placed, tuple(_spell(placed)))

    def load(self, tape: Tape, base: str):
        """The value on a tape: constants as they are, places as leaves of `base` (absolute ones of the frame)."""

        # constants stay floats, so that the traced step folds them as it would in straight lines
        def leaf(x):
            content = x.content
            if isinstance(content, tuple):
                space, slot = content
                return tape.leaf("frame" if space == "frame" else base, slot)
            return content

        return _map(self.value, leaf)


@dataclass(frozen=True)
class _Leaf:
    content: Any


def _map(value, function) -> Any:
    """`function` on every number; symmetric blocks of an Inertia stay symmetric."""
    if isinstance(value, (float, Scalar, _Leaf)):
        return function(value)
    # [[I, H], [H*, M]]: I and M by their upper triangles
    if isinstance(value, Inertia):
        return Inertia(
            _map_symmetric(value.I, function),
            _map(value.H, function),
            _map_symmetric(value.M, function),
        )
    if isinstance(value, (list, tuple)):
        return type(value)(_map(x, function) for x in value)
    if isinstance(value, dict):
        return type(value)({key: _map(x, function) for key, x in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(
            **{f.name: _map(getattr(value, f.name), function) for f in fields(value)}
        )
    return value


def _map_symmetric(A, function) -> list:
    # a symmetric block has six numbers, and six places
    out: list = [[None] * 3 for _ in range(3)]
    for r in range(3):
        for c in range(r, 3):
            out[r][c] = out[c][r] = function(A[r][c])
    return out


def _spell(value) -> Iterator:
    # lengths and keys first, then what is inside: two values spell alike only where they have one shape
    if isinstance(value, _Leaf):
        yield value.content
    elif isinstance(value, (list, tuple)):
        yield len(value)
        for x in value:
            yield from _spell(x)
    elif isinstance(value, dict):
        for key, x in value.items():
            yield key
            yield from _spell(x)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _spell(getattr(value, f.name))
    else:
        yield value
