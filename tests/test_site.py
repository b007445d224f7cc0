"""The docs site: pages made from the code are up to date, named files exist, every page is in the menu, and it builds."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from pages import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
FILE = re.compile(r"`((?:src|tests|docs|examples|benchmarks|tools)/[\w./*-]+)`")
NUMBER = re.compile(r"-?\d+\.\d+")
NAV = re.findall(r"^ +- [^:\n]+: (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("made_docs", ROOT / "tools" / "docs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def same(a: str, b: str) -> bool:
    """Equal but for the last digit of a picture's coordinates, which may round otherwise elsewhere."""
    if a == b or not a.startswith("<svg"):
        return a == b
    (x, words), (y, others) = (([float(n) for n in NUMBER.findall(s)], NUMBER.sub("", s)) for s in (a, b))
    return words == others and len(x) == len(y) and all(abs(i - j) < 0.15 for i, j in zip(x, y, strict=True))


def test_made_pages_are_up_to_date(made):
    stale = [name for name, text in made.items() if not same((DOCS / name).read_text(encoding="utf-8"), text)]
    assert not stale, f"make them anew: {sys.executable} tools/docs.py"
    assert {f"robots/{path.name}" for path in (DOCS / "robots").glob("*.svg")} <= set(made)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    for path in FILE.findall((DOCS / page).read_text(encoding="utf-8")):
        assert list(ROOT.glob(path.rstrip("/"))), f"{page} names {path}"


def test_every_page_is_in_the_menu():
    assert sorted(NAV) == PAGES, "every page of docs/ has one line under nav in mkdocs.yml"


def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "papers.html").is_file() and (tmp_path / "robots" / "panda.svg").is_file()
    start = (tmp_path / "start.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|link|img)[^>]*?(?:src|href)="(https?://[^"]+)"', start)
    assert not [url for url in loaded if "canonical" not in url], "nothing is fetched when it is read"
