"""The README is true: its example runs and says the shapes it says, its commands and names
exist."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib

import numpy as np

import psiphi as pp
from psiphi.apps.cli.command_table import COMMANDS
from psiphi.model.joint_types import JOINTS
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests.pages import ROOT, blocks, broken_links

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
ROWS = {
    cells[1].strip(): cells[2].strip()
    for line in TEXT.splitlines()
    if (cells := line.split("|"))[0] == "" and len(cells) == 4
}


def test_the_example_runs_and_its_comments_are_true(tmp_path, monkeypatch):
    (_, code), (_, algebra), (_, motion) = blocks(README)
    monkeypatch.chdir(tmp_path)
    here, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), here)
    assert int(printed.getvalue()) == pp.load("puma560").flops("forward_dynamics")
    for line in code.splitlines():
        if match := re.match(r"(\w+) = .*# (\([\d, ]+\))", line):
            assert here[match[1]].shape == eval(match[2]), line
    scale = np.abs(here["robot"].gravity(here["q"])).max()
    assert np.abs(here["tau"]).max() < 1e-12 * scale, "zero again"
    np.testing.assert_allclose(
        here["L"] @ here["D"] @ here["L"].swapaxes(-1, -2), here["M"], atol=1e-12
    )
    with contextlib.redirect_stdout(printed):
        exec(compile(algebra, "README.md", "exec"), here)
    assert "B(tool)* ψ* H* D⁻¹ H ψ B(tool)" in printed.getvalue() and here["f"](
        here["q"]
    ).shape == (10_000, 6, 6)
    with contextlib.redirect_stdout(printed):
        exec(compile(motion, "README.md", "exec"), here)
    assert (
        here["motion"].final.t == 2.0
        and not here["motion"].events
        and here["held"].residual.max() < 1e-11
    )
    assert {path.name for path in tmp_path.iterdir()} == {"motion.npz", "motion.html", "robot.html"}


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake (\w+)(?=\s|`)", TEXT)) - {"are"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
    for command in set(re.findall(r"`psiphi (\w+)", TEXT)):
        assert command in COMMANDS, f"psiphi {command}"


def test_the_files_that_the_makefile_runs_exist():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    paths = set(re.findall(r"\b(?:tests|tools|benchmarks)/[\w./]+", text))
    assert paths and not {path for path in paths if not (ROOT / path).exists()}


def test_the_names_exist():
    for path in set(re.findall(r"`(?:pp|psiphi)\.([\w.]+)", TEXT)):
        thing = pp
        for name in path.split("."):
            thing = getattr(thing, name)
    for keyword in ("out", "check", "axes"):
        assert keyword in pp.Robot.jacobian.__kwdefaults__


def test_the_functions_listed_exist():
    listed = set(re.findall(r"`(\w+)`", ROWS["functions"]))
    assert all(callable(getattr(pp.Robot, name)) and name in CATALOGUE for name in listed)
    assert {"forward_dynamics", "inverse_dynamics", "mass_matrix", "jacobian", "energy"} <= listed


def test_the_joints_listed_are_the_joints_there_are():
    listed = {word.strip() for word in ROWS["joints"].split(";")[0].split(",")}
    assert listed == {*JOINTS, "fixed"}


def test_the_conventions_hold():
    robot = pp.load("puma560")
    assert str(tuple(robot.gravity_vector.tolist())) in ROWS["gravity"].replace("0,", "0.0,")
    b = pp.Builder("one")
    b.body("body", 1.0, inertia=np.eye(3))
    b.joint("joint", "free", "world", "body")
    neutral = b.build().neutral()
    assert neutral[-1] == 1.0 and len(neutral) == 7, "q = [x y z, qx qy qz qw]"
    signature = re.search(r"`forward_dynamics: (.*?)`", ROWS["batches"])[1]
    assert robot.function("forward_dynamics").ufunc.signature == signature.replace(
        "nq", "6"
    ).replace("nv", "6")


def test_what_it_needs_is_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in TEXT
    assert TEXT.rstrip().endswith(f"{project['license']}.")


def test_the_links_lead_somewhere():
    assert not broken_links(README)
