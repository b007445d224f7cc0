"""The examples run, shortened where they say so (`NAME = value  # tests: value`), and the notebooks
are the scripts."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import sys

import pytest

from tests.pages import ROOT

EXAMPLES = ROOT / "examples"
SHORTER = re.compile(r"^(\w+) = .*?  # tests: (.+)$", re.MULTILINE)
spec = importlib.util.spec_from_file_location("notebooks", EXAMPLES / "notebooks.py")
assert spec and spec.loader
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)
SCRIPTS = notebooks.scripts()
EACH = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def shortened(text: str) -> str:
    return SHORTER.sub(r"\1 = \2", text)


def run(text: str, name: str) -> str:
    """What a script prints; its own assertions are the test."""
    printed, here = io.StringIO(), {"__name__": "__main__"}
    with contextlib.redirect_stdout(printed):
        exec(compile(text, name, "exec"), here)
    return printed.getvalue()


def test_every_example_asked_for_is_here():
    wanted = {
        "own_urdf",
        "puma_computed_torque",
        "free_floating_arm",
        "rollouts",
        "derive_algorithm",
        "sample_velocities",
    }
    wanted |= {
        "two_arms_box",
        "two_pumas_beam",
        "four_bar",
        "three_arms",
        "stewart_platform",
        "free_flyer_target",
    }
    assert wanted <= {script.stem for script in SCRIPTS}


@EACH
def test_the_script_runs(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = script.read_text(encoding="utf-8")
    for library in ("torch", "scipy"):
        if f"import {library}" in text:
            pytest.importorskip(library)
    assert run(shortened(text), script.name).strip(), "it says what it found"
    assert "assert " in text, "and checks it"
    assert not list(tmp_path.iterdir()), "and leaves nothing behind"


@EACH
def test_the_notebook_is_the_script_with_what_it_shows(script):
    beside = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    remedy = f"regenerate it: {sys.executable} examples/notebooks.py {script.stem}"
    assert notebooks.without_outputs(beside) == notebooks.notebook(script), remedy
    cells = json.loads(beside)["cells"]
    assert [cell["cell_type"] for cell in cells[:2]] == ["markdown", "code"] and cells[0]["source"][
        0
    ].startswith("# ")
    coded = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in coded] == list(range(1, len(coded) + 1)), (
        "all cells were run, in order"
    )
    for cell in coded:
        text = "".join(cell["source"])
        compile(text, script.name, "exec")
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert "stream" in kinds or not re.search(r"^print\(", text, re.MULTILINE), (
            "what it printed is kept"
        )
        last = ast.parse(text).body[-1]
        shows = isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call)
        assert ("execute_result" in kinds) == shows, "and what its last line shows"
        shown = [
            output["data"]
            for output in cell["outputs"]
            if output["output_type"] == "execute_result"
        ]
        assert all("<table" in "".join(data["text/html"]) for data in shown)
        assert "/tmp" not in json.dumps(cell["outputs"]) and str(ROOT) not in json.dumps(
            cell["outputs"]
        )


def test_outputs_are_those_of_the_cells(tmp_path):
    """The printed numbers that a notebook keeps are what its cell prints: a small script, run
    anew."""
    script = tmp_path / "small_matrices.py"
    script.write_text(
        "# %% [markdown]\n# # Small\n\n# %%\nx = 2\nprint(x + 1)\n\n# %%\nx * 21\n",
        encoding="utf-8",
    )
    one, two = json.loads(notebooks.notebook(script, outputs=True))["cells"][1:]
    assert one["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["3\n", ""]}]
    assert two["outputs"][0]["data"] == {"text/plain": ["42"]}


def test_no_notebook_is_left_over():
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {script.stem for script in SCRIPTS}
