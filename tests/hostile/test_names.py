"""The same hostile names in every language that names reach: C, LLVM, pages, tables, terminals, the
live viewer."""

import argparse
import csv
import ctypes
import html.parser
import io
import json
import re
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

import psiphi as pp
from psiphi import viewer
from psiphi._util import escape
from psiphi.apps.cli.commands.emit import arguments, code, requested_function
from psiphi.apps.cli.main import main
from psiphi.apps.viewer.html_page import page
from psiphi.backends.c.c_source import c_source
from tests.apps.viewer.browser import page as browser
from tests.hostile.names import MARK, NAMES, robot, urdf

NAME = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
MEANT = re.compile(
    '[<&>"{\u2028\ud800\\x00]'
)  # what may mean something in a page, or break its text
TABLED = [name for name in NAMES.values() if not re.search("[\ud800-\udfff]", name)]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", "off")


def emitted(thing: pp.Robot, name: str) -> str:
    parser = argparse.ArgumentParser()
    arguments(parser)
    words = parser.parse_args(["a robot", "gravity", f"--name={name}"])
    return code(thing, requested_function(thing, words), words)


@pytest.mark.parametrize(
    "flags", [["-std=c99"], ["-std=gnu11", "-trigraphs"]], ids=["c99", "gnu11"]
)
def test_c_is_what_it_was(flags, tmp_path):
    """All of them in one file, compiled without a warning and loaded: nothing runs, and every
    function is right."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")
    robots = [robot(name) for name in NAMES.values()]
    text = "".join(emitted(thing, f"f{i}") for i, thing in enumerate(robots))
    (tmp_path / "f.c").write_text(text, encoding="utf-8")
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O0", "-shared", "-fPIC"]
    subprocess.run(
        [compiler, *flags, *strict, "-o", tmp_path / "f.so", tmp_path / "f.c", "-lm"],
        check=True,
        timeout=300,
    )
    look = f"import ctypes; ctypes.CDLL({str(tmp_path / 'f.so')!r})"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    library, q = ctypes.CDLL(str(tmp_path / "f.so")), robots[0].random(seed=3)
    expected = robot("plain").gravity(q)
    for i in range(len(robots)):
        tau = np.full(robots[0].nv, np.nan)
        getattr(library, f"f{i}")(
            q.ctypes.data_as(ctypes.c_void_p), tau.ctypes.data_as(ctypes.c_void_p)
        )
        np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12)


@NAME
def test_a_comment_in_c_is_one_comment(name):
    text = emitted(robot(name), "f")
    comment, rest = text[: text.index("*/") + 2], text[text.index("*/") + 2 :]
    assert comment.count("/*") == 1 and "\\" not in comment and "??" not in comment
    assert rest == (plain := emitted(robot("plain"), "f"))[plain.index("*/") + 2 :]


def test_arguments_are_names_in_c():
    """A vector's name is a Python name: not always one of C's."""
    s = pp.load("acrobot").operators
    for word in ("é", "double", "t5", "c0_0", "sin"):
        source = pp.function(s.mass @ pp.vector(word)).compiled.code
        with pytest.raises(pp.Error, match=r"not a valid name in C|local variable"):
            c_source(source, "f")


@NAME
def test_llvm_does_not_hear_of_it(name):
    """Names are numbers there: the text is the same for every name."""
    assert (
        robot(name).function("gravity").source.ir()
        == robot("plain").function("gravity").source.ir()
    )


def test_compiled_code_has_a_name_and_a_doc():
    for name in NAMES.values():
        function = robot(name).function("gravity")
        assert function.ufunc.__name__ == "gravity" and "\0" not in (function.ufunc.__doc__ or "")


class Seen(html.parser.HTMLParser):
    """The tags of a page with their attributes' names, and its texts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(key for key, _ in attrs)))

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        self.tags.append(("comment", data))


@NAME
def test_a_page_has_the_tags_it_should_have(name):
    ours, plain = Seen(page(viewer.scene(robot(name)))), Seen(page(viewer.scene(robot("plain"))))
    assert ours.tags == plain.tags
    (scene,) = [word for word in ours.words if word.startswith('{"title"')]
    assert json.loads(scene)["title"] == name
    page(viewer.scene(robot(name))).encode()
    assert json.loads(escape.script_json({name: [name]})) == {name: [name]}


def test_the_page_in_a_browser_runs_and_fetches_nothing(tmp_path):
    with browser(320, 240) as opened:
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        for i, name in enumerate(name for name in NAMES.values() if MEANT.search(name)):
            path = viewer.html(robot(name), tmp_path / f"{i}.html")
            asked.clear()
            opened.goto(path.as_uri())
            opened.wait_for_function("window.psiphi && window.psiphi.drawn !== null")
            assert opened.evaluate(f"window.{MARK}") is None and not opened.complaints
            assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}


@NAME
def test_a_cell_is_never_a_formula(name):
    cell = escape.csv_cell(name)
    (row,) = csv.reader(io.StringIO(_line_of([cell, "x"])))
    assert row == [cell, "x"] and not re.match(r"\s*[=+\-@]", cell) and _tame(cell)


def _line_of(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def test_a_saved_motion_has_no_formula_in_its_header(tmp_path):
    for name in TABLED:
        motion = pp.Trajectory(
            np.zeros(1), np.zeros((1, 6)), np.zeros((1, 5)), info={"q": [name] * 6, "v": [name] * 5}
        )
        motion.save(tmp_path / "m.csv")
        with open(tmp_path / "m.csv", encoding="utf-8", newline="") as file:
            head = next(row for row in csv.reader(file) if not row[0].startswith("#"))
        assert not [cell for cell in head if re.match(r"\s*[=+\-@]", cell)]


def _tame(text: str, kept: str = "") -> bool:
    """Nothing in it commands a terminal or turns the line about."""
    wild = {"Cc", "Cs", "Zl", "Zp"}
    turned = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return all(
        c in kept
        or (unicodedata.category(c) not in wild and unicodedata.bidirectional(c) not in turned)
        for c in text
    )


@NAME
def test_a_terminal_is_not_commanded(name, tmp_path, capsys):
    assert _tame(escape.line(name)) and _tame(escape.terminal(name), "\n\t")
    thing = robot(name)
    assert _tame(repr(thing)) and _tame(repr(thing.operators))
    for wrong in (
        lambda: thing.frame("tip"),
        lambda: thing.gravity(np.zeros(3)),
        lambda: pp.load(urdf(name) or "<", base="x"),
    ):
        with pytest.raises(pp.Error) as caught:
            wrong()
        assert _tame(str(caught.value), "\n\t")
    text = urdf(name)
    if text is None:
        return
    (tmp_path / "robot.urdf").write_text(text, encoding="utf-8")
    for words in (["info"], ["emit", "gravity"], ["emit", "nonsense"]):
        main([words[0], str(tmp_path / "robot.urdf"), *words[1:]])
        out, err = capsys.readouterr()
        assert _tame(out, "\n\t") and _tame(err, "\n\t") and out + err
        assert "internal error" not in err


def test_the_live_viewer_is_given_html_only():
    pytest.importorskip("viser", reason="viser is not installed (pip install 'psiphi[viewer]')")
    for name in (
        "a markdown picture",
        "a script",
        "half a character",
        "an mdx expression",
        "the terminal's title",
    ):
        with viewer.view(robot(NAMES[name]), port=8450) as shown:
            messages = list(shown.server._websock_server._broadcast_buffer.message_from_id.values())
            kinds = {type(message).__name__ for message in messages}
            assert "GuiHtmlMessage" in kinds and not any("Markdown" in kind for kind in kinds)
            for message in messages:
                if type(message).__name__ == "GuiHtmlMessage":
                    assert [tag for tag, *_ in Seen(message.props.content).tags] in (
                        ["div", "b"],
                        ["div"],
                    )
                repr(message).encode()


def test_the_live_viewer_in_a_browser_runs_and_fetches_nothing():
    pytest.importorskip("viser", reason="viser is not installed (pip install 'psiphi[viewer]')")
    name = (
        NAMES["a markdown picture"]
        + NAMES["an image that fails"]
        + NAMES["an mdx expression"]
        + NAMES["a script"]
    )
    with browser() as opened, viewer.view(robot(name), port=8452) as shown:
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(shown.url)
        opened.get_by_text("![p](http").first.wait_for(timeout=60_000)
        opened.wait_for_timeout(1000)
        assert opened.evaluate(f"window.{MARK}") is None
        assert not [
            url
            for url in asked
            if not url.startswith((shown.url, "data:", "blob:", shown.url.replace("http", "ws")))
        ]


def test_live_pages_run_and_fetch_nothing(tmp_path):
    """A robot whose links and joints have the names that mean something in a page, a loop and a
    title likewise: all text."""
    names = [name for name in NAMES.values() if re.search("[<&>]", name) and "#include" not in name]
    assert len(names) > 5
    b = pp.Builder(names[0])
    for i, name in enumerate(names):
        b.body(name, mass=1.0, com=(0.1, 0, 0), inertia=np.diag([0.01, 0.01, 0.01]))
        b.joint(
            name,
            "revolute",
            parent=names[i - 1] if i else "world",
            child=name,
            axis=(0, 1, 0),
            xyz=(0.2, 0, 0),
        )
    bars, worst = pp.scenes.load("four_bar"), max(names, key=len)
    closed = pp.connect(bars.system.robot, [pp.Loop("ball", "tip", "pivot", name=worst)])
    with browser(500, 400) as opened:
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        pages = [
            viewer.html(pp.Robot.of(b.build()), tmp_path / "robot.html", live=True),
            viewer.html(closed, tmp_path / "closed.html", live=True, q=bars.q0, title=worst),
        ]
        for path in pages:
            opened.goto(path.as_uri())
            opened.wait_for_function("window.psiphi && psiphi.drawn !== null")
            opened.evaluate("psiphi.advance(1), look()")
            assert opened.evaluate(f"window.{MARK}") is None and not opened.complaints
            if path is pages[0]:
                texts = opened.evaluate(
                    "[...document.querySelectorAll('#targets .row span')].map(x => x.textContent)"
                )
                assert texts == names
        assert opened.evaluate("[document.querySelector('h1').textContent, document.title]") == [
            worst,
            worst,
        ]
        assert opened.locator("#legend span").nth(1).text_content() == worst
        assert {url for url in asked if not url.startswith("data:")} == {
            path.as_uri() for path in pages
        }
