"""Robots a thousand times smaller than those of `giants.py`; and what does not fit is refused
before it starts."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot import matrix_by_columns
from tests.hostile import giants


@pytest.mark.parametrize("shape", [giants.chain, giants.star, giants.binary])
def test_forward_dynamics_of_inverse_dynamics(shape):
    assert giants.round_trip(shape(300)) < 1e-12


def test_many_contacts():
    assert giants.contacts(5) < 1e-12


def test_a_batch_in_chunks():
    assert giants.batch(2500, chunk=1000) == 0.0


def test_a_matrix_that_will_not_fit(monkeypatch):
    """1000 links: 32 MB with what is needed to make it, and 1 MB is free."""
    robot = giants.chain(1000)
    monkeypatch.setattr(matrix_by_columns, "UNCHECKED_BYTES", 1_000_000)
    monkeypatch.setattr(matrix_by_columns, "free_memory", lambda: 1e6)
    with pytest.raises(
        pp.Error, match=r"takes 0\.032 GB, and 0\.001 GB are free.*robot\.mass_product"
    ):
        robot.mass_matrix(np.zeros(1000))
