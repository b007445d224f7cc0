"""The README is true: its example runs and says the shapes it says, its commands and names
exist."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import tomllib

import numpy as np
import pytest
from PIL import Image

import psiphi as pp
from psiphi.apps.cli.command_table import COMMANDS
from psiphi.model.joint_types import JOINTS
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests.pages import ROOT, blocks, broken_links

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
FEATURES = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
CONVENTIONS = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip(): cells[2].strip()
    for line in FEATURES.splitlines()
    if (cells := line.split("|"))[0] == "" and len(cells) == 4
}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """(its text, its names, the files it wrote)."""
    ((_, code),) = blocks(README)
    folder, here = tmp_path_factory.mktemp("readme"), {}
    with contextlib.chdir(folder):
        exec(compile(code, "README.md", "exec"), here)
    return code, here, [path.name for path in folder.iterdir()]


def test_the_example_runs_and_its_comments_are_true(example):
    code, here, files = example
    assert files == ["motion.html"]
    shapes = re.findall(r"^(\w+) = .*# (\([\d, ]+\))$", code, re.MULTILINE)
    assert len(shapes) == 2
    assert all(here[name].shape == ast.literal_eval(shape) for name, shape in shapes)
    J, M = here["robot"].jacobian(here["q"][0], "tool"), here["M"][0]
    np.testing.assert_allclose(here["mobility"][0], J @ np.linalg.solve(M, J.T), atol=1e-9)
    assert len([line for line in code.splitlines() if line and "import" not in line]) == 10


def test_the_motion_of_the_example_keeps_the_limits(example):
    """Joints and torques within their limits, speeds to the one percent of docs/paths.md."""
    _, here, _ = example
    robot, motion = here["robot"], here["motion"]
    assert (np.abs(motion.tau) <= robot.effort).all()
    assert ((robot.lower <= motion.q) & (motion.q <= robot.upper)).all() and not motion.events
    assert (np.abs(motion.v) <= 1.01 * robot.velocity_limit).all()
    assert here["path"].duration < motion.final.t == 2.0
    assert np.abs(motion.final.q - here["q"][1]).max() < 1e-3


def test_it_is_read_in_half_a_minute():
    """Half of the words it once had, a picture that moves, six bars from the stored results."""
    assert len(TEXT.split()) < 785
    with Image.open(ROOT / "docs" / "pictures" / "trot.webp") as picture:
        assert picture.n_frames > 12
    bars = (ROOT / "docs" / "benchmarks" / "six_bars.svg").read_text(encoding="utf-8")
    assert bars.count('font-weight="bold"') == 6
    for path in ("docs/pictures/trot.webp", "docs/benchmarks/six_bars.svg"):
        assert f"]({path})" in TEXT


def test_the_agreement_it_names_is_the_stored_one():
    rows = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["rows"]
    (row,) = (row for row in rows if row["subject"] == "132 robots, compiled")
    figure = f"{row['figure']:.0e}".replace("e-0", "e-")
    assert f"132 robots agree with Pinocchio to {figure}" in " ".join(TEXT.split())


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake (\w+)(?=\s|`)", TEXT)) - {"are"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
    for command in set(re.findall(r"`psiphi (\w+)", TEXT + FEATURES)):
        assert command in COMMANDS, f"psiphi {command}"


def test_the_files_that_the_makefile_runs_exist():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    paths = set(re.findall(r"\b(?:tests|tools|benchmarks)/[\w./]+", text))
    assert paths and not {path for path in paths if not (ROOT / path).exists()}


def test_the_names_exist():
    for path in set(re.findall(r"`(?:pp|psiphi)\.([\w.]+)", TEXT + FEATURES)):
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
    (gravity,) = re.findall(r"Gravity is (\(.*?\)) unless set", CONVENTIONS)
    assert ast.literal_eval(gravity) == tuple(robot.gravity_vector)
    b = pp.Builder("one")
    b.body("body", 1.0, inertia=np.eye(3))
    b.joint("joint", "free", "world", "body")
    neutral = b.build().neutral()
    assert neutral[-1] == 1.0 and len(neutral) == 7, "q = [x y z, qx qy qz qw]"
    signature = re.search(r"`forward_dynamics`\s+is `(.*?)`", CONVENTIONS)[1]
    assert robot.function("forward_dynamics").ufunc.signature == signature.replace(
        "nq", "6"
    ).replace("nv", "6")


def test_what_it_needs_is_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in TEXT
    needed = {re.split(r"\W", line)[0] for line in project["dependencies"]}
    assert needed == {"numpy", "llvmlite"}, "It needs NumPy and llvmlite"
    assert TEXT.rstrip().endswith(f"{project['license']}.")


def test_the_links_lead_somewhere():
    assert not broken_links(README)
