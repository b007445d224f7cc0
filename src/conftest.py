"""Examples in docstrings that need torch are skipped where it is not installed."""

from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("torch") else ["psiphi/functions/arrays/torch_operators.py"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    dtest = getattr(item, "dtest", None)
    if dtest is not None and any("import torch" in example.source for example in dtest.examples):
        pytest.importorskip("torch")
