"""Sentences of docs, help texts and messages that were not true: what can be checked is."""

import inspect
import re
from pathlib import Path

import pytest

import psiphi as pp
from psiphi._util.extras import install_command, required_packages
from psiphi.apps.cli import main as cli
from psiphi.apps.cli.command_table import EXAMPLES
from psiphi.backends.target import TARGETS

ROOT = Path(__file__).parent.parent


def test_nothing_asks_for_an_extra_of_a_package_on_an_index():
    """psiphi is on no index yet: pip install 'psiphi[plot]' would find nothing."""
    files = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("src/**/*.py")]
    wrong = [
        path
        for path in files
        if re.search(r"pip install '?psiphi\b", path.read_text(encoding="utf-8"))
    ]
    assert not wrong
    assert re.fullmatch(r"pip install 'matplotlib>=[\d.]+'", install_command("psiphi[plot]"))
    names = [re.split(r"[<>=~]", name)[0] for name in required_packages("psiphi[bench]")]
    assert sorted(names) == ["example-robot-data", "mujoco", "pin", "scipy"]
    assert {"numpy", "llvmlite"} == {x.split(">")[0] for x in required_packages("psiphi")}


def test_help_texts_name_no_source_files():
    """help(pp.simulate) sent its readers to files of the implementation."""
    found = []
    for name in dir(pp):
        value = getattr(pp, name)
        if inspect.ismodule(value):
            continue
        members = inspect.getmembers(value) if inspect.isclass(value) else []
        parts = [(name, value), *((f"{name}.{k}", x) for k, x in members if k[0] != "_")]
        found += [k for k, x in parts if re.search(r"\w\.py\b", inspect.getdoc(x) or "")]
    assert not found


def test_the_help_of_the_command_line_names_formats_and_targets(capsys):
    assert "MJCF" in EXAMPLES
    for words in (["emit", "--help"], ["info", "--help"]):
        with pytest.raises(SystemExit):
            cli.main(words)
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("URDF or MJCF file") == 2
    assert all(re.search(rf"\b{name}\b", text) for name in TARGETS)


def test_which_inertias_are_refused_and_which_are_told():
    """docs/errors.md: a negative sum is an error, other impossible inertias are warnings."""
    text = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
    <inertia ixx="{}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="{}"><parent link="a"/><child link="b"/></joint></robot>"""
    with pytest.raises(pp.ModelError, match="principal moments -3"):
        pp.load(text.format(-3, "continuous"))
    with pytest.warns(pp.ModelWarning, match="physically impossible"):
        pp.load(text.format(3, "continuous"))
