"""Rolled kernels: loops over classes of links give what straight code gives, on every kind of
tree."""

import numpy as np
import pytest

from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.ir.loop_tables import LoopTables
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import trace_loops
from psiphi.compiler.sweeps.tree_loop import trace_tape
from psiphi.robot.bundled_robots import chain
from psiphi.robot.catalogue.catalogue import CATALOGUE, quantity_program
from tests import zoo
from tests.backends.kernels import ufunc
from tests.compiler.sweeps.runs import arguments

MODELS = {
    "every kind": lambda: zoo.chain("every_kind", zoo.KINDS, seed=3, armature=True),
    "many roots": lambda: zoo.random_tree(5, 9, branching=0.7, forest=True),
}
REQUESTS = [
    ("forward_dynamics", ("tool", "elbow", "tool"), "world"),
    ("inverse_dynamics", ("elbow", "tool"), "frame"),
    ("mass_solve", (), "world"),
    ("factor_product", (), "world"),
    ("frame_pose", ("elbow",), "world"),
    ("frame_velocity", ("tool",), "world"),
    ("jacobian", ("tool",), "frame"),
    ("energy", (), "world"),
    ("center_of_mass", (), "world"),
    ("momentum", (), "world"),
    ("centroidal_momentum", (), "world"),
    ("kinetic_energy", (), "world"),
]


def tupled(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("request_", REQUESTS, ids=[name for name, *_ in REQUESTS])
@pytest.mark.parametrize("model", MODELS)
def test_rolled_kernels_mean_their_programs(model, request_):
    """In blocks of lanes with a tail, and one at a time."""
    robot = MODELS[model]()
    name, frames, axes = request_
    tree = frame_tree(robot, CATALOGUE[name].movable_inertia)
    program = quantity_program(name, tree, frames, axes)
    function = ufunc(trace_loops(program, tree), 4)
    arrays = arguments(program, robot, size=(6,))
    meant = interpret(program, tree, *arrays)
    for x, y in zip(tupled(function(*arrays)), meant, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13 * max(1.0, np.abs(y).max()))
    for x, y in zip(tupled(function(*(a[2] for a in arrays))), meant, strict=True):
        np.testing.assert_allclose(x, y[2], rtol=0, atol=1e-13 * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("char", "df")
def test_one_kernel_serves_a_long_chain(char):
    """Code for a handful of classes, tables for the rest; the frame no longer fits the stack."""
    n = 150
    tree = frame_tree(chain(n, seed=3))
    programs = [
        quantity_program(f"{x}_dynamics", tree, (), "world") for x in ("forward", "inverse")
    ]
    forward, inverse = (ufunc(trace_loops(p, tree), 8, char) for p in programs)
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-1, 1, (11, n)).astype(char) for _ in range(3))
    tau = inverse(q, v, a)
    meant = interpret(programs[1], tree, q, v, a)[0]
    np.testing.assert_allclose(
        tau, meant, rtol=0, atol=(1e-11 if char == "d" else 1e-2) * np.abs(meant).max()
    )
    if char == "d":
        np.testing.assert_allclose(
            forward(q, v, tau), interpret(programs[0], tree, q, v, tau)[0], rtol=0, atol=1e-6
        )


def test_rolled_and_straight_agree():
    tree = frame_tree(MODELS["many roots"]())
    program = quantity_program("forward_dynamics", tree, (), "world")
    arrays = arguments(program, tree.model, size=(5,))
    straight, rolled = (
        ufunc(code, 2)(*arrays) for code in (trace_tape(program, tree), trace_loops(program, tree))
    )
    np.testing.assert_allclose(rolled, straight, rtol=0, atol=1e-13 * np.abs(straight).max())


def test_outputs_nobody_writes_are_zero():
    """A Jacobian's columns off the frame's path: whatever the frame held before."""
    robot = MODELS["many roots"]()
    tree = frame_tree(robot)
    program = quantity_program("jacobian", tree, ("elbow",), "world")
    function = ufunc(trace_loops(program, tree), 4)
    path = tree.path_to(robot.frame("elbow").body)
    off = [
        i
        for k, j in enumerate(robot.joints)
        if k not in path
        for i in range(j.v_slice.start, j.v_slice.stop)
    ]
    q = arguments(program, robot, size=(9,))[0]
    for _ in range(2):
        J = function(q)
        assert off and not J[..., off].any() and np.abs(J).sum() > 0


def test_tables_are_the_trees():
    robot = MODELS["many roots"]()
    tree = frame_tree(robot)
    rolled = trace_loops(quantity_program("forward_dynamics", tree, (), "world"), tree)
    tables, n = LoopTables(rolled, "f"), len(robot.joints)
    parent, first, q, v = tables.integers[: 4 * n].reshape(4, n).tolist()
    assert parent == [n if p < 0 else p for p in robot.parent]
    assert q == [j.q_slice.start for j in robot.joints] and v == [
        j.v_slice.start for j in robot.joints
    ]
    assert first == rolled.param_start and tables.params.dtype == np.float32
    assert tables.integers.size == 4 * n + 2 * n * len(rolled.sweeps)
