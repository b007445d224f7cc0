"""What notebooks show of robots, closed chains, motions, proofs and functions."""

from html.parser import HTMLParser

import numpy as np
import pytest

import psiphi as pp
from tests.apps.viewer.browser import page
from tests.hostile.names import NAMES, robot

ALLOWED = {
    "div",
    "p",
    "b",
    "table",
    "tr",
    "td",
    "span",
    "style",
    "pre",
    "svg",
    "polygon",
    "path",
    "line",
    "text",
}


class Tags(HTMLParser):
    """The tags of a card; all of them closed, none that fetches or runs."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ALLOWED, tag

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@pytest.fixture(scope="module")
def ur5():
    return pp.load("ur5")


def test_a_robot(ur5):
    card = Tags(ur5._repr_html_())
    for word in ("ur5", "6 bodies", "nq = 6", "elbow_joint", "-3.142 .. 3.142", "150"):
        assert word in card.text
    assert ur5._repr_html_().count("<polygon") == len(ur5.shapes)


def test_a_closed_chain(ur5):
    ball = pp.Body.sphere(1.0, 0.1, name="ball")
    cell = pp.grasp(
        [(ur5, (0, -0.5, 0), "tool0"), (ur5, (0, 0.5, 0), "tool0")],
        ball,
        [(0, -0.1, 0), (0, 0.1, 0)],
    )
    card = Tags(cell._repr_html_())
    assert (
        "12 constraint rows" in card.text
        and "ball/free" in card.text
        and "<polygon" in cell._repr_html_()
    )


def test_a_motion(ur5, tmp_path):
    motion = pp.simulate(ur5, [0, -1, 1, 0, 0, 0], duration=0.1)
    text = motion._repr_html_()
    assert (
        "largest speed" in Tags(text).text
        and "joint velocities" in text
        and text.count("<svg") == 4
    )
    motion.save(tmp_path / "m.npz")
    alone = pp.Trajectory.load(tmp_path / "m.npz")._repr_html_()
    assert "largest speed" in Tags(alone).text and "<svg" not in alone, (
        "without its robot, the words alone"
    )
    assert "none" in Tags(motion[:0]._repr_html_()).text
    batch = pp.simulate(ur5, np.zeros((2, 6)), duration=0.05)
    assert "batch" in Tags(batch._repr_html_()).text


def test_a_proof_and_a_function(ur5):
    s = ur5.operators
    proof = pp.prove(s.phi @ s.E_phi, s.phi - s.I)
    assert (
        "proved" in Tags(proof._repr_html_()).text and "S0 (a.11)" in Tags(proof._repr_html_()).text
    )
    refuted = Tags(pp.prove(s.phi, s.psi)._repr_html_())
    assert "not proved" in refuted.text and "counter-example" in refuted.text
    made = pp.function(s.mass.inv @ pp.vector("tau"))
    assert f"{made.flops} flops" in Tags(made._repr_html_()).text


def test_hostile_names_stay_words(tmp_path):
    for name in NAMES.values():
        thing = robot(name)
        Tags(thing._repr_html_())
        Tags(
            pp.Trajectory(
                [0.0, 1.0], np.tile(thing.neutral(), (2, 1)), np.zeros((2, thing.nv)), system=thing
            )._repr_html_()
        )


def test_cards_in_a_browser(ur5, tmp_path):
    motion = pp.simulate(ur5, [0, -1, 1, 0, 0, 0], duration=0.1)
    path = tmp_path / "cards.html"
    path.write_text(
        "<meta charset='utf-8'>" + ur5._repr_html_() + motion._repr_html_(), encoding="utf-8"
    )
    with page() as opened:
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(path.as_uri())
        boxes = opened.evaluate(
            "[...document.querySelectorAll('svg')].map(x => x.getBoundingClientRect().width)"
        )
        assert (
            boxes == [220, 220, 460, 460, 460]
            and asked == [path.as_uri()]
            and not opened.complaints
        )
