"""Old public names, which still work for one minor version."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


def renamed_attribute(module: str, public: str, name: str, new_names: Mapping[str, str]) -> Any:
    """The attribute that an old name of a module stands for, with a DeprecationWarning.

    For the module's `__getattr__`. `public` is the module's name in the warning; `new_names` maps
    old names to new ones.
    """
    if name not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = new_names[name]
    warnings.warn(f"{public}.{name} is now {public}.{new}", DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new)


class RenamedMember:
    """The old name of a property or method: `upright = RenamedMember("view_rotation")`."""

    def __init__(self, new: str):
        self.new = new
        self.__doc__ = f"(Internal use only) The old name of `{new}`."

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        text = f"{self.old} is now {type(instance).__name__}.{self.new}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(instance, self.new)
