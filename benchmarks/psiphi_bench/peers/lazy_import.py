"""The peers' modules, imported when first used: psiphi itself needs neither."""

from __future__ import annotations

import importlib
from typing import Any

from psiphi._util.errors import Error


class MissingPeer(Error):
    """A package to compare with is not installed."""

    def __init__(self, name: str):
        super().__init__(
            f"the benchmark needs {name}, which is not installed", "pip install 'psiphi[bench]'"
        )


class Lazy:
    """A module that is imported at the first look at one of its names.

    >>> Lazy("math").pi
    3.14159
    >>> Lazy("no_such_peer").aba
    Traceback (most recent call last):
    psiphi_bench.peers.lazy_import.MissingPeer: the benchmark needs no_such_peer, which is ...
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # someone looks at this object, not at the peer
            raise AttributeError(name)
        try:
            module = importlib.import_module(self._name)
        except ImportError as error:
            raise MissingPeer(self._name) from error
        return getattr(module, name)


pinocchio: Any = Lazy("pinocchio")
mujoco: Any = Lazy("mujoco")
