"""The language of sweeps, on toy programs whose answers are plain sums over ancestors and
descendants."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import LinkLoops, trace_loops
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    Program,
    Sweep,
    add_messages,
)
from psiphi.compiler.sweeps.tree_loop import trace_tape
from psiphi.model.model import WORLD
from tests import zoo
from tests.compiler.sweeps.runs import run_rolled, run_tape

MODEL = zoo.random_tree(22, 12, kinds=["revolute"], branching=0.7, forest=True)
TREE = frame_tree(MODEL)
N = MODEL.nv
ROOTS = [k for k in range(N) if MODEL.parent[k] == WORLD]
BELOW = np.zeros((N, N))  # (k, j): j is k or hangs below it
for j in range(N):
    for k in TREE.path_to(j):
        BELOW[k, j] = 1.0


def joint(name: str) -> Argument:
    return Argument(name, (N,), "v")


def outcomes(program: Program, *arrays) -> list[np.ndarray]:
    """The outputs by all three roads, which must agree."""
    meant = interpret(program, TREE, *arrays)
    for road in (
        run_tape(trace_tape(program, TREE), *arrays),
        run_rolled(trace_loops(program, TREE), *arrays),
    ):
        for x, y in zip(road, meant, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-14)
    return list(meant)


def gather(body) -> None:
    total = add_messages(body.children.get("x"), body.joint_input("x"))
    body.send(x=total)
    body.write_joint("y", total)


def spread(body) -> None:
    total = [a + b for a, b in zip(body.parent["x"], body.joint_input("x"), strict=True)]
    body.store(x=total)
    body.write_joint("y", total)


def test_this_forest_is_worth_testing():
    assert (
        len(ROOTS) > 1 and max(np.bincount(np.array(MODEL.parent)[np.array(MODEL.parent) >= 0])) > 1
    )


def test_tip_to_base_sums_what_hangs_below(rng):
    x = rng.standard_normal((2, N))
    (y,) = outcomes(
        Program("gather", (joint("x"),), (joint("y"),), (Sweep(TIP_TO_BASE, gather),)), x
    )
    np.testing.assert_allclose(y, x @ BELOW.T, rtol=1e-13, atol=1e-14)


def test_base_to_tip_sums_what_lies_above(rng):
    x = rng.standard_normal((2, N))
    program = Program(
        "spread",
        (joint("x"),),
        (joint("y"),),
        (Sweep(BASE_TO_TIP, spread),),
        lambda body: body.store(x=[0.25]),
    )
    (y,) = outcomes(program, x)
    np.testing.assert_allclose(y, 0.25 + x @ BELOW, rtol=1e-13, atol=1e-14)


def test_sweeps_follow_each_other(rng):
    """S* S x: what one sweep keeps, the next reads at the same body."""
    x = rng.standard_normal((2, N))

    def hold(body):
        total = add_messages(body.children.get("x"), body.joint_input("x"))
        body.send(x=total)
        body.store(sum=total)

    def release(body):
        total = [a + b for a, b in zip(body.parent["down"], body.record["sum"], strict=True)]
        body.store(down=total)
        body.write_joint("y", total)

    sweeps = (Sweep(TIP_TO_BASE, hold), Sweep(BASE_TO_TIP, release))
    program = Program(
        "both", (joint("x"),), (joint("y"),), sweeps, lambda body: body.store(down=[0.0])
    )
    (y,) = outcomes(program, x)
    np.testing.assert_allclose(y, x @ BELOW.T @ BELOW, rtol=1e-13, atol=1e-13)


def test_a_later_sweep_may_replace_what_was_kept(rng):
    x = rng.standard_normal((2, N))

    def first(body):
        body.store(x=body.joint_input("x"))

    def second(body):
        body.store(x=[2.0 * value for value in body.record["x"]])

    def third(body):
        body.write_joint("y", body.record["x"])

    sweeps = tuple(Sweep(BASE_TO_TIP, step) for step in (first, second, third))
    (y,) = outcomes(Program("replace", (joint("x"),), (joint("y"),), sweeps), x)
    np.testing.assert_allclose(y, 2 * x)


def test_finish_sees_the_sum_of_the_roots(rng):
    x = rng.standard_normal((2, N))

    def finish(body):
        body.write("total", 0, body.children["x"])

    outputs = (joint("y"), Argument("total", ()))
    y, total = outcomes(
        Program("finish", (joint("x"),), outputs, (Sweep(TIP_TO_BASE, gather),), finish=finish), x
    )
    np.testing.assert_allclose(total, x.sum(-1), rtol=1e-13)
    np.testing.assert_allclose(y[..., ROOTS].sum(-1), total, rtol=1e-13)


def test_constants_travel_too(rng):
    """Messages may be plain numbers: how many bodies hang below, how deep each lies."""
    x = rng.standard_normal(N)

    def depth(body):
        body.store(depth=[body.parent["depth"][0] + 1.0])
        body.write_joint("deep", body.record["depth"])

    def size(body):
        number = [1.0 + body.children.get("size", [0.0])[0]]
        body.send(size=number)
        body.write_joint("below", number)

    sweeps = (Sweep(BASE_TO_TIP, depth), Sweep(TIP_TO_BASE, size))
    outputs = (joint("deep"), joint("below"))
    deep, below = outcomes(
        Program("sizes", (joint("x"),), outputs, sweeps, lambda body: body.store(depth=[0.0])), x
    )
    assert np.array_equal(deep, BELOW.sum(0)) and np.array_equal(below, BELOW.sum(1))


def test_what_nobody_writes_is_zero(rng):
    x = rng.standard_normal((2, N))
    outputs = (joint("y"), Argument("z", (2, 3)))
    _, z = outcomes(Program("silent", (joint("x"),), outputs, (Sweep(TIP_TO_BASE, gather),)), x)
    assert z.shape == (2, 2, 3) and not z.any()


def test_a_program_may_visit_few_bodies(rng):
    x, path = rng.standard_normal((2, N)), TREE.path_to(N - 1)
    program = Program(
        "path", (joint("x"),), (joint("y"),), (Sweep(TIP_TO_BASE, gather),), bodies=path
    )
    (y,) = outcomes(program, x)
    inside = np.isin(np.arange(N), path)
    np.testing.assert_allclose(
        y, np.where(inside, (x * inside) @ BELOW.T, 0.0), rtol=1e-13, atol=1e-14
    )


def test_body_data_reaches_its_body_only(rng):
    x, data = rng.standard_normal((2, N)), {3: (2.0,), 7: (-1.0, 5.0)}

    def step(body):
        factor = sum(body.data) if body.data else 0.0
        body.write_joint("y", [factor * value for value in body.joint_input("x")])

    (y,) = outcomes(
        Program("data", (joint("x"),), (joint("y"),), (Sweep(BASE_TO_TIP, step),), body_data=data),
        x,
    )
    np.testing.assert_allclose(y, x * np.array([sum(data.get(k, ())) for k in range(N)]))


def test_whole_inputs_reach_the_world_and_the_steps(rng):
    x, w = rng.standard_normal((2, N)), rng.standard_normal((2, 2))

    def step(body):
        body.store(w=body.parent["w"])
        body.write_joint(
            "y", [body.joint_input("x")[0] * body.record["w"][0] + body.inputs["w"][1]]
        )

    inputs = (joint("x"), Argument("w", (2,)))
    program = Program(
        "whole",
        inputs,
        (joint("y"),),
        (Sweep(BASE_TO_TIP, step),),
        lambda body: body.store(w=body.inputs["w"]),
    )
    (y,) = outcomes(program, x, w)
    np.testing.assert_allclose(y, x * w[:, :1] + w[:, 1:], rtol=1e-14)


def test_absent_inputs_are_zeros(rng):
    def step(body):
        assert body.joint_input("v") == [0.0]
        body.write_joint(
            "y", [a + b for a, b in zip(body.joint_input("x"), body.joint_input("v"), strict=True)]
        )

    x = rng.standard_normal((1, N))
    (y,) = outcomes(Program("absent", (joint("x"),), (joint("y"),), (Sweep(BASE_TO_TIP, step),)), x)
    assert np.array_equal(y, x)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [(None, [1.0], [1.0]), ([1.0, 2.0], [3.0, 4.0], [4.0, 6.0]), (2.0, 3.0, 5.0)],
)
def test_merge(a, b, total):
    assert add_messages(a, b) == total


def test_what_is_read_off_results_runs_in_loops_unless_joints_write_them():
    """A pose, of the entries that one body writes, is a loop; of joints' own parts a step does not
    know the places."""
    chain = pp.robots.chain(80)
    q = chain.random(seed=0, size=2)
    pose, gravity = (
        chain.function("frame_pose", (list(chain.frames)[-1],)),
        chain.function("gravity"),
    )
    assert isinstance(pose.source.code, LinkLoops)
    (meant,) = interpret(pose.program, pose.tree, q)
    np.testing.assert_allclose(pose(q), meant, atol=1e-12)
    with pytest.raises(AssertionError, match="results of joints"):
        trace_loops(
            gravity.program.map_outputs(gravity.program.outputs, lambda found: {}), gravity.tree
        )
