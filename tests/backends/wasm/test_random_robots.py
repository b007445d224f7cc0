"""Emitted WebAssembly of random robots, run by Node.js, beside the compiled functions."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi.backends.target import TARGETS
from tests.zoo import random_tree

NODE = shutil.which("node")
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "frame_pose")
RUN = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(process.argv[2]));
const answers = [];
for (const [file, name, states] of given) {
  const module = await import(file);
  const f = await module[name].load();
  answers.push(states.map((state) => {
    const answer = f.call(...state);
    return Object.keys(module[name].outputs).length > 1
      ? Object.values(answer).flatMap((x) => Array.from(x)) : Array.from(answer);
  }));
}
console.log(JSON.stringify(answers));
"""


def robot_of(seed: int) -> pp.Robot:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 7)), armature=bool(rng.integers(2)))
    return pp.Robot.of(tree)


def worst_difference(folder: Path, seed: int, states: int = 3) -> float:
    """The largest difference from the compiled functions, relative, for one robot."""
    robot, jobs, expected = robot_of(seed), [], []
    for name in FUNCTIONS:
        function = robot.function(name, ("tool",) if name == "frame_pose" else ())
        file = folder / f"{name}_{seed}.mjs"
        file.write_text(TARGETS["wasm"].emit(function.code, "d", "f", "a trial"), encoding="utf-8")
        rng = np.random.default_rng([seed, 1])
        given = [
            [
                robot.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
                for arg in function.code.program.inputs
            ]
            for _ in range(states)
        ]
        jobs.append([str(file), "f", [[np.ravel(x).tolist() for x in state] for state in given]])
        for state in given:
            out = function.ufunc(*state)
            expected.append(np.concatenate([np.ravel(x) for x in np.atleast_1d(out)]))
    script, data = folder / "run.mjs", folder / "jobs.json"
    script.write_text(RUN, encoding="utf-8")
    data.write_text(json.dumps(jobs), encoding="utf-8")
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(script), str(data)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    answers = [np.array(x) for job in json.loads(done.stdout) for x in job]
    return max(
        float(np.abs(mine - x).max() / (1.0 + np.abs(x).max()))
        for mine, x in zip(answers, expected, strict=True)
    )


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
@pytest.mark.parametrize("seed", range(3))
def test_random_robots_in_node(tmp_path, seed):
    assert worst_difference(tmp_path, seed) < 1e-11
