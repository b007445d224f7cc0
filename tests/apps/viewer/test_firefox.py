"""Live pages in Firefox: the same numbers."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.viewer.live import live_page
from tests.apps.viewer.firefox import firefox

READY = "return !!(window.psiphi && psiphi.drawn !== null)"
FALLS = """
document.querySelector("#modes input[value=fall]").checked = true;
psiphi.restart();
psiphi.advance(1000);
return [...psiphi.memory.Q];
"""


@pytest.fixture(scope="module")
def fox():
    with firefox() as fox:
        yield fox


@pytest.mark.parametrize("name", ["panda", "four_bar"])
def test_a_second_in_the_page_is_a_second_of_the_library(fox, tmp_path, name):
    """A Panda falls onto its stops; a four-bar swings, its loop closed."""
    thing = pp.scenes.load(name) if name in pp.scenes.names() else pp.load(name)
    alive = live_page.read_live_page(thing)
    v0 = alive.v0 if name == "four_bar" else 0.1 * np.ones_like(alive.v0)
    options = {} if name == "four_bar" else {"v": v0}
    fox.open(
        pp.viewer.html(thing, tmp_path / "live.html", live=True, **options).as_uri() + "#paused",
        READY,
    )
    q = np.array(fox.run(FALLS))
    motion = pp.simulate(alive.system, alive.q0, v0, duration=1.0, limits=alive.limits)
    assert np.abs(motion.final.q - alive.q0).max() > 0.01
    assert np.abs(q - motion.final.q).max() < 1e-9
