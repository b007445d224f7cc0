"""docs/extending.md is done as it says: each recipe, on a copy of the sources, with the page's own
words and nothing else.

A block of the page that begins with `# src/psiphi/FILE.py: in TABLE` is a row of that table, one
that begins with `# src/psiphi/FILE.py` alone is a new file; the block after them, `# then`, uses it
end to end in a fresh process.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.children import SRC, python
from tests.pages import ROOT

FENCE = re.compile(
    r"^```(?:py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)  # a row alone, `py`, is no program
PLACE = re.compile(r"# (src/psiphi/[\w/]+\.py)(?:: in (\w+))?\n")
PAGE = ROOT / "docs" / "extending.md"


class Recipe(NamedTuple):
    """Rows or files to add, (file, table, text), and what may be done then."""

    title: str
    added: tuple[tuple[str, str, str], ...]
    then: str


def recipes() -> list[Recipe]:
    """Those of the page, by the headings above them."""
    text, found, added = PAGE.read_text(encoding="utf-8"), [], []
    for block in FENCE.finditer(text):
        code = block[1]
        if match := PLACE.match(code):
            added.append((match[1], match[2] or "", code[match.end() :]))
        elif code.startswith("# then\n"):
            title = re.findall(r"^## (.*)$", text[: block.start()], re.MULTILINE)[-1]
            found.append(Recipe(title, tuple(added), code))
            added = []
    assert not added, "rows that nothing tries"
    return found


def extend(copy: Path, file: str, table: str, text: str) -> None:
    """A row at the head of a table, with what it imports at the head of the file; or a file."""
    path = copy / Path(file).relative_to("src")
    if not table:
        assert not path.exists(), f"{file} is there already"
        path.write_text(text, encoding="utf-8")
        return
    source = path.read_text(encoding="utf-8")
    heads = list(re.finditer(rf"^{table}\b[^=\n]*= [{{(]$\n", source, re.MULTILINE))
    assert len(heads) == 1, f"{file} has no one table {table}"
    imports = "".join(re.findall(r"^from psiphi.*\n", text, re.MULTILINE))
    first = re.search(r"^from psiphi", source, re.MULTILINE)
    at, top = heads[0].end(), first.start() if first else 0
    row = text.replace(imports, "")
    path.write_text(source[:top] + imports + source[top:at] + row + source[at:], encoding="utf-8")


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.title)
def test_recipe(recipe, tmp_path):
    shutil.copytree(
        SRC / "psiphi", tmp_path / "psiphi", ignore=shutil.ignore_patterns("__pycache__")
    )
    for place in recipe.added:
        extend(tmp_path, *place)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    done = python(
        "-c", recipe.then + '\nprint("done")', PYTHONPATH=path, PSIPHI_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 0 and done.stdout.split()[-1] == "done", done.stderr


def test_the_page_has_a_recipe_for_each():
    assert {recipe.title for recipe in recipes()} >= {
        "A joint",
        "An identity",
        "A quantity",
        "A controller",
        "A contact",
        "A target",
    }


def test_a_recipe_is_one_row():
    """One place in one file; a target, which is a language, is a file and its row; a controller is
    the user's own."""
    for recipe in recipes():
        rows = [table for _, table, _ in recipe.added if table]
        assert len(rows) <= 1 and len(recipe.added) - len(rows) <= (recipe.title == "A target"), (
            recipe.title
        )
