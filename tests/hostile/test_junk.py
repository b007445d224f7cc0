"""Every junk value at every parameter of every public call: an answer, or a psiphi.Error in words;
nothing else escapes."""

import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from tests.hostile.junk import JUNK, Call, table
from tests.hostile.public_calls import ELSEWHERE, MADE, doors, more, untried

FOLDER = Path(tempfile.mkdtemp(prefix="psiphi-junk-"))
NEEDED = {
    "to_torch": "torch",
    "Environment.torch": "torch",
    "Environment.vector": "gymnasium",
    "Environment.single": "gymnasium",
    "Environment.jax": "jax",
}
CALLS = [*table(FOLDER), *more(FOLDER)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Files that a junk path makes are in a folder of their own, plots small; threads are as they
    were."""
    monkeypatch.chdir(tmp_path)
    if "matplotlib" in sys.modules:
        monkeypatch.setitem(sys.modules["matplotlib"].rcParams, "savefig.dpi", 10)
    threads = pp.get_threads()
    yield
    pp.set_threads(threads)


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_nothing_but_an_error_in_words_escapes(call: Call):
    escaped = []
    if call.name in NEEDED:
        pytest.importorskip(NEEDED[call.name])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if call.name != "viewer.view":
            call.call(**call.given)
        for parameter, label, knock in call.tries():
            try:
                knock()
            except pp.Error as error:
                str(error).encode()
            except Exception as error:
                escaped.append(f"{parameter}={label}: {type(error).__name__}: {error}")
    assert not escaped, "\n".join(escaped[:20])


def test_no_door_is_left_out():
    """Every parameter of every public name and method: a new one needs a row in the tables, or a
    reason."""
    known = {name for name, _ in doors()}
    assert not untried(CALLS)
    assert known > {
        "load",
        "embed",
        "Gear",
        "Rotor",
        "ObjectControl",
        "Robot.gravity",
        "System.linearize",
        "robots.chain",
    }
    assert set(MADE) | set(ELSEWHERE) <= known, "a reason for a door that is gone"


def test_there_is_enough_junk():
    assert len(JUNK) >= 66 and len(CALLS) >= 80


def test_options_that_are_not_there():
    with pytest.raises((pp.Error, TypeError), match="gravty"):
        pp.load("acrobot", gravty=0)


def teardown_module():
    shutil.rmtree(FOLDER)
