"""Loops and conditions of emitted WebAssembly, run by Node.js, beside the same in Python."""

import json
import shutil
import subprocess
from base64 import b64encode

import numpy as np
import pytest

from psiphi.backends.wasm.wasm_module import NUMBER_TYPES, blocks_binary
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.model.spatial.branch_free import choose, less
from psiphi.simulation.compiled_rollout.step_blocks import trace
from tests.backends.block_interpreter import BlockInterpreter

NODE = shutil.which("node")
RUN = """  // NaN is null in JSON
import { readFileSync } from "node:fs";
const { code, array, start, size } = JSON.parse(readFileSync(process.argv[2]));
const bytes = Uint8Array.from(atob(code), (c) => c.charCodeAt(0));
const { instance } = await WebAssembly.instantiate(bytes, { m: { sin: Math.sin, cos: Math.cos } });
const frame = new globalThis[array](instance.exports.memory.buffer, 0, size);
console.log(JSON.stringify(start.map((x) => { frame.set(x.map((y) => y ?? NaN)); instance.exports.run(); return [...frame]; })));
"""  # noqa: E501

# x halves, n counts; y changes in the first and the fourth pass, and is exchanged in each
BLOCKS = {
    "test": trace("test", {"x": 1}, lambda x: {"when": [less(0.5, x[0])], "done": [0.0 * x[0]]}),
    "before": trace("before", {"x": 1}, lambda x: {"n": [0.0 * x[0]], "third": [1.0 + 0.0 * x[0]]}),
    "halve": trace(
        "halve",
        {"x": 1, "n": 1},
        lambda x, n: {
            "x": [0.5 * x[0]],
            "n": [n[0] + 1.0],
            "third": [less(n[0], 0.5) + less(2.5, n[0]) * less(n[0], 3.5)],
            "done": [less(x[0], 3.0)],
        },
    ),
    "refine": trace("refine", {"y": 2}, lambda y: {"y": [y[0] - y[1].sin(), y[1] + 0.25]}),
    "swap": trace("swap", {"y": 2}, lambda y: {"y": [y[1], y[0]]}),
    "after": trace(
        "after", {"n": 1, "x": 1}, lambda n, x: {"total": [n[0] + choose(x[0], 1.0, 0.0)]}
    ),
    "end": trace("end", {"x": 1}, lambda x: {"last": [x[0] * x[0]]}),
}
CONDITIONS = {"refine": "third"}
LIMIT = 5
STARTS = [[x, 0.75, -0.5] for x in (0.25, 0.5, 0.75, 3.0, 17.0, 1e9, np.nan)]


def repeat(limit, after):
    return Repeat(
        "loop", "test", "when", ("before",), ("halve", "refine", "swap"), "done", limit, after
    )


def expected(frame, start, loop):
    values = {name: np.zeros(size) for name, size in frame.sizes.items()}
    values["x"][0], values["y"][:] = start[0], start[1:]
    BlockInterpreter(frame.named, [loop], CONDITIONS).run(("loop", "end"), values)
    return values


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
@pytest.mark.parametrize("char", ["d", "f"])
@pytest.mark.parametrize(("limit", "after"), [(LIMIT, "after"), (1, ""), (200, "after")])
def test_a_loop_with_a_condition_is_that_of_python(tmp_path, char, limit, after):
    """Skipped where `when` is 0, ended by `done` or by the limit; conditions, loops without
    `after`; places that are exchanged; NaN."""
    frame, loop = (
        BlockFrame({name: (code, {}) for name, code in BLOCKS.items()}),
        repeat(limit, after),
    )
    code = blocks_binary(
        frame, {"run": ("loop", "end")}, char, repeats=(loop,), conditions=CONDITIONS
    )
    starts, places = [], frame.places
    for start in STARTS:
        x = np.zeros(frame.size)
        x[places["x"]], x[places["y"] : places["y"] + 2] = start[0], start[1:]
        starts.append(x.tolist())
    data, script = tmp_path / "run.json", tmp_path / "run.mjs"
    text = json.dumps(
        {
            "code": b64encode(code).decode(),
            "array": NUMBER_TYPES[char].array,
            "start": [[None if np.isnan(x) else x for x in row] for row in starts],
            "size": frame.size,
        }
    )
    data.write_text(text, encoding="utf-8")
    script.write_text(RUN, encoding="utf-8")
    done = subprocess.run(
        [str(NODE), str(script), str(data)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    tolerance = {"d": 1e-15, "f": 1e-6}[char]
    passes = set()
    for start, found in zip(STARTS, json.loads(done.stdout), strict=True):
        values = expected(frame, start, loop)
        row = np.array([np.nan if x is None else x for x in found], dtype=float)
        passes.add(values["n"][0])
        for name, size in frame.sizes.items():
            here = row[places[name] : places[name] + size]
            np.testing.assert_allclose(here, values[name], rtol=tolerance, atol=tolerance)
    assert len(passes) == {1: 2, LIMIT: 5, 200: 5}[limit], passes
