"""`psiphi optimise`: files, exit codes, sentences."""

from pathlib import Path

import numpy as np
import pytest

from psiphi.apps.cli import main as cli
from psiphi.simulation.trajectory.trajectory import Trajectory

SCENE = str(Path(__file__).parents[3] / "examples" / "swing_up.toml")
PATH = str(Path(__file__).parents[3] / "examples" / "tool_path.toml")


def test_files(tmp_path, capsys, monkeypatch):
    """A table, a plot, a page and all numbers; the motion is the one of the summary."""
    monkeypatch.chdir(tmp_path)
    words = [x for end in ("npz", "csv", "svg", "html") for x in ("-o", f"plan.{end}")]
    assert cli.main(["optimise", PATH, *words]) == 0
    out = capsys.readouterr().out
    assert "OptimalMotion(converged" in out and "torque" in out and "wrote plan.svg" in out
    motion = Trajectory.load("plan.npz")
    assert motion.q.shape == (16, 2) and motion.info["method"] == "optimal control"
    np.testing.assert_array_equal(Trajectory.load("plan.csv").q, motion.q)
    assert "<svg" in Path("plan.svg").read_text(encoding="utf-8") and "<html" in Path(
        "plan.html"
    ).read_text(encoding="utf-8")
    text = (
        Path(PATH)
        .read_text(encoding="utf-8")
        .replace("torque = false", 'hessian = "gauss"\ntorque = false')
    )
    Path("tool_path.toml").write_text(text, encoding="utf-8")
    assert cli.main(["optimise", "tool_path.toml", "-o", "arm.c"]) == 0
    assert all(Path(f"arm{end}").exists() for end in (".h", ".c", "_test.c"))
    assert not Path("tool_path.npz").exists()
    assert cli.main(["optimise", PATH, "--gains", "gains.npz"]) == 0
    with np.load("gains.npz") as gains:
        shapes = {name: x.shape for name, x in gains.items()}
        np.testing.assert_array_equal(gains["q"], motion.q)
    assert shapes == {"t": (16,), "q": (16, 2), "v": (16, 2), "u": (15, 2), "K": (15, 2, 4)}
    assert Path("tool_path.npz").exists() and Path("tool_path.html").exists()


def test_a_problem_that_does_not_converge_says_so(capsys):
    assert cli.main(["optimise", SCENE, "--iterations", "2", "--no-files"]) == 3
    got = capsys.readouterr()
    assert "not converged, 2 iterations" in got.out
    assert "psiphi: the problem has not converged after 2 iterations: the residual is" in got.err
    assert "hint: raise --iterations" in got.err
    words = ["--random", "--batch", "3", "--seed", "4", "--iterations", "20"]
    assert cli.main(["optimise", SCENE, *words, "--no-files"]) == 3
    assert "of 3 problems have not converged after 20 iterations" in capsys.readouterr().err
    words = ["--q0", "0,0.1", "--v0", "0,0", "--tolerance", "1e-3", "--no-files"]
    assert cli.main(["optimise", SCENE, *words]) == 0


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["ur5"], "'ur5' is no scene", "[optimal_control]"),
        (["two_arms"], "has no problem of optimal control", "add [optimal_control]"),
        (["x.toml"], "there is no such scene file", "check the path"),
        ([SCENE, "-o", "x.txt"], "ends in '.txt', expected .npz, .csv, .html, .svg", "endings"),
        ([SCENE, "-o", "x.npz", "--no-files"], "contradict each other", "omit one"),
        ([SCENE, "--no-files", "-o", "x.c"], "contradict", "omit one"),
        ([SCENE, "-o", "x.c"], 'has the Gauss-Newton Hessian, and the problem has "auto"', "gauss"),
        ([SCENE, "--gains", "x.csv"], "expected a name that ends in .npz", "add .npz"),
        ([SCENE, "--q0", "0"], "--q0 has 1 numbers, expected 2", "psiphi info"),
        ([SCENE, "--batch", "3"], "--batch 3 needs --random", "add --random"),
        ([SCENE, "--iterations", "-1"], "iterations is -1, expected a whole number", "give 0"),
        ([SCENE, "--tolerance", "0"], "tolerance is 0", "number"),
    ],
)
def test_wrong_words(words, sentence, hint, capsys):
    assert cli.main(["optimise", *words]) == 2
    got, advice = capsys.readouterr().err.strip().splitlines()
    assert sentence in got and hint in advice
