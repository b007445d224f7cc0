"""Joints and bodies by number or name, and mappings whose errors suggest the nearest names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn, Protocol, SupportsIndex, TypeVar, overload

from psiphi._util.errors import UnknownNameError
from psiphi._util.text import nearest, shown


class NamedPart(Protocol):
    """A joint or a body."""

    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=NamedPart, covariant=True)
Value = TypeVar("Value")


class NamedParts(tuple[Part, ...]):
    """A tuple of joints or bodies that also takes names: `robot.joints["elbow"]`.

    >>> import psiphi as pp
    >>> robot = pp.load("panda")
    >>> robot.joints["panda_joint4"] is robot.joints[3], "elbow" in robot.joints
    (True, False)
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Part: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Part, ...]: ...

    def __getitem__(self, key: SupportsIndex | str | slice) -> Part | tuple[Part, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for part in self:
            if part.name == key:
                return part
        noun = type(super().__getitem__(0)).__name__.lower() if self else "part"
        raise _unknown(noun, key, [part.name for part in self])

    def __contains__(self, key: object) -> bool:
        """Whether `key` is one of the parts, or the name of one."""
        if isinstance(key, str):
            return any(part.name == key for part in self)
        return super().__contains__(key)


class NamedValues(dict[str, Value]):
    """A dict whose KeyError suggests the nearest names. `noun` says what its values are."""

    def __init__(self, noun: str, values: Mapping[str, Value]):
        super().__init__(values)
        self.noun = noun

    def __missing__(self, key: object) -> NoReturn:
        raise _unknown(self.noun, key, list(self))


def read_only(noun: str, values: Mapping[str, Value]) -> MappingProxyType[str, Value]:
    """(Internal use only) A read-only copy of a dict whose KeyError suggests the nearest names."""
    return MappingProxyType(NamedValues(noun, values))


def _unknown(noun: str, name: object, known: list[str]) -> UnknownNameError:
    return UnknownNameError(f"no {noun} {shown(name)}", nearest(name, known))
