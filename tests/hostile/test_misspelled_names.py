"""Doors that help: what is misspelt is answered with the nearest name."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.cli.command_table import COMMANDS
from psiphi.apps.cli.main import main
from psiphi.robot.catalogue.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]


def test_the_package_has_a_version_and_shows_its_names_alone():
    assert re.match(r"\d", pp.__version__)
    assert set(dir(pp)) == {*pp.__all__, "__version__"}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("laod", "load"), ("Load", "load"), ("robott", "Robot"), ("simulat", "simulate")],
)
def test_a_misspelt_name_is_answered_with_the_nearest(wrong, right):
    with pytest.raises(AttributeError, match=f"(?i)did you mean '{right}"):
        getattr(pp, wrong)


def test_a_foreign_name_costs_nothing():
    assert not hasattr(pp, "__wrapped__") and not hasattr(pp, "qqqq")
    code = "import psiphi, sys; hasattr(psiphi, 'nothing'); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_misspelt_option_of_load():
    text = '<robot name="r"><link name="a"/></robot>'
    for source in ("acrobot", text):
        with pytest.raises(pp.Error, match=r"(?s)no option 'gravty'.*did you mean 'gravity'"):
            pp.load(source, gravty=0)
    with pytest.raises(pp.Error, match="armature"):
        pp.load(text, nonsense=1)


def test_names_are_what_load_knows():
    known = pp.robots.names()
    assert (
        set(pp.robots.bundled()) < {*known, ""}
        and known[: len(pp.robots.bundled())] == pp.robots.bundled()
    )
    for name in [*known[-2:], *(name for name in known if "." in name)]:
        assert pp.load(name).nv >= 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["simulate", "ur5", "--controler", "hold"], "--controller"),
        (["simulate", "ur5", "--controler=hold"], "--controller"),
        (["view", "ur5", "--prot", "1"], "--port"),
        (["emit", "ur5", "gravity", "--traget", "llvm"], "--target"),
        (["--versoin", "info", "ur5"], "--help"),
        (["info", "ur5", "panda"], "--help"),
    ],
)
def test_a_misspelt_option_of_a_command(words, hint, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out and hint in err and "Traceback" not in err


def test_every_command_answers_a_misspelt_option():
    for command in COMMANDS:
        assert main([command, "x", "y", "--hepl"]) == 2


def test_every_function_of_the_page_is_a_method():
    page = (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)`", page.partition("## The papers'")[0], re.MULTILINE)
    assert set(CATALOGUE) <= set(listed) and not [
        name for name in listed if not hasattr(pp.Robot, name)
    ]


def test_a_size_and_a_seed_have_names():
    robot = pp.load("ur5")
    assert robot.random(size=10, seed=0).shape == (10, 6)
    np.testing.assert_array_equal(robot.random(size=10, seed=3), robot.random(seed=3, size=10))
    for wrong in ({"rng": 0, "seed": 0}, {"seed": -1}, {"seed": "a"}, {"seed": 1.5}):
        with pytest.raises(pp.Error):
            robot.random(**wrong)


def test_products_are_those_of_the_matrices():
    robot = pp.load("panda")
    rng = np.random.default_rng(3)
    q, v, x = robot.random(rng, 5), *rng.standard_normal((2, 5, robot.nv))
    M, C, (L, D) = robot.mass_matrix(q), robot.coriolis(q, v), robot.mass_matrix_factors(q)
    pairs = [(robot.mass_product(q, x), M), (robot.coriolis_product(q, v, x), C)]
    pairs += list(zip(robot.factor_product(q, x), (L, D), strict=True))
    for product, matrix in pairs:
        np.testing.assert_allclose(
            product, np.einsum("bij,bj->bi", matrix, x), rtol=1e-9, atol=1e-9
        )
