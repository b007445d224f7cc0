"""A few hundred mutants of eight robots in the ordinary suite; `make torture` tries as many as
there is time for."""

import signal

import pytest

from tests.hostile.mutated import judge, mutant, texts

EACH = 40


@pytest.fixture(autouse=True)
def _no_hang():
    """Ten seconds for one file are a hang."""

    def late(*_):
        raise TimeoutError("more than ten seconds for one file")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("block", range(8))
def test_mutants_load_into_finite_models_or_end_in_words(block):
    ends = []
    for seed in range(block * EACH, (block + 1) * EACH):
        signal.alarm(10)
        ends.append(judge(seed))
    assert set(ends) == {"refused", "loaded"}


def test_a_seed_is_a_file():
    assert mutant(7) == mutant(7) != mutant(8) and len(texts()) in (1, 8)
