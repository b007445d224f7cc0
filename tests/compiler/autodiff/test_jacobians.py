"""Derivatives of dynamics by composites: the same numbers as those of the tape, on every joint, for
fewer operations."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.passes import code, straight_code
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.builder.builder import Builder
from tests import zoo

CONSTANT = [kind for kind in zoo.KINDS if kind != "universal"]
TREES = {
    "chain": zoo.chain(
        "chain", ["revolute", "spherical", "prismatic", "planar"], seed=1, armature=True
    ),
    "screws": zoo.chain("screws", ["cylindrical", "helical", "continuous"], seed=2),
    "floating": zoo.free_tree(4, seed=3),
    "forest": zoo.random_tree(11, 6, CONSTANT, forest=True),
    "loaded root": zoo.chain("rotors", ["free", "revolute"], seed=5, armature=True),
}


def numbers(lines, robot, seed):
    """Every result of some code at a random state."""
    rng = np.random.default_rng(seed)
    given = [
        robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.size)
        for arg in lines.program.inputs
    ]
    values = evaluate(
        lines.tape, [node for *_, node in lines.stores], lambda place, i: given[int(place)][i]
    )
    return dict(
        zip(
            ((number, index) for number, index, _ in lines.stores),
            np.array(values, float),
            strict=True,
        )
    )


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    ("name", "kind", "by"),
    [
        ("forward_dynamics", "jacobian", ("q", "v", "tau")),
        ("forward_dynamics", "jacobian", ("v",)),
        ("forward_dynamics", "jvp", ("q", "v", "tau")),
        ("forward_dynamics", "jvp", ("v",)),
        ("forward_dynamics", "vjp", ("q", "v", "tau")),
        ("forward_dynamics", "vjp", ("tau",)),
        ("inverse_dynamics", "jacobian", ("q", "v", "a")),
        ("bias", "jacobian", ("q", "v")),
        ("gravity", "jacobian", ("q",)),
    ],
)
def test_they_are_the_derivatives_of_the_tape(tree, name, kind, by):
    robot = pp.Robot.of(TREES[tree])
    request = getattr(robot.function(name), kind)(*by).source.request
    made = [straight_code(sweeps, tree) for _, sweeps, tree in request.analytic_programs()]
    assert made, "it has sweeps of its own"
    expected = numbers(request.tape_code(code(request.request)), robot, 0)
    size = 1.0 + max(map(abs, expected.values()))
    for lines in made:
        got = numbers(lines, robot, 0)
        assert got.keys() == expected.keys()
        assert max(abs(got[key] - x) for key, x in expected.items()) < 1e-9 * size


@pytest.mark.parametrize("tree", TREES)
def test_the_coriolis_matrix_by_composites(tree):
    """C as its letters define it, and dM/dt - 2 C skew."""
    robot = pp.Robot.of(TREES[tree])
    s, q, v = (
        robot.operators,
        robot.random(seed=2),
        np.random.default_rng(2).standard_normal(robot.nv),
    )
    assert "Γ" in robot.function("coriolis").explain()
    np.testing.assert_allclose(robot.coriolis(q, v), s.coriolis.dense(q, v), atol=1e-10)


def test_what_is_written_alike_is_recognised_and_nothing_else():
    robot = pp.Robot.of(TREES["chain"])
    s, u = robot.operators, pp.vector("u")
    needs = s.M @ s.phi.T @ (s.H.T @ u + s.a) + s.b
    bias = s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)

    def own(e, kind="jacobian"):
        return list(
            pp.function(e)
            .compiled_form.derivative_by(kind, ("q",))
            .source.request.analytic_programs()
        )

    assert (
        own(s.H @ s.phi @ needs + s.rotor @ u)
        and own(s.mass.inv @ (u - bias))
        and own(s.mass.inv @ (u - bias), "vjp")
    )
    assert not own(s.H @ s.phi @ needs), "without its rotors"
    assert (
        not own(2 * bias)
        and not own(s.mass @ u)
        and not own(s.mass.inv @ u)
        and not own(s.mass.inv @ (u + bias))
    )
    bent = pp.Robot.of(zoo.chain("bent", ["universal", "revolute"], seed=4))
    request = bent.function("forward_dynamics").jacobian("q").source.request
    assert list(request.analytic_programs()), "a universal joint is two hinges"


def test_the_way_that_costs_less_is_taken():
    """Of many short arms the tape's: each joint moves one body alone."""
    builder, rng = Builder("hedgehog"), np.random.default_rng(0)
    for k in range(14):
        zoo.random_body(builder, rng, f"b{k}")
        zoo.random_joint(builder, rng, "revolute", "world", f"b{k}")
    request = (
        pp.Robot.of(builder.build()).function("forward_dynamics").jacobian("q", "v").source.request
    )
    costs = [(lines.count.flops, lowered is None) for lowered, lines in request.candidates()]
    assert min(costs) == (code(request).count.flops, True) and not all(tape for _, tape in costs)


def test_a_steady_drift_of_a_free_base_moves_no_joint():
    """Galileo: by the base's linear velocity only its own acceleration changes, -w x, and no
    operation is spent on the rest."""
    robot = pp.Robot.of(TREES["floating"])
    slopes = robot.function("forward_dynamics").jacobian("v").source.code
    lines = {
        index for _, index, node in slopes.stores if slopes.tape.nodes[node][:2] != (Op.CONST, 0.0)
    }
    drift = {(i, j) for i, j in (divmod(index, robot.nv) for index in lines) if j in (3, 4, 5)}
    assert drift == {(3 + i, 3 + j) for i in range(3) for j in range(3) if i != j}
    q, v, tau = robot.random(seed=1), *np.random.default_rng(1).standard_normal((2, robot.nv))
    A = robot.function("forward_dynamics").jacobian("v")(q, v, tau)[:, 3:6]
    np.testing.assert_array_equal(A[3:6], -np.cross(v[:3], np.eye(3)).T)


FLOPS = {  # d FD/d(q, v), d ID/d(q, v), C, and value and vjp of FD as a multiple of its value
    "ur5": (2601, 1204, 677, 2.15),
    "iiwa14": (4101, 2131, 1068, 2.1),
    "panda": (7290, 3742, 2031, 2.0),
    "anymal_c": (15849, 6516, 3689, 1.95),
    "g1": (65534, 23895, 13947, 1.9),
}


@pytest.mark.parametrize("name", FLOPS)
def test_what_they_cost(name):
    robot, (forward, inverse, coriolis, gradient) = pp.load(name), FLOPS[name]
    fd = robot.function("forward_dynamics")
    flops = lambda f: f.source.code.count.flops  # noqa: E731
    assert flops(fd.jacobian("q", "v")) <= forward
    assert flops(robot.function("inverse_dynamics").jacobian("q", "v")) <= inverse
    assert flops(robot.function("coriolis")) <= coriolis
    for kind in (fd.vjp, fd.jvp):
        assert flops(kind("q", "v", "tau")) <= gradient * flops(fd)
