"""The pages of docs/: every example runs, every link leads somewhere, and no error class is left
out."""

from __future__ import annotations

import re

import pytest

import psiphi as pp
from psiphi._util import errors
from psiphi.model.builder.model_checks import REPAIRS
from psiphi.model.joint_types import JOINTS
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests.pages import ROOT, broken_links, run_examples

PAGES = sorted((ROOT / "docs").glob("**/*.md"))
# its examples run where it is generated (tests/test_site.py) and in the docstrings it copies
GENERATED = {ROOT / "docs" / "reference.md", *(ROOT / "docs" / "reference").glob("*.md")}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in GENERATED], ids=lambda page: page.name
)
def test_the_examples_run(page):
    if page.stem in ("arrays", "libraries"):
        pytest.importorskip("torch")
        pytest.importorskip("jax")
    run_examples(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_lead_somewhere(page):
    assert not broken_links(page)


def words_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_rows_of_the_benchmark_that_pages_name_exist():
    from psiphi_bench.run import NAMES

    named = {
        name
        for page in PAGES
        for name in re.findall(r"bench --only ([\w-]+)", page.read_text(encoding="utf-8"))
    }
    assert named and named <= set(NAMES)


def test_the_sections_that_code_cites_exist():
    cited = re.compile(r"docs/mathematics\.md\s+sections? (\d+)(?: to (\d+))?")
    texts = (
        file.read_text(encoding="utf-8")
        for room in ("src", "tests")
        for file in (ROOT / room).rglob("*.py")
    )
    numbers = {
        int(number) for text in texts for pair in cited.findall(text) for number in pair if number
    }
    sections = {
        int(number)
        for number in re.findall(r"^## (\d+)\. ", words_of("mathematics.md"), re.MULTILINE)
    }
    assert len(numbers) > 5 and numbers <= sections and sections == set(range(1, len(sections) + 1))


def test_every_joint_kind_has_its_row():
    text = words_of("conventions.md")
    for kind, row in JOINTS.items():
        line = next(
            line
            for line in text.splitlines()
            if line.startswith("| ") and kind in line.split("|")[1]
        )
        assert f"| {row.nq} | {row.nv} |" in line, kind


def test_every_equation_is_a_function():
    for line in words_of("conventions.md").splitlines():
        if line.startswith("| `") and "(q" in line:
            for word in line.split("|")[1].split("`")[1::2]:
                name = word.removeprefix("robot.").partition("(")[0]
                assert hasattr(pp.Robot, name) and (
                    name in CATALOGUE or line.startswith("| `robot.")
                ), word


def test_every_error_and_repair_is_explained():
    text = words_of("errors.md")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.Error):
            assert f"| `{name}` |" in text, name
    for repair in REPAIRS:
        assert f'"{repair}"' in text
