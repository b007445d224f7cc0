"""Loops as joints: beside Lagrange's multipliers, the laws of mechanics, and every letter of the
algebra on clusters."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.validate import frozen
from psiphi.algebra.derivatives.configuration_derivative import derivative
from psiphi.algebra.expressions.operators import Operators
from psiphi_bench.interpreted_robot import Interpreted
from tests.robot.embedding.mechanisms import (
    MECHANISMS,
    Spanning,
    cassie,
    random_mechanism,
    slider_crank,
)
from tests.theorems.laws import LAWS, holds, of_single_bodies
from tests.theorems.words import (
    DIFFERENTIATED,
    WORDS,
    derivative_is_a_slope,
    slope,
    sweeps_are_the_matrix,
    swept,
    turns_as_its_rates_say,
)

# identities that hold in trees of single bodies only
OF_TREES = {
    "M couples only joints on one path",
    "L is sparse as the tree",
    "D is block diagonal",
    *(law for law in LAWS if law.startswith("the reference's")),
}
EACH = pytest.mark.parametrize("name", MECHANISMS)


@cache
def embedded(name: str) -> tuple:
    robot, loops, options = MECHANISMS[name]()
    return robot, loops, pp.embed(robot, loops, **options)


def state(robot: pp.Robot, seed: int = 0) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    q = robot.random(rng, size=(1,))[0]
    v, a, tau = rng.standard_normal((3, robot.nv))
    return SimpleNamespace(q=q, v=v, a=a, tau=tau, f=rng.standard_normal(6), rest=0.0 * v)


def beside_multipliers(
    tree: pp.Robot, loops: list, robot: pp.Robot, seeds: range, tolerance: float = 1e-10
) -> None:
    open_tree, closed = Interpreted.of(tree), Interpreted.of(robot)
    for seed in seeds:
        s = state(robot, seed)
        wanted = Spanning(open_tree, loops, robot, s.q, s.v).acceleration(s.tau)
        found = closed.forward_dynamics(s.q, s.v, s.tau)
        assert np.abs(found - wanted).max() <= tolerance * (1.0 + np.abs(wanted).max())


@EACH
def test_accelerations_are_those_of_multipliers(name):
    beside_multipliers(*embedded(name), range(3))


def test_a_leg_of_cassies_kind():
    tree, loops, options = cassie()
    robot = pp.embed(tree, loops, **options)
    assert (tree.nv, robot.nv) == (14, 11)
    beside_multipliers(tree, loops, robot, range(3))


@pytest.mark.parametrize("seed", range(5))
def test_random_mechanisms(seed):
    tree, loops, options = random_mechanism(seed)
    beside_multipliers(tree, loops, pp.embed(tree, loops, **options), range(2))


@EACH
def test_laws_of_mechanics(name):
    robot = Interpreted.of(embedded(name)[2])
    s = state(robot, 1)
    for law in LAWS:
        if law not in OF_TREES:
            holds(LAWS[law], robot, s)


@pytest.mark.parametrize("name", ["fourbar", "differential", "ankle"])
def test_compiled_as_interpreted(name):
    _, _, robot = embedded(name)
    s = state(robot, 2)
    for call in (
        lambda r: r.forward_dynamics(s.q, s.v, s.tau, f_ext={"tool": s.f}),
        lambda r: r.jacobian(s.q, "elbow"),
        lambda r: r.operational_compliance(s.q, ("tool", "elbow")),
    ):
        np.testing.assert_allclose(call(robot), call(Interpreted.of(robot)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["fourbar", "train", "rssr"])
def test_every_letter_turns_as_its_rate_says(name):
    _, _, robot = embedded(name)
    turns_as_its_rates_say(robot, state(robot, 3), 1e-7)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        *((name, word) for name in ("train", "rssr") for word in DIFFERENTIATED),
        ("fourbar", "C v"),
        ("rotors", "M v"),
    ],
)
def test_derivatives_of_expressions_are_along_the_loop(name, word):
    """By the rules of single bodies; rotors that a loop moves have no matrices."""
    _, _, robot = embedded(name)
    derivative_is_a_slope(robot, state(robot, 3), word, 1e-7, dense=name != "rotors")


@pytest.mark.parametrize("name", ["rssr", "fourbar", "ankle"])
def test_gradients_of_numbers_along_the_loop(name):
    """x* C x: its gradient is a row, and runs by transposes; directions of a body that turns freely
    do not commute."""
    _, _, robot = embedded(name)
    at, o = state(robot, 5), Operators(robot.model)
    e = o.vector("x").T @ o.coriolis @ o.vector("x")
    found = swept(robot, derivative(e, "q").T, {"q": at.q, "v": at.v, "x": at.a})
    want = [
        slope(lambda t, d=d: e.dense(robot.integrate(at.q, t * d), at.v, x=at.a))
        for d in np.eye(robot.nv)
    ]
    assert np.abs(found - want).max() <= 1e-7 * (1.0 + np.abs(want).max())


def test_derivatives_of_expressions_beside_multipliers():
    """d/dq of M^-1 (tau - C), an expression, beside differences of what Lagrange's multipliers give
    on the spanning tree."""
    tree, loops, robot = embedded("fourbar")
    robot, tree = Interpreted.of(robot), Interpreted.of(tree)
    s, o = state(robot, 4), Operators(robot.model)
    e = o.mass.inv @ (o.vector("tau") - o.H @ o.phi @ (o.M @ o.phi.T @ o.a + o.b))
    found = swept(robot, pp.derivative(e, "q"), {"q": s.q, "v": s.v, "tau": s.tau})

    def accelerated(x: np.ndarray) -> np.ndarray:
        return Spanning(tree, loops, robot, robot.integrate(s.q, x), s.v).acceleration(s.tau)

    wanted = np.transpose([slope(lambda t, x=x: accelerated(t * x)) for x in np.eye(robot.nv)])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * (1.0 + np.abs(wanted).max()))


def test_derivatives_are_proved():
    _, _, robot = embedded("fourbar")
    s, x = robot.operators, pp.vector("x")
    there = pp.derivative(s.mass.inv @ pp.vector("tau"), "q", along=x)
    assert pp.prove(
        there, -s.mass.inv @ pp.derivative(s.mass, "q", along=x) @ s.mass.inv @ pp.vector("tau")
    )
    assert "dH" in str(
        pp.derivative(s.mass, "q", along=x)
    )  # a joint map that is constant has no such term


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("name", ["fourbar", "ankle", "nested"])
def test_sweeps_are_the_matrices(name, word):
    _, _, robot = embedded(name)
    sweeps_are_the_matrix(robot, state(robot, 4), word)


@pytest.mark.parametrize("name", ["fourbar", "differential", "ankle"])
def test_diagonalised_dynamics(name):
    """dnu/dt + C = eps is the same motion: d/dt of nu = D^1/2 W v along it."""
    _, _, robot = embedded(name)
    robot, s = Interpreted.of(robot), state(robot, 5)
    d = robot.diagonalised
    a = robot.forward_dynamics(s.q, s.v, s.tau)
    nu = d.velocities(s.q, s.v)
    moved = slope(lambda t: d.velocities(robot.integrate(s.q, s.v, t), s.v + t * a), 1e-4)
    np.testing.assert_allclose(
        d.forward_dynamics(s.q, nu, s.tau), moved, rtol=0, atol=1e-6 * (1 + np.abs(moved).max())
    )
    assert np.isclose(nu @ nu / 2.0, robot.kinetic_energy(s.q, s.v))


def test_what_theory_says_is_proved():
    _, _, robot = embedded("fourbar")
    s = robot.operators
    for left, right in (
        (s.mass.inv, (s.I - s.H @ s.psi @ s.K).T @ s.D.inv @ (s.I - s.H @ s.psi @ s.K)),
        (s.H @ s.psi, (s.I - s.H @ s.psi @ s.K) @ s.H @ s.phi),
        (s.mass, (s.I + s.H @ s.phi @ s.K) @ s.D @ (s.I + s.H @ s.phi @ s.K).T),
    ):
        assert pp.prove(left, right)


@pytest.mark.parametrize("name", ["fourbar", "train"])
def test_derivatives_are_along_the_loop(name):
    _, _, robot = embedded(name)
    s, h = state(robot, 6), 1e-6
    f = robot.function("forward_dynamics")
    by_q = f.jacobian("q")(s.q, s.v, s.tau)
    columns = [
        (
            robot.forward_dynamics(robot.integrate(s.q, e, h), s.v, s.tau)
            - robot.forward_dynamics(robot.integrate(s.q, e, -h), s.v, s.tau)
        )
        / (2 * h)
        for e in np.eye(robot.nv)
    ]
    np.testing.assert_allclose(
        by_q, np.transpose(columns), rtol=0, atol=1e-6 * (1 + np.abs(by_q).max())
    )


def test_a_motion_stays_closed_and_keeps_its_energy():
    tree, loops, robot = embedded("fourbar")
    s = state(robot, 7)
    motion = pp.simulate(robot, s.q, s.v, duration=0.5, dt=1e-3)
    energy = [robot.energy(q, v) for q, v in zip(motion.q[::100], motion.v[::100], strict=True)]
    assert np.ptp(energy) < 1e-9
    last = motion.q[-1]
    assert (
        np.abs(robot.frame_pose(last, "one")[:3, 3] - robot.frame_pose(last, "two")[:3, 3]).max()
        < 1e-12
    )
    rolled = pp.rollout(robot, s.q, s.v, steps=500, dt=1e-3)
    np.testing.assert_allclose(rolled.q[-1], last, rtol=0, atol=1e-12)
    system = pp.connect(tree, loops)
    spanning = Spanning(tree, loops, robot, s.q, s.v)
    beside = pp.simulate(system, spanning.q, spanning.v, duration=0.5, dt=1e-3)
    for joint in tree.joints:
        np.testing.assert_allclose(
            last[robot.joint(joint.name).q_slice], beside.q[-1][joint.q_slice], rtol=0, atol=1e-9
        )


def test_doors_that_know_single_bodies_say_so():
    _, _, robot = embedded("fourbar")
    s = state(robot, 9)
    for call in of_single_bodies(robot, s):
        with pytest.raises(pp.Error, match="embed"):
            call()


@pytest.mark.parametrize("name", ["train", "rotors"])
def test_smoothers_know_clusters(name):
    """A cluster is a stage, its rotors are masses in it: multipliers are accelerations."""
    _, _, robot = embedded(name)
    s = state(robot, 12)
    found = pp.estimation.of(robot, s.q, s.v, {"tool": s.f})(s.tau)
    wanted = Interpreted.of(robot).forward_dynamics(s.q, s.v, s.tau, f_ext={"tool": s.f})
    np.testing.assert_allclose(
        np.concatenate(found.multipliers), wanted, rtol=0, atol=1e-11 * (1.0 + np.abs(wanted).max())
    )


def test_reaching_keeps_loops_closed_and_within_limits():
    """Of places that can be reached all are; where the limits of a joint that follows forbid it,
    none is called converged."""
    tree, loops, options = MECHANISMS["fourbar"]()
    tree = tree.subtree("base").without("hand").with_frame("pen", "coupler", (0.1, 0, 0.3))
    options = dict(free="to crank", at=np.array(options["at"])[[1, 2, 4]])
    robot = pp.embed(tree, loops, **options)
    q = robot.random(np.random.default_rng(0), size=(8,))
    place = robot.joint("to rocker").q_slice
    ends = np.sort(q[:, place].ravel())[[1, -2]] + [-1e-3, 1e-3]  # two of the eight stand beyond
    limited = [
        replace(j, lower=frozen(ends[:1]), upper=frozen(ends[1:])) if j.name == "to rocker" else j
        for j in tree.joints
    ]
    narrow = pp.embed(replace(tree, joints=tuple(limited)), loops, **options)
    wanted = robot.frame_pose(q, "pen")[:, :3, 3]
    inside = (q[:, place.start] >= ends[0]) & (q[:, place.start] <= ends[1])
    found = pp.reach(narrow, {"pen": wanted}, starts=8)
    assert inside.sum() == 6 and (found.converged == inside).all()
    done = found.q[inside]
    assert (done[:, place] >= ends[0]).all() and (done[:, place] <= ends[1]).all()
    np.testing.assert_allclose(
        narrow.frame_pose(done, "pen")[:, :3, 3], wanted[inside], rtol=0, atol=3e-6
    )
    gaps = narrow.frame_pose(done, "one")[:, :3, 3] - narrow.frame_pose(done, "two")[:, :3, 3]
    assert np.abs(gaps).max() < 1e-9


def test_pages_and_symbols_of_embedded_robots(tmp_path):
    _, _, robot = embedded("fourbar")
    s = state(robot, 10)
    assert robot.html(tmp_path / "page.html").stat().st_size > 1000
    f = robot.to_casadi("gravity")
    np.testing.assert_allclose(np.array(f(s.q)).ravel(), robot.gravity(s.q), rtol=0, atol=1e-12)


def test_open_loops_have_no_numbers():
    """Where a loop gapes there are no velocities: nothing, and no wrong number."""
    _, _, robot = embedded("fourbar")
    s = state(robot, 8)
    s.q[robot.joint("to rocker").q_slice] += 0.5
    assert not np.isfinite(robot.mass_matrix(s.q)).all()
    with pytest.raises(pp.StateError, match=r"loop of to crank.* is open by"):
        robot.forward_dynamics(s.q, s.v, s.tau, check=True)
    closed = robot.normalize(s.q)
    assert np.isfinite(robot.mass_matrix(closed)).all()


def test_singular_loops_are_nan_in_a_batch_and_named_when_checked():
    """A piston at its dead point does not drive its crank: as closed systems are, that element
    alone is NaN."""
    robot = slider_crank("to piston")
    q = np.stack([[0.0, 0.0, 0.7], robot.neutral()])
    with np.errstate(all="ignore"):
        M = robot.mass_matrix(q)
    assert np.isnan(M[0]).all() and np.isfinite(M[1]).all()
    with pytest.raises(
        pp.SingularError, match="the loop of to crank and to rod and to piston is singular there"
    ):
        robot.mass_matrix(q[0], check=True)


def test_motions_that_pass_a_dead_point_say_so():
    """A piston that drives its crank through it; the crank as the free coordinate has no such
    points, and keeps the energy."""
    piston, crank = slider_crank("to piston"), slider_crank("to crank")
    q, said = piston.neutral(), "passes a dead point of to crank and to rod and to piston at t = 0"
    with pytest.warns(pp.MotionWarning, match=rf"{said}.* s, where.*free=, or pp.connect"):
        motion = pp.simulate(piston, q, [3.0], duration=0.1)
    with pytest.warns(pp.MotionWarning, match=rf"{said}.*\(1 of 2 motions\)"):
        rolled = pp.rollout(piston, q, [[3.0], [0.1]], steps=100)
    assert np.allclose(rolled.q[0, -1], motion.q[-1], atol=1e-6)
    with pytest.warns(pp.MotionWarning, match=rf"{said}.*\(100 of 100 checked motions\)"):
        pp.rollout(piston, q, np.full((300, 1), 3.0), steps=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turn = pp.simulate(crank, q, piston.rate(q, [3.0])[:1], duration=0.1)
        pp.rollout(piston, q, [0.1], steps=100)
    assert turn.q[0, 0] * turn.q[-1, 0] < 0.0 and turn.drift < 1e-7


def test_gears_that_do_not_mesh_have_no_numbers():
    robot = pp.embed(pp.load("panda"))
    q = robot.neutral()
    q[robot.joint("panda_finger_joint2").q_slice] += 0.03
    assert np.isfinite(robot.mass_matrix(robot.neutral())).all()
    with np.errstate(all="ignore"):
        assert not np.isfinite(robot.forward_dynamics(q, np.zeros(8), np.zeros(8))).any()
        assert not np.isfinite(robot.mass_matrix(q)[-1, -1])


def test_limits_of_joints_in_a_loop():
    tree, loops, options = MECHANISMS["fourbar"]()
    upper = {"to crank": -1.15}
    joints = tuple(replace(j, upper=frozen([upper.get(j.name, np.inf)])) for j in tree.joints)
    robot = pp.embed(replace(tree, joints=joints), loops, **options)
    v = np.zeros(robot.nv)
    v[robot.joint("to crank").v_slice] = 3.0
    motion = pp.simulate(robot, robot.neutral(), v, duration=0.05, limits="record")
    assert [event.what for event in motion.events] == ["to crank"]
    with pytest.raises(pp.StateError, match="move together"):
        pp.simulate(robot, robot.neutral(), v, duration=0.05, limits="block")


@pytest.mark.parametrize("name", ["fourbar", "rssr"])
def test_velocities_of_rates(name):
    _, _, robot = embedded(name)
    s = state(robot, 11)
    np.testing.assert_allclose(
        robot.velocity_of(s.q, robot.rate(s.q, s.v)), s.v, rtol=0, atol=1e-12
    )


def test_mimic_joints_act():
    body = (
        '<inertial><mass value="{}"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" '
        'ixz="0" iyz="0"/></inertial>'
    )
    slide = (
        '<parent link="palm"/><child link="{}"/><axis xyz="0 1 0"/><limit lower="0" '
        'upper="1" effort="10" velocity="1"/>'
    )
    text = f"""<robot name="gripper">
      <link name="palm"/>
      <link name="left">{body.format(0.2)}</link>
      <link name="right">{body.format(0.3)}</link>
      <joint name="l" type="prismatic">{slide.format("left")}</joint>
      <joint name="r" type="prismatic">{slide.format("right")}<mimic joint="l" multiplier="-2" offset="0.01"/></joint>
    </robot>"""  # noqa: E501
    robot = pp.embed(pp.load(text))
    assert (robot.nq, robot.nv, len(robot.effort)) == (2, 1, 1)
    np.testing.assert_allclose(robot.neutral(), [0.0, 0.01])
    np.testing.assert_allclose(robot.mass_matrix(robot.neutral()), [[0.2 + 4 * 0.3]], rtol=1e-15)


def test_refusals():
    robot, loops, options = MECHANISMS["fourbar"]()
    for call, words in (
        (lambda: pp.embed(robot), "no loop and no mimic"),
        (lambda: pp.embed(robot, [pp.Loop("weld", "one", "world")], **options), "does not close"),
        (
            lambda: pp.embed(robot, [pp.Loop("weld", "one", "two")], at=options["at"]),
            "does not close|no joint can move",
        ),
        (lambda: pp.embed(robot, loops, free=["to hand"], at=options["at"]), "in no loop"),
        (
            lambda: pp.embed(robot, loops, free=["to crank", "to rocker"], at=options["at"]),
            "free coordinates requested",
        ),
        (
            lambda: pp.embed(
                robot,
                [pp.Gear("to crank", {"to rocker": 1.0}), pp.Gear("to rocker", {"to crank": 1.0})],
            ),
            "cycle",
        ),
        (lambda: pp.embed(robot, [pp.Gear("to crank", {})]), "leaders"),
        (lambda: pp.embed(robot, [pp.Gear("to crank", {"to rockr": 1.0})]), "no joint"),
        (lambda: pp.embed(robot, [pp.Gear("to crank", {"to rocker": np.nan})]), "finite"),
        (lambda: pp.embed(pp.embed(robot, loops, **options), loops), "embedded already"),
    ):
        with pytest.raises(pp.Error, match=words):
            call()


def test_a_humanoid_with_parallel_ankles_costs_half_of_the_closed_system():
    robot = pp.robots.g1(base="free")
    b, loops = pp.Builder(robot), []
    for side in ("left", "right"):
        for k, y in (("a", 0.03), ("b", -0.03)):
            crank, rod = f"{side} crank {k}", f"{side} rod {k}"
            b.body(crank, mass=0.1, com=(-0.02, 0, 0), inertia=np.diag([1e-5, 2e-5, 2e-5]))
            b.joint(
                crank,
                "revolute",
                parent=f"{side}_knee_link",
                child=crank,
                axis=(0, 1, 0),
                xyz=(-0.02, y, -0.05),
            )
            b.body(rod, mass=0.08, com=(0, 0, -0.12), inertia=np.diag([4e-4, 4e-4, 1e-5]))
            b.joint(
                rod,
                "universal",
                parent=crank,
                child=rod,
                axis=(0, 1, 0),
                axis2=(1, 0, 0),
                xyz=(-0.04, 0, 0),
            )
            b.frame(f"end of {rod}", rod, xyz=(0, 0, -0.25))
            b.frame(f"heel of {rod}", f"{side}_ankle_roll_link", xyz=(-0.06, y, 0.0))
            loops.append(pp.Loop("ball", f"end of {rod}", f"heel of {rod}"))
    tree = b.build()
    embedded = pp.embed(
        tree, loops, free=[f"{side} crank {k}" for side in ("left", "right") for k in "ab"]
    )
    assert (tree.nv, embedded.nv) == (47, 35)
    assert 2 * embedded.flops("forward_dynamics") <= pp.connect(tree, loops).flops(
        "forward_dynamics"
    )


BODY = (
    '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" '
    'ixz="0" iyz="0"/></inertial>'
)
BARS = f"""
  <link name="base"/> <link name="a">{BODY}</link> <link name="b">{BODY}</link> <link name="c">{BODY}</link>
  <joint name="1" type="continuous" independent="true"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
  <joint name="2" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="3" type="continuous"><parent link="base"/><child link="c"/><origin xyz="0.25 0 0"/><axis xyz="0 0 1"/></joint>"""  # noqa: E501
PLUS = {
    "loop": """<loop name="l" type="continuous"><predecessor link="c"><origin xyz="0.2 0 0"/></predecessor>
        <successor link="b"><origin xyz="0.3 0 0"/></successor><axis xyz="0 0 1"/></loop>""",  # noqa: E501
    "constraint": """<constraint name="l" type="position"><predecessor link="c"><origin xyz="0.2 0 0"/></predecessor>
        <successor link="b"><origin xyz="0.3 0 0"/></successor></constraint>""",  # noqa: E501
    "loop_constraint": """<loop_constraint name="l"><parent link="c"/><parent_origin xyz="0.2 0 0"/><child link="b"/>
        <child_origin xyz="0.3 0 0"/></loop_constraint>""",  # noqa: E501
}


@pytest.mark.parametrize("word", PLUS)
def test_loops_of_urdf_plus(word):
    robot = pp.load(f'<robot name="bars">{BARS}{PLUS[word]}</robot>')
    (loop,) = robot.loops
    assert (robot.nv, loop.name, loop.kind) == (3, "l", "hinge" if word == "loop" else "ball")
    at = np.array([1.2, -0.9, 1.7])
    closed = pp.embed(robot, free="1", at=at)
    here = closed.neutral()
    ends = [closed.frame_pose(here, f"l {end}")[:3, 3] for end in ("predecessor", "successor")]
    np.testing.assert_allclose(*ends, atol=1e-12)
    assert closed.nv == 1 and pp.connect(robot).nc in (3, 5)


@pytest.mark.parametrize(
    "text",
    [
        '<coupling name="g"><predecessor link="a"/><successor link="c"/><ratio '
        'value="-6"/></coupling>',
        '<joint_constraint name="g"><parent link="a"/><child link="c"/><gear_ratio '
        'value="-6"/></joint_constraint>',
    ],
)
def test_couplings_of_urdf_plus(text):
    robot = pp.load(f'<robot name="bars">{BARS}{text}</robot>', embed=True)
    assert (robot.nq, robot.nv) == (3, 2)
    v = np.array([0.5, 0.0])
    moved = robot.integrate(robot.neutral(), v)
    place = {joint.name: moved[joint.q_slice][0] for joint in robot.joints}
    assert np.isclose(place["3"], -6.0 * place["1"]) and np.isclose(place["1"], 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '<loop name="l" type="screw"><predecessor link="c"/><successor link="b"/></loop>',
            "no loop of type",
        ),
        ('<loop name="l" type="fixed"><predecessor link="c"/></loop>', "no <successor>"),
        (
            '<coupling name="g"><predecessor link="a"/><successor link="c"/></coupling>',
            "no <ratio>",
        ),
        (
            '<coupling name="g"><predecessor link="base"/><successor link="c"/><ratio '
            'value="1"/></coupling>',
            "no joint has the child",
        ),
        ('<loop name="l" type="fixed"><predecessor link="x"/><successor link="b"/></loop>', "x"),
    ],
)
def test_faults_of_urdf_plus(text, words):
    with pytest.raises(pp.ModelError, match=words):
        pp.load(f'<robot name="bars">{BARS}{text}</robot>')


def test_rotors_are_armature_and_what_it_leaves_out():
    """M - M_armature = sum ratio I_r (e_k h* J_w + transpose), J_w of the link that carries the
    rotor."""
    arm, I, ratio = pp.robots.puma560(), 2e-4, 40.0
    names = arm.joint_names
    robot = pp.embed(arm, rotors=[pp.Rotor(name, inertia=I, ratio=ratio) for name in names])
    assert (robot.nv, robot.nq) == (6, 12)
    rng = np.random.default_rng(0)
    small = arm.random(rng)
    q = robot.neutral()
    for joint in arm.joints:
        q[robot.joint(joint.name).q_slice] = small[joint.q_slice]
    q = robot.normalize(q)
    # the same arm with rotors that do not spin, as lumps on the links that carry them, and armature
    b = pp.Builder(arm)
    for joint in arm.joints:
        z = joint.pose.rotation @ joint.axis
        disk = I * (np.eye(3) + np.outer(z, z)) / 2.0
        parent = "world" if joint.parent < 0 else arm.bodies[joint.parent].name
        b.body(f"{joint.name} lump", inertia=disk)
        b.joint(
            f"{joint.name} lump",
            "fixed",
            parent=parent,
            child=f"{joint.name} lump",
            xyz=joint.pose.translation,
        )
    lumped = b.build()
    wanted = lumped.mass_matrix(small) - np.diag(lumped.armature) + ratio**2 * I * np.eye(6)
    for k, joint in enumerate(arm.joints):
        if joint.parent >= 0:
            link = arm.bodies[joint.parent].name
            h = arm.frame_pose(small, link)[:3, :3] @ joint.pose.rotation @ joint.axis
            row = ratio * I * h @ arm.jacobian(small, link)[:3]
            wanted[k] += row
            wanted[:, k] += row
    order = [robot.joint(name).v_slice.start for name in names]
    np.testing.assert_allclose(
        robot.mass_matrix(q)[np.ix_(order, order)], wanted, rtol=0, atol=1e-12
    )
    v = rng.standard_normal(6)
    assert np.abs(robot.bias(q, v)).max() > 0.0


def test_rotors_that_cannot_be():
    arm = pp.robots.puma560()
    for rotor, words in (
        ("elbow", "pp.Rotor"),
        (pp.Rotor("nowhere", 1e-4, 100.0), "no joint"),
        (pp.Rotor(arm.joint_names[0], -1.0, 100.0), "positive"),
        (pp.Rotor(arm.joint_names[0], 1e-4, 0.0), "not zero"),
        (pp.Rotor(arm.joint_names[0], 1e-4, 10.0, link=arm.bodies[3].name), "no axis"),
    ):
        with pytest.raises(pp.Error, match=words):
            pp.embed(arm, rotors=[rotor])


def test_contacts_are_not_embedded():
    """They come and go: a loop that is embedded holds for ever."""
    b = pp.Builder("slider")
    b.body("bar", mass=1.0, inertia=np.eye(3))
    b.joint("swing", "revolute", "world", "bar", axis=(0, 1, 0))
    b.frame("tip", "bar", xyz=(0.3, 0, 0))
    for loop in (
        pp.Loop("rough", "tip", "world", axis=(0, 0, 1)),
        pp.Loop("sliding", "tip", "world", (0, 0, 1), friction=0),
    ):
        with pytest.raises(pp.StateError, match="is a contact"):
            pp.embed(b.build(), [loop])
