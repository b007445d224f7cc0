"""Templates of values: nested lists and dataclasses whose numbers are constants or have memory
slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.model.spatial.screws import Inertia


@dataclass(frozen=True)
class Template:
    """A value in which each number is replaced by a float or by a slot (base, index); `key` is the
    same, hashable."""

    value: Any
    key: tuple

    @staticmethod
    def of(value: object, place: Callable[[float | Scalar], object]) -> Template:
        # two values have equal keys if their numbers are in the same slots: one traced step serves
        # both
        placed = _map_numbers(value, lambda leaf: _Leaf(place(leaf)))
        return Template(placed, tuple(_flatten(placed)))

    def slots(self, base: str) -> set[int]:
        """The slots of `base` that the value has."""
        contents = (x for x in self.key if isinstance(x, tuple) and len(x) == 2)
        return {slot for space, slot in contents if space == base}

    def beside(self, other: Template) -> Template:
        """The entries of both values, which are dictionaries without common keys."""
        assert not self.value.keys() & other.value.keys(), "children send different entries"
        value = type(self.value)({**self.value, **other.value})
        return Template(value, tuple(_flatten(value)))

    def load(self, tape: Tape, base: str) -> Any:
        """The value on a tape: constants are floats, slots are leaves of `base` (of "frame" if
        absolute)."""

        # floats fold in the traced step as in straight-line code
        def leaf(x: _Leaf) -> object:
            content = x.content
            if isinstance(content, tuple):
                space, slot = content
                return tape.leaf("frame" if space == "frame" else base, slot)
            return content

        return _map_numbers(self.value, leaf)


@dataclass(frozen=True)
class _Leaf:
    content: Any


def _map_numbers(value: object, function: Callable[[Any], object]) -> Any:
    """Apply `function` to every number; symmetric blocks of an `Inertia` stay symmetric."""
    if isinstance(value, (float, Scalar, _Leaf)):
        return function(value)
    # I and M of [[I, H], [H*, M]] have six numbers each
    if isinstance(value, Inertia):
        return Inertia(
            _map_symmetric(value.I, function),
            _map_numbers(value.H, function),
            _map_symmetric(value.M, function),
        )
    if isinstance(value, (list, tuple)):
        return type(value)(_map_numbers(x, function) for x in value)
    if isinstance(value, dict):
        return type(value)({key: _map_numbers(x, function) for key, x in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(
            **{f.name: _map_numbers(getattr(value, f.name), function) for f in fields(value)}
        )
    return value


def _map_symmetric(A: list, function: Callable[[Any], object]) -> list:
    # a symmetric block has six numbers and six slots
    out: list = [[None] * 3 for _ in range(3)]
    for r in range(3):
        for c in range(r, 3):
            out[r][c] = out[c][r] = function(A[r][c])
    return out


def _flatten(value: object) -> Iterator[object]:
    # lengths and keys first: values have equal sequences only if they have the same structure
    if isinstance(value, _Leaf):
        yield value.content
    elif isinstance(value, (list, tuple)):
        yield len(value)
        for x in value:
            yield from _flatten(x)
    elif isinstance(value, dict):
        for key, x in value.items():
            yield key
            yield from _flatten(x)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _flatten(getattr(value, f.name))
    else:
        yield value
