"""More random mechanisms than the tests try, beside Lagrange's multipliers.

python tests/robot/embedding/long_run.py --count 50 [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

import psiphi as pp
from psiphi_bench.interpreted_robot import Interpreted
from tests.robot.embedding.mechanisms import Spanning, random_mechanism


def worst(seed: int, states: int = 2) -> float:
    """The greatest difference of accelerations, relative to their size."""
    tree, loops, options = random_mechanism(seed)
    robot = pp.embed(tree, loops, **options)
    rng, found = np.random.default_rng(seed), 0.0
    for q in robot.random(rng, size=states):
        v, tau = rng.standard_normal((2, robot.nv))
        wanted = Spanning(Interpreted.of(tree), loops, robot, q, v).acceleration(tau)
        apart = np.abs(Interpreted.of(robot).forward_dynamics(q, v, tau) - wanted).max()
        found = max(found, float(apart / (1.0 + np.abs(wanted).max())))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    each = {seed: worst(seed) for seed in range(given.seed, given.seed + given.count)}
    seed = max(each, key=lambda x: each[x])
    print(
        f"{len(each)} mechanisms; worst {each[seed]:.2g} (seed {seed}); "
        f"{sum(x > 1e-10 for x in each.values())} above 1e-10"
    )


if __name__ == "__main__":
    main()
