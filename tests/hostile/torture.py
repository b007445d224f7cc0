"""`make torture`: the hostile room for hours. Each kind of attack runs in boxes of its own until
its share of the time is up.

What an attack needs is imported where it begins: a small process forks faster.

    python tests/hostile/torture.py --minutes 60 [--only mutated] [--seed 0]
    python tests/hostile/torture.py --times 1000 [--only damaged]   each fault so often

It prints a line for each failure (with the seed that repeats it) and a table for
docs/reliability.md; it ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    os.environ["PSIPHI_CACHE"] = tempfile.mkdtemp(prefix="psiphi-torture-")

import numpy as np

from psiphi import scenes
from psiphi._util.errors import Error
from psiphi.io.meshes.mesh_files import read_mesh
from psiphi.robot.load import load
from tests.hostile import faults, kernel_faults, planted
from tests.hostile.boxed import boxed

BLOCK = 100  # mutants in one box
Try = tuple[
    str, Callable[[], object], float, float
]  # words that repeat it, the call, seconds, megabytes


def mutants(seed: int) -> Iterator[tuple[int, Try]]:
    """Blocks of mutated files; a block that fails is tried file by file."""
    from tests.hostile import mutated

    while True:
        block = range(seed, seed + BLOCK)
        yield (
            BLOCK,
            (
                f"mutants {block[0]}..{block[-1]}",
                lambda b=block: [mutated.judge(s, s % 50 == 0) for s in b],
                120.0,
                1000.0,
            ),
        )
        seed += BLOCK


def files(seed: int) -> Iterator[tuple[int, Try]]:
    """Bombs: small or plain files that a careless reader makes much of."""
    from tests.hostile import bombs

    folder = Path(tempfile.mkdtemp(prefix="psiphi-bombs-"))
    while True:
        for name, (ending, make) in bombs.MESHES.items():
            yield (
                1,
                _file(folder / f"bomb{ending}", make, f"mesh: {name}", lambda p: read_mesh(str(p))),
            )
        for name, make in bombs.URDFS.items():
            yield 1, _file(folder / "bomb.urdf", make, f"urdf: {name}", load)
        for name, make in bombs.SCENES.items():
            yield 1, _file(folder / "bomb.toml", make, f"scene: {name}", scenes.load)


def _file(path: Path, make: Callable[[], bytes], words: str, read: Callable) -> Try:
    path.write_bytes(make())
    return words, lambda: (read(path), None)[1], 90.0, 1000.0


def arguments(seed: int) -> Iterator[tuple[int, Try]]:
    """Junk at every parameter of every public call."""
    from tests.hostile import junk, public_calls

    folder = Path(tempfile.mkdtemp(prefix="psiphi-junk-"))
    while True:
        for call in [*junk.table(folder), *public_calls.more(folder)]:
            yield (
                len(call.given) * len(junk.JUNK),
                (f"junk: {call.name}", lambda c=call: _knock(c, folder), 300.0, 2000.0),
            )


def _knock(call: Any, folder: Path) -> None:
    os.chdir(folder)
    for parameter, label, knock in call.tries():
        try:
            knock()
        except Error:
            pass
        except Exception as error:
            if (call.name.partition(".")[0], label) != ("Trajectory", "bytes path"):
                raise AssertionError(f"{parameter}={label}: {error!r}") from error


FAULTS = kernel_faults.ATTACKS | planted.ATTACKS | faults.ATTACKS
CASES = {
    "32 cold starts at once": 32,
    "first calls in 16 threads": 16,
    "forks in another thread's first call": 5,
}


def broken(seed: int, names: Iterable[str] = FAULTS) -> Iterator[tuple[int, Try]]:
    """Killed writers, full disks, forks and threads."""
    while True:
        for name in names:
            yield (
                CASES.get(name, faults.ROUND),
                (f"{name}, seed {seed}", lambda a=FAULTS[name], s=seed: a(s), 3000.0, 4000.0),
            )
        seed += 1


KINDS = {"mutated": mutants, "bombs": files, "junk": arguments, "faults": broken}


def torture(
    kind: str, attacks: Iterable[tuple[int, Try]], seconds: float, times: float
) -> tuple[int, int, float]:
    """(tried, failed, seconds) of one kind, for so many seconds or so many times."""
    start, tried, failed = time.monotonic(), 0, 0
    for count, (words, call, patience, megabytes) in attacks:
        outcome = boxed(call, patience, megabytes)
        tried += count
        if not outcome.good:
            failed += 1
            print(f"FAILED {kind}: {words}: {outcome.end}: {outcome.words}", flush=True)
        if time.monotonic() - start > seconds or tried >= times:
            break
    return tried, failed, time.monotonic() - start


def each_fault(times: int, only: str | None, seed: int) -> dict[str, tuple[int, int, float]]:
    rows = {}
    faults.ROUND = 50
    os.environ["PSIPHI_CACHE"] = "off"
    kernel_faults.some(random.Random(0), 1)()  # LLVM is made ready once, not in every child
    for name in FAULTS:
        if only is None or only in name:
            rows[name] = torture(name, broken(seed, [name]), float("inf"), times)
            print(name, rows[name], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="for all kinds together (default: %(default)s)"
    )
    parser.add_argument("--times", type=int, help="each kind of fault so often, instead of so long")
    parser.add_argument(
        "--only",
        help=f"one kind alone: {', '.join(KINDS)}; with --times, faults whose name has this in it",
    )
    parser.add_argument(
        "--seed", type=int, default=1_000_000, help="where to begin (default: %(default)s)"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if args.times:
        rows = each_fault(args.times, args.only, args.seed)
    else:
        kinds = [args.only] if args.only else list(KINDS)
        share = 60.0 * args.minutes / len(kinds)
        rows = {kind: torture(kind, KINDS[kind](args.seed), share, float("inf")) for kind in kinds}
    print("\n| attack | tried | failed | minutes |\n|---|---|---|---|")
    for kind, (tried, failed, took) in rows.items():
        print(f"| {kind} | {tried} | {failed} | {took / 60:.1f} |")
    return int(any(failed for _, failed, _ in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
