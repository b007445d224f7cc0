"""Blocks of a frame beside NumPy: random numbers, selections, results that overwrite inputs."""

import uuid

import numpy as np
import pytest

from psiphi.backends.kernel_cache import kernel_key
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.lane_blocks import RandomNumbers, Selection
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop


def run(blocks, inputs, outputs, steps=1):
    """The outputs of a loop over blocks, for arrays (n, size) by place."""
    frame = BlockFrame({name: (code, {}) for name, code in blocks.items()})
    rollout = Rollout(frame, tuple(blocks), tuple(inputs), (), tuple(outputs), prologue=())
    n = len(next(iter(inputs.values())))
    loop = StepLoop(lambda _: kernel_key(uuid.uuid4().hex), lambda: (rollout, {"flops": 100}))
    out = {name: np.zeros((n, 1, size)) for name, size in outputs.items()}
    arrays = [x[:, None, :] for x in inputs.values()]
    loop.run([*arrays, *out.values()], steps, steps)
    return {name: x[:, 0] for name, x in out.items()}


@pytest.mark.parametrize("n", [1, 13])
def test_random_numbers_are_those_of_numpy(n):
    rng = np.random.default_rng(0)
    key, counter = (rng.integers(0, 2**32, (n, k)).astype(float) for k in (2, 3))
    code = RandomNumbers(12, first=5)
    found = run({"draw": code}, {"key": key, "counter": counter}, {"numbers": 12})
    np.testing.assert_array_equal(found["numbers"], code.on(key, counter)["numbers"])


@pytest.mark.parametrize("n", [1, 13])
def test_selections_are_those_of_numpy(n):
    rng = np.random.default_rng(1)
    x, y, z = (rng.standard_normal((n, k)) for k in (3, 3, 2))
    y[:, 1], z[:, 0] = np.nan, np.inf
    mask = (np.arange(n) % 3 != 1) * np.where(np.arange(n) % 2, -0.5, np.nan)
    code = Selection("mask", {"y": "x", "z": ""}, {"x": 3, "y": 3, "z": 2})
    places = {"mask": mask[:, None], "x": x, "y": y, "z": z}
    found = run({"pick": code}, places, {"y": 3, "z": 2})
    for name, want in code.on(**places).items():
        np.testing.assert_array_equal(found[name], want)


RULES = {
    "copied, then overwritten": lambda x, y, z: {"y": x, "x": x * z + y},
    "overwritten, then copied": lambda x, y, z: {"x": x * z + y, "y": x},
    "swapped": lambda x, y, z: {"x": y, "y": x},
    "turned": lambda x, y, z: {"x": y, "y": z, "z": x},
    "shifted within": lambda x, y, z: {"x": np.roll(x, 1), "y": y[::-1] + x},
    "after sines": lambda x, y, z: {"x": np.sin(np.sin(z)) + x, "z": y, "y": x},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 9])
def test_a_result_may_overwrite_an_input_that_is_copied(rule, n):
    """All inputs of a block are those before it, for blocks of one segment and of several."""
    rng = np.random.default_rng(2)
    arrays = {name: rng.standard_normal((n, 4)) for name in "xyz"}
    code = trace_rule("block", [Argument(name, (4,)) for name in "xyz"], RULES[rule])
    found = run({"block": code}, arrays, dict.fromkeys("xyz", 4), steps=2)
    want = dict(arrays)
    for _ in range(2):
        columns = {name: list(x.T) for name, x in want.items()}
        want |= {name: np.array(x).T for name, x in code.on(**columns).items()}
    for name, x in want.items():
        np.testing.assert_allclose(found[name], x, rtol=1e-13, atol=1e-14, err_msg=name)
