"""The command line: help that teaches, errors in one sentence, no tracebacks."""

import io
import os
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import psiphi
from psiphi._util.errors import Error, ModelError, SingularError
from psiphi.apps.cli import main as cli
from psiphi.apps.cli.command_table import Command
from psiphi.apps.cli.commands import info
from psiphi.backends import kernel_cache
from psiphi.simulation.simulate.progress_bar import ProgressBar
from psiphi.simulation.trajectory.trajectory import Trajectory
from tests.children import child, python


def stand_in(**changes) -> SimpleNamespace:
    """A trunk on a free joint with two arms, in the shape of a Robot."""

    def joint(name, kind, parent, q, v, lower, upper):
        limits = {"lower": np.array(lower), "upper": np.array(upper)}
        limits |= {
            "effort": np.array([30.0, 30.0] if name == "l" else [np.inf]),
            "velocity": np.array([np.inf]),
        }
        places = {"q_slice": slice(*q), "v_slice": slice(*v)}
        return SimpleNamespace(name=name, kind=kind, parent=parent, mimic=None, **places, **limits)

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
    robot |= changes
    return SimpleNamespace(body_count=len(robot["bodies"]), **robot)


@pytest.fixture
def door(monkeypatch):
    """`psiphi.load` and `psiphi.robots` of a library that bundles one robot."""

    def load(robot, base=None):
        if robot == "twoarm":
            return stand_in()
        raise ModelError(f"no such file\n{robot}", "check the path", file=robot, line=3)

    monkeypatch.setattr(psiphi, "load", load, raising=False)
    monkeypatch.setattr(
        psiphi, "robots", SimpleNamespace(names=lambda: ["twoarm", "panda"]), raising=False
    )


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
    assert all(
        word in text for word in (*cli.COMMANDS, "examples:", "psiphi info puma560", "--version")
    )


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as leaves:
        cli.main([command, "--help"])
    assert leaves.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: psiphi {command}" in text and f"examples:\n  psiphi {command}" in text


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
        (
            ["zzz"],
            "no command is called 'zzz'",
            "Known are demo, view, info, check, simulate, optimise, study, derive, count, emit, "
            "warm, bench.",
        ),
        (["info"], "ROBOT", "psiphi info --help"),
        (["info", "panda", "--base", "flying"], "invalid choice: 'flying'", "psiphi info --help"),
        (["demo", "extra"], "unrecognized arguments: extra", "psiphi demo --help"),
        (["--nonsense"], "unrecognized arguments: --nonsense", "psiphi --help"),
        (
            ["simulate", "ur5", "--controler", "hold"],
            "unrecognized arguments: --controler hold",
            "Did you mean '--controller'? psiphi simulate --help",
        ),
    ],
)
def test_a_wrong_line_gets_a_sentence_and_a_hint(argv, sentence, hint, capsys):
    got, advice = refused(capsys, *argv)
    assert got.startswith("psiphi: ") and sentence in got
    assert advice.startswith("hint: ") and hint in advice


def test_unknown_robot_gets_the_nearest_names(door, capsys):
    assert refused(capsys, "info", "pandaa") == (
        "psiphi: no robot is called 'pandaa'",
        "hint: Did you mean 'panda'? Or pass the path of a URDF file",
    )


def test_a_broken_file_keeps_its_own_words(door, capsys):
    assert refused(capsys, "info", "arm.urdf") == (
        "psiphi: arm.urdf:3: no such file arm.urdf",
        "hint: check the path",
    )


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (Error("too heavy", "eat less"), 2, "psiphi: too heavy\nhint: eat less\n"),
        (Error("too heavy"), 2, "psiphi: too heavy\n"),
        (
            PermissionError(13, "Permission denied", "arm.urdf"),
            2,
            "psiphi: [Errno 13] Permission denied: 'arm.urdf'\nhint: ",
        ),
        (
            ModuleNotFoundError("No module", name="mujoco"),
            2,
            "psiphi: this needs mujoco, which is not installed\nhint: pip",
        ),
        (
            MemoryError("Unable to allocate 44.7 GiB"),
            2,
            "psiphi: out of memory: Unable to allocate 44.7 GiB\n",
        ),
        (MemoryError(), 2, "psiphi: out of memory\nhint: "),
        (
            ModuleNotFoundError("No module", name="llvmlite"),
            2,
            "psiphi: this needs llvmlite, which is not installed\nhint: pip install 'llvmlite>=",
        ),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_exit_codes(raised, code, words, monkeypatch, capsys):
    def run(args):
        raise raised

    monkeypatch.setitem(cli.COMMANDS, "demo", Command(run, "raises"))
    assert cli.main(["demo"]) == code
    assert capsys.readouterr().err.startswith(words)


def test_a_bug_is_not_hidden(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "demo", Command(lambda args: 1 // 0, "raises"))
    sentence, hint = refused(capsys, "demo")
    assert (
        sentence.startswith("psiphi: internal error in psiphi: ZeroDivisionError")
        and "report" in hint
    )
    monkeypatch.setenv("PSIPHI_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["demo"])


def test_info_prints_the_tree(door, capsys):
    assert cli.main(["info", "twoarm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("twoarm: 3 bodies, nq=9, nv=8, 13.5 kg\n")
    assert ["0", "trunk", "base", "free", "world", "10", "0:7", "0:6", "-", "-", "-"] in rows(text)
    assert [
        "1",
        "left",
        "l",
        "revolute",
        "trunk",
        "1.5",
        "7",
        "6",
        "-1.5",
        "..",
        "2",
        "30",
        "-",
    ] in rows(text)
    assert "\n1    left" in text, "a branch is indented"
    assert "frames (4)\n  trunk, left, right, tool\n" in text
    assert "passed, nothing to report" in text
    assert ["forward_dynamics", "1234"] in rows(text)


def test_info_shows_the_report_and_what_cannot_be_counted():
    def flops(name):
        raise SingularError("D of joint 'l' is zero", "give 'left' a mass")

    text = "\n".join(
        info.describe(stand_in(report=("link 'left': limits reversed, swapped",), flops=flops))
    )
    assert "checks\n  link 'left': limits reversed, swapped\n" in text
    assert "none: D of joint 'l' is zero" in text


def test_info_of_a_robot_without_bodies():
    empty = stand_in(bodies=(), joints=(), frames={}, nq=0, nv=0)
    assert next(info.describe(empty)) == "twoarm: 0 bodies, nq=0, nv=0, 0 kg"
    assert "  none" in list(info.describe(empty))


def test_tree_order_of_a_long_chain_is_quick():
    n = 50_000
    assert list(info.tree_order(range(-1, n - 1))) == [(k, 0) for k in range(n)]


def test_a_name_the_terminal_cannot_show():
    code = "from psiphi.apps.cli import main as cli\n"
    code += "from psiphi.apps.cli.command_table import Command\n"
    code += "run = lambda args: print(chr(0x3c8), chr(0xdce9)) or 0\n"
    code += "cli.COMMANDS['demo'] = Command(run, 'prints')\ncli.main(['demo'])"
    done = python("-X", "utf8=0", "-c", code, PYTHONIOENCODING="ascii")
    assert (done.stdout.split(), done.stderr) == ([r"\u03c8", r"\udce9"], "")


LEAVES_EARLY = """
import sys
from psiphi.apps.cli.command_table import Command
from psiphi.apps.cli import main as cli
cli.COMMANDS["demo"] = Command(lambda args: print("x\\n" * 10**6) or 0, "writes much")
sys.exit(cli.main(["demo"]))
"""


def test_a_reader_that_leaves_is_no_error():
    """`psiphi ... | head`: quiet, and the exit code of a broken pipe."""
    with child("-c", LEAVES_EARLY) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141


def test_derive_prints_the_derivation_and_the_loops(capsys):
    assert cli.main(["derive", "J @ mass.inv @ J.T", "--robot", "puma560"]) == 0
    text = capsys.readouterr().out
    assert "S3 Lemma 3" in text and "for k = tips .. base" in text and "flops" in text


def test_derive_proves_a_claim_or_shows_a_counter_example(capsys):
    assert cli.main(["derive", "(I + H @ phi @ K).inv == I - H @ psi @ K"]) == 0
    assert "proved" in capsys.readouterr().out
    assert cli.main(["derive", "psi == phi"]) == 1
    assert "counter-example" in capsys.readouterr().out
    assert cli.main(["derive", "psi = phi"]) == 2
    assert "==" in capsys.readouterr().err


def test_derive_says_what_is_wrong_with_an_expression(capsys):
    assert cli.main(["derive", "phi @ tau"]) == 2
    assert "link" in capsys.readouterr().err


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return python("-m", "psiphi", *argv)


def test_the_module_runs_by_itself():
    done = run("info", "acrobot")
    assert (
        done.returncode == 0 and done.stdout.startswith("acrobot: 2 bodies") and done.stderr == ""
    )


def test_info_says_what_is_good_to_know(capsys):
    assert cli.main(["info", "panda"]) == 0
    text = capsys.readouterr().out
    assert (
        "q = 0 is outside the limits of panda_joint4" in text and "mimic joints move freely" in text
    )
    assert cli.main(["info", "puma560"]) == 0
    assert "rotor inertia is part of the mass matrix" in capsys.readouterr().out


def test_info_of_a_file_with_a_branch_and_a_free_base(tmp_path, capsys):
    file = tmp_path / "one.urdf"
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    mass = f'<inertial><mass value="2"/>{inertia}</inertial>'
    file.write_text(f'<robot name="one"><link name="a">{mass}</link></robot>', encoding="utf-8")
    assert cli.main(["info", str(file), "--base", "free"]) == 0
    text = capsys.readouterr().out
    assert "nq=7, nv=6" in text and "q has quaternions" in text and "no shapes" in text


def test_info_of_a_scene_file_names_the_commands_for_it(tmp_path, capsys):
    file = tmp_path / "swing.toml"
    file.write_text('[robots.arm]\nrobot = "acrobot"\n', encoding="utf-8")
    sentence, hint = refused(capsys, "info", str(file))
    assert "is a scene, not a robot" in sentence and "psiphi simulate" in hint


def test_bundled_names_mean_what_is_bundled_whatever_lies_here(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("acrobot", "four_bar"):
        (tmp_path / name).mkdir()
        assert cli.main(["simulate", name, "--duration", "0", "--no-files"]) == 0, (
            capsys.readouterr().err
        )


def test_a_mesh_that_is_missing_is_named(tmp_path, capsys):
    file, page = tmp_path / "arm.urdf", tmp_path / "arm.html"
    shape = '<visual><geometry><mesh filename="package://nowhere/arm.stl"/></geometry></visual>'
    file.write_text(f'<robot name="arm"><link name="a">{shape}</link></robot>', encoding="utf-8")
    assert (
        cli.main(["info", str(file)]) == 0
        and cli.main(["view", str(file), "--html", str(page)]) == 0
    )
    out = capsys.readouterr().out
    assert "viewers draw simple shapes" in out and "package://nowhere/arm.stl" in out
    assert "package://nowhere/arm.stl" in page.read_text(encoding="utf-8")


# -- simulate --------------------------------------------------------------------------------------


def test_simulate_writes_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["simulate", "acrobot", "--duration", "0.2", "--q0", "0.5, -0.2"]) == 0
    out = capsys.readouterr().out
    assert "energy drift" in out and "wrote acrobot.npz" in out and "wrote acrobot.html" in out
    motion = Trajectory.load("acrobot.npz", system=psiphi.load("acrobot"))
    assert (
        motion.q[0].tolist() == [0.5, -0.2]
        and motion.t[-1] == pytest.approx(0.2)
        and motion.drift < 1e-8
    )
    assert (tmp_path / "acrobot.html").stat().st_size < 1_000_000


def test_simulate_options_reach_the_simulation(tmp_path, capsys):
    file = tmp_path / "m.csv"
    words = "--random --seed 3 --batch 2 --duration 0.1 --dt 0.01 --method euler --damping"
    words += " --limits record --every 2"
    assert cli.main(["simulate", "acrobot", *words.split(), "-o", str(file)]) == 0
    out = capsys.readouterr().out
    assert "euler, dt 0.01 s" in out and "batch" in out
    assert Trajectory.load(file).q.shape == (2, 6, 2)


def test_simulate_on_the_ground(tmp_path, capsys):
    """A quadruped on its own feet, and one on spheres that the command line names."""
    file = tmp_path / "dog.npz"
    words = "--ground --controller stand --duration 0.1 --dt 2e-3 -o"
    assert cli.main(["simulate", "anymal_c", *words.split(), str(file)]) == 0
    assert "contact residual" in capsys.readouterr().out
    motion = Trajectory.load(file)
    assert motion.gaps.shape == (51, 4) and abs(motion.q[-1, 2] - motion.q[0, 2]) < 1e-2
    words = f"--contacts *_SHANK=0.4 --ground-friction 0.5 --random --batch 2 {words}"
    assert cli.main(["simulate", "anymal_c", *words.split(), str(file)]) == 0
    assert abs(Trajectory.load(file).gaps[:, 0].min(axis=-1)).max() < 1e-9
    ball = tmp_path / "ball.urdf"
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    shape = '<collision><geometry><sphere radius="0.2"/></geometry></collision>'
    link = f'<link name="a"><inertial><mass value="1"/>{inertia}</inertial>{shape}</link>'
    ball.write_text(f'<robot name="ball">{link}</robot>', encoding="utf-8")
    words = "--base free --ground --duration 0.01 -o"  # the collision shapes of its file
    assert cli.main(["simulate", str(ball), *words.split(), str(file)]) == 0
    assert Trajectory.load(file).q[-1, 2] == pytest.approx(0.2)


@pytest.mark.parametrize("law", ["hold", "pd", "computed"])
def test_simulate_controllers_hold_the_arm(law, tmp_path, capsys):
    file = tmp_path / "still.npz"
    words = ["--q0", "0,-1,1,0,0.5,0", "--controller", law, "--duration", "0.1", "-o", str(file)]
    assert cli.main(["simulate", "ur5", *words]) == 0
    assert np.abs(Trajectory.load(file).v).max() < 1e-9
    if law != "hold":  # pushed, it comes back
        assert cli.main(["simulate", "ur5", *words, "--v0", "1,1,1,1,1,1", "--duration", "1"]) == 0
        motion = Trajectory.load(file)
        assert (
            np.abs(motion.final.v).max() < 0.05
            and np.abs(motion.final.q - motion.q[0]).max() < 0.02
        )


def test_simulate_a_scene_file(tmp_path, capsys):
    scene = tmp_path / "fall.toml"
    scene.write_text(
        'title = "a fall"\nduration = 0.1\n[robots.arm]\nrobot = "pelican"\nq = {shoulder = 1.0}\n',
        encoding="utf-8",
    )
    if "shoulder" not in [joint.name for joint in psiphi.load("pelican").joints]:
        first = psiphi.load("pelican").joints[0].name
        scene.write_text(
            scene.read_text(encoding="utf-8").replace("shoulder", first), encoding="utf-8"
        )
    assert cli.main(["simulate", str(scene), "--no-files"]) == 0
    out = capsys.readouterr().out
    assert "0 to 0.1 s" in out and "wrote" not in out


@pytest.mark.parametrize(
    ("argv", "sentence", "hint"),
    [
        (["simulate", "ur55"], "no robot or scene is called 'ur55'", "Did you mean 'ur5'"),
        (["simulate", "UR5"], "no robot or scene is called 'UR5'", "Did you mean 'ur5'"),
        (["simulate", "two_arm"], "no robot or scene is called 'two_arm'", "'two_arms'"),
        (["simulate", "nowhere/arm.urdf"], "nowhere/arm.urdf", ""),
        (["simulate", "nowhere.toml"], "there is no such scene file", "check the path"),
        (["simulate", "ur5", "--q0", "1,2"], "--q0 has 2 numbers, expected 6", "psiphi info"),
        (["simulate", "ur5", "--q0", "1,a"], "expected numbers", "with 6 of them"),
        (["simulate", "ur5", "--method", "rk5"], "method is 'rk5'", "rk4"),
        (["simulate", "ur5", "--duration", "-1"], "duration is -1.0", "seconds"),
        (["simulate", "ur5", "--batch", "5"], "--batch 5 needs --random", "--random"),
        (["simulate", "ur5", "-o", "x.txt"], "ends in '.txt'", "endings"),
        (["simulate", "ur5", "-o", "no/such/folder/x.npz"], "there is no folder", "create it"),
        (["simulate", "ur5", "--q0", "nan,0,0,0,0,0"], "q0", ""),
        (
            ["simulate", "ur5", "--dt", "0.3", "--duration", "1"],
            "expected a whole number",
            "duration=",
        ),
        (["simulate", "ur5", "--every", "0"], "every is 0", "1 keeps"),
        (["simulate", "ur5", "--duration", "1e12"], "of memory", "shorter duration"),
        (["simulate", "ur5", "--method", "RK45", "--limits", "block"], "work with RK45", "rk4"),
        (["simulate", "ur5", "-o", "x.npz", "--method", "rk5"], "method is 'rk5'", "rk4"),
        (["simulate", "four_bar", "--q0", "1,1,1"], "not on the constraints", "assemble"),
        (["simulate", "two_arms", "--base", "free"], "--base is for robots", "scene"),
        (["simulate", "two_arms", "--random"], "does not close the loops", "scene"),
        (["simulate", "ur5", "--ground"], "ur5 has no collision shapes", "--contacts"),
        (["simulate", "anymal_c", "--ground-friction", "0.5"], "needs a ground", "add --ground"),
        (
            ["simulate", "anymal_c", "--ground", "--ground-friction", "-1"],
            "friction is -1.0",
            "at least 0",
        ),
        (
            ["simulate", "anymal_c", "--ground", "--contacts", "LF_FOOT"],
            "--contacts is 'LF_FOOT'",
            "*_foot=0.03",
        ),
        (["simulate", "two_arms", "--ground"], "not for closed chains", "pp.embed"),
        (["simulate", "two_arms", "--controller", "stand"], "is for robots", "hold"),
        (
            ["simulate", "anymal_c", "--ground", "--method", "rk4"],
            "contacts change velocities abruptly",
            "leave method out",
        ),
        (["simulate", "ur5", "--seed", "3"], "--seed 3 needs --random", "add --random"),
        (
            ["study", "status", "falls.toml", "--worst", "2"],
            "--worst is for psiphi study report",
            "omit it for status",
        ),
        (["view", "motion.npz"], "there is no file 'motion.npz'", "check the path"),
        (["view", "ur55"], "no robot is called 'ur55'", "ur5"),
        (["view", "ur55", "--html", "x.html"], "no robot is called 'ur55'", "ur5"),
        (["view", "two_arms", "--port", "99999"], "port is 99999", "8080"),
        (["demo", "--duration", "-1"], "duration is -1.0", "seconds"),
        (["bench", "--only", "nothing", "--json", "x.json"], "is called 'nothing'", "there are"),
        (["emit", "ur5", "nothing", "-o", "x.c"], "no function is called", "Known are"),
        (["emit", "ur5", "jacobian", "-o", "x.c"], "takes one frame", "--frame"),
        (
            ["emit", "ur5", "gravity", "--free", "mass", "--free", "com:wrist_3_link"],
            "different links: mass",
            "the same links",
        ),
        (
            ["emit", "ur5", "gravity", "--free", "mass", "--free", "mass:wrist_3_link"],
            "different links",
            "or none",
        ),
        (
            ["emit", "ur5", "gravity", "--name", "2x", "-o", "x.c"],
            "is not a valid name in C",
            "letters",
        ),
        (["emit", "ur5", "forwarddynamics"], "no function is called", "'forward_dynamics'"),
        (["emit", "ur5", "jacobian"], "takes one frame", "--frame"),
        (["emit", "ur5", "gravity", "--name", "2x"], "is not a valid name in C", "letters"),
        (["count", "ur5", "nothing"], "no function is called 'nothing'", "Known are"),
        (["count", "ur5", "jacobian"], "takes one frame", "--frame"),
        (["warm", "ur5", "nothing"], "no function is called 'nothing'", "Known are"),
        (["warm", "ur5", "jacobian"], "takes one frame", "--frame"),
        (["warm", "ur5", "bias", "--jacobian", "x"], "with respect to 'x'", "one of 'q', 'v'"),
    ],
)
def test_wrong_words_get_a_sentence_and_a_hint(argv, sentence, hint, capsys, monkeypatch):
    """Also where nothing may be written: words come before the disk."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    got, advice = refused(capsys, *argv)
    assert sentence in got and hint in advice


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (ZeroDivisionError, 2)])
def test_a_simulation_that_breaks_off_is_kept(raised, code, tmp_path, monkeypatch, capsys):
    """Ctrl-C, or an error within: what was computed is summed up and written."""

    def law(kind, system, *_):
        def tau(t, q, v):
            if t > 0.05:
                raise raised
            return np.zeros(system.nv)

        return tau

    monkeypatch.setattr("psiphi.apps.scenes.scene_controllers.law", law)
    file = tmp_path / "part.npz"
    assert (
        cli.main(["simulate", "acrobot", "--controller", "pd", "--duration", "1", "-o", str(file)])
        == code
    )
    out, err = capsys.readouterr()
    assert "wrote" in out and "Traceback" not in err
    assert 0.04 < Trajectory.load(file).t[-1] < 0.06


def test_a_start_may_begin_with_a_negative_number(tmp_path, capsys):
    file = tmp_path / "back.npz"
    words = [
        "simulate",
        "acrobot",
        "--q0",
        "-1,0.5",
        "--v0",
        "-.5,0",
        "--duration",
        "0",
        "-o",
        str(file),
    ]
    assert cli.main(words) == 0, capsys.readouterr().err
    kept = Trajectory.load(file)
    assert kept.q[0].tolist() == [-1.0, 0.5] and kept.v[0].tolist() == [-0.5, 0.0]


def test_a_refused_simulation_has_no_traceback():
    done = run("simulate", "ur5", "--dt", "0.3", "--duration", "1")
    assert done.returncode == 2 and "Traceback" not in done.stderr and "hint: " in done.stderr


def test_progress_stays_on_one_line_of_a_narrow_terminal(monkeypatch):
    for columns, whole in ((80, True), (40, False)):
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = io.StringIO()
        stream.isatty = lambda: True
        with ProgressBar(1000.0, stream) as bar:
            bar.start -= 500.0
            bar(999.0, np.zeros(2), np.array([0.5, -123.4]))
        assert max(map(len, stream.getvalue().split("\r"))) < columns
        assert ("largest speed 123" in stream.getvalue()) is whole


def test_progress_shows_numbers_to_people_only(capsys):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with ProgressBar(2.0, stream) as bar:
            bar(1.0, np.zeros(2), np.array([0.5, -3.0]))
        text = stream.getvalue()
        assert ("50%" in text and "largest speed 3" in text) is shown
        assert not text or text.endswith("\r"), "the line is wiped"


# -- view, count, emit, demo -----------------------------------------------------------------------


def test_view_writes_a_page(tmp_path, capsys):
    page = tmp_path / "panda.html"
    assert cli.main(["view", "panda", "--html", str(page), "--no-meshes"]) == 0
    assert page.stat().st_size > 10_000 and page.name in capsys.readouterr().out


@pytest.mark.parametrize("what", ["acrobot", "four_bar"])
def test_view_writes_a_live_page(tmp_path, capsys, what):
    page = tmp_path / "live.html"
    assert cli.main(["view", what, "--live", str(page)]) == 0
    assert (
        '"code":"AGFzb' in page.read_text(encoding="utf-8") and page.name in capsys.readouterr().out
    )


def test_view_of_a_kept_motion(tmp_path, capsys):
    kept, page = tmp_path / "m.npz", tmp_path / "m.html"
    assert cli.main(["simulate", "acrobot", "--duration", "0.1", "-o", str(kept)]) == 0
    assert cli.main(["view", str(kept), "--html", str(page)]) == 0, (
        "a bundled robot is found by the name in the file"
    )
    assert cli.main(["view", str(kept), "--robot", "acrobot", "--html", str(page)]) == 0
    assert "constraint" not in page.read_text(
        encoding="utf-8"
    ) and "<figcaption>energy" in page.read_text(encoding="utf-8")


def test_view_of_a_motion_needs_its_own_robot(tmp_path, capsys):
    kept = tmp_path / "m.npz"
    assert cli.main(["simulate", "four_bar", "--duration", "0.1", "-o", str(kept)]) == 0
    capsys.readouterr()
    sentence, hint = refused(capsys, "view", str(kept))
    assert "holds the motion of 'A four-bar linkage'" in sentence and "--robot" in hint
    assert (
        "ur5 has nq=6"
        in refused(capsys, "view", str(kept), "--robot", "ur5", "--html", "m.html")[0]
    )


def test_view_without_the_extra_names_it_and_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["view", "acrobot"]) == 0
    out, err = capsys.readouterr()
    assert "wrote acrobot.html" in out and "pip install 'viser" in err
    assert (tmp_path / "acrobot.html").stat().st_size > 10_000


def test_count_prints_the_robots_own_counts(capsys):
    assert cli.main(["count", "ur5", "forward_dynamics", "gravity"]) == 0
    robot = psiphi.load("ur5")
    count = robot.function("forward_dynamics").count
    expected = [count.flops, count.mul, count.add, count.div, count.sqrt, count.trig]
    assert ["forward_dynamics", *map(str, expected)] in rows(capsys.readouterr().out)
    assert cli.main(["count", "acrobot"]) == 0
    assert "mass_matrix" in capsys.readouterr().out


def test_count_alone_prints_the_tables(capsys):
    assert cli.main(["count", "--table", "3"]) == 0
    out = capsys.readouterr().out
    assert (
        "Table 3: forward dynamics of the general arm" in out
        and "Table 2" not in out
        and "psiphi" in out
    )


def test_warm_compiles_for_later_processes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    assert cli.main(["warm", "acrobot"]) != 0
    assert "nothing would be kept" in capsys.readouterr().err
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path))
    assert cli.main(["warm", "acrobot", "bias", "gravity", "--jacobian", "q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["bias", "gravity", "kept"]
    monkeypatch.setattr(kernel_cache, "store", None)  # a second compilation would fail
    robot = psiphi.load("acrobot")
    assert np.allclose(robot.bias(np.zeros(2), np.zeros(2)), robot.gravity(np.zeros(2)))
    assert robot.function("gravity").jacobian("q")(np.zeros(2)).shape == (2, 2)


def test_a_matrix_of_a_large_robot_is_compiled_by_its_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path))
    chain = psiphi.robots.chain(80)
    chain.compile("mass_matrix", dtype=np.float32)
    monkeypatch.setattr(kernel_cache, "store", None)
    assert chain.mass_matrix(np.zeros(80, np.float32)).shape == (80, 80)
    with pytest.raises(Error, match="no names of quantities"):
        chain.compile()
    with pytest.raises(Error, match="expected float64 or float32"):
        chain.compile("gravity", dtype=int)


def test_emit_prints_or_writes(tmp_path, capsys):
    assert cli.main(["emit", "acrobot", "gravity"]) == 0
    assert "void gravity(const double *q, double *tau)" in capsys.readouterr().out
    file = tmp_path / "j.c"
    assert (
        cli.main(
            [
                "emit",
                "ur5",
                "jacobian",
                "--frame",
                "tool",
                "--name",
                "tool_jacobian",
                "-o",
                str(file),
            ]
        )
        == 0
    )
    assert "void tool_jacobian(const double *q, double *J)" in file.read_text(encoding="utf-8")
    assert cli.main(["emit", "acrobot", "gravity", "--target", "llvm"]) == 0
    assert "define void @loop(" in capsys.readouterr().out


def test_the_demo_sums_up_and_writes_its_page(tmp_path, capsys):
    page = tmp_path / "demo.html"
    assert cli.main(["demo", "-o", str(page), "--duration", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "constraint residual" in out and "energy balance" in out and page.as_uri() in out
    assert page.stat().st_size < 1_000_000


def test_the_demo_needs_no_optional_package(tmp_path):
    hidden = (
        "viser",
        "matplotlib",
        "scipy",
        "rich",
        "trimesh",
        "mujoco",
        "pinocchio",
        "pandas",
        "xarray",
    )
    code = f"import sys\nsys.modules.update(dict.fromkeys({hidden}))\n"
    code += "from psiphi.apps import demo\ndemo.main(sys.argv[1], 0.05)"
    done = python("-c", code, str(tmp_path / "d.html"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("simulate ur5 --seed -1 --random", "--seed is -1"),
        ("simulate ur5 --kp -1 --controller pd", "--kp is -1"),
        ("simulate ur5 --kd nan --controller pd", "--kd is nan"),
        ("simulate ur5 --kp 5", "--kp needs a controller"),
        ("simulate two_arms --kd 5 --controller hold", "--kd needs a controller"),
        ("simulate ur5 --no-files -o x.npz", "contradict"),
        ("simulate ur5 --duration 1e12", "of memory"),
        ("simulate ur5 -o no/such.npz", "no folder"),
        ("demo -o no/such.html", "no folder"),
        ("view two_arms --html no/such.html", "no folder"),
        ("emit ur5 gravity -o no/such.c", "no folder"),
        ("bench --quick --json no/such.json", "no folder"),
        ("bench --quick --table nothing.md", "nothing.md"),
        ("info two_arms", "is a scene"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_computed(
    words, why, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    sentence, hint = refused(capsys, *words.split())
    assert why in sentence and hint
    assert not list(tmp_path.iterdir())


def test_a_package_that_is_missing_names_its_extra(monkeypatch, capsys):
    def run(args):
        raise ModuleNotFoundError("no viser", name="viser")

    monkeypatch.setitem(cli.COMMANDS, "demo", Command(run, "raises"))
    sentence, hint = refused(capsys, "demo")
    assert sentence == "psiphi: this needs viser, which is not installed"
    assert hint.startswith("hint: pip install 'viser")


def test_a_motion_that_diverges_says_so_and_ends_with_its_own_code(tmp_path, capsys):
    stiff = tmp_path / "stiff.urdf"
    stiff.write_text(
        '<robot name="stiff"><link name="base"/><link name="rod"><inertial>'
        '<origin xyz="0 0 -0.5"/><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>'
        '<axis xyz="0 1 0"/></joint></robot>',
        encoding="utf-8",
    )
    law = ["--controller", "pd", "--kd", "1e7", "--v0", "1"]
    assert (
        cli.main(["simulate", str(stiff), "--q0", "0.3", *law, "--duration", "0.5", "--no-files"])
        == 3
    )
    out, err = capsys.readouterr()
    assert "diverged: hinge" in out and "What helps: a smaller step" in err


def test_a_floating_base_is_driven_by_nothing(capsys):
    """It hovered on 327 N once."""
    run = [
        "simulate",
        "g1",
        "--base",
        "free",
        "--controller",
        "hold",
        "--duration",
        "0.05",
        "--no-files",
    ]
    assert cli.main(run) == 0
    assert "root_joint: no torque" in capsys.readouterr().out
    assert cli.main([*run, "--passive", "waist_yaw_joint"]) == 0
    assert "waist_yaw_joint: no torque" in capsys.readouterr().out
    assert cli.main([*run, "--actuated", "waist_yaw"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert cli.main(["simulate", "four_bar", "--passive", "x", "--no-files"]) == 2
