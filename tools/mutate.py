"""Mutation testing: changes one rule at a time and reports which mutants the tests catch.

    axioms      an axiom, inverse or factored step of algebra/rewriting/identities.py is removed,
                or its right side is doubled
    steps       an entry of the tables of local steps is removed or doubled; a sign in the
                arithmetic of a step is changed
    legality    a `raise` of algebra/expressions/type_checks.py, force_motion_duality.py or
                dense/rank_check.py is removed

Each mutant is a copy of src/ with one change; the tests of that part run until the first failure.
Results are stored in a file, so that a run can be resumed:
`--only steps --limit 20 --results mutants.json`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SRC = Path("psiphi")
STEPS = (  # files with the arithmetic of steps
    *(f"compiler/recursions/{x}.py" for x in ("body_step", "newton_euler", "inertia_rates")),
    *(f"compiler/lower/{x}_sweeps.py" for x in ("vector", "matrix", "frame")),
    "compiler/lower/world_body.py",
)
TESTS = {  # fast tests first: the first failure ends the run
    "axioms": [
        "tests/algebra/rewriting",
        "tests/robot/diagonalised/test_proofs.py",
        "tests/soundness/test_misprints.py",
        "tests/soundness/test_claims.py",
        "tests/soundness/test_table.py",
        "tests/soundness/test_expressions.py",
    ],
    "steps": [
        "tests/soundness/test_steps.py",
        "tests/compiler/lower",
        "tests/functions/test_expressions.py",
        "tests/robot/diagonalised/test_rates.py",
        "tests/soundness/test_expressions.py",
    ],
    "legality": [
        "tests/algebra/expressions",
        "src/psiphi/algebra/expressions",
        "tests/compiler/sweeps/test_program_checks.py",
        "tests/soundness/test_misprints.py",
        "tests/soundness/test_table.py",
    ],
}


class Mutant(NamedTuple):
    """One change of one file: `text` replaces the bytes start:end."""

    family: str
    file: str
    line: int
    what: str
    start: int
    end: int
    text: str

    @property
    def key(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


class Source:
    """A file with its syntax tree; positions of nodes are byte offsets."""

    def __init__(self, name: str):
        self.name = name
        self.data = (ROOT / "src" / SRC / name).read_bytes()
        self.tree = ast.parse(self.data)
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def mutant(self, family: str, node, what: str, text: str) -> Mutant:
        return Mutant(family, self.name, node.lineno, what, *self.span(node), text)

    def tables(self, *names: str) -> Iterator[tuple[str, ast.expr]]:
        """Module-level assignments of these names."""
        for node in self.tree.body:
            target = (
                node.targets[0]
                if isinstance(node, ast.Assign)
                else node.target
                if isinstance(node, ast.AnnAssign)
                else None
            )
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and target.id in names and value is not None:
                yield target.id, value


def axioms() -> Iterator[Mutant]:
    """Rows (lhs, rhs, source, use) of rewriting: removed, or with twice the right side."""
    source = Source("algebra/rewriting/identities.py")
    for _, table in source.tables("IDENTITIES"):
        assert isinstance(table, ast.Tuple)
        for row in table.elts:
            lhs, rhs, _, use, *_ = map(source.text, row.args)  # type: ignore[attr-defined]
            if not {"AXIOM", "INVERSE", "FACTORED"} & set(use.split(" | ")):
                continue
            label = f"{use}: {lhs} = {rhs}"
            yield _without(source, table, row, label)
            if not rhs.startswith("0 *"):
                side = row.args[1]  # type: ignore[attr-defined]
                yield source.mutant("axioms", side, f"twice {label}", f"2 * ({rhs})")


def _without(source: Source, table: ast.Tuple, row: ast.expr, label: str) -> Mutant:
    """The row and its comma removed."""
    start, end = source.span(row)
    comma = source.data.find(b",", end, source.span(table)[1])
    if len(table.elts) == 1:
        return Mutant(
            "axioms", source.name, row.lineno, f"without {label}", *source.span(table), "()"
        )
    return Mutant(
        "axioms",
        source.name,
        row.lineno,
        f"without {label}",
        start,
        comma + 1 if comma >= 0 else end,
        "",
    )


def steps() -> Iterator[Mutant]:
    """Entries of the tables of local steps, and the arithmetic of the steps."""
    for file, names in (
        ("compiler/recursions/body_step.py", ("LOCAL",)),
        ("compiler/lower/vector_sweeps.py", ("GATHERED", "INHERITED", "BIASES")),
    ):
        source = Source(file)
        for name, table in source.tables(*names):
            assert isinstance(table, ast.Dict)
            for key, value in zip(table.keys, table.values, strict=True):
                assert key is not None
                label = f"{name}[{source.text(key)}]"
                twice = f"(lambda *args: [2.0 * y for y in ({source.text(value)})(*args)])"
                yield source.mutant("steps", value, f"twice {label}", twice)
                end = source.data.index(b",", source.span(value)[1]) + 1
                yield Mutant(
                    "steps", file, key.lineno, f"without {label}", source.span(key)[0], end, ""
                )
    for file in STEPS:
        yield from _arithmetic(Source(file))


SWAPPED = {"add": "subtract", "subtract": "add"}


def _arithmetic(source: Source) -> Iterator[Mutant]:
    """x + y -> x - y, add(x, y) -> subtract(x, y), -x -> x, in functions on spatial quantities."""
    has_both = all(f"{name}(" in source.data.decode() for name in SWAPPED)
    for function in (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            where = (
                f"{function.name}: {source.text(node)[:60]!r}" if isinstance(node, ast.expr) else ""
            )
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in SWAPPED
                and has_both
            ):
                other = f"{SWAPPED[node.func.id]}({', '.join(map(source.text, node.args))})"
                yield source.mutant("steps", node, f"{SWAPPED[node.func.id]} in {where}", other)
            elif (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Add | ast.Sub)
                and _spatial(source, node)
            ):
                sign = "-" if isinstance(node.op, ast.Add) else "+"
                other = f"{source.text(node.left)} {sign} ({source.text(node.right)})"
                yield source.mutant("steps", node, f"{sign} in {where}", other)
            elif (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.USub)
                and not isinstance(node.operand, ast.Constant)
            ):
                yield source.mutant("steps", node, f"sign of {where}", source.text(node.operand))


def _spatial(source: Source, node: ast.BinOp) -> bool:
    """Whether this is arithmetic of numbers, not of lists, text or indices."""
    text = source.text(node)
    return (
        not any(
            mark in text
            for mark in ('"', "[0.0]", "ZERO", "len(", "slice", "1 +", "+ 1", "* 6", "6 *")
        )
        and "[:3]" not in text
    )


def legality() -> Iterator[Mutant]:
    """Every `raise` removed."""
    for file in (
        "algebra/expressions/type_checks.py",
        "algebra/expressions/force_motion_duality.py",
        "algebra/dense/rank_check.py",
    ):
        if not (ROOT / "src" / SRC / file).exists():
            continue
        source = Source(file)
        for function in (
            node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Raise):
                    value = (
                        "return None"
                        if function.returns is None or source.text(function.returns) == "None"
                        else "pass"
                    )
                    words = " ".join(source.text(node).split())[:70]
                    yield source.mutant(
                        "legality", node, f"no error in {function.name}: {words}", value
                    )


FAMILIES = {"axioms": axioms, "steps": steps, "legality": legality}
OPTIONS = [
    "-x",
    "-q",
    "-n",
    "0",
    "-p",
    "no:cacheprovider",
    "-m",
    "not slow",
    "-o",
    "faulthandler_timeout=0",
]
OPTIONS += [
    "-k",
    "not seconds and not quick and not budget",
]  # tests of run time depend on the load


class FailingTests(Exception):
    """The tests fail without a mutant."""


class MutantRunner:
    """A copy of the repository to which one mutant at a time is applied."""

    def __init__(self, folder: Path, known: dict, seconds: float):
        self.root, self.known, self.seconds = folder / "copy", known, seconds
        shutil.copytree(
            ROOT,
            self.root,
            ignore=shutil.ignore_patterns("__pycache__", ".git", ".venv", "benchmarks", "*.json"),
        )

    def trial(self, mutant: Mutant) -> dict:
        """The outcome of a mutant. The fastest tests run first, in their own process."""
        target = self.root / "src" / SRC / mutant.file
        before, begun = target.read_bytes(), time.perf_counter()
        first, *rest = TESTS[mutant.family]
        outcome, by = "survived", ""
        try:
            for tests, seconds in (([first], self.seconds / 3.0), (rest, self.seconds)):
                self._check(mutant.family, tests, seconds)
                target.write_bytes(
                    before[: mutant.start] + mutant.text.encode() + before[mutant.end :]
                )
                ast.parse(target.read_bytes())
                outcome, by = self._run(tests, seconds)
                target.write_bytes(before)
                if outcome != "survived":
                    break
        except SyntaxError as error:
            outcome, by = "invalid", str(error)
        finally:
            target.write_bytes(before)
        return {
            "outcome": outcome,
            "by": by,
            "seconds": round(time.perf_counter() - begun, 1),
            "family": mutant.family,
        }

    def _check(self, family: str, tests: list[str], seconds: float) -> None:
        """Raise `FailingTests` if the tests fail without a mutant."""
        key = f"unchanged: {' '.join(tests)}"
        if key not in self.known:
            outcome, by = self._run(tests, 2.0 * seconds)
            if outcome != "survived":
                raise FailingTests(f"the tests of {family} fail without a mutant: {by}")
            self.known[key] = {"outcome": "unchanged", "family": family}

    def _run(self, tests: list[str], seconds: float) -> tuple[str, str]:
        """Run the tests for at most `seconds` of CPU time; return the outcome and first failure."""

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))

        done = subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, *tests],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            preexec_fn=limit,
        )
        if done.returncode == 0:
            return "survived", ""
        if done.returncode < 0:
            return "timeout", f"signal {-done.returncode}"
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return "caught", (lines[0] if lines else (done.stdout + done.stderr)[-300:])[:160]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", choices=FAMILIES, action="append", help="families to try (default: all)"
    )
    parser.add_argument(
        "--match", default="", help="only mutants with this text in their description"
    )
    parser.add_argument("--limit", type=int, help="maximum number of mutants, spread evenly")
    parser.add_argument(
        "--timeout",
        type=float,
        default=200.0,
        help="seconds of CPU time for the tests of a mutant",
    )
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this many minutes")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("mutants.json"),
        help="file of results, read and updated",
    )
    parser.add_argument(
        "--deselect", action="append", default=[], help="a test that fails without a mutant"
    )
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    args = parser.parse_args()
    found = [m for name in args.only or FAMILIES for m in FAMILIES[name]() if args.match in m.key]
    mutants = list({(m.file, m.start, m.end, m.text): m for m in found}.values())
    if args.limit and len(mutants) > args.limit:
        mutants = [mutants[len(mutants) * i // args.limit] for i in range(args.limit)]
    OPTIONS.extend(f"--deselect={name}" for name in args.deselect)
    if args.list:
        print(*(f"{m.family:9} {m.key}" for m in mutants), f"{len(mutants)} mutants", sep="\n")
        return 0
    known = json.loads(args.results.read_text(encoding="utf-8")) if args.results.exists() else {}
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="psiphi-mutants-") as folder:
        runner = MutantRunner(Path(folder), known, args.timeout)
        for mutant in mutants:
            if mutant.key in known or time.perf_counter() - begun > 60.0 * args.minutes:
                continue
            try:
                known[mutant.key] = row = runner.trial(mutant)
            except FailingTests as error:
                print(error)
                return 2
            args.results.write_text(json.dumps(known, indent=1), encoding="utf-8")
            print(
                f"{row['outcome']:9} {row['seconds']:6.1f} s  {mutant.key}  {row['by']}", flush=True
            )
    return report({m.key: known[m.key] for m in mutants if m.key in known})


def report(found: dict[str, dict]) -> int:
    """Print the share caught by family, and the survivors."""
    for family in FAMILIES:
        rows = [
            row for row in found.values() if row["family"] == family and row["outcome"] != "invalid"
        ]
        caught = sum(row["outcome"] != "survived" for row in rows)
        if rows:
            print(f"{family}: {caught} of {len(rows)} caught ({100.0 * caught / len(rows):.0f} %)")
    survivors = [key for key, row in found.items() if row["outcome"] == "survived"]
    print(*(f"  survived: {key}" for key in survivors), sep="\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
