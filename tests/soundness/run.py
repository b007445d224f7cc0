"""The long run: so many random expressions on random robots, each compiled, run and held against
`.dense` and the oracle.

    python tests/soundness/run.py --count 20000 --seed 1 --jobs 1
    python tests/soundness/run.py --claims --count 5000
    python tests/soundness/run.py --slopes --count 5000

prints how many were right, dense, refused and why, the slowest ones, and each kind of failure once,
made small and written as Python that shows it. Exit status 1 when anything failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]

import numpy as np  # noqa: E402

from tests.soundness.claims import OK, Claim, draw_claim, judge, some_robots  # noqa: E402
from tests.soundness.claims import shrink as shrink_claim  # noqa: E402
from tests.soundness.derivatives import slopes  # noqa: E402
from tests.soundness.examine import RIGHT, Case, Outcome, examine  # noqa: E402
from tests.soundness.recipes import text  # noqa: E402
from tests.soundness.robots import Spec, draw_spec  # noqa: E402
from tests.soundness.shrinking import shrink  # noqa: E402
from tests.soundness.writing import draw_recipe  # noqa: E402

ROBOTS = 40  # that claims are about

Found = Case | Claim


def picker(seed: int, i: int):
    """The choices of case i."""
    rng = np.random.default_rng([seed, i])
    return lambda options: options[int(rng.integers(len(options)))]


@lru_cache
def robots_of(seed: int) -> list[Spec]:
    return some_robots(picker(seed, 10**9), ROBOTS)


def draw(seed: int, i: int, claims: bool) -> Found:
    """Case i of a run."""
    pick = picker(seed, i)
    return draw_claim(pick, robots_of(seed)) if claims else Case(draw_spec(pick), draw_recipe(pick))


def outcome_of(case: Found, how: Callable[[Case], Outcome] = examine) -> Outcome:
    return judge(case) if isinstance(case, Claim) else how(case)


def one(job: tuple[int, int, bool, Callable[[Case], Outcome]]) -> tuple[int, Outcome]:
    try:
        case = draw(job[1], job[0], job[2])
        return job[0], outcome_of(case, job[3])
    except Exception as error:  # the harness itself
        return job[0], Outcome("harness", f"{type(error).__name__}: {error}")


def shown(case: Found) -> str:
    return text(case.node) if isinstance(case, Case) else f"{text(case.lhs)}  =  {text(case.rhs)}"


def family(outcome: Outcome) -> str:
    """Failures that read alike: numbers and names apart."""
    words = re.sub(r"letters=[(].*?[)]", "letters", outcome.detail)
    words = words.split("(tolerance")[0].split("Remedy:")[-1] if outcome.kind != "crash" else words
    return f"{outcome.kind}: {re.sub(r'-?[0-9][0-9.e+-]*', '#', words).strip()}"


def reason(outcome: Outcome) -> str:
    """Why it was refused, without what stood there."""
    stage, _, words = outcome.detail.partition(": ")
    remedy = words.split("Remedy:")[-1].strip()
    return f"{stage}: {re.sub(r'[(].*?[)]|[0-9]+', '', remedy)[:70]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the first case")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--claims",
        action="store_true",
        help="claims for pp.prove instead of expressions for pp.function",
    )
    parser.add_argument("--slopes", action="store_true", help="derivatives of the expressions, too")
    parser.add_argument("--shrink", type=int, default=100, help="trials to make a failure smaller")
    parser.add_argument("--only", type=int, help="one case, with its source")
    args = parser.parse_args()
    os.environ["PSIPHI_CACHE"] = cache = tempfile.mkdtemp(prefix="psiphi-sound-")
    os.environ.setdefault("PSIPHI_CACHE_MB", "64")
    try:
        if args.only is not None:
            case = draw(args.seed, args.only, args.claims)
            print(case.source(), outcome_of(case, _how(args)), sep="\n")
            return 0
        return report(args)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _how(args: argparse.Namespace) -> Callable[[Case], Outcome]:
    return slopes if args.slopes else examine


def report(args: argparse.Namespace) -> int:
    jobs = [
        (i, args.seed, args.claims, _how(args)) for i in range(args.start, args.start + args.count)
    ]
    kinds, reasons, failures, slowest, begun = Counter(), Counter(), {}, [], time.perf_counter()
    pool = multiprocessing.Pool(args.jobs) if args.jobs > 1 else None
    for i, outcome in pool.imap_unordered(one, jobs, chunksize=8) if pool else map(one, jobs):
        kinds[outcome.kind] += 1
        slowest = sorted([*slowest, (outcome.seconds, i)], reverse=True)[:5]
        if outcome.kind == "refused":
            reasons[reason(outcome)] += 1
        if outcome.kind not in (OK if args.claims else RIGHT):
            failures.setdefault(family(outcome), []).append(i)
            if len(failures[family(outcome)]) == 1:
                print(
                    f"{sum(kinds.values()):6} {family(outcome)}: case {i}: "
                    f"{shown(draw(args.seed, i, args.claims))}",
                    flush=True,
                )
        if sum(kinds.values()) % 500 == 0:
            print(
                f"{sum(kinds.values()):6} {dict(kinds)} {time.perf_counter() - begun:.0f} s",
                flush=True,
            )
    what = "claims" if args.claims else "expressions"
    print(f"\n{sum(kinds.values())} {what} in {time.perf_counter() - begun:.0f} s: {dict(kinds)}")
    print("refused:", *(f"  {n:5} {why}" for why, n in reasons.most_common()), sep="\n")
    print(
        "slowest:",
        *(
            f"  {s:6.2f} s  case {i}: {shown(draw(args.seed, i, args.claims))[:100]}"
            for s, i in slowest
        ),
        sep="\n",
    )
    for name, cases in sorted(failures.items(), key=lambda pair: -len(pair[1])):
        _show(name, cases, args)
    return 1 if failures else 0


def _show(name: str, cases: list[int], args: argparse.Namespace) -> None:
    """One kind of failure, made small."""
    print(f"\n# {name}\n# {len(cases)} times: cases {cases[:9]} of seed {args.seed}")
    if name.startswith("harness"):
        return
    case, trials = (
        draw(args.seed, cases[0], args.claims),
        0 if name.startswith("slow") else args.shrink,
    )
    case = (
        shrink_claim(case, trials) if isinstance(case, Claim) else shrink(case, trials, _how(args))
    )
    print(f"# {outcome_of(case, _how(args)).detail if trials else ''}\n{case.source()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
