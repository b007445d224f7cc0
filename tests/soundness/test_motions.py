"""What a motion records beside q and v, for random systems and options of `pp.simulate`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.soundness import motions
from tests.soundness.motions import Case, draw, examine, run

CASES = 100


@pytest.mark.parametrize("start", range(0, CASES, 10))
def test_random_motions_are_what_they_record(start):
    for i in range(start, start + 10):
        case = draw(20, i, cheap=True)
        assert not examine(case), case


FULL = dict(method="rk4", tau="law", damping=0.3, limits="block")
GROUND = dict(ground="rigid", tau="law")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a", lambda x: x + 0.5),
        ("a", lambda x: np.roll(x, 3, axis=0)),
        ("tau", lambda x: 1.01 * x),
        ("energy", lambda x: 1.01 * x),
        ("stop_forces", lambda x: x + 0.1 * (x == 0.0)),
    ],
)
def test_wrong_records_are_noticed(monkeypatch, name, change):
    """The checks fail where a record is wrong by one percent."""
    case = Case("arm", 3, tuple(FULL.items()))
    assert not examine(case)

    def wrong(*args, **options):
        motion = run(*args, **options)
        return replace(motion, **{name: change(getattr(motion, name))})

    monkeypatch.setattr(motions, "run", wrong)
    assert examine(case)


@pytest.mark.parametrize("name", ["forces", "a"])
def test_wrong_contact_records_are_noticed(monkeypatch, name):
    case = Case("tripod", 5, tuple(GROUND.items()))
    assert not examine(case)

    def wrong(*args, **options):
        motion = run(*args, **options)
        return replace(motion, **{name: 1.2 * getattr(motion, name)})

    monkeypatch.setattr(motions, "run", wrong)
    assert examine(case)
