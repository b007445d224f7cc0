"""`interpret`, `trace_tape` and `trace_loops` agree on the whole catalogue."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import trace_loops
from psiphi.compiler.sweeps.tree_loop import trace_tape
from psiphi.robot.bundled_robots import chain
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests import zoo
from tests.compiler.sweeps.runs import arguments, program_of, requests, run_rolled, run_tape

ZOO = [
    *zoo.ZOO,
    ("many_roots", lambda: zoo.random_tree(5, 9, branching=0.7, forest=True, armature=True)),
]
ROBOTS = pytest.mark.parametrize("make", [thunk for _, thunk in ZOO], ids=[name for name, _ in ZOO])


def close(ours, meant, label, tolerance: float = 1e-13) -> None:
    for x, y in zip(ours, meant, strict=True):
        scale = max(1.0, np.abs(y).max(initial=0.0))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale, err_msg=str(label))


def agree(model, tolerance: float = 1e-13) -> None:
    for request in requests():
        tree = frame_tree(model, CATALOGUE[request[0]].movable_inertia)
        program = program_of(tree, request)
        inputs = arguments(program, model)
        meant = interpret(program, tree, *inputs)
        close(
            run_tape(trace_tape(program, tree), *inputs), meant, ("trace_tape", request), tolerance
        )
        if program.can_loop:
            close(
                run_rolled(trace_loops(program, tree), *inputs), meant, ("roll", request), tolerance
            )


@ROBOTS
def test_lowerings_agree(make):
    agree(make())


@settings(max_examples=6, phases=[Phase.generate])  # shrinking would take minutes
@given(model=zoo.trees(max_bodies=6))
def test_lowerings_agree_on_random_trees(model):
    agree(model)


def test_interpret_broadcasts():
    model = zoo.planar_arm(3)
    tree = frame_tree(model)
    program = program_of(tree, ("inverse_dynamics", (), "world"))
    rng = np.random.default_rng(0)
    q, v, a = model.random(rng, (4, 1)), rng.standard_normal((1, 5, 3)), rng.standard_normal(3)
    (tau,) = interpret(program, tree, q, v, a)
    assert tau.shape == (4, 5, 3)
    np.testing.assert_allclose(
        tau[2, 3], interpret(program, tree, q[2, 0], v[0, 3], a)[0], rtol=1e-13
    )


# -- how large robots stay small -------------------------------------------------------------------


def rolled(model, name: str):
    tree = frame_tree(model, CATALOGUE[name].movable_inertia)
    return trace_loops(program_of(tree, (name, (), "world")), tree)


def sizes(program) -> tuple:
    """Memory a body, and the operations of each class of each sweep."""
    return (
        program.record_size,
        program.inbox_size,
        [[c.count for c in stage.classes] for stage in program.sweeps],
    )


@pytest.mark.parametrize(
    "name", ["forward_dynamics", "inverse_dynamics", "mass_solve", "center_of_mass"]
)
def test_code_does_not_grow_with_the_robot(name):
    """Equal links are one class, unequal ones a few."""
    short, long, mixed = (
        rolled(chain(n, equal=equal), name) for n, equal in ((20, True), (40, True), (60, False))
    )
    assert sizes(short) == sizes(long)
    assert all(len(stage.classes) <= 8 for stage in mixed.sweeps)


def test_every_body_is_in_every_sweep_once():
    program = rolled(zoo.random_tree(8, 9, branching=0.7, forest=True), "forward_dynamics")
    outward = list(range(9))
    assert [stage.order for stage in program.sweeps] == [outward, outward[::-1], outward]
    for stage in program.sweeps:
        assert [stage.class_ids.count(i) for i in range(len(stage.classes))] == [
            c.body_count for c in stage.classes
        ]


def test_sines_and_cosines_are_computed_once():
    """A later sweep reads those of an earlier one; the count knows."""
    model = zoo.chain("arm", ["revolute"] * 5, seed=1)
    tree = frame_tree(model)
    program = program_of(tree, ("forward_dynamics", (), "world"))
    assert (
        trace_tape(program, tree).count.trig
        == trace_loops(program, tree).count.trig
        == 2 * model.nv
    )


def test_counts_are_of_what_runs():
    """A rolled count is the sum over bodies of what their class does, accumulation included."""
    program = rolled(zoo.random_tree(7, 10, branching=1.0), "mass_product")
    done = dict(mul=0, add=0, div=0, sqrt=0, trig=0)
    for stage in program.sweeps:
        for number in stage.class_ids:
            cls = stage.classes[number]
            for name, value in vars(cls.tape.count(cls.outputs, cls.loads)).items():
                done[name] += value
            done["add"] += sum(accumulate for *_, accumulate in cls.stores)
    assert vars(program.count) == done and done["mul"] > 0
