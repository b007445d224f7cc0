"""Robots far beyond what anybody builds: each answers, or says what it would need; memory grows as
the robot does.

    python tests/hostile/giants.py [star ...]

Each in a box of its own (`boxed.py`); the table is in docs/reliability.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import psiphi as pp
from tests.hostile.boxed import Outcome, boxed


def grown(parents: list[int], name: str = "giant") -> pp.Robot:
    """Rods on hinges, each on the body of that number (-1: the world)."""
    b = pp.Builder(name)
    for k, parent in enumerate(parents):
        b.body(f"l{k}", 1.0, com=(0.1, 0, 0), inertia=(0.01, 0, 0, 0.01, 0, 0.01))
        below = f"l{parent}" if parent >= 0 else "world"
        b.joint(
            f"j{k}",
            "revolute",
            below,
            f"l{k}",
            xyz=(0.2 * (parent >= 0), 0, 0),
            axis=(0, 1, 0) if k % 2 else (0, 0, 1),
        )
    return b.build()


def chain(n: int) -> pp.Robot:
    return grown([k - 1 for k in range(n)])


def star(n: int) -> pp.Robot:
    """One hub, and all others on it."""
    return grown([-1] + [0] * (n - 1))


def binary(n: int) -> pp.Robot:
    return grown([(k - 1) // 2 if k else -1 for k in range(n)])


def round_trip(robot: pp.Robot) -> float:
    """Forward dynamics of what inverse dynamics says: how far from where it began, relative to the
    largest."""
    rng = np.random.default_rng(0)
    q, v, a = 0.1 * rng.standard_normal((3, robot.nv))
    tau = robot.inverse_dynamics(q, v, a)
    return float(
        abs(robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau)) - tau).max()
        / abs(tau).max()
    )


def contacts(n: int) -> float:
    """Double pendulums side by side, the tip of each pinned to the world: what the pins give, the
    equations say."""
    b = pp.Builder("comb")
    for k in range(n):
        for j, (below, step) in enumerate(((None, 0.0), (f"a{k}", 0.5))):
            link = f"{'ab'[j]}{k}"
            b.body(link, 1.0, com=(0.25, 0, 0), inertia=(0.01, 0, 0, 0.02, 0, 0.02))
            place = (step, 0.0 if j else float(k), 0.0)
            b.joint(f"{'ab'[j]}j{k}", "revolute", below or "world", link, xyz=place, axis=(0, 1, 0))
        b.frame(f"tip{k}", f"b{k}", xyz=(0.5, 0, 0))
        b.frame(f"pin{k}", "world", xyz=(0.6, float(k), 0.0))
    system = pp.connect(b.build(), [pp.Loop("ball", f"tip{k}", f"pin{k}") for k in range(n)])
    bend = np.arccos(0.6)
    q, v = system.assemble(np.tile([-bend, 2 * bend], n)), np.zeros(system.nv)
    a = system.forward_dynamics(q, v, v)
    a = a[0] if isinstance(a, tuple) else a
    return float(abs(system.constraint_jacobian(q) @ a).max())


def batch(n: int, chunk: int = 1_000_000) -> float:
    """So many states, a million at a time: the first again alone."""
    robot, rng, worst = pp.load("acrobot"), np.random.default_rng(0), 0.0
    for start in range(0, n, chunk):
        q, v, tau = rng.standard_normal((3, min(chunk, n - start), 2))
        a = robot.forward_dynamics(q, v, tau)
        worst = max(worst, float(abs(a[0] - robot.forward_dynamics(q[0], v[0], tau[0])).max()))
    return worst


GIANTS: dict[str, Callable[[], float]] = {
    "chain of 50 000 links": lambda: round_trip(chain(50_000)),
    "chain of 100 000 links": lambda: round_trip(chain(100_000)),
    "star of 10 000": lambda: round_trip(star(10_000)),
    "binary tree of 2^14": lambda: round_trip(binary(2**14)),
    "mass matrix of a chain of 100 000": lambda: float(
        chain(100_000).mass_matrix(np.zeros(100_000)).shape[0]
    ),
    "50 contacts": lambda: contacts(50),
    "100 contacts": lambda: contacts(100),
    "batch of 10^7": lambda: batch(10_000_000),
}


def main(words: list[str]) -> int:
    print("| giant | end | seconds | megabytes |\n|---|---|---|---|")
    outcomes: list[Outcome] = []
    for name, call in GIANTS.items():
        if not words or any(word in name for word in words):
            outcomes.append(boxed(call, 3600.0, 16_000.0))
            end = outcomes[-1]
            print(
                f"| {name} | {end.end}: {end.words} | {end.seconds:.0f} | {end.megabytes:.0f} |",
                flush=True,
            )
    return int(not all(outcome.good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
