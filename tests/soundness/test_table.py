"""What once went wrong in expressions that users wrote: each row of the list of defects is a test,
and stays one."""

from __future__ import annotations

import time

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.operators import Operators
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.smoother import Smoother
from tests.children import python
from tests.soundness.oracle import Oracle, Value
from tests.soundness.recipes import read, text, walk
from tests.soundness.robots import build
from tests.zoo import random_tree

UR5 = pp.load("ur5")
s = UR5.operators
q = UR5.random(seed=0)
BATCH = UR5.random(seed=1, size=3)
J1, J2 = s.J("tool"), s.J("wrist_1_joint")
v, tau, y = pp.vector("v"), pp.vector("tau"), pp.vector("y", "link")
BUDGET = 5.0


def right(e, robot=UR5, swept: bool = False, rtol: float = 1e-9, budget: float = BUDGET) -> None:
    """Compiled, batched, dense and the oracle agree; `swept`: and it became sweeps. `e` is an
    expression, or its source."""
    node = read(e if isinstance(e, str) else repr(e))
    e = eval(e, {"s": robot.operators, "pp": pp}) if isinstance(e, str) else e
    f = pp.function(e, budget)
    assert not (swept and f.dense), f"{e} found no sweeps"
    rng = np.random.default_rng(3)
    states, rates = robot.random(seed=5, size=3), rng.standard_normal((3, robot.nv))
    lengths = {
        "joint": robot.nv,
        "link": 6 * len(robot.bodies),
        "motion": 6 * len(robot.bodies),
        "force": 6 * len(robot.bodies),
    }
    spaces = {x.args[0]: x.args[1] for x in walk(node) if x.op == "vector"}
    given = {
        name: rng.standard_normal((3, lengths.get(space, 6))) for name, space in spaces.items()
    }
    names = [argument.name for argument in f.equation.arguments()[0]][1:]
    got = f(states, *(rates if name == "v" else given[name] for name in names))
    for i in range(3):
        here = {name: x[i] for name, x in given.items() if name != "v"}
        want = Oracle(robot, states[i], rates[i], here).value(node)
        assert isinstance(want, Value)
        want = want.m.reshape(np.shape(got[i]))
        scale = np.abs(want).max() + 1e-12
        assert np.abs(got[i] - want).max() <= rtol * scale, (
            f"{e}: off by {np.abs(got[i] - want).max()}"
        )
        dense = e.dense(states[i], rates[i], **here)
        assert np.abs(dense - want).max() <= rtol * scale, f"{e}: .dense"


@pytest.mark.parametrize(
    "e",
    [
        "s.J('tool') - s.J('wrist_1_joint')",
        "s.J('tool') + s.J('wrist_1_joint')",
        "s.J('tool') - s.J('tool', axes='frame')",
        "(s.J('tool') - s.J('world')) @ s.mass",
        "s.J('tool').dot() - s.J('wrist_1_joint').dot()",
        "s.J('tool') @ pp.vector('v', 'joint') - s.J('wrist_1_joint') @ pp.vector('v', 'joint')",
    ],
)
def test_sums_of_jacobians(e):
    right(e, swept=True)


@pytest.mark.parametrize(
    "e",
    [
        "s.J('tool', axes='frame').dot('inertial')",
        "(s.J('tool', axes='frame').T - s.J('wrist_1_joint').T).dot('inertial')",
        "(s.J('tool', axes='frame') @ s.mass.inv @ s.J('tool', axes='frame').T).dot('inertial')",
    ],
)
def test_inertial_rates_of_frames_in_their_own_axes(e):
    """Those of components in the world's axes, turned back."""
    right(e)


def test_sums_of_jacobians_by_hand():
    """The first of all: J1 - J2 is not J1."""
    f = pp.function(J1 - J2)
    assert np.allclose(f(BATCH), J1.dense(BATCH) - J2.dense(BATCH), rtol=0, atol=1e-12)
    assert np.allclose(pp.function(J1 - s.J("world"))(q), J1.dense(q))


FRAMES = (
    "tool",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
    "elbow_joint",
    "shoulder_lift_joint",
)


@pytest.mark.parametrize("count", [2, 3])
def test_the_identity_of_frame_space_is_as_large_as_it(count):
    """It stopped at nv."""
    J = s.J(*FRAMES[:count])
    right(s.I + J @ s.mass.inv @ J.T)
    right(2 * s.I - J @ s.mass.inv @ J.T)
    right(s.I + J @ J.T)


NAMES = ("y", "V", "v_", "f", "alpha", "tau", "out", "x")


@pytest.mark.parametrize("name", NAMES)
def test_no_dependence_on_a_name(name):
    x = pp.vector(name, "link")
    right(s.phi.T.inv @ x)
    right((s.I + s.tau_bar.T) @ x)
    right((s.I + s.E_phi.T) @ x)
    right((s.I + s.tau_bar) @ x)
    right(s.phi @ x)


@pytest.mark.parametrize("name", ["out", "column", "body", "y"])
def test_matrices_column_by_column_do_not_depend_on_a_name(name):
    """Neither the results nor the vector of a column go by names of the user's."""
    x, f = pp.vector(name), pp.vector(name, "frame")
    J = s.J("tool", axes="frame")
    for e in (J @ x - J2 @ x, J.T @ f - J2.T @ f):
        given = np.arange(1.0, 7.0)
        d, slope = pp.derivative(e, "q"), pp.function(e).jacobian("q")
        np.testing.assert_allclose(
            pp.function(d)(BATCH, given), slope(BATCH, given), rtol=1e-11, atol=1e-11
        )
        np.testing.assert_allclose(
            d.dense(q, **{name: given}), slope(q, given), rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize("space", ["motion", "force"])
def test_vectors_that_say_what_they_are(space):
    x = pp.vector("y", space)
    fits, clashes = (s.phi.T, s.phi) if space == "motion" else (s.phi, s.phi.T)
    right(fits @ x)
    with pytest.raises(pp.StateError):
        clashes @ x


@pytest.mark.parametrize(
    "write",
    [
        lambda: s.phi + s.phi.T,
        lambda: (s.phi + s.phi.T) @ y,
        lambda: s.phi @ s.phi.T,
        lambda: s.H @ s.H.T,
        lambda: s.psi.T + 2 * s.P_plus,
        lambda: (s.psi.T + 2 * s.P_plus) @ y,
        lambda: s.I + s.M,
        lambda: s.phi @ s.a,
        lambda: s.P @ s.b,
        lambda: y.T @ y,
        lambda: s.a + s.b,
    ],
)
def test_forces_do_not_meet_motions(write):
    with pytest.raises(pp.StateError) as refused:
        write()
    assert refused.value.remedy


@pytest.mark.parametrize("space", ["joint", "frame"])
def test_torques_may_meet_rates(space):
    """In joint and frame space they do: J*J and C C* are what people write."""
    right(s.coriolis @ s.coriolis.T if space == "joint" else J1 @ J1.T)


def test_one_name_is_one_vector():
    with pytest.raises(pp.StateError):
        pp.function(s.H @ pp.vector("x", "force") + pp.vector("x", "joint"))
    for name in ("a", "b", "a_local", "b_local", "g"):
        with pytest.raises(pp.StateError):
            s.phi @ pp.vector(name, "link")
    with pytest.raises(pp.StateError):
        s.mass @ pp.vector("couple")
    right(s.mass @ pp.vector("a"))  # over joints it is free


@pytest.mark.parametrize(
    "e", [J1 @ J1.T, J1 @ J2.T, J1.T @ J2, J1.T @ J1, J1 @ s.D @ J1.T], ids=str
)
def test_products_of_jacobians(e):
    right(e, swept=True)


@pytest.mark.parametrize("e", [(J1 @ J1.T).inv, (J1.T @ J1).inv, (s.I + J1 @ J2.T).inv], ids=str)
def test_inverses_of_products_of_jacobians(e):
    right(e, rtol=1e-6)


BOTH, TURNED = s.J("tool", "wrist_1_joint"), s.J("wrist_1_joint", "tool")


@pytest.mark.parametrize(
    "e",
    [
        s.I + J1 @ J2.T,
        J1 @ J1.T + J2 @ J2.T,
        J1 @ s.mass.inv @ J1.T - 2 * J2 @ J2.T,
        s.I + J2 @ s.mass.inv @ J2.T + J1 @ J1.T,
        (J1 - J2) @ s.mass.inv @ (J1 - J2).T,
        BOTH @ TURNED.T + TURNED @ BOTH.T,
        s.I - BOTH @ TURNED.T,
        s.I + BOTH @ BOTH.T + BOTH @ s.mass.inv @ BOTH.T,
        J1 - 2 * J2,
    ],
    ids=str,
)
def test_sums_of_words_between_different_frames(e):
    """Each entry is a sum whose words meet at different bodies."""
    right(e)


def test_derive_on_the_command_line():
    done = python("-m", "psiphi", "derive", "J @ J.T", "--robot", "ur5")
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "internal error" not in said, said


def test_what_takes_motions_takes_a_given_alpha():
    """The last line of every FD algorithm: a = nu - K* alpha."""
    alpha = pp.vector("alpha", "link")
    for e in (s.K.T @ alpha, s.E_psi.T @ alpha, s.psi.T.inv @ alpha, tau - s.K.T @ alpha):
        right(e)


ALONE, FIVE = (
    [("universal", -1, True)],
    [("universal", -1, True), *[("revolute", k, True) for k in range(4)]],
)


@pytest.mark.parametrize("joints", [ALONE, FIVE], ids=["one body", "five"])
def test_rewriting_has_a_budget(joints):
    robot = build(joints)
    o = robot.operators
    start = time.process_time()
    e = (o.I + o.coriolis @ o.coriolis.T).inv @ pp.vector("v")
    right(e, robot, rtol=1e-7)
    assert time.process_time() - start < BUDGET + 5.0


def test_the_budget_can_be_set():
    o = build(FIVE).operators
    e = (o.I + o.coriolis @ o.coriolis.T).inv @ pp.vector("v")
    start = time.process_time()
    try:
        pp.function(e, budget=0.5)
        pp.prove(e, e, budget=0.5)
    except pp.Error as error:
        assert error.remedy
    assert time.process_time() - start < 4.0


def test_parts_share_one_budget():
    """Expressions of which no part can be rewritten within the budget: each part once had a budget
    of its own, a part could be its own part, and a sum could have the part I, which has no size."""
    o = build(ALONE).operators
    A, B = o.D.dot() @ o.D.dot() @ o.coriolis, o.H @ o.G.dot() @ o.mass.inv @ o.mass.dot()
    robot, x = build(ALONE), pp.vector("x")
    start = time.process_time()
    right((o.I + A @ A.T).inv @ x, robot, rtol=1e-7)
    right((o.I + B @ B.T).inv @ x, robot, rtol=1e-7, budget=1.0)
    right((o.I + A @ A.T + B).T @ (o.I + o.I) @ x, robot, rtol=1e-7, budget=0.1)
    assert time.process_time() - start < BUDGET + 5.0


HINGES = build([("revolute", -1, False), ("revolute", 0, False), ("prismatic", 1, False)]).operators


@pytest.mark.parametrize(
    "claim",
    [
        lambda o: (o.P + 0 * o.tau_bar.inv, 0 * o.P),
        lambda o: (o.tau_bar.inv, 7 * o.tau_bar.inv),
        lambda o: ((o.G @ o.H).inv, o.I),
        lambda o: ((o.H.T @ o.D.inv @ o.H).inv, 2 * (o.H.T @ o.D.inv @ o.H).inv),
        lambda o: (o.E_phi.inv, 0 * o.phi),
        lambda o: (o.psi @ o.tau_bar.inv @ o.tau_bar, 3 * o.psi),
    ],
)
def test_no_proof_through_an_inverse_that_cannot_exist(claim):
    try:
        proof = pp.prove(*claim(HINGES))
    except pp.Error as error:
        assert error.remedy
    else:
        assert not proof


@pytest.mark.parametrize(
    "zero",
    [lambda o: 0 * o.mass, lambda o: 0 * o.I, lambda o: o.mass - o.mass],
    ids=["0 A", "0 I", "A - A"],
)
def test_zero_has_no_inverse(zero):
    with pytest.raises(pp.Error) as refused:
        pp.function(zero(HINGES).inv)(np.zeros(3))
    assert refused.value.remedy


def test_the_first_false_proof():
    """P + 0 τ̄⁻¹ = 0 P was proved."""
    o = HINGES
    try:
        e = o.P + 0 * (o.P @ o.tau_bar.T.inv)
        proof = pp.prove(e, 0 * o.P)
    except pp.Error as error:
        assert error.remedy
    else:
        assert not proof


def test_a_proof_says_what_it_assumes():
    o = build([("revolute", -1, False)] + [("revolute", k, False) for k in range(6)]).operators
    J = o.J("tool")
    Lambda = (J @ o.mass.inv @ J.T).inv
    N = o.I - o.mass.inv @ J.T @ Lambda @ J
    proof = pp.prove(N @ N, N)
    assert proof and [str(e) for e in proof.assumes] == [str(J @ o.mass.inv @ J.T)]
    assert "assuming" in str(proof)
    assert not pp.prove(
        o.mass, (o.I + o.H @ o.phi @ o.K) @ o.D @ (o.I + o.H @ o.phi @ o.K).T
    ).assumes


@pytest.mark.parametrize("seed", range(20))
def test_singular_in_every_posture_is_refused(seed):
    """(J M⁻¹ J*)⁻¹ of an arm of three joints: not for some arms, for all."""
    o = build(
        [("revolute", -1, False), ("revolute", 0, False), ("revolute", 1, False)], seed=seed
    ).operators
    J = o.J("tool")
    with pytest.raises(pp.Error) as refused:
        f = pp.function((J @ o.mass.inv @ J.T).inv)
        f(np.zeros(3))
    assert refused.value.remedy


def test_singular_postures_are_nan_in_a_batch():
    """A six-joint arm stretched out: that element is NaN, its neighbours are not; `.dense` says so
    by name."""
    arm = pp.load("ur5")
    o = arm.operators
    J = o.J("tool")
    e = (J @ o.mass.inv @ J.T).inv
    batch = np.array([arm.random(seed=0), np.zeros(6), arm.random(seed=1)])
    found = pp.function(e)(batch)
    assert np.isfinite(found[[0, 2]]).all() and np.isnan(found[1]).any()
    with pytest.raises(pp.SingularError):
        e.dense(np.zeros(6))


ARM, PAIR = (
    [("revolute", k - 1, k == 1) for k in range(4)],
    [("universal", -1, False), ("planar", 0, True)],
)


@pytest.mark.parametrize("joints", [ARM, PAIR], ids=["arm", "pair"])
def test_the_kalman_form_is_that_of_the_paper(joints):
    """S2 (8.2)-(8.8), with a and b of either convention: e⁻ = T - H z⁻, e⁺ = D⁻¹ e⁻, moving and
    with gravity."""
    robot = build(joints, seed=5)
    at, rates = robot.random(seed=2), np.random.default_rng(2).standard_normal(robot.nv)
    torque = np.random.default_rng(3).standard_normal(robot.nv)
    found = robot.forward_dynamics_details(at, rates, torque, "kalman")
    o = Oracle(robot, at, rates)
    wanted = [_innovations(o, torque, *pair) for pair in (("a", "b"), ("a_local", "b_local"))]
    assert any(np.allclose(found["innovations"], e, rtol=1e-9, atol=1e-9) for e in wanted)
    assert np.allclose(found["residuals"], np.linalg.solve(o["D"].m, found["innovations"]))
    assert np.allclose(found["a"], robot.forward_dynamics(at, rates, torque))


def _innovations(o: Oracle, torque, eta: str, xi: str) -> np.ndarray:
    """z⁻ = Σ φ z⁺ + ξ, z⁺ = z⁻ + G e⁻ + P⁺ η: as matrices, tip to base."""
    E, H, G, P_plus = (o[x].m for x in ("E_phi", "H", "G", "P_plus"))
    z = np.zeros(len(E))
    for _ in range(o.count):
        e = torque - H @ z
        z = E @ (z + G @ e + P_plus @ o[eta].m[:, 0]) + o[xi].m[:, 0]
    return torque - H @ z


def test_a_stage_without_outputs_is_a_missing_measurement():
    """Gaussian conditioning on what is there."""
    A, Q, C, R = (
        np.array([[1.0, 0.1], [0.0, 1.0]]),
        0.1 * np.eye(2),
        np.array([[1.0, 0.0]]),
        np.array([0.5]),
    )
    none = np.zeros((0, 2))
    model = sequence([A, A], [Q] * 3, [C, none, C], [R, np.zeros(0), R])
    estimate = Smoother(model)(
        [np.array([1.0]), np.zeros(0), np.array([-0.5])]
    )  # last instant first
    # x1, x2, x3 stacked: covariance and outputs by hand
    T = np.block(
        [[np.eye(2), np.zeros((2, 4))], [A, np.eye(2), np.zeros((2, 2))], [A @ A, A, np.eye(2)]]
    )
    S = T @ np.kron(np.eye(3), Q) @ T.T
    H = np.zeros((2, 6))
    H[0, 0] = H[1, 4] = 1.0
    x = S @ H.T @ np.linalg.solve(H @ S @ H.T + 0.5 * np.eye(2), np.array([-0.5, 1.0]))
    assert np.allclose(np.concatenate(estimate.smoothed[::-1]), x)


@pytest.mark.parametrize("consistent", [True, False])
def test_more_noiseless_outputs_than_states_are_refused(consistent):
    H = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0 if consistent else 2.0]])
    with pytest.raises(pp.Error) as refused:
        Smoother(LinearTree([Stage(-1, np.zeros((0, 2)), np.eye(2), H)]))(
            [np.array([1.0, 2.0, 3.0])]
        )
    assert refused.value.remedy


def test_numbers_do_not_care_on_which_side_their_star_is():
    assert pp.prove(tau.T @ v, v.T @ tau)
    assert pp.prove(v.T @ s.mass @ tau, tau.T @ s.mass @ v)


def test_the_two_conventions_of_bias_are_equal():
    left = s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)
    right_ = s.H @ s.phi @ (s.M @ s.phi.T @ s.a_local + s.b_local)
    assert pp.prove(left, right_)


def test_a_factor_next_to_one_has_a_counterexample():
    proof = pp.prove(s.P, (1 + 1e-12) * s.P)
    assert not proof and proof.counterexample is not None


@pytest.mark.parametrize(
    "claim",
    [
        "s.mass = s.D",
        "s.phi = s.psi",
        "s.phi.T @ s.a = s.psi.T @ s.a",
        "s.J('tool') = 2 * s.J('tool')",
    ],
)
def test_a_robot_without_joints(claim):
    """Every claim about nothing holds, or is not known; none is refuted, and nothing crashes."""
    o = build([]).operators
    left, right_ = (eval(side, {"s": o}) for side in claim.split(" = "))
    assert pp.prove(left, right_).counterexample is None


@pytest.mark.parametrize(
    "source",
    ["s.a", "s.b", "s.a_local", "s.b_local", "s.g", "s.couple", "s.H @ s.phi @ s.b", "s.mass.inv"],
)
def test_values_on_a_robot_without_joints(source):
    robot = build([])
    e = eval(source, {"s": robot.operators})
    assert e.dense(np.zeros(0), np.zeros(0)).size == 0
    assert text(read(source)) == source


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mass", "mass.inv"])
def test_large_trees_are_quick(name):
    """81 bodies took a minute."""
    model = random_tree(1, 81, kinds=["revolute"])
    o = Operators(model)
    start = time.process_time()
    e = o.mass if name == "mass" else o.mass.inv
    f = pp.function(e)
    at = model.random(seed=0)
    found = f(at)
    assert time.process_time() - start < 15.0
    assert np.allclose(found, e.dense(at), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_coriolis_of_a_humanoid_is_quick():
    """nv = 38 took 10 s."""
    model = random_tree(2, 33, kinds=["revolute"])
    o, start = Operators(model), time.process_time()
    f = pp.function(o.coriolis)
    at, rates = model.random(seed=0), np.random.default_rng(0).standard_normal(model.nv)
    found = f(at, rates)
    assert time.process_time() - start < 6.0
    assert np.allclose(found, o.coriolis.dense(at, rates), rtol=1e-8, atol=1e-8)
