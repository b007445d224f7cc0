"""pp.identify on simulated data with noise: the truth lies where the deviations say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.parameters.inertial_parameters import consistency_margin
from psiphi.robot.identification.physical_consistency import KnownBodies, nearest_consistent
from tests import zoo


def possible(robot: pp.Robot) -> pp.Robot:
    """The robot with inertias that bodies can have, where its file has others."""
    own = KnownBodies.of(robot.inertial_parameters, len(robot.bodies), np.zeros(0))
    return robot.free("inertia").baked(own.initial)


def experiment(robot: pp.Robot, samples: int, noise: float, seed: int = 0):
    """Motions of it, and torques with noise of a share of their size."""
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.uniform(-1.5, 1.5, (samples, robot.nv)))
    v, a = rng.standard_normal((2, samples, robot.nv))
    tau = robot.inverse_dynamics(q, v, 3.0 * a)
    sigma = noise * np.sqrt((tau**2).mean(axis=0)) + 1e-4
    return q, v, 3.0 * a, tau + sigma * rng.standard_normal(tau.shape), sigma


@pytest.mark.parametrize(
    ("name", "rank", "samples"), [("puma560", 36, 300), ("panda", 51, 300), ("talos", 206, 150)]
)
def test_the_truth_lies_within_three_deviations(name, rank, samples):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = possible(pp.load(name))
    light = robot.free("inertia")
    truth = light.randomised(seed=3, spread=0.2)
    q, v, a, tau, sigma = experiment(light.at(truth), samples, 0.02)
    found = pp.identify(robot, q, v, a, tau)
    assert found.base.rank == rank
    true = found.base.matrix @ truth
    z = (found.values - true) / found.deviations
    assert (
        np.abs(z).max() < (3.0 if rank < 100 else 4.0)
        and (np.abs(z) > 3.0).mean() <= 0.01
        and 0.8 < z.std() < 1.2
    )
    np.testing.assert_allclose(found.sigma, sigma, rtol=0.25)
    own = found.base.matrix @ found.parameters  # those of bodies
    assert np.abs((own - true) / found.deviations).max() < 4.0
    assert (
        consistency_margin(found.parameters.reshape(-1, 10)[found.parameters[::10] > 0.0]).min()
        > 0.0
    )
    np.testing.assert_allclose(found.robot.inertial_parameters, found.parameters, atol=1e-12)
    left = np.einsum("nij,j->ni", found.data.Y, found.parameters - truth)
    assert (np.sqrt((left**2).mean(axis=0)) < 0.7 * sigma).all(), "better than one measurement"


def test_rotors_damping_and_friction_are_found_too():
    robot = pp.load("puma560")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = possible(robot)
    more, rng = ("armature", "damping", "friction"), np.random.default_rng(1)
    armature, damping, friction = rng.uniform(0.2, 2.0, (3, 6))
    q, v, a, _, _ = experiment(robot, 400, 0.0)
    clean = (
        robot.inverse_dynamics(q, v, a)
        - robot.armature * a
        + armature * a
        + damping * v
        + friction * np.sign(v)
    )
    found = pp.identify(
        robot, q, v, a, clean + 0.01 * rng.standard_normal(clean.shape), more=more, sigma=0.01
    )
    true = found.base.matrix @ np.concatenate(
        [robot.inertial_parameters, armature, damping, friction]
    )
    assert np.abs((found.values - true) / found.deviations).max() < 4.0
    np.testing.assert_allclose(found.parameters[-12:-6], damping, atol=0.01)
    np.testing.assert_allclose(found.robot.damping, damping, atol=0.01)
    np.testing.assert_allclose(found.robot.friction, friction, atol=0.02)
    assert found.rms.keys() == set(robot.velocity_names)
    text = found.report()
    assert "78" in text.splitlines()[0] and "not identified by" in text and "shoulder" in text


def test_wrenches_tell_what_torques_do_not():
    robot = pp.Robot.of(zoo.random_tree(7, 3, ["revolute"]))
    light, root = robot.free("inertia"), robot.bodies[0].name
    truth = light.baked(light.randomised(seed=1, spread=0.3))
    q, v, a, tau, _ = experiment(truth, 60, 0.0)
    wrench = truth.joint_forces(q, v, a)[:, 0]
    np.testing.assert_allclose(
        robot.wrench_regressor(q, v, a, root) @ truth.inertial_parameters, wrench, atol=1e-11
    )
    np.testing.assert_allclose(
        robot.energy_regressor(q, v) @ truth.inertial_parameters, truth.energy(q, v), atol=1e-11
    )
    alone, both = (
        pp.identify(robot, q, v, a, tau),
        pp.identify(robot, q, v, a, tau, wrenches={root: wrench}),
    )
    assert (
        both.base.rank > alone.base.rank
        and f"{root}.m" in alone.base.unseen
        and f"{root}.m" not in both.base.unseen
    )
    np.testing.assert_allclose(both.values, both.base.matrix @ truth.inertial_parameters, atol=1e-6)
    assert f"{root}.Fz" in both.rms


def test_the_noise_of_few_samples_is_no_smaller():
    """Rows that tell most of the parameters have fewer samples left for their noise: it is not
    taken for less than it is."""
    robot = pp.load("ur5")
    light = robot.free("inertia")
    true = light.randomised(seed=1, spread=0.2)
    z, sigma = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q, (v, a) = robot.random(rng, (16,)), rng.standard_normal((2, 16, 6))
        tau = light.inverse_dynamics(q, v, a, parameters=true) + 0.05 * rng.standard_normal((16, 6))
        found = pp.identify(robot, q, v, a, tau, consistent=False)
        z.append((found.values - found.base.matrix @ true) / found.deviations)
        sigma.append(found.sigma)
    np.testing.assert_allclose(np.mean(sigma, axis=0), 0.05, rtol=0.15)
    assert np.std(z) < 1.3 and np.mean(np.abs(z) > 3.0) < 0.03


def test_what_the_data_do_not_tell_is_said_and_stays_as_it_was():
    robot = pp.load("acrobot")
    rng = np.random.default_rng(0)
    q = rng.uniform(-3.0, 3.0, (50, 2))
    still = pp.identify(
        robot, q, 0 * q, 0 * q, robot.gravity(q)
    )  # gravity tells no moment of inertia
    lost = ~np.isfinite(still.deviations)
    assert (
        lost.any()
        and not lost.all()
        and set(still.unidentified) >= {still.names[c] for c in still.base.columns[lost]}
    )
    np.testing.assert_allclose(still.values, still.base.values, atol=1e-9)
    v, a = rng.standard_normal((2, 50, 2))
    assert robot.excitation(q, 0 * q, 0 * q) == np.inf and robot.excitation(q, v, a) < 20.0


def test_the_nearest_bodies_are_bodies():
    """Base parameters that no body has: the answer is on the border, and minimal along it."""
    robot = pp.load("acrobot")
    base = robot.base_parameters()
    target = base.values.copy()
    known, R = KnownBodies.of(robot.inertial_parameters, 2, np.zeros(0)), 1e3 * np.eye(base.rank)
    np.testing.assert_allclose(
        base.matrix @ nearest_consistent(known, base.matrix, R, target), target, atol=1e-5
    )
    target[-1] = -1.0  # a moment of inertia
    pi = nearest_consistent(known, base.matrix, R, target)
    assert (
        consistency_margin(pi.reshape(2, 10)).min() > -1e-12
        and np.abs(base.matrix @ pi - target).max() > 0.01
    )
    cost = lambda pi: (np.abs(R @ (base.matrix @ pi - target)) ** 2).sum() + known.distance(pi)  # noqa: E731
    rng, best = np.random.default_rng(0), cost(pi)
    for scale in 10.0 ** rng.uniform(-6, -1, 200):
        assert cost(pi + scale * np.abs(pi).max() * rng.standard_normal(20)) > best - 1e-6 * best


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("name", ["panda", "ur5", "puma560"])
def test_sure_data_are_believed(name, noise):
    """Simulated torques without noise, or nearly: the bodies found are those that moved, to what
    the noise leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = possible(pp.load(name))
        light = robot.free("inertia")
        true = light.randomised(spread=0.2, seed=1)
        q, v, a, _, _ = experiment(robot, 200, 0.0)
        clean = light.inverse_dynamics(q, v, a, parameters=true)
        found = pp.identify(
            robot, q, v, a, clean + noise * np.random.default_rng(2).standard_normal(clean.shape)
        )
    assert found.shift < 1.0
    assert np.abs(found.residuals).max() < 6.0 * noise + 1e-10 * np.abs(clean).max()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_words_for_what_does_not_fit(tmp_path):
    robot = pp.load("acrobot")
    q, v, a = np.random.default_rng(0).standard_normal((3, 40, 2))
    tau = robot.inverse_dynamics(q, v, a)
    for change, words in (
        ({"tau": tau[:10]}, "samples: the batch axes do not fit together"),
        ({"tau": tau[:, :1]}, "tau has shape"),
        ({"tau": tau[0]}, r"tau has shape \(2,\), expected \(40, 2\).*for every sample"),
        ({"tau": tau[:1]}, r"tau has shape \(1, 2\), expected \(40, 2\)"),
        ({"wrenches": {"upper": np.zeros(6)}}, r"upper has shape \(6,\), expected \(40, 6\)"),
        ({"more": ("damping", "damping")}, "more is .*each once"),
        ({"sigma": 1e300}, "sigma is"),
        ({"tau": 1e200 * tau}, "too large for floating point.*units"),
        ({"a": 1e200 * a}, "too large for floating point.*units"),
        ({"tau": 1e-200 * tau}, "too large for floating point.*units"),
        ({"q": np.where(q > 2.0, np.nan, q)}, "is not finite"),
        ({"more": "springs"}, "no columns of 'springs'"),
        ({"wrenches": {"hand": np.zeros((40, 6))}}, "not a moving link"),
        ({"wrenches": 3}, "expected {link"),
        ({"sigma": -1.0}, "sigma is"),
        ({"sigma": 1e-300}, "too large for floating point.*sigma"),
        ({"tau": 1e200 * tau, "sigma": 1.0}, "too large for floating point.*units"),
        ({"tau": 0.0 * tau}, "all torques are zero"),
        ({"robot": robot.free("mass")}, "has free parameters"),
        ({"q": q[:2], "v": v[:2], "a": a[:2], "tau": tau[:2]}, "got 2 samples"),
    ):
        with pytest.raises(pp.StateError, match=words):
            pp.identify(**{"robot": robot, "q": q, "v": v, "a": a, "tau": tau, **change})
    held = pp.identify(
        robot, q, np.zeros(2), np.zeros((1, 2)), robot.gravity(q)
    )  # one velocity for all samples
    np.testing.assert_allclose(held.values, held.base.values, atol=1e-9)
    found = pp.identify(robot, q, v, a, tau, consistent=False)
    np.testing.assert_allclose(found.residuals, 0.0, atol=1e-9)
    with pytest.raises(pp.StateError, match="without consistent"):
        _ = found.robot
    found.plot(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 1000
