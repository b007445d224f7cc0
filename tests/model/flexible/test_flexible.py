"""Links that bend, beside Lagrange's equations of the same shapes, beam theory, and the laws of
mechanics."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq

import psiphi as pp
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.operator_properties import random_values
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.rewriting.identities import CHAIN, FIXED_MAPS, IDENTITIES, MISPRINT, SINGLE
from psiphi.apps.cli.main import main
from psiphi_bench.interpreted_robot import Interpreted
from tests.model.flexible.flexible_robots import arm, tree
from tests.model.flexible.lagrange import Lagrange
from tests.theorems.laws import LAWS, holds, of_single_bodies, state
from tests.theorems.words import (
    WORDS,
    derivative_is_a_slope,
    slope,
    sweeps_are_the_matrix,
    swept,
    turns_as_its_rates_say,
)

OF_TREES = {
    "M couples only joints on one path",
    "L is sparse as the tree",
}  # places of one body are related, too
UNIT = dict(
    section=dict(area=1.0, Iy=1e-6, Iz=1e-6, J=2e-6), material=dict(E=1e6, density=1.0)
)  # EI = rho A = 1


@cache
def bent(quadratic: bool = True) -> tuple:
    robot, parts = tree(quadratic)
    return Interpreted.of(robot), Lagrange(parts)


def clamped(beam: pp.FlexibleBody, **joint) -> pp.Builder:
    """A beam on the world, or on a joint of it."""
    b = pp.Builder("boom", gravity=(0, 0, 0))
    b.body("boom")
    b.joint("root", **(dict(kind="fixed") | joint), parent="world", child="boom")
    b.flexible("boom", beam)
    return b


def frequencies(robot: pp.Robot) -> np.ndarray:
    """Of small swings about zero, by M and the springs."""
    M = Interpreted.of(robot).mass_matrix(np.zeros(robot.nq))
    L = np.linalg.cholesky(M)
    X = np.linalg.solve(L, np.linalg.solve(L, np.diag(robot.stiffness)).T)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(X), 0.0))


# -- the equations of motion -----------------------------------------------------------------------


@pytest.mark.parametrize("quadratic", [False, True])
def test_equations_of_motion_are_those_of_lagrange(quadratic):
    robot, lagrange = bent(quadratic)
    rng = np.random.default_rng(3)
    q, v, tau = rng.standard_normal((3, robot.nv)) * [[0.3], [1.0], [1.0]]
    M, c = lagrange.mass(q), lagrange.bias(q, v)
    np.testing.assert_allclose(robot.mass_matrix(q), M, rtol=0, atol=1e-12 * np.abs(M).max())
    np.testing.assert_allclose(
        robot.inverse_dynamics(q, v, tau), M @ tau + c, rtol=0, atol=1e-9 * np.abs(c).max()
    )
    a = np.linalg.solve(M, tau - c)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, v, tau), a, rtol=0, atol=1e-9 * np.abs(a).max()
    )
    np.testing.assert_allclose(robot.gravity(q), lagrange.gravity(q), rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        robot.frame_pose(q, "tool"), lagrange.tip(q, 2, 1), rtol=0, atol=1e-13
    )
    assert np.isclose(robot.kinetic_energy(q, v), v @ M @ v / 2.0, rtol=1e-12)


def test_laws_of_mechanics():
    robot = Interpreted.of(arm())
    s = state(robot, 1)
    for law in LAWS:
        if law not in OF_TREES and not law.startswith("the reference's"):
            holds(LAWS[law], robot, s)


def test_every_letter_turns_as_its_rate_says():
    turns_as_its_rates_say(arm(), state(arm(), 3), 1e-6)


LETTERS = (
    "H",
    "phi",
    "psi",
    "M",
    "P",
    "D",
    "G",
    "K",
    "E_phi",
    "E_psi",
    "tau_bar",
)  # and their adjoints


@pytest.mark.parametrize("word", WORDS)
def test_sweeps_are_the_matrices(word):
    sweeps_are_the_matrix(arm(), state(arm(), 4), word)


def test_every_letter_is_its_matrix():
    s, o = state(arm(), 4), Operators(arm().model)
    for name in LETTERS:
        for letter in (getattr(o, name), getattr(o, name).T):
            matrix = letter.dense(s.q)
            x = np.random.default_rng(1).standard_normal(matrix.shape[1])
            found = swept(
                arm(),
                letter @ pp.vector("x", "joint" if len(x) == arm().nv else "link"),
                {"q": s.q, "x": x},
            )
            np.testing.assert_allclose(
                np.ravel(found),
                matrix @ x,
                rtol=0,
                atol=1e-10 * (1.0 + np.abs(matrix).max()),
                err_msg=name,
            )


def test_identities_are_proved_and_have_these_numbers():
    s = arm().operators
    W = s.I - s.H @ s.psi @ s.K
    for left, right in (
        (s.mass.inv, W.T @ s.D.inv @ W),
        (s.mass, (s.I + s.H @ s.phi @ s.K) @ s.D @ (s.I + s.H @ s.phi @ s.K).T),
        (s.M, s.P - s.E_psi @ s.P @ s.E_phi.T),
    ):
        assert pp.prove(left, right)


def test_every_equation_of_the_book_has_these_numbers():
    """Of all robots, or of those without rotors; what speaks of chains and of single bodies has no
    numbers here."""
    model, rng = arm().model, np.random.default_rng(2)
    q, tried = arm().random(seed=3), 0
    for row in IDENTITIES:
        if MISPRINT in row.use or row.needs in (CHAIN, FIXED_MAPS, SINGLE):
            continue
        lhs, rhs = (Expression(side.term, model) for side in row[:2])
        values = random_values(lhs - rhs, rng)
        try:
            left = lhs.dense(
                q, **{name: x for name, x in values.items() if name in random_values(lhs, rng)}
            )
            apart = (lhs - rhs).dense(q, **values)
        except pp.StateError as error:
            assert "flexible" in str(error), (
                row
            )  # S, Delta_phi and their kin: rows by single bodies
            continue
        assert np.abs(apart).max() <= 1e-8 * (1.0 + np.abs(left).max()), (str(lhs), str(rhs))
        tried += 1
    assert tried > 60


def test_diagonalised_dynamics():
    """dnu/dt + C = eps is the same motion: d/dt of nu = D^1/2 W v along it."""
    robot = Interpreted.of(arm())
    s = state(robot, 5)
    d = robot.diagonalised
    a = robot.forward_dynamics(s.q, s.v, s.tau)
    nu = d.velocities(s.q, s.v)
    moved = slope(lambda t: d.velocities(robot.integrate(s.q, s.v, t), s.v + t * a), 1e-4)
    np.testing.assert_allclose(
        d.forward_dynamics(s.q, nu, s.tau), moved, rtol=0, atol=1e-6 * (1 + np.abs(moved).max())
    )


def test_compiled_as_interpreted_and_differentiated():
    robot, f = arm(), arm().function("forward_dynamics")
    s = state(robot, 6)
    a = robot.forward_dynamics(s.q, s.v, s.tau)
    np.testing.assert_allclose(
        a,
        Interpreted.of(robot).forward_dynamics(s.q, s.v, s.tau),
        rtol=0,
        atol=1e-10 * np.abs(a).max(),
    )
    J = robot.jacobian(s.q, "tool")
    np.testing.assert_allclose(J, Interpreted.of(robot).jacobian(s.q, "tool"), rtol=0, atol=1e-12)
    by_q = f.jacobian("q")
    for q in (s.q, 0.0 * s.q):  # straight beams, too
        columns = [
            slope(lambda t, e=e, q=q: robot.forward_dynamics(q + t * e, s.v, s.tau), 1e-4)
            for e in np.eye(robot.nv)
        ]
        want = np.transpose(columns)
        np.testing.assert_allclose(
            by_q(q, s.v, s.tau), want, rtol=0, atol=1e-6 * np.abs(want).max()
        )


# -- beams -----------------------------------------------------------------------------------------


def test_frequencies_of_euler_and_bernoulli():
    """Clamped, pinned, with a mass at its tip; one beam, or two in series."""
    free = np.array([1.875104069, 4.694091133, 7.854757438]) ** 2
    for options, tolerance in ((dict(modes=3, tip="free"), 1e-9), (dict(modes=6), 1e-3)):
        found = frequencies(clamped(pp.Beam(1.0, **UNIT, planes="z", **options)).build())
        np.testing.assert_allclose(found[:3], free, rtol=tolerance)
    pinned = frequencies(
        clamped(pp.Beam(1.0, **UNIT, planes="z", modes=6), kind="revolute", axis=(0, 1, 0)).build()
    )
    np.testing.assert_allclose(pinned[1:3], np.array([3.926602312, 7.068582746]) ** 2, rtol=1e-3)
    b = clamped(pp.Beam(1.0, **UNIT, planes="z", modes=6))
    b.body("ball", mass=0.7)
    b.joint("weld", "fixed", "boom_tip", "ball")

    def loaded(y):
        return (
            1 + np.cos(y) * np.cosh(y) - 0.7 * y * (np.sin(y) * np.cosh(y) - np.cos(y) * np.sinh(y))
        )

    wanted = [brentq(loaded, *span) for span in ((0.5, 1.8), (3.0, 4.6), (6.0, 7.8))]
    np.testing.assert_allclose(frequencies(b.build())[:3], np.square(wanted), rtol=1e-3)
    b = clamped(pp.Beam(0.5, **UNIT, planes="z", modes=4))
    b.body("outer")
    b.joint("weld", "fixed", "boom_tip", "outer")
    b.flexible("outer", pp.Beam(0.5, **UNIT, planes="z", modes=4))
    np.testing.assert_allclose(frequencies(b.build())[:3], free, rtol=1e-3)


def test_twist_and_stretch():
    beam = pp.Beam(1.0, 0.02, "steel", modes=0, torsion=2, axial=2, tip="free")
    j = np.array([0.5, 1.5]) * np.pi
    twist, stretch = (j * np.sqrt(x / 7850.0) for x in (81e9, 210e9))
    np.testing.assert_allclose(beam.frequencies, np.sort([*twist, *stretch]), rtol=1e-6)
    robot = clamped(beam).build()
    q = np.zeros(4)
    q[int(np.argmin(np.abs(beam.frequencies - twist[0])))] = 0.1
    R = robot.frame_pose(q, "boom_tip")[:3, :3]
    assert np.isclose(abs(np.arctan2(R[2, 1], R[2, 2])), 0.1, rtol=1e-3) and np.isclose(
        R[0, 0], 1.0
    )


def test_a_beam_that_is_spun_gets_stiffer_where_that_is_asked_for():
    """First flap frequency at 12 sqrt(EI / rho A L^4): 13.17 (Wright et al. 1982); linear shapes
    say 3.52."""
    spun = {}
    for stiffening in (False, True):
        beam = pp.Beam(1.0, **UNIT, planes="z", modes=5, tip="free", stiffening=stiffening)
        robot = Interpreted.of(clamped(beam, kind="revolute", axis=(0, 0, 1)).build())
        v = np.r_[12.0, np.zeros(5)]
        q = np.zeros((5, 6))
        q[:, 1:] = 1e-6 * np.eye(5)
        K = np.transpose((robot.bias(q, v) - robot.bias(-q, v))[:, 1:]) / 2e-6 + np.diag(
            beam.stiffness
        )
        M = robot.mass_matrix(np.zeros(6))[1:, 1:]
        spun[stiffening] = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real.min())
    np.testing.assert_allclose([spun[False], spun[True]], [3.516, 13.1702], rtol=1e-3)


def test_sagging_under_its_own_weight_and_a_load():
    """rho A g L^4 / 8 EI + F L^3 / 3 EI, at rest: a = 0 where the springs carry the weight."""
    L, (w, h), F = 1.5, (0.04, 0.02), 3.0
    b = clamped(pp.Beam(L, (w, h), "aluminium", modes=4, planes="z"))
    b.gravity = (0.0, 0.0, -9.81)
    robot = b.build()
    q = np.zeros(robot.nq)
    load = robot.jacobian(q, "boom_tip").T @ np.array([0, 0, 0, 0, 0, -F])
    q = (load - robot.gravity(q)) / robot.stiffness
    EI = 70e9 * w * h**3 / 12.0
    wanted = 2700.0 * w * h * 9.81 * L**4 / (8.0 * EI) + F * L**3 / (3.0 * EI)
    assert np.isclose(-robot.frame_pose(q, "boom_tip")[2, 3], wanted, rtol=1e-3)


# -- motions ---------------------------------------------------------------------------------------


def test_motions_keep_their_energy_and_damping_is_the_ratio_said():
    beam = pp.Beam(
        1.0, (0.03, 0.01), "aluminium", modes=2, planes="z", tip="free", damping=[0.02, 0.05]
    )
    robot = clamped(beam, kind="revolute", axis=(0, 1, 0)).build()
    motion = pp.simulate(
        robot, [0.3, 0.02, 0.002], [1.0, 0, 0], duration=0.5, dt=2e-5, method="rk4", springs=True
    )
    assert motion.drift < 1e-9
    rolled = pp.rollout(robot, [0.3, 0.02, 0.002], [1.0, 0, 0], steps=25000, dt=2e-5, springs=True)
    np.testing.assert_allclose(rolled.q[-1], motion.q[-1], rtol=0, atol=1e-10)
    straight = pp.Beam(
        1.0,
        (0.03, 0.01),
        "aluminium",
        modes=2,
        planes="z",
        tip="free",
        damping=[0.02, 0.05],
        stiffening=False,
    )
    still = clamped(straight).build()
    w, ratio = beam.frequencies[0], 0.02
    t = 2.0 * np.pi / (w * np.sqrt(1 - ratio**2))
    swing = pp.simulate(still, [0.01, 0.0], duration=t, dt=t / 2000, springs=True, damping=True)
    assert np.isclose(swing.q[-1, 0] / 0.01, np.exp(-ratio * w * t), rtol=1e-6)


def test_stiff_modes_are_taken_implicitly():
    robot = clamped(
        pp.Beam(1.0, (0.03, 0.01), "steel", modes=3, planes="z"), kind="revolute", axis=(0, 1, 0)
    ).build()
    kept = pp.simulate(
        robot, [0.3, 0.01, 0, 1e-5], duration=0.2, dt=1e-3, method="midpoint", springs=True
    )
    assert np.isfinite(kept.q).all() and kept.drift < 1e-2 and "boom_modes" in kept.summary()


def test_a_limp_beam_is_spoken_of():
    robot = clamped(pp.Beam(1.0, 0.01, "steel", modes=1)).build()
    with pytest.warns(pp.ModelWarning, match="springs=True"):
        pp.simulate(robot, robot.neutral(), duration=0.01)


# -- doors -----------------------------------------------------------------------------------------


def test_a_link_becomes_flexible_and_what_it_carries_hangs_on_its_tip():
    rigid = pp.load("ur5")
    beam = pp.Beam(0.39225, 0.03, "aluminium", modes=2)
    robot = rigid.with_flexible("forearm_link", beam, rpy=(0, -np.pi / 2, 0))
    assert (robot.nv, robot.actuated.tolist()) == (10, [0, 1, 2, 7, 8, 9])
    assert robot.joint_names[3] == "forearm_link_modes" and len(robot.joint_names) == 7
    q = rigid.random(seed=1)
    whole = np.insert(q, 3, np.zeros(4))
    np.testing.assert_allclose(
        robot.frame_pose(whole, "tool"), rigid.frame_pose(q, "tool"), rtol=0, atol=1e-12
    )
    own = robot.lock("forearm_link_modes")  # the same, with a rigid beam
    assert np.isclose(own.mass - rigid.mass, beam.mass - rigid.bodies[2].mass, rtol=1e-9)
    np.testing.assert_allclose(
        np.delete(np.delete(robot.mass_matrix(whole), slice(3, 7), 0), slice(3, 7), 1),
        own.mass_matrix(q),
        rtol=0,
        atol=1e-10,
    )
    at = np.array([0.01, -0.02, 0.003, 0.004])
    bent = np.insert(q, 3, at)
    locked = robot.lock({"forearm_link_modes": at})
    np.testing.assert_allclose(
        robot.frame_pose(bent, "tool"), locked.frame_pose(q, "tool"), rtol=0, atol=1e-12
    )
    stays = rigid.with_flexible(
        "forearm_link", beam, rpy=(0, -np.pi / 2, 0), hang={"wrist_1_joint": "root"}
    )
    assert stays.actuated.tolist() == [0, 1, 2, 3, 4, 5]


def test_edits_of_flexible_robots():
    robot = arm()
    heavy = robot.attach(pp.Body.box(2.0, (0.1, 0.1, 0.1), name="box"), "boom_tip")
    assert np.isclose(heavy.mass - robot.mass, 2.0) and heavy.nv == robot.nv
    both = robot.attach(arm(), "boom_tip", prefix="p_")
    assert both.nv == 2 * robot.nv and both.joint("p_boom_modes").parent > 0
    assert both.without("p_boom").digest == robot.digest
    assert robot.with_posture("bent", {"boom_modes": [0.1, 0.02]}).postures["bent"][
        1:3
    ].tolist() == [0.1, 0.02]
    with pytest.raises(pp.ModelError, match="remove all of the link"):
        robot.without("boom_tip")
    with pytest.raises(pp.ModelError, match="flexible only once"):
        robot.with_flexible("boom", pp.Beam(1.0, 0.01, "steel"))
    for path in ("x.urdf", "x.xml"):
        with pytest.raises(pp.ModelError, match=r"boom_modes.* is modal"):
            robot.save(path)


@pytest.mark.parametrize("word", ["C v", "J v"])
def test_derivatives_of_expressions(word):
    """By the rules of single rigid bodies: of a beam that draws in as it bends, and of a load on
    its tip."""
    b = clamped(pp.Beam(1.0, **UNIT, planes="z", modes=1))
    b.body("load", mass=0.5, com=(0.1, 0, 0.1), inertia=0.01 * np.eye(3))
    b.joint("wrist", "revolute", "boom_tip", "load", axis=(0.3, 1, 0))
    b.frame("tool", "load", xyz=(0.2, 0, 0))
    b.frame("elbow", "boom_tip")
    robot = Interpreted.of(b.build())
    derivative_is_a_slope(robot, state(robot, 3), word, 1e-7)


def test_smoothers_and_reaching_of_links_that_bend():
    """Modes are states of a filter as joints are; inverse kinematics moves joints with motors,
    links bent as they are."""
    robot = arm()
    s = state(robot, 5)
    found = pp.estimation.of(robot, s.q, s.v)(s.tau)
    wanted = Interpreted.of(robot).forward_dynamics(s.q, s.v, s.tau)
    np.testing.assert_allclose(
        np.concatenate(found.multipliers), wanted, rtol=0, atol=1e-10 * (1.0 + np.abs(wanted).max())
    )
    modes = np.setdiff1d(np.arange(robot.nv), robot.actuated)
    bent = robot.neutral()
    bent[modes] = 1e-3
    there = np.array(bent)
    there[robot.actuated] = 0.3
    reached = pp.reach(robot, {"tool": robot.frame_pose(there, "tool")[:3, 3]}, near=bent)
    assert reached.converged and (reached.q[modes] == 1e-3).all()


def test_doors_that_know_rigid_links_say_so():
    robot = arm()
    s = state(robot, 9)
    for call in (
        *of_single_bodies(robot, s),
        lambda: pp.embed(robot, [pp.Gear("wrist", {"shoulder": 1.0})]),
        lambda: robot.with_spring("boom_modes", 3.0),
    ):
        with pytest.raises(pp.Error, match=r"flexible|modal"):
            call()


def test_pictures_bend(tmp_path):
    robot = clamped(pp.Beam(1.0, **UNIT, planes="z", modes=1, tip="free", stiffening=False)).build()
    shown = pp.viewer.scene(robot, q=np.array([[0.0], [0.1]]))
    drawn = sorted({piece.body for piece in shown.pieces})
    x, z = shown.position[1, drawn, 0], shown.position[1, drawn, 2]
    assert len(drawn) == 8 and np.all(np.diff(x) > 0.1)
    b = 1.875104069
    sigma = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    wanted = np.cosh(b * x) - np.cos(b * x) - sigma * (np.sinh(b * x) - np.sin(b * x))
    np.testing.assert_allclose(
        np.abs(z), 0.05 * wanted, rtol=0, atol=1e-9
    )  # its tip moves most: 2 there, scaled to 1
    assert robot.html(tmp_path / "beam.html").stat().st_size > 1000


def test_in_a_scene_and_on_the_command_line(tmp_path, capsys):
    text = """duration = 0.02
springs = true
[robots.arm]
robot = "acrobot"
[[robots.arm.flexible]]
link = "lower"
length = 0.8
section = [0.02, 0.01]
material = "aluminium"
modes = 1
planes = "y"
rpy = [0.0, 1.5707963, 0.0]
"""
    link = pp.load("acrobot").bodies[-1].name
    text = text.replace('"lower"', f'"{link}"')
    (tmp_path / "arm.toml").write_text(text, encoding="utf-8")
    case = pp.scenes.load(tmp_path / "arm.toml")
    assert case.system.joint_names[-1] == f"{link}_modes" and case.system.nv == 3
    assert case.system.body_count == 2 < len(case.system.bodies)
    assert "2 bodies" in repr(case.system) and "2 bodies" in case.system._repr_html_()
    beam = pp.Beam(0.8, (0.02, 0.01), "aluminium", modes=1, planes="y")
    assert case.system == pp.load("acrobot").with_flexible(link, beam, rpy=(0.0, 1.5707963, 0.0))
    beam.save(tmp_path / "beam.npz")
    (tmp_path / "file.toml").write_text(
        f'[robots.arm]\nrobot = "acrobot"\nflexible = [{{ link = "{link}", file = "beam.npz" }}]\n',
        encoding="utf-8",
    )
    assert pp.scenes.load(tmp_path / "file.toml").system.nv == 3
    for old, new, words in (
        (f'"{link}"', '"elbov"', "no link"),
        ('"aluminium"', '"cheese"', "cheese"),
        ("modes = 1", 'modes = 1\nfile = "beam.npz"', "cannot be combined with file"),
        ("length = 0.8", "", "length.*is missing"),
        ("modes = 1", "mode = 1", "no such key"),
    ):
        (tmp_path / "bad.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(pp.ModelError, match=words):
            pp.scenes.load(tmp_path / "bad.toml")
    assert main(["info", "acrobot", "--flexible", f"{link}={tmp_path / 'beam.npz'}"]) == 0
    assert "2 bodies, nq=3, nv=3" in capsys.readouterr().out
    assert main(["info", "acrobot", "--flexible", link]) != 0
    assert "expected LINK=FILE" in capsys.readouterr().err
