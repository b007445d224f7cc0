"""The docs site: pages made from the code are up to date, named files exist, every page is in the
menu, and it builds."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import psiphi as pp
from psiphi._util.internal_names import is_internal
from tests.apps.viewer.browser import SPOT
from tests.apps.viewer.browser import page as browser
from tests.apps.viewer.contrast import pale
from tests.children import python
from tests.pages import ROOT, blocks, made_once

DOCS = ROOT / "docs"
REFERENCE = [DOCS / "reference.md", *sorted((DOCS / "reference").glob("*.md"))]
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
FILE = re.compile(r"`((?:src|tests|docs|examples|benchmarks|tools)/[\w./*-]+)`")
NUMBER = re.compile(r"-?\d+\.\d+")
NAV = re.findall(
    r"^ +- [^:\n]+: (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
)


def program(path: str):
    """A program of this repository as a module."""
    spec = importlib.util.spec_from_file_location(f"program_{Path(path).stem}", ROOT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The pages made in a process of its own, whose tables no other test has changed."""

    def make(folder: Path) -> None:
        code = "import json, docs; print(json.dumps(docs.pages()))"
        done = python("-c", code, PYTHONPATH=str(ROOT / "tools"))
        assert done.returncode == 0, done.stderr
        (folder / "pages.json").write_text(done.stdout, encoding="utf-8")

    return json.loads((made_once("pages", make) / "pages.json").read_text(encoding="utf-8"))


def same(a: str, b: str) -> bool:
    """Equal but for the last digit of a picture's coordinates, which may round otherwise
    elsewhere."""
    if a == b or not a.startswith("<svg"):
        return a == b
    (x, words), (y, others) = (
        ([float(n) for n in NUMBER.findall(s)], NUMBER.sub("", s)) for s in (a, b)
    )
    return (
        words == others
        and len(x) == len(y)
        and all(abs(i - j) < 0.15 for i, j in zip(x, y, strict=True))
    )


def test_made_pages_are_up_to_date(made):
    stale = [
        name
        for name, text in made.items()
        if not same((DOCS / name).read_text(encoding="utf-8"), text)
    ]
    assert not stale, f"regenerate them: {sys.executable} tools/docs.py"
    assert {f"robots/{path.name}" for path in (DOCS / "robots").glob("*.svg")} <= set(made)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    for path in FILE.findall((DOCS / page).read_text(encoding="utf-8")):
        assert list(ROOT.glob(path.rstrip("/"))), f"{page} names {path}"


def test_every_page_is_in_the_menu():
    assert sorted(NAV) == PAGES, "every page of docs/ has one line under nav in mkdocs.yml"


@pytest.fixture(scope="module")
def site():
    pytest.importorskip("mkdocs")

    def make(folder: Path) -> None:
        words = ("build", "--strict", "--quiet", "--site-dir", str(folder))
        command = [sys.executable, "-m", "mkdocs", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    return made_once("site", make)


def test_the_site_builds(site):
    assert (site / "papers.html").is_file() and (site / "robots" / "panda.svg").is_file()
    start = (site / "start.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|link|img)[^>]*?(?:src|href)="(https?://[^"]+)"', start)
    assert not [url for url in loaded if "canonical" not in url], (
        "nothing is fetched when it is read"
    )


@pytest.mark.parametrize("page", ["index", "start", "reference"])
def test_pages_say_which_version_they_describe(site, page):
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"These pages describe psiphi {version['version']}" in text


WORDS = {  # of users, and the page that answers
    "torch": "arrays",
    "jax": "arrays",
    "gradient": "derivatives",
    "payload": "editing",
    "MJCF": "exchange",
    "GPU": "gpu",
    "csv": "simulation",
    "progress": "simulation",
    "Windows": "limits",
    "mass_matrix": "reference/robots",
    "limits=True": "simulation",
    "ground": "ground",
    "legged": "ground",
    "quadruped": "ground",
    "gymnasium": "environments",
    "reinforcement learning": "environments",
    "rsl_rl": "environments",
    "skrl": "environments",
    "acados": "libraries",
}


def test_words_are_found_by_searching_from_the_disk(site):
    """file:// in a browser: the search answers, and nothing is fetched from elsewhere."""
    with browser(1300, 900) as opened:
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((site / "start.html").as_uri())
        opened.wait_for_function("!document.documentElement.classList.contains('no-js')")
        opened.keyboard.press("s")
        for word, page in WORDS.items():
            opened.locator(".md-search__input").fill("")
            opened.wait_for_function("!document.querySelector('.md-search-result__item')")
            opened.locator(".md-search__input").type(word)
            links = "[...document.querySelectorAll('.md-search-result__item a')].map(x => x.href)"
            opened.wait_for_function(f"{links}.some(x => x.includes('/{page}.html'))")
            assert all(url.startswith("file:") for url in opened.evaluate(links)), word
        assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked)
        assert not opened.complaints


def test_the_menu_has_four_groups_in_the_order_of_use():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    groups = re.findall(r"^  - ([^:\n]+):\n((?:      - .*\n)+)", text, re.MULTILINE)
    assert [name for name, _ in groups][:4] == [
        "First steps",
        "Dynamics",
        "Motion, contact and control",
        "Other libraries and machines",
    ]
    assert all(len(lines.splitlines()) < 10 for _, lines in groups)


PROMPTS = """>>> import math
>>> for x in (1.0, 4.0):
...     print(math.sqrt(x))
1.0
2.0
>>> math.sqrt(-1)
Traceback (most recent call last):
ValueError: math domain error
"""
PLAIN = """import math
for x in (1.0, 4.0):
    print(math.sqrt(x))
# 1.0
# 2.0
math.sqrt(-1)
# ValueError: math domain error
"""


def test_blocks_of_the_site_are_code_that_can_be_copied(site):
    """Without prompts, answers as comments; what a page keeps with prompts, the tests run."""
    hook = program("tools/plain_blocks.py")
    assert hook.plain(PROMPTS) == PLAIN and hook.plain(PLAIN) == PLAIN
    for page in sorted(DOCS.glob("*.md")):
        for line, code in blocks(page):
            ast.parse(hook.plain(code), f"{page.name}:{line}")
    first = [block for name in ("index", "start") for _, block in blocks(DOCS / f"{name}.md")]
    lines = [line for block in first for line in hook.plain(block).splitlines()]
    assert not [line for line in lines if len(line) > 86 and line[0] != "#"], "fits its box"
    with browser(1100, 620) as opened:
        opened.goto((site / "start.html").as_uri())
        code = "[...document.querySelectorAll('.highlight code')].map(x => x.innerText)"
        copied = opened.evaluate(code)
        assert len(copied) > 7 and not [text for text in copied if ">>>" in text]
        here = {}
        exec("\n".join(text for text in copied[1:3]), here)
        assert here["robot"].nv == 6 and here["many"].shape == (1000, 6)


def test_the_front_page_has_pictures(site):
    front = (site / "index.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<img [^>]*src="([^"]+)"', front)
    assert len(pictures) >= 8 and all((site / path).is_file() for path in pictures)
    assert "benchmarks/six_bars.svg" in pictures and "pictures/trot.webp" in pictures
    assert all(path.stat().st_size < 150_000 for path in (DOCS / "pictures").iterdir())


def test_robots_run_in_the_pages_of_the_site(site):
    """One live page for each bundled robot and scene, made by the hook; what pages show of them is
    there."""
    there = {path.stem: path for path in (site / "live").glob("*.html")}
    assert set(there) == {*pp.robots.bundled(), *pp.scenes.names(), "trot"}
    sizes = {path: path.stat().st_size for path in site.rglob("*.html")}
    assert all(size < 1_500_000 + 500_000 * (path.stem == "trot") for path, size in sizes.items())
    for name in EMBEDDED:
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        shown = re.findall(r'(?:src|href)="(live/[^"#]+)', text)
        assert shown and all((site / path).is_file() for path in shown), name
        assert [
            Path(x).stem for x in re.findall(r'<iframe[^>]*class="live"[^>]*src="([^"#]+)', text)
        ] == EMBEDDED[name], name
    assert set(
        re.findall(r'href="live/([^"]+).html', (site / "live.html").read_text(encoding="utf-8"))
    ) == set(there) - {"trot"}


EMBEDDED = {
    "index": ["panda"],
    "closed": ["two_arms", "four_bar"],
    "diagonalised": ["puma560"],
    "environments": ["trot"],
    "ground": ["anymal_c"],
    "live": ["iiwa14"],
}


def test_robots_are_pulled_inside_the_pages(site):
    """From file://, by the mouse: the last body (the box, of two arms), in one of the pages that
    have some."""
    with browser(1100, 620) as opened:
        opened.goto((site / "closed.html").as_uri())
        for frame in opened.locator("iframe.live").all():
            frame.scroll_into_view_if_needed()
            inside = frame.element_handle().content_frame()
            inside.wait_for_function("window.psiphi && psiphi.drawn !== null")
            box, spot = (
                frame.bounding_box(),
                inside.evaluate(SPOT, inside.evaluate("psiphi.scene.bodies.length - 1")),
            )
            x, y = box["x"] + spot[0], box["y"] + spot[1]
            opened.mouse.move(x, y)
            opened.mouse.down()
            opened.mouse.move(x + 50, y - 30)
            inside.wait_for_function("psiphi.held && Math.hypot(...psiphi.memory.pull) > 1")
            opened.mouse.up()
        assert not opened.complaints


def test_words_of_the_site_stand_out(site):
    """WCAG's 4.5 : 1, for prose, menus and code."""
    with browser(1100, 620) as opened:
        for page in ("index", "live"):
            opened.goto((site / f"{page}.html").as_uri())
            assert pale(opened) == []


def test_every_live_page_is_pulled_in_real_time(site):
    """By the mouse, in Chromium: a link moves, and a step takes far less time than it simulates."""
    pull = program("benchmarks/pulled_pages.py").pull
    with browser(420, 300) as opened:
        for path in sorted((site / "live").glob("*.html")):
            _, share, _, moved, _ = pull(opened, path, seconds=0.1, steps=60)
            if moved <= 1e-4:  # a busy machine drew few pictures in so short a time
                _, share, _, moved, _ = pull(opened, path, seconds=3.0, steps=60)
            assert share < 0.5 and moved > 1e-4 and not opened.complaints, (
                path.stem,
                share,
                moved,
                opened.complaints,
            )


def test_the_reference_has_every_public_name_with_types_and_an_example():
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    sections = {
        part.split("`", 2)[1]: part for part in re.split(r"^#{2,4} ", text, flags=re.MULTILINE)[1:]
    }
    for name in pp.__all__:
        assert f"pp.{name}" in sections, name
        thing = getattr(pp, name)
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            known = {member for base in thing.__mro__[1:] for member in vars(base)}
            for member, value in vars(thing).items():
                if is_internal(thing, member) or member.startswith("_"):
                    continue
                if inspect.isfunction(value) and member not in known:
                    assert f"{name}.{member}" in sections, f"{name}.{member}"
    called = {
        name: part
        for name, part in sections.items()
        if re.search(r"^```text\n\w+\(", part, re.MULTILINE)
    }
    assert len(called) > 180
    assert [name for name, part in called.items() if ">>>" not in part] == []
    untyped = re.compile(r"^```text\n\w+\((?!\)|\*|\w+:)", re.MULTILINE)
    assert [name for name, part in called.items() if untyped.search(part)] == []


NOT_THERE = ()
NOT_ROBOTS = ()


def test_blocks_of_the_reference_are_not_inside_each_other():
    """A table of parameters whose lines are wrapped stays one block."""
    kinds = []
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    for line in text.splitlines():
        if line.startswith("```"):
            opens = len(kinds) % 2 == 0
            assert opens == (line != "```"), line
            kinds.append(line)
    assert len(kinds) > 100 and len(kinds) % 2 == 0


def test_what_psiphi_does_not_do_is_not_there():
    """docs/limits.md says what is missing: where one of these has come, that page has to say so."""
    come = [name for name in NOT_THERE if name in pp.__all__] + [
        name for name in NOT_ROBOTS if hasattr(pp.Robot, name)
    ]
    assert not come, f"docs/limits.md says that psiphi has no {come}"
    for name in re.findall(r"`pp\.(\w+)", (DOCS / "limits.md").read_text(encoding="utf-8")):
        assert hasattr(pp, name), f"and what it names instead is there: {name}"
