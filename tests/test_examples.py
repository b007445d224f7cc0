"""The examples run, shortened where they say so (`NAME = value  # tests: value`), and the notebooks are the scripts."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import sys

import pytest

from pages import ROOT

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
    wanted = {"own_urdf", "puma_computed_torque", "free_floating_arm", "rollouts", "derive_algorithm", "sample_velocities"}
    wanted |= {"two_arms_box", "two_pumas_beam", "four_bar", "three_arms", "stewart_platform", "free_flyer_target"}
    assert wanted <= {script.stem for script in SCRIPTS}


@EACH
def test_the_script_runs(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = script.read_text(encoding="utf-8")
    assert run(shortened(text), script.name).strip(), "it says what it found"
    assert "assert " in text, "and checks it"
    assert not list(tmp_path.iterdir()), "and leaves nothing behind"


@EACH
def test_the_notebook_is_the_script(script):
    beside = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert beside == notebooks.notebook(script), f"make it anew: {sys.executable} examples/notebooks.py"
    cells = json.loads(beside)["cells"]
    assert [cell["cell_type"] for cell in cells[:2]] == ["markdown", "code"] and cells[0]["source"][0].startswith("# ")
    for cell in cells:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), script.name, "exec")


def test_no_notebook_is_left_over():
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {script.stem for script in SCRIPTS}
