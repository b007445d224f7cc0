"""A few of each fault in the ordinary suite; `make torture ARGS='--times 1000'` tries a
thousand."""

import os

import pytest

from tests.hostile import faults, kernel_faults, planted

ATTACKS = kernel_faults.ATTACKS | planted.ATTACKS | faults.ATTACKS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_faults(attack):
    assert attack(1) >= 5


def test_kernels_of_robots():
    """The same with a robot's functions instead of a small kernel."""
    assert planted.damaged(0) >= 5
