"""Pinocchio and MuJoCo, imported at first use: psiphi needs neither."""

from __future__ import annotations

import importlib
from typing import Any

from psiphi._util.errors import Error


class MissingPeer(Error):
    """A library of the benchmark is not installed."""

    def __init__(self, name: str):
        super().__init__(
            f"the benchmark needs {name}, which is not installed", "pip install '.[bench]'"
        )


class LazyModule:
    """A module that is imported when one of its names is first used.

    >>> LazyModule("math").pi
    3.14159
    >>> LazyModule("no_such_peer").aba
    Traceback (most recent call last):
    psiphi_bench.peers.lazy_import.MissingPeer: the benchmark needs no_such_peer, which is ...
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # introspection of this object
            raise AttributeError(name)
        try:
            module = importlib.import_module(self._name)
        except ImportError as error:
            raise MissingPeer(self._name) from error
        return getattr(module, name)


pinocchio: Any = LazyModule("pinocchio")
mujoco: Any = LazyModule("mujoco")
