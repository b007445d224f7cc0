"""300 random expressions on random robots: each right, dense and right, or refused in words. See
`examine.py` for how close. And derivatives of some."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import event, given, seed, settings
from hypothesis import strategies as st

from tests.soundness.derivatives import slopes
from tests.soundness.examine import Case, Outcome, examine
from tests.soundness.robots import draw_spec
from tests.soundness.writing import draw_recipe

TESTS, EACH = 6, 50


@st.composite
def cases(draw) -> Case:
    def pick(options):
        return draw(st.sampled_from(list(options)))

    return Case(draw_spec(pick), draw_recipe(pick))


def checked(
    number: int, how: Callable[[Case], Outcome] = examine, each: int = EACH
) -> Callable[[], None]:
    @seed(number)
    @settings(max_examples=each, database=None, deadline=None)
    @given(cases())
    def check(case: Case) -> None:
        outcome = how(case)
        event(outcome.kind)
        assert outcome.ok, f"{outcome.kind}: {outcome.detail}\n{case.source()}"

    return check


@pytest.mark.parametrize("number", range(TESTS))
def test_random_expressions(number):
    checked(number)()


def test_derivatives_of_random_expressions():
    checked(0, slopes, 12)()
