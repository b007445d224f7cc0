"""200 random claims: the true ones are proved or left open, never refuted; the false ones are never
proved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import event, given, seed, settings
from hypothesis import strategies as st

from tests.soundness.claims import OK, Claim, draw_claim, facts, judge, some_robots, truth
from tests.soundness.recipes import letter, read
from tests.soundness.robots import Joint, Spec

TESTS, EACH = 4, 50
_rng = np.random.default_rng(11)
SPECS = some_robots(lambda options: options[int(_rng.integers(len(options)))], 4)


@st.composite
def claims(draw) -> Claim:
    return draw_claim(lambda options: draw(st.sampled_from(list(options))), SPECS)


def checked(number: int) -> Callable[[], None]:
    @seed(number)
    @settings(max_examples=EACH, database=None, deadline=None)
    @given(claims())
    def check(claim: Claim) -> None:
        outcome = judge(claim)
        event(outcome.kind)
        assert outcome.kind in OK, f"{outcome.kind}: {outcome.detail}\n{claim.source()}"

    return check


@pytest.mark.parametrize("number", range(TESTS))
def test_random_claims(number):
    checked(number)()


def test_the_oracle_knows_true_from_false():
    spec = Spec((Joint("universal", -1, True), Joint("revolute", 0, True)), 3)
    H, G, I = letter("H"), letter("G"), letter("I")
    assert truth(Claim(spec, letter("K"), letter("E_phi") @ G)) is True
    assert truth(Claim(spec, H @ G, I)) is False  # rotors
    assert (
        truth(Claim(spec, letter("tau_bar").inv, letter("tau_bar").inv)) is True
    )  # with rotors it has one
    plain = Spec((Joint("universal"), Joint("revolute", 0)), 3)
    assert truth(Claim(plain, H @ G, I)) is True
    assert truth(Claim(plain, letter("tau_bar").inv, 7 * letter("tau_bar").inv)) is None
    assert len(facts(plain)) > 120 and read("s.H @ s.G") in [lhs for lhs, _ in facts(plain)]
