"""The command line: help that teaches, errors in one sentence, no tracebacks."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import psiphi
from psiphi import cli
from psiphi.errors import Error, ModelError, SingularError

SRC = Path(__file__).parents[1] / "src"


def stand_in(**changes) -> SimpleNamespace:
    """A trunk on a free joint with two arms, in the shape of a Robot."""

    def joint(name, kind, parent, q, v, lower, upper):
        limits = {"lower": np.array(lower), "upper": np.array(upper)}
        return SimpleNamespace(name=name, kind=kind, parent=parent, q_slice=slice(*q), v_slice=slice(*v), **limits)

    inf = [np.inf]
    masses = {"trunk": 10.0, "left": 1.5, "right": 2.0}
    robot = {
        "name": "twoarm",
        "bodies": tuple(SimpleNamespace(name=name, mass=mass) for name, mass in masses.items()),
        "joints": (
            joint("base", "free", -1, (0, 7), (0, 6), [-np.inf] * 7, inf * 7),
            joint("l", "revolute", 0, (7, 8), (6, 7), [-1.5], [2.0]),
            joint("r", "revolute", 0, (8, 9), (7, 8), [-np.inf], inf),
        ),
        "frames": dict.fromkeys([*masses, "tool"]),
        "nq": 9,
        "nv": 8,
        "report": (),
        "flops": lambda name: 1234 if name == "forward_dynamics" else 99,
    }
    return SimpleNamespace(**robot | changes)


@pytest.fixture
def door(monkeypatch):
    """`psiphi.load` and `psiphi.robots` of a library that bundles one robot."""

    def load(robot, base="fixed"):
        if robot == "twoarm":
            return stand_in()
        raise ModelError(f"no such file\n{robot}", "check the path", file=robot, line=3)

    monkeypatch.setattr(psiphi, "load", load, raising=False)
    monkeypatch.setattr(psiphi, "robots", SimpleNamespace(names=lambda: ["twoarm", "panda"]), raising=False)


def refused(capsys, *argv: str) -> tuple[str, str]:
    """Run, expect exit code 2 and nothing on stdout; the sentence and the hint."""
    assert cli.main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    sentence, hint = err.splitlines()
    return sentence, hint


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as leaves:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert leaves.value.code == 0
    assert all(word in text for word in (*cli.COMMANDS, "examples:", "psiphi info puma560", "--version"))


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as leaves:
        cli.main([command, "--help"])
    assert leaves.value.code == 0
    assert f"psiphi {command}" in capsys.readouterr().out


def test_no_command_shows_the_help(capsys):
    assert cli.main([]) == 0
    assert "examples:" in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"psiphi {cli.version()}\n"


@pytest.mark.parametrize(
    ("argv", "sentence", "hint"),
    [
        (["inof", "panda"], "no command is called 'inof'", "Did you mean 'info'?"),
        (["zzz"], "no command is called 'zzz'", "Known are demo, info, derive, bench."),
        (["info"], "ROBOT", "psiphi info --help"),
        (["info", "panda", "--base", "flying"], "invalid choice: 'flying'", "psiphi info --help"),
        (["demo", "extra"], "unrecognized arguments: extra", "psiphi --help"),
        (["--nonsense"], "unrecognized arguments: --nonsense", "psiphi --help"),
    ],
)
def test_a_wrong_line_gets_a_sentence_and_a_hint(argv, sentence, hint, capsys):
    got, advice = refused(capsys, *argv)
    assert got.startswith("psiphi: ") and sentence in got
    assert advice.startswith("hint: ") and hint in advice


def test_unknown_robot_gets_the_nearest_names(door, capsys):
    assert refused(capsys, "info", "pandaa") == (
        "psiphi: no robot is called 'pandaa'",
        "hint: Did you mean 'panda'? Or give a path to a URDF file",
    )


def test_a_broken_file_keeps_its_own_words(door, capsys):
    assert refused(capsys, "info", "arm.urdf") == ("psiphi: arm.urdf:3: no such file arm.urdf", "hint: check the path")


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (Error("too heavy", "eat less"), 2, "psiphi: too heavy\nhint: eat less\n"),
        (Error("too heavy"), 2, "psiphi: too heavy\n"),
        (PermissionError(13, "Permission denied", "arm.urdf"), 2, "psiphi: [Errno 13] Permission denied: 'arm.urdf'\nhint: "),
        (ModuleNotFoundError("No module", name="mujoco"), 2, "psiphi: this needs mujoco, which is not installed\nhint: pip"),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_exit_codes(raised, code, words, monkeypatch, capsys):
    def run(args):
        raise raised

    monkeypatch.setitem(cli.COMMANDS, "demo", cli.Command(run, "raises"))
    assert cli.main(["demo"]) == code
    assert capsys.readouterr().err.startswith(words)


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "demo", cli.Command(lambda args: 1 // 0, "raises"))
    with pytest.raises(ZeroDivisionError):
        cli.main(["demo"])


def test_info_prints_the_tree(door, capsys):
    assert cli.main(["info", "twoarm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("twoarm: 3 bodies, nq=9, nv=8, 13.5 kg\n")
    assert ["0", "trunk", "base", "free", "world", "10", "0:7", "0:6", "-"] in rows(text)
    assert ["1", "left", "l", "revolute", "trunk", "1.5", "7", "6", "-1.5", "..", "2"] in rows(text)
    assert "\n1    left" in text, "a branch is indented"
    assert "frames (4)\n  trunk, left, right, tool\n" in text
    assert "passed, nothing to report" in text
    assert ["forward_dynamics", "1234"] in rows(text)


def test_info_shows_the_report_and_what_cannot_be_counted():
    def flops(name):
        raise SingularError("D of joint 'l' is zero", "give 'left' a mass")

    text = "\n".join(cli.describe(stand_in(report=("link 'left': limits reversed, swapped",), flops=flops)))
    assert "checks\n  link 'left': limits reversed, swapped\n" in text
    assert "none: D of joint 'l' is zero" in text


def test_info_of_a_robot_without_bodies():
    empty = stand_in(bodies=(), joints=(), frames={}, nq=0, nv=0)
    assert next(cli.describe(empty)) == "twoarm: 0 bodies, nq=0, nv=0, 0 kg"
    assert "  none" in list(cli.describe(empty))


def test_tree_order_of_a_long_chain_is_quick():
    n = 50_000
    assert list(cli.tree_order(range(-1, n - 1))) == [(k, 0) for k in range(n)]


def test_a_name_the_terminal_cannot_show():
    code = f"import sys; sys.path.insert(0, {str(SRC)!r})\nfrom psiphi import cli\n"
    code += "cli.COMMANDS['demo'] = cli.Command(lambda args: print(chr(0x3c8), chr(0xdce9)) or 0, 'prints')\ncli.main(['demo'])"
    done = subprocess.run([sys.executable, "-X", "utf8=0", "-c", code], capture_output=True, env={"PYTHONIOENCODING": "ascii"})
    assert (done.stdout.split(), done.stderr) == ([rb"\u03c8", rb"\udce9"], b"")


LEAVES_EARLY = """
import sys
from psiphi import cli
cli.COMMANDS["demo"] = cli.Command(lambda args: print("x\\n" * 10**6) or 0, "writes much")
sys.exit(cli.main(["demo"]))
"""


def test_a_reader_that_leaves_is_no_error():
    """`psiphi ... | head`: quiet, and the exit code of a broken pipe."""
    code = f"import sys; sys.path.insert(0, {str(SRC)!r})\n{LEAVES_EARLY}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout and child.stderr
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=60) == 141


def test_derive_prints_the_derivation_and_the_loops(capsys):
    assert cli.main(["derive", "J @ mass.inv @ J.T", "--robot", "puma560"]) == 0
    text = capsys.readouterr().out
    assert "S3 Lemma 3" in text and "for k = tips .. base" in text and "flops" in text


def test_derive_says_what_is_wrong_with_an_expression(capsys):
    assert cli.main(["derive", "phi @ tau"]) == 2
    assert "link" in capsys.readouterr().err
