"""Members of public classes that other modules of psiphi use and users do not.

Their docstrings begin with "(Internal use only)". `dir(robot)`, the reference page and the tests
of public names leave them out.
"""

from collections.abc import Iterable

MARK = "(Internal use only)"


def is_internal(cls: type, name: str) -> bool:
    """Whether the docstring of this member, in the class or in one of its bases, has the mark."""
    members = (vars(base).get(name) for base in cls.__mro__)
    return any((getattr(member, "__doc__", None) or "").startswith(MARK) for member in members)


def public_names(cls: type, names: Iterable[str]) -> list[str]:
    """The names without internal members of the class."""
    return [name for name in names if not is_internal(cls, name)]
