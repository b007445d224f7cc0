"""A few of each fault in the ordinary suite; `make torture` tries hundreds."""

import os

import pytest

from hostile.faults import ATTACKS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_faults(attack, seed):
    attack(seed)
