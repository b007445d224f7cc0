"""The suite passes on other people's machines: text has an encoding, waits have a limit, and
tools/surroundings.py works."""

from __future__ import annotations

import ast
import doctest
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.children import python
from tests.pages import ROOT, blocks

FOLDERS = ("src", "tests", "tools", "examples", "benchmarks")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
TEXT = {"read_text", "write_text", "open"}
MODES = {letter + rest for letter in "rwax" for rest in ("", "b", "t", "+", "b+", "+b")}
TOOL = ROOT / "tools" / "surroundings.py"


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def owner(node: ast.Call) -> str:
    """The name before it: `os` of os.open."""
    return getattr(getattr(node.func, "value", None), "id", "")


def without_encoding(code: str) -> Iterator[int]:
    """Lines that read or write text in whatever encoding the locale has."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call) or called(node) not in TEXT or owner(node) == "os":
            continue
        words = {word.arg: word.value for word in node.keywords}
        modes = {
            arg.value for arg in (*node.args, *words.values()) if isinstance(arg, ast.Constant)
        } & MODES
        is_text = (
            called(node) != "open" or isinstance(node.func, ast.Name) or modes
        )  # .open of who knows what, with a mode
        if is_text and "encoding" not in words and not any("b" in mode for mode in modes):
            yield node.lineno


def without_limit(code: str) -> Iterator[int]:
    """Lines that wait for a process or a thread as long as it likes."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        limited = any(word.arg == "timeout" for word in node.keywords)
        starts = owner(node) == "subprocess" and called(node) in (
            "run",
            "call",
            "check_call",
            "check_output",
        )
        waits = called(node) in ("join", "communicate") and not node.args
        if called(node) == "Popen" or (
            (starts or waits or called(node) == "Barrier") and not limited
        ):
            yield node.lineno


def label(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def complaints(files: list[Path], judge: Callable[[str], Iterator[int]]) -> list[str]:
    return [
        f"{label(file)}:{line}"
        for file in files
        for line in judge(file.read_text(encoding="utf-8"))
    ]


def test_text_has_an_encoding():
    assert len(FILES) > 300
    assert not complaints(FILES, without_encoding), "add encoding='utf-8'"


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_text_in_the_docs_has_an_encoding(page):
    for _, code in blocks(page):
        examples = doctest.DocTestParser().get_examples(code)
        for source in [example.source for example in examples] or [code]:
            assert not list(without_encoding(source)), source


def test_no_test_waits_for_ever():
    tests = [file for file in FILES if label(file).startswith("tests/")]
    elsewhere = [
        line
        for line in complaints(tests, without_limit)
        if not line.startswith("tests/children.py:")
    ]
    assert not elsewhere, "give a timeout, or use tests/children.py"


@pytest.mark.parametrize(
    ("judge", "wrong", "right"),
    [
        (without_encoding, "open('a')", "open('a', 'rb')"),
        (without_encoding, "open('a', mode='w')", "open('a', 'w', encoding='utf-8')"),
        (without_encoding, "path.open('w')", "os.open('a', 0)"),
        (without_encoding, "path.read_text()", "path.read_text(encoding='utf-8')"),
        (without_encoding, "path.write_text(text)", "webbrowser.open(address)"),
        (without_limit, "subprocess.run(words)", "subprocess.run(words, timeout=5)"),
        (without_limit, "subprocess.Popen(words)", "child(*words)"),
        (without_limit, "thread.join()", "', '.join(words)"),
        (without_limit, "threading.Barrier(8)", "threading.Barrier(8, timeout=60)"),
    ],
)
def test_the_judges_themselves(judge, wrong, right):
    assert list(judge(wrong)) == [1] and not list(judge(right))


@pytest.fixture
def folder() -> Iterator[str]:
    """A temporary folder that another user may pass through; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield path


def test_all_surroundings_together_and_one_alone(folder):
    """Each proves itself before it is used; the table counts; nothing stays behind."""
    chosen = "tests/test_surroundings.py::test_the_judges_themselves"
    done = python(str(TOOL), "together", "umask", "--jobs", "1", "--", chosen, "-q", TMPDIR=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    for name in ("together", "umask"):
        (row,) = (row for row in rows if row[:1] == [name])
        assert row[2:5] == ["9", "0", "0"] and row[-1] == "good"
    assert not os.listdir(folder)


def test_what_fails_or_cannot_be_had_is_said(tmp_path):
    done = python(str(TOOL), "home", "--jobs", "1", "--", "tests/nothing.py", TMPDIR=str(tmp_path))
    assert done.returncode == 1 and "NOT GOOD" in done.stdout
    other = "3.12" if sys.version_info[:2] == (3, 11) else "3.11"
    done = python(str(TOOL), "home", "--python", other, PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert done.returncode == 1 and f"not run: no python{other} on the PATH" in done.stdout
    done = python(str(TOOL), "hime")
    assert (
        done.returncode == 2
        and "no surrounding is called 'hime'; there are user, readonly" in done.stderr
    )
