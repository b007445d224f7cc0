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
