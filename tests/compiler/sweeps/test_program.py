"""The language of sweeps, on toy programs whose answers are plain sums over ancestors and descendants."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import LinkLoops, roll
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    Program,
    Sweep,
    merge,
)
from psiphi.compiler.sweeps.tree_loop import unroll
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
        run_tape(unroll(program, TREE), *arrays),
        run_rolled(roll(program, TREE), *arrays),
    ):
        for x, y in zip(road, meant, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-14)
    return list(meant)


def gather(site) -> None:
    total = merge(site.children.get("x"), site.of("x"))
    site.send(x=total)
    site.write_joint("y", total)


def spread(site) -> None:
    total = [a + b for a, b in zip(site.parent["x"], site.of("x"), strict=True)]
    site.keep(x=total)
    site.write_joint("y", total)


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
        lambda site: site.keep(x=[0.25]),
    )
    (y,) = outcomes(program, x)
    np.testing.assert_allclose(y, 0.25 + x @ BELOW, rtol=1e-13, atol=1e-14)


def test_sweeps_follow_each_other(rng):
    """S* S x: what one sweep keeps, the next reads at the same body."""
    x = rng.standard_normal((2, N))

    def hold(site):
        total = merge(site.children.get("x"), site.of("x"))
        site.send(x=total)
        site.keep(sum=total)

    def release(site):
        total = [a + b for a, b in zip(site.parent["down"], site.kept["sum"], strict=True)]
        site.keep(down=total)
        site.write_joint("y", total)

    sweeps = (Sweep(TIP_TO_BASE, hold), Sweep(BASE_TO_TIP, release))
    program = Program(
        "both", (joint("x"),), (joint("y"),), sweeps, lambda site: site.keep(down=[0.0])
    )
    (y,) = outcomes(program, x)
    np.testing.assert_allclose(y, x @ BELOW.T @ BELOW, rtol=1e-13, atol=1e-13)


def test_a_later_sweep_may_replace_what_was_kept(rng):
    x = rng.standard_normal((2, N))

    def first(site):
        site.keep(x=site.of("x"))

    def second(site):
        site.keep(x=[2.0 * value for value in site.kept["x"]])

    def third(site):
        site.write_joint("y", site.kept["x"])

    sweeps = tuple(Sweep(BASE_TO_TIP, step) for step in (first, second, third))
    (y,) = outcomes(Program("replace", (joint("x"),), (joint("y"),), sweeps), x)
    np.testing.assert_allclose(y, 2 * x)


def test_finish_sees_the_sum_of_the_roots(rng):
    x = rng.standard_normal((2, N))

    def finish(site):
        site.write("total", 0, site.children["x"])

    outputs = (joint("y"), Argument("total", ()))
    y, total = outcomes(
        Program("finish", (joint("x"),), outputs, (Sweep(TIP_TO_BASE, gather),), finish=finish), x
    )
    np.testing.assert_allclose(total, x.sum(-1), rtol=1e-13)
    np.testing.assert_allclose(y[..., ROOTS].sum(-1), total, rtol=1e-13)


def test_constants_travel_too(rng):
    """Messages may be plain numbers: how many bodies hang below, how deep each lies."""
    x = rng.standard_normal(N)

    def depth(site):
        site.keep(depth=[site.parent["depth"][0] + 1.0])
        site.write_joint("deep", site.kept["depth"])

    def size(site):
        number = [1.0 + site.children.get("size", [0.0])[0]]
        site.send(size=number)
        site.write_joint("below", number)

    sweeps = (Sweep(BASE_TO_TIP, depth), Sweep(TIP_TO_BASE, size))
    outputs = (joint("deep"), joint("below"))
    deep, below = outcomes(
        Program("sizes", (joint("x"),), outputs, sweeps, lambda site: site.keep(depth=[0.0])), x
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


def test_marks_reach_their_bodies_alone(rng):
    x, marks = rng.standard_normal((2, N)), {3: (2.0,), 7: (-1.0, 5.0)}

    def step(site):
        factor = sum(site.mark) if site.mark else 0.0
        site.write_joint("y", [factor * value for value in site.of("x")])

    (y,) = outcomes(
        Program("marks", (joint("x"),), (joint("y"),), (Sweep(BASE_TO_TIP, step),), marks=marks), x
    )
    np.testing.assert_allclose(y, x * np.array([sum(marks.get(k, ())) for k in range(N)]))


def test_whole_inputs_reach_the_world_and_the_steps(rng):
    x, w = rng.standard_normal((2, N)), rng.standard_normal((2, 2))

    def step(site):
        site.keep(w=site.parent["w"])
        site.write_joint("y", [site.of("x")[0] * site.kept["w"][0] + site.inputs["w"][1]])

    inputs = (joint("x"), Argument("w", (2,)))
    program = Program(
        "whole",
        inputs,
        (joint("y"),),
        (Sweep(BASE_TO_TIP, step),),
        lambda site: site.keep(w=site.inputs["w"]),
    )
    (y,) = outcomes(program, x, w)
    np.testing.assert_allclose(y, x * w[:, :1] + w[:, 1:], rtol=1e-14)


def test_absent_inputs_are_zeros(rng):
    def step(site):
        assert site.of("v") == [0.0]
        site.write_joint("y", [a + b for a, b in zip(site.of("x"), site.of("v"), strict=True)])

    x = rng.standard_normal((1, N))
    (y,) = outcomes(Program("absent", (joint("x"),), (joint("y"),), (Sweep(BASE_TO_TIP, step),)), x)
    assert np.array_equal(y, x)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [(None, [1.0], [1.0]), ([1.0, 2.0], [3.0, 4.0], [4.0, 6.0]), (2.0, 3.0, 5.0)],
)
def test_merge(a, b, total):
    assert merge(a, b) == total


def test_what_is_read_off_results_runs_in_loops_unless_joints_write_them():
    """A pose, of the entries that one body writes, is a loop; of joints' own parts a step does not know the places."""
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
        roll(gravity.program.read(gravity.program.outputs, lambda found: {}), gravity.tree)
