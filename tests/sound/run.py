"""The long run: so many random expressions on random robots, each compiled, run and held against `.dense` and the oracle.

    python tests/sound/run.py --count 20000 --seed 1 --jobs 1

prints how many were right, dense, refused and why, the slowest ones, and each kind of failure once, made small and written as
Python that shows it. Exit status 1 when anything failed.
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
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

import numpy as np  # noqa: E402

from sound.examine import Case, Outcome, examine  # noqa: E402
from sound.recipes import text  # noqa: E402
from sound.robots import draw_spec  # noqa: E402
from sound.shrinking import shrink  # noqa: E402
from sound.writing import draw_recipe  # noqa: E402


def picker(seed: int, i: int):
    """The choices of case i."""
    rng = np.random.default_rng([seed, i])
    return lambda options: options[int(rng.integers(len(options)))]


def draw(seed: int, i: int) -> Case:
    """Case i of a run."""
    pick = picker(seed, i)
    return Case(draw_spec(pick), draw_recipe(pick))


def one(job: tuple[int, int]) -> tuple[int, Outcome]:
    try:
        return job[1], examine(draw(*job))
    except Exception as error:  # the harness itself
        return job[1], Outcome("harness", f"{type(error).__name__}: {error}")


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shrink", type=int, default=200, help="trials to make a failure smaller")
    parser.add_argument("--only", type=int, help="one case, with its source")
    args = parser.parse_args()
    os.environ["PSIPHI_CACHE"] = cache = tempfile.mkdtemp(prefix="psiphi-sound-")
    os.environ.setdefault("PSIPHI_CACHE_MB", "64")
    try:
        if args.only is not None:
            case = draw(args.seed, args.only)
            print(case.source(), examine(case), sep="\n")
            return 0
        return report(args)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def report(args: argparse.Namespace) -> int:
    jobs = [(args.seed, i) for i in range(args.start, args.start + args.count)]
    kinds, reasons, failures, slowest, begun = Counter(), Counter(), {}, [], time.perf_counter()
    pool = multiprocessing.Pool(args.jobs) if args.jobs > 1 else None
    for i, outcome in pool.imap_unordered(one, jobs, chunksize=8) if pool else map(one, jobs):
        kinds[outcome.kind] += 1
        slowest = sorted([*slowest, (outcome.seconds, i)], reverse=True)[:5]
        if outcome.kind == "refused":
            reasons[reason(outcome)] += 1
        if not outcome.ok:
            failures.setdefault(family(outcome), []).append(i)
            if len(failures[family(outcome)]) == 1:
                print(f"{sum(kinds.values()):6} {family(outcome)}: case {i}: {text(draw(args.seed, i).node)}", flush=True)
        if sum(kinds.values()) % 500 == 0:
            print(f"{sum(kinds.values()):6} {dict(kinds)} {time.perf_counter() - begun:.0f} s", flush=True)
    print(f"\n{sum(kinds.values())} expressions in {time.perf_counter() - begun:.0f} s: {dict(kinds)}")
    print("refused:", *(f"  {n:5} {why}" for why, n in reasons.most_common()), sep="\n")
    print("slowest:", *(f"  {s:6.2f} s  case {i}: {text(draw(args.seed, i).node)[:100]}" for s, i in slowest), sep="\n")
    for name, cases in sorted(failures.items(), key=lambda pair: -len(pair[1])):
        if name.startswith("harness"):
            print(f"\n# {name}: cases {cases[:9]}")
            continue
        case = shrink(draw(args.seed, cases[0]), 0 if name.startswith("slow") else args.shrink)
        print(f"\n# {name}\n# {len(cases)} times, first in case {cases[0]} (seed {args.seed}): {examine(case).detail}")
        print(case.source(), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
