"""Every function of every bundled robot as C: compiled strictly with sanitizers, run, compared with the library.

    python tools/c_everything.py [--jobs 2] [--robots ur5 g1] [--functions gravity] [--limit 600] [--record FILE]

    cc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined -fno-sanitize-recover=all

One line for each function as it is done, then a summary: how many passed, and the largest error beside the largest number of
a result. 1e-14 is allowed; where M or J M^-1 J* is solved with, eps kappa, of it scaled to a unit diagonal, if that is more.
`--record` keeps the lines, with the hash of what was compiled: what is in it and still the same text is not compiled again, so
that a run goes on where another stopped, and one over the final code takes minutes.
`tests/backends/c/test_c_files.py` runs a sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.backends.c.c_files import c_files
from psiphi.robot.catalogue.quantities import ALL_QUANTITIES
from psiphi.robot.matrix_by_columns import evaluate, exported_code

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
STRICT += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NAME = "emitted"
WITHIN = 1e-14


class Outcome(NamedTuple):
    robot: str
    function: str
    error: float  # of the largest number of a result; NaN where it did not run
    seconds: float  # of the C compiler
    size: int  # bytes of the C file
    text: str  # hash of all that was compiled
    words: str  # what went wrong
    allowed: float = WITHIN

    @property
    def good(self) -> bool:
        return not self.words and self.error <= self.allowed

    def __str__(self) -> str:
        more = f" (allowed: {self.allowed:.1e})" if self.allowed > WITHIN else ""
        ends = self.words.strip().replace("\n", " | ") or f"{self.error:.1e}{more}"
        return (
            f"{self.robot:<13}{self.function:<32}{self.size:>9} bytes {self.seconds:7.1f} s  {ends}"
        )


def asked(robot_name: str, name: str) -> tuple[Any, Any, list[list[np.ndarray]]]:
    """A robot, its function (of its last frame, where it is of frames), and three states."""
    robot, rng, states = pp.load(robot_name), np.random.default_rng(0), []
    try:
        function = robot.function(name)
    except Error:
        function = robot.function(name, (list(robot.frames)[-1],))
    for _ in range(3):
        given = [
            robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.shape)
            for arg in function.inputs
        ]
        states.append(
            [
                np.abs(x) if arg.name == "added" else x
                for x, arg in zip(given, function.inputs, strict=True)
            ]
        )  # inertia
    return robot, function, states


def files_of(robot_name: str, name: str) -> dict[str, str]:
    """What `psiphi emit` would write: header, source, and a test program with the library's numbers."""
    robot, function, states = asked(robot_name, name)
    cases = [(given, evaluate(robot, function, given)) for given in states]
    return c_files(exported_code(robot, function), NAME, name, cases)


def allowed(robot_name: str, name: str) -> float:
    """1e-14; of what solves with a matrix eps kappa, if that is more: of M, scaled to a unit diagonal, in these states."""
    robot, function, states = asked(robot_name, name)
    if not function.source.code.count.div:
        return WITHIN
    solved = [robot.mass_matrix(q) for q, *_ in states]
    if name == "operational_space_inertia":  # the inverse of J M^-1 J*, of its condition
        solved += [evaluate(robot, function, given)[0] for given in states]
    scales = [np.sqrt(np.diagonal(M)) for M in solved]
    kappa = max(np.linalg.cond(M / np.outer(x, x)) for M, x in zip(solved, scales, strict=True))
    return max(WITHIN, float(np.finfo(float).eps * kappa))


def tried(robot_name: str, name: str, limit: float, known: Iterable[Outcome]) -> Outcome:
    """One function, from its equation to its numbers."""
    try:
        files = files_of(robot_name, name)
    except Error as error:
        return Outcome(robot_name, name, np.nan, 0.0, 0, "", f"refused: {error.cause}")
    text = hashlib.sha256("".join(map(str, [*STRICT, *files.values()])).encode()).hexdigest()[:16]
    for outcome in known:
        if outcome.text == text:
            return outcome
    size, begin = len(files[f"{NAME}.c"]), time.perf_counter()

    def came(words: str, error: float = np.nan) -> Outcome:
        most = allowed(robot_name, name) if error > WITHIN else WITHIN
        return Outcome(
            robot_name, name, error, time.perf_counter() - begin, size, text, words, most
        )

    with tempfile.TemporaryDirectory() as folder:
        for file, lines in files.items():
            Path(folder, file).write_text(lines, encoding="utf-8")
        try:
            words = ["cc", *STRICT, "-o", "test", f"{NAME}.c", f"{NAME}_test.c", "-lm"]
            made = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit)
            if made.returncode:
                return came(made.stderr[:400])
            done = subprocess.run(
                ["./test"], cwd=folder, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired as error:
            return came(f"took more than {error.timeout} s")
    found = re.findall(r"largest error (\S+) of (\S+)", done.stdout)
    error = max((float(a) / float(b) for a, b in found), default=np.nan)
    return came("" if done.returncode == 0 and found else (done.stdout + done.stderr)[:400], error)


def recorded(record: Path | None) -> dict[tuple[str, str], list[Outcome]]:
    """What earlier runs wrote down, and was good."""
    known: dict[tuple[str, str], list[Outcome]] = {}
    for line in (
        record.read_text(encoding="utf-8").splitlines() if record and record.exists() else ()
    ):
        outcome = Outcome(**json.loads(line))
        if outcome.good:
            known.setdefault(outcome[:2], []).append(outcome)
    return known


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--robots", nargs="*", default=pp.robots.bundled())
    parser.add_argument("--functions", nargs="*", default=list(ALL_QUANTITIES))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one compilation")
    parser.add_argument("--record", type=Path, help="a file of what was done, to go on from")
    args = parser.parse_args()
    known, outcomes = recorded(args.record), []
    asked = [
        (robot, name)
        for robot in sorted(args.robots, key=lambda name: pp.load(name).nv)
        for name in args.functions
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        for task in as_completed(
            [pool.submit(tried, *pair, args.limit, known.get(pair, ())) for pair in asked]
        ):
            outcome = task.result()
            outcomes.append(outcome)
            print(f"{len(outcomes):>4} of {len(asked)}  {outcome}", flush=True)
            if args.record and outcome not in known.get(outcome[:2], ()):
                with args.record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(outcome._asdict()) + "\n")
    ran = [x for x in outcomes if not x.words]
    for what in ("error", "size", "seconds"):
        for x in sorted(ran, key=lambda x, what=what: -getattr(x, what))[:5]:
            print(f"largest {what}: {x.robot} {x.function}: {getattr(x, what):.3g}")
    within = sum(x.error <= WITHIN for x in ran)
    print(
        f"{len(ran)} of {len(outcomes)} compiled and ran without warning or finding, {within} of them within {WITHIN},"
    )
    print(f"{sum(x.good for x in ran)} within that or eps kappa, where they solve with a matrix")
    return 0 if all(x.good for x in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
