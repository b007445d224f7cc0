"""Numbers of a robot as inputs: beside robots rebuilt with these numbers, and beside Pinocchio."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.cli import main as cli
from psiphi.backends.cpu.cpu_target import CpuTarget
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.functions.compiled_function import Function
from psiphi.model.parameters.inertial_parameters import (
    consistency_margin,
    from_pseudo_inertia,
    pseudo_inertia,
)
from psiphi.simulation.control.joint_controllers import ComputedTorque
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

CALLS = {
    "forward_dynamics": "q v tau",
    "inverse_dynamics": "q v tau",
    "mass_matrix": "q",
    "mass_matrix_inverse": "q",
    "mass_matrix_factors": "q",
    "coriolis": "q v",
    "gravity": "q",
    "joint_forces": "q v tau",
    "energy": "q v",
    "center_of_mass": "q",
    "centroidal_momentum_matrix": "q",
    "mass_log_det": "q",
}


def states(robot, size: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.random(rng, (size,))
    v, tau = rng.standard_normal((2, size, robot.nv))
    return {"q": q, "v": v, "tau": tau}


def close(x, y, tolerance: float = 1e-10) -> None:
    for a, b in zip(
        x if isinstance(x, tuple) else (x,), y if isinstance(y, tuple) else (y,), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


def interpreted(robot, name: str, *arrays) -> np.ndarray:
    source = robot.function(name).source
    return interpret(source.program, source.tree, *arrays)[0]


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_a_robot_rebuilt_with_these_numbers_says_the_same(kind):
    robot = pp.Robot.of(zoo.random_tree(3, 5, [kind, "revolute"], armature=True))
    for words in (("inertia", "armature", "offsets"), ("mass", "com")):
        light = robot.free(*words)
        p = light.randomised(seed=1, spread=0.3)
        rebuilt, at = light.baked(p), states(robot, 2)
        for name in ("forward_dynamics", "inverse_dynamics"):
            found = interpreted(light, name, at["q"], at["v"], at["tau"], p)
            close(found, interpreted(rebuilt, name, at["q"], at["v"], at["tau"]), 1e-9)


def test_every_function_of_the_catalogue_takes_them_with_batch_axes_of_their_own():
    robot = pp.Robot.of(zoo.random_tree(5, 3, ["revolute", "prismatic"]))
    names, at = [body.name for body in robot.bodies], states(robot, 2)
    light = robot.free("inertia", "armature", links=names[1:])
    assert light.freed.size == 22 and light.parameter_names[10] == f"{names[2]}.m"
    p = light.randomised(2, seed=0, spread=0.3)
    rebuilt = light.baked(p[1])
    for name, wanted in CALLS.items():
        given = [at[x] for x in wanted.split()]
        found = getattr(light, name)(*given, parameters=p)
        alone = getattr(rebuilt, name)(*(x[1] for x in given))
        close(tuple(x[1] for x in found) if isinstance(found, tuple) else found[1], alone)
        close(getattr(light.at(p), name)(*given), found, 0.0)
    state, one, tip = list(at.values()), [x[1] for x in at.values()], names[-1]
    wrench = {tip: np.arange(6.0)}
    loaded = light.forward_dynamics(*state, f_ext=wrench, parameters=p)
    close(loaded[1], rebuilt.forward_dynamics(*one, f_ext=wrench))
    close(light.jacobian(at["q"], tip, parameters=p), robot.jacobian(at["q"], tip))
    short = light.forward_dynamics(
        *(x.astype(np.float32) for x in state), parameters=p.astype(np.float32)
    )
    assert short.dtype == np.float32
    close(short[1], rebuilt.forward_dynamics(*one), 1e-3)


@pytest.mark.parametrize("name", ["ur5", "anymal_c"])
def test_pinocchio_with_these_inertias_agrees(name):
    robot = pp.load(name)
    light, at = robot.free("inertia"), states(robot, 3)
    p = light.randomised(3, seed=2, spread=0.2)
    a, tau = (
        getattr(light, f)(*at.values(), parameters=p)
        for f in ("forward_dynamics", "inverse_dynamics")
    )
    for i in range(3):
        peer, row = Pin(light.baked(p[i])), [x[i] for x in at.values()]
        close(a[i], peer.forward_dynamics(*row), 1e-8)
        close(tau[i], peer.inverse_dynamics(*row), 1e-10)


def test_expressions_and_derivatives_take_them_last():
    robot = pp.load("ur5")
    light, at = robot.free("inertia", links="wrist_*"), states(robot, 2)
    s, p = light.operators, light.randomised(2, seed=3)
    e = [f.operators for f in map(light.baked, p)]
    f = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    for i, own in enumerate(e):
        close(f(at["q"], p)[i], (own.J("tool") @ own.mass.inv @ own.J("tool").T).dense(at["q"][i]))
    around = pp.function((s.mass + s.I).inv @ s.vector("tau"))  # an inverse by numbers
    close(
        around(at["q"], at["tau"], p)[1],
        ((e[1].mass + e[1].I).inv @ e[1].vector("tau")).dense(at["q"][1], tau=at["tau"][1]),
    )
    F, x, h = light.function("forward_dynamics"), [row[0] for row in at.values()], 1e-6
    dp = np.random.default_rng(0).standard_normal(p.shape[-1]) * np.abs(p[0])
    a, da = F.jvp("parameters")(*x, p[0], dp)
    ahead, behind = (light.forward_dynamics(*x, parameters=p[0] + t * h * dp) for t in (1, -1))
    close(da, (ahead - behind) / (2 * h), 1e-5)
    w = np.arange(6.0)
    _, p_bar = F.vjp("parameters")(*x, p[0], w)
    assert abs(p_bar @ dp - w @ da) < 1e-9 * abs(w @ da)
    by_q = F.jacobian("q")(*x, p[0])
    close(by_q, light.baked(p[0]).function("forward_dynamics").jacobian("q")(*x), 1e-9)
    tau_by_p = light.function("inverse_dynamics").jacobian("parameters")(*x, p[0])
    close(tau_by_p, robot.regressor(*x)[:, -30:], 1e-12)  # torques are linear in them


def test_steps_rollouts_and_simulations_take_them():
    robot = pp.load("ur5")
    light, at = robot.free("mass", "damping", links="wrist_*"), states(robot, 3)
    q, v, tau = at.values()
    p = light.parameters() * np.linspace(1.0, 2.0, 3)[:, None] + [0, 0, 0, 0.1, 0.2, 0.3]
    bound, rebuilt = light.at(p), [light.baked(row) for row in p]
    for x, y in zip(
        light.step(q, v, tau, 1e-3, parameters=p),
        rebuilt[2].step(q[2], v[2], tau[2], 1e-3),
        strict=True,
    ):
        close(x[2], y)
    found = pp.rollout(bound, q, v, tau, steps=20)
    one = pp.rollout(rebuilt[1], q[1], v[1], tau[1], steps=20)
    close((found[0][1], found[1][1]), one)
    assert pp.rollout(bound, q[0], steps=3)[0].shape == (3, 4, 6), (
        "one state, parameters of their own"
    )
    for damping in (False, True):
        motions = [
            pp.simulate(bound, q, v, tau, duration=0.03, damping=damping, compiled=flag)
            for flag in (True, False)
        ]
        alone = pp.simulate(
            rebuilt[2], q[2], v[2], tau[2], duration=0.03, damping=damping, compiled=False
        )
        for motion in motions:
            close(
                (motion.q[2], motion.energy[2]), (alone.q, alone.energy), 1e-8 if damping else 1e-12
            )
            close(motion.a[2], alone.a, 1e-6)
    soft = robot.with_spring("wrist_*", 2.0, rest=0.5).free("stiffness", links="wrist_*")
    p = np.array([[2.0, 3.0, 4.0], [20.0, 3.0, 1.0], [1.0, 30.0, 9.0]])
    assert soft.parameter_names == tuple(f"wrist_{k}_joint.stiffness" for k in (1, 2, 3))
    motions = [
        pp.simulate(soft.at(p), q, v, tau, duration=0.03, springs=True, compiled=flag)
        for flag in (True, False)
    ]
    alone = pp.simulate(
        soft.baked(p[2]), q[2], v[2], tau[2], duration=0.03, springs=True, compiled=False
    )
    for motion in motions:
        close((motion.q[2], motion.energy[2], motion.a[2]), (alone.q, alone.energy, alone.a), 1e-6)
    control = ComputedTorque(bound, robot.neutral(), kp=10, kd=5)
    motions = [
        pp.simulate(bound, q, v, control, duration=0.02, compiled=flag) for flag in (True, False)
    ]
    close((motions[0].q, motions[0].tau), (motions[1].q, motions[1].tau), 1e-12)


def test_random_numbers_of_points():
    """A mass without extent, at its link's origin or off it: there is nothing to shear, and its
    mass and its place differ."""
    for com in ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0)):
        b = pp.Builder("point")
        b.body("cabin", mass=2.0, com=com)
        b.joint("rail", "prismatic", parent="world", child="cabin", axis=(0, 0, 1))
        light = pp.Robot.of(b.build()).free("inertia")
        p = light.randomised(5, seed=0)
        assert (light.consistent(p) == p).all() and np.ptp(p[:, 0]) > 0.1, "bodies that can be"
        assert np.allclose(
            light.forward_dynamics([0.0], [0.0], [4.0], parameters=p)[:, 0], 4.0 / p[:, 0] - 9.81
        )


def test_helpers_make_parameters_that_bodies_can_have():
    robot = pp.load("ur5")
    light, own = robot.free("inertia", links="wrist_3_link"), pp.load("ur5").bodies[-1]
    assert (light.parameters() == robot.inertial_parameters[-10:]).all()
    heavy = light.masses({"wrist_3_link": [0.5, 1.0]})
    np.testing.assert_allclose(heavy, light.parameters() / own.mass * [[0.5], [1.0]])
    box = pp.Body.box(2.0, (0.1, 0.2, 0.3))
    loaded = light.payload("tool", box.mass, com=(0, 0.1, 0.2), inertia=box.inertia)
    attached = robot.attach(box, "tool", (0, 0.1, 0.2))
    np.testing.assert_allclose(loaded, attached.inertial_parameters[-10:], atol=1e-14)
    p = robot.free("inertia").randomised(50, seed=0, spread=0.5).reshape(50, 6, 10)
    assert consistency_margin(p).min() > 0.0
    np.testing.assert_allclose(from_pseudo_inertia(pseudo_inertia(p)), p, atol=1e-12)
    assert light.at(heavy).mass.tolist() == pytest.approx(
        [robot.mass - own.mass + m for m in (0.5, 1.0)]
    )


def test_what_no_body_has_is_an_error_or_nan_in_its_element():
    light = pp.load("ur5").free("inertia")
    p, at = light.parameters(), states(light, 3)
    thin = p.copy()
    thin[4] = -1.0  # Ixx
    with pytest.raises(pp.StateError, match="no body has the inertia of link 'shoulder_link'"):
        light.at(thin)
    with pytest.raises(pp.StateError, match=r"shoulder_link\.m is -"):
        light.at(-p)
    a = light.at([p, thin, p]).forward_dynamics(*at.values())
    assert np.isnan(a[1]).all() and np.isfinite(a[[0, 2]]).all()
    with pytest.raises(pp.StateError, match=r"parameters.*'shoulder_link\.mx' has nan"):
        light.forward_dynamics(
            *at.values(), parameters=np.where(np.arange(60) == 1, np.nan, p), check=True
        )
    with pytest.raises(
        pp.StateError, match=r"no body has the inertia of link 'shoulder_link'.*in batch element 1"
    ):
        light.forward_dynamics(*at.values(), parameters=[p, thin, p], check=True)
    with pytest.raises(pp.StateError, match=r"wrist_3_link\.mass is -1, which"):
        pp.load("ur5").free("mass", links="wrist_3_link").gravity(
            at["q"], parameters=[-1.0], check=True
        )
    assert np.isfinite(light.forward_dynamics(*at.values(), parameters=[p, p, p], check=True)).all()


def test_baked_numbers_are_never_taken_for_free_ones():
    robot = pp.load("ur5")
    light = robot.free("inertia", links="forearm_link")
    q = robot.neutral()
    refused = [
        (lambda: light.gravity(q), "parameters= is missing"),
        (lambda: light.gravity(q, parameters=np.ones(9)), "parameters has shape"),
        (lambda: pp.Robot.of(light).gravity(q), "parameters= is missing"),
        (lambda: pp.simulate(light, q), "parameters= is missing"),
        (lambda: light.step(q, q, q, 1e-3), "parameters= is missing"),
        (lambda: light.operators.mass.dense(q), "has free parameters"),
        (lambda: light.lock("elbow_joint"), "edit the robot before robot.free"),
        (lambda: light.with_inertia("forearm_link", mass=1.0), "edit the robot before robot.free"),
        (lambda: light.free("mass"), "free already"),
        (lambda: robot.free("inertia", "mass"), "part of it"),
        (lambda: robot.free("mess"), "cannot be a free parameter"),
        (lambda: robot.free(), "name some of"),
        (lambda: robot.free("mass", links="wrist_9"), "no moving link 'wrist_9'"),
        (lambda: pp.robots.chain(70).free("mass"), "at most 64 bodies"),
        (lambda: light.base_parameters(), "has free parameters"),
        (lambda: light.masses({"wrist_1_link": 1.0}), "is not free"),
        (lambda: light.baked(np.ones((2, 10))), "expected one set|cannot be|no body"),
    ]
    for call, words in refused:
        with pytest.raises(pp.Error, match=words):
            call()


def test_one_kernel_for_robots_that_differ_in_free_numbers_alone():
    robot = pp.load("ur5")
    other = robot.with_inertia("forearm_link", mass=5.0)
    one, two = (x.free("inertia", links="forearm_link") for x in (robot, other))
    assert robot != other and one.digest == two.digest != robot.digest
    assert one.digest != robot.free("mass", links="forearm_link").digest
    assert (one.parameters() != two.parameters()).any()
    q, v, tau = (x[0] for x in states(robot, 1).values())
    close(
        two.at(two.parameters()).forward_dynamics(q, v, tau),
        other.forward_dynamics(q, v, tau),
        1e-12,
    )
    assert one.at(one.parameters()) != one.at(two.parameters())
    again = pickle.loads(pickle.dumps(two.at(two.parameters())))
    close(again.gravity(q), other.gravity(q), 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("word", ["inertia", "mass"])
def test_wherever_parameters_lie_the_bits_are_the_same(word, dtype):
    light, size = pp.load("ur5").free(word), 37
    q, v, tau = (x.astype(dtype) for x in states(light, size).values())
    p = light.randomised(size, seed=0).astype(dtype, order="C")
    found = light.forward_dynamics(q, v, tau, parameters=p)
    one_by_one = [light.forward_dynamics(q[i], v[i], tau[i], parameters=p[i]) for i in range(size)]
    np.testing.assert_array_equal(found, one_by_one, strict=True)
    wide = np.full((p.shape[1], size + 3), np.nan, dtype)
    wide[:, 1:-2] = p.T
    for other in (
        np.asfortranarray(p),
        wide.T[1:-2],
        np.repeat(p, 2, axis=1)[:, ::2],
        np.repeat(p, 2, axis=0)[::2],
        p[::-1].copy()[::-1],
    ):
        np.testing.assert_array_equal(light.forward_dynamics(q, v, tau, parameters=other), found)
        np.testing.assert_array_equal(
            light.forward_dynamics(q[:, None], v[:, None], tau[:, None], parameters=other),
            np.stack(
                [light.forward_dynamics(q[i], v[i], tau[i], parameters=other) for i in range(size)]
            ),
        )
    np.testing.assert_array_equal(light.forward_dynamics(q, v, tau, parameters=p[3])[3], found[3])


@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
def test_registers_of_every_width_read_them_where_they_lie(lanes):
    light = pp.load("ur5").free("mass")
    known, at, p = (
        light.function("forward_dynamics"),
        states(light, 23),
        light.randomised(23, seed=0),
    )
    found = Function(known.source.quantity, known.source.request, CpuTarget(lanes))
    for given in (p, p.copy(order="C")):
        np.testing.assert_array_equal(found.run([*at.values(), given]), known(*at.values(), given))


def test_results_that_are_parameters_themselves_are_theirs_in_every_layout():
    builder = pp.Builder("cart")
    builder.body("cart", 2.0, inertia=np.eye(3))
    builder.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    light = pp.Robot.of(builder.build()).free("inertia")
    p = light.randomised(21, seed=0)
    for other in (p, p.copy(order="C")):
        np.testing.assert_array_equal(
            light.mass_matrix(np.zeros((21, 1)), parameters=other)[:, 0, 0], p[:, 0]
        )


def test_what_parameters_alone_make_is_made_once_and_gives_the_same_bits(monkeypatch):
    robot = pp.Robot.of(zoo.random_tree(4, 2, ["revolute", "prismatic"], armature=True))
    at, calls = states(robot, 300), ("forward_dynamics", "mass_matrix", "energy")
    for words in (("inertia", "armature"), ("com", "offsets")):
        light = robot.free(*words)
        p = light.randomised(300, seed=0, spread=0.2)
        p[7] = np.nan
        heavy, several = light.at(p), light.at(p[:2, None])
        names = calls if words[0] == "inertia" else calls[:1]
        for name in names:
            given = [at[x] for x in CALLS[name].split()]
            close(getattr(heavy, name)(*given), getattr(light, name)(*given, parameters=p), 0.0)
            f = light.function(name)
            early, late = f.parameter_stages
            assert late.flops < f.flops <= early.flops + late.flops, (
                "some is made again: memory takes longer"
            )
        state = list(at.values())
        close(
            several.forward_dynamics(*state),
            light.forward_dynamics(*state, parameters=p[:2, None]),
            0.0,
        )
        close(
            light.at(p[0]).forward_dynamics(*state),
            light.forward_dynamics(*state, parameters=p[0]),
            0.0,
        )
        short = [x.astype(np.float32) for x in (*state, p)]
        close(
            light.at(short[3]).forward_dynamics(*short[:3]),
            light.forward_dynamics(*short[:3], parameters=short[3]),
            0.0,
        )
        close(
            heavy.forward_dynamics(*state, dtype="f4"),
            light.forward_dynamics(*state, parameters=p, dtype="f4"),
            0.0,
        )
    s = light.operators
    f = pp.function(s.mass.inv @ s.vector("tau"))
    close(f(at["q"], at["tau"], parameters=heavy.given), f(at["q"], at["tau"], parameters=p), 0.0)
    before = heavy.forward_dynamics(*state)
    p += 1.0
    close(heavy.forward_dynamics(*state), before, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        heavy.given[0] = 0.0
    early = light.function("forward_dynamics").parameter_stages[0]
    monkeypatch.setattr(early, "run", lambda *_: pytest.fail("made again"))
    heavy.forward_dynamics(*state)
    arm = robot.free("damping")
    assert arm.function("forward_dynamics").parameter_stages is None, (
        "no number of its own is made of them"
    )


def test_helpers_lay_parameters_as_code_reads_them():
    light = pp.load("ur5").free("inertia")
    for p in (
        light.randomised(512, seed=0),
        light.masses({"wrist_3_link": np.linspace(0.1, 1.0, 512)}),
    ):
        assert p.shape == (512, 60) and p.strides[0] == 8 and p.ctypes.data % 64 == 0
        assert p.strides[1] % 64 == 0 and p.strides[1] // 64 % 2, (
            "lines from one number to the next: odd, or caches fill unevenly"
        )
    rows = p.copy(order="C")
    assert light.at(rows).given.strides == p.strides, "a batch that is put in is laid so, too"
    assert light.randomised((2, 3), seed=0).shape == (2, 3, 60) and light.randomised(
        0, seed=0
    ).shape == (0, 60)


def test_offsets_calibrate_the_kinematics():
    """d pose / d offsets, by which a tool that was measured somewhere else is explained."""
    robot = pp.load("ur5")
    light, q = (
        robot.free("offsets", links=["forearm_link", "wrist_1_link"]),
        robot.random(size=20, seed=0),
    )
    assert light.parameter_names[3] == "elbow_joint.roll"
    true = light.parameters() + 0.01 * np.random.default_rng(1).standard_normal(12)
    rebuilt = light.baked(true)
    measured = rebuilt.frame_pose(q, "tool")
    close(light.frame_pose(q, "tool", parameters=true), measured, 1e-12)
    close(light.jacobian(q, "tool", parameters=true), rebuilt.jacobian(q, "tool"), 1e-12)
    change, p = light.function("frame_pose", ("tool",)).jvp("parameters"), light.parameters()
    for _ in range(4):  # Gauss and Newton
        T, dT = change(q[:, None], p, np.eye(12))
        J = np.moveaxis(dT[..., :3, :], 1, -1).reshape(-1, 12)
        p = p + np.linalg.lstsq(J, (measured - T[:, 0])[:, :3].ravel(), rcond=1e-9)[0]
    close(light.frame_pose(q, "tool", parameters=p), measured, 1e-10)


def test_parameters_are_given_by_name_to_expressions_and_compiled_functions():
    robot = pp.load("ur5")
    light, at = robot.free("mass"), states(robot, 2)
    s, p = light.operators, light.randomised(2, seed=3)
    f, F = pp.function(s.mass.inv @ s.vector("tau")), light.function("forward_dynamics")
    close(f(at["q"], at["tau"], parameters=p), f(at["q"], at["tau"], p), 0.0)
    close(F(*at.values(), parameters=p), light.forward_dynamics(*at.values(), parameters=p), 0.0)
    w = np.ones(6)
    close(F.vjp("q")(*at.values(), w, parameters=p), F.vjp("q")(*at.values(), p, w), 0.0)
    for call, words in (
        (lambda: f(at["q"], at["tau"], p, parameters=p), "parameters are passed twice"),
        (lambda: f(at["q"], parameters=p), "expected .q, tau, parameters."),
        (lambda: pp.function(robot.operators.mass)(at["q"], parameters=p), "no free parameters"),
        (lambda: robot.function("gravity")(at["q"], parameters=p), "no free parameters"),
        (lambda: F(*at.values(), parameters=p[:, 1:]), "expected"),
    ):
        with pytest.raises(pp.StateError, match=words):
            call()


def test_closed_chains_take_a_set_of_parameters_for_each_element():
    """Beside a chain rebuilt with one of the sets: redundant rows (a flat linkage by hinges),
    forces, derivatives, motions."""
    b = pp.Builder("linkage")
    for k, (name, x) in enumerate((("crank", 0.3), ("coupler", 0.9), ("rocker", 0.7))):
        b.body(
            name,
            mass=1.0 + k,
            com=(x / 2, 0, 0),
            inertia=(0.01 + 0.01 * k, 0, 0, 0.02 + 0.02 * k, 0, 0.03 + 0.03 * k),
        )
    joints = (
        ("a", "world", "crank", 0.0),
        ("b", "crank", "coupler", 0.3),
        ("c", "coupler", "rocker", 0.9),
    )
    for name, parent, child, x in joints:
        b.joint(name, "revolute", parent, child, xyz=(x, 0, 0), axis=(0, 0, 1))
    b.frame("end", "rocker", xyz=(0.7, 0, 0))
    b.frame("pin", "world", xyz=(1.0, 0, 0))
    robot = pp.Robot.of(b.build())
    light = robot.free("inertia", "damping")
    loops = [pp.Loop("hinge", "end", "pin", axis=(0, 0, 1))]  # five rows, of which two are needed
    free, count = pp.connect(light, loops), 2
    p = light.randomised(count, seed=0, spread=0.2) + np.r_[np.zeros(30), 0.1, 0.2, 0.3]
    bound, own = free.at(p), pp.connect(light.baked(p[1]), loops)
    rng = np.random.default_rng(0)
    q = bound.assemble([1.0, -0.6, -1.5])
    assert q.shape == (count, 3), "one guess, a posture for each set"
    wild, tau = rng.standard_normal(3), rng.standard_normal((count, 3))
    q, v = bound.project(q[0], wild)
    close(v[1], own.project(q[1], wild)[1], 1e-9)
    a, forces = bound.forward_dynamics(q, v, tau, forces=True)
    T, by = (
        bound.inverse_dynamics(q, v, a),
        bound.function("forward_dynamics").jacobian("tau")(q, v, tau),
    )
    felt = bound.effective_inertia(q, "crank", policy="pseudo")
    close(a[1], own.forward_dynamics(q[1], v[1], tau[1], method="KKT"), 1e-8)
    close(forces[1], own.forward_dynamics(q[1], v[1], tau[1], forces=True)[1], 1e-7)
    close(T[1], own.inverse_dynamics(q[1], v[1], a[1]), 1e-8)
    close(by[1], own.function("forward_dynamics").jacobian("tau")(q[1], v[1], tau[1]), 1e-7)
    close(felt[1], own.effective_inertia(q[1], "crank", policy="pseudo"), 1e-8)
    control = pp.ComputedTorque(bound, q[0], kp=10, kd=5)
    for drive in (None, control):
        motions = [
            pp.simulate(bound, q, v, drive, duration=0.02, damping=True, compiled=flag)
            for flag in (True, False)
        ]
        close(motions[0].q, motions[1].q, 1e-9)
        close(motions[0].a, motions[1].a, 1e-6)
    alone = pp.simulate(own, q[1], v[1], duration=0.02, damping=True, compiled=False)
    found = pp.simulate(bound, q, v, duration=0.02, damping=True, compiled=True)
    close((found.q[1], found.energy[1]), (alone.q, alone.energy), 1e-9)
    with pytest.raises(pp.StateError, match="batch axes"):
        bound.forward_dynamics(np.zeros((3, 3)), v[0], tau[0])
    bad = free.at([p[0], -p[0]])
    assert np.isnan(bad.forward_dynamics(q[0], v[0], tau[0])[1]).all(), "no body has these"


def test_closed_chains_and_quasi_velocities_take_them():
    robot = pp.load("pelican")
    light = robot.free("inertia")
    p = light.randomised(seed=0, spread=0.3)
    loops, at = [pp.Loop("distance", "tool", "world", length=0.3)], states(robot, 2)
    free, rebuilt = pp.connect(light, loops), pp.connect(light.baked(p), loops)
    bound, one = free.at(p), [x[0] for x in at.values()]
    for method in (None, "KKT"):
        close(
            bound.forward_dynamics(*one, method=method),
            rebuilt.forward_dynamics(*one, method=method),
            1e-9,
        )
    with pytest.raises(pp.StateError, match="parameters= is missing"):
        free.forward_dynamics(*one)
    with pytest.raises(pp.StateError, match="has no free parameters"):
        rebuilt.at(p)
    many = light.randomised(2, seed=1)
    quasi, alone = light.at(many).diagonalised, light.baked(many[1]).diagonalised
    close(
        quasi.forward_dynamics(*at.values())[1],
        alone.forward_dynamics(*(x[1] for x in at.values())),
    )
    close(quasi.coriolis(at["q"], at["v"])[1], alone.coriolis(at["q"][1], at["v"][1]))


def test_emitted_code_has_them(capsys):
    link = pp.load("pelican").bodies[-1].name
    assert cli.main(["emit", "pelican", "gravity", "--free", f"inertia:{link}"]) == 0
    assert "const double *parameters" in capsys.readouterr().out


def test_the_estimation_takes_what_at_put_in():
    """Or says that nothing did."""
    robot = pp.robots.puma560()
    light, q, v, tau = robot.free("mass"), robot.random(seed=0), np.ones(6), np.arange(6.0)
    masses = 1.5 * light.parameters()
    found = pp.estimation.of(light.at(masses), q, v)(tau)
    np.testing.assert_allclose(
        np.concatenate(found.multipliers),
        light.forward_dynamics(q, v, tau, parameters=masses),
        rtol=1e-9,
    )
    with pytest.raises(pp.Error, match="parameters= is missing"):
        pp.estimation.of(light, q, v)


def test_what_a_joint_feels_by_the_links_parameters():
    """S1 section 7: D(k), and its derivatives by masses and inertias, against differences of the
    robot made anew."""
    arm = pp.load("pelican")
    light, q = arm.free("mass"), np.array([0.4, -0.9])
    D = pp.function(light.operators.D @ pp.vector("x"))
    masses, one = light.parameters(), np.ones(2)
    slope = D.jacobian("parameters")(q, one, masses)

    def felt(at):
        return np.diag(light.baked(at).mass_matrix_factors(q)[1])

    step = 1e-5
    want = np.stack(
        [(felt(masses + d) - felt(masses - d)) / (2 * step) for d in step * np.eye(2)], axis=-1
    )
    assert np.allclose(D(q, one, masses), felt(masses)) and np.allclose(
        slope, want, rtol=1e-7, atol=1e-9
    )
    assert slope[1, 0] == 0.0, "a joint feels nothing of what is inboard of it"


def test_one_state_and_one_set_after_the_first_are_the_same_bits():
    """Control loops: no NumPy between, every set of numbers its own, and mistakes have their words
    as before."""
    robot = pp.load("pelican").with_base("free")
    light = robot.free("mass")
    q, (v, tau), sets = (
        robot.random(seed=0),
        np.random.default_rng(1).standard_normal((2, robot.nv)),
        light.randomised(3, seed=2),
    )
    together = light.forward_dynamics(q, v, tau, parameters=sets)
    given = light.at(sets[0])
    for _ in range(2):
        for one, p in zip(together, sets, strict=True):
            np.testing.assert_array_equal(
                light.forward_dynamics(q, v, tau, parameters=np.array(p)), one
            )
            np.testing.assert_array_equal(
                given.forward_dynamics(q, v, tau, parameters=p.tolist()), one
            )
            np.testing.assert_array_equal(given.at(p).forward_dynamics(q, v, tau), one)
        np.testing.assert_array_equal(given.forward_dynamics(q, v, tau), together[0])
    with pytest.raises(pp.StateError, match="parameters has shape"):
        light.forward_dynamics(q, v, tau, parameters=np.ones(1))
    with pytest.raises(pp.StateError, match="parameters= is missing"):
        light.forward_dynamics(q, v, tau)
    with pytest.raises(pp.StateError, match="quaternion"):
        light.forward_dynamics(0.0 * q, v, tau, parameters=np.array(sets[0]))


def test_parameters_that_were_made_writeable_are_read_anew():
    light = pp.load("ur5").free("inertia")
    q, v, p = light.random(seed=0, size=300), np.ones((300, 6)), light.randomised(300, seed=0)
    bound = light.at(p)
    bound.forward_dynamics(q, v, v)
    bound.given.flags.writeable = True
    bound.given[...] *= 2.0
    assert np.array_equal(
        bound.forward_dynamics(q, v, v), light.forward_dynamics(q, v, v, parameters=2.0 * p)
    )
