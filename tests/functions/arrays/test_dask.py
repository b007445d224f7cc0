"""Dask arrays in, lazy Dask arrays out; pickles are small, and give the same bits in another
process."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import psiphi as pp


@pytest.fixture(scope="module")
def robot():
    return pp.load("acrobot")


def given(robot, size=64):
    rng = np.random.default_rng(0)
    q, v, tau = robot.random(rng, (size,)), *rng.standard_normal((2, size, robot.nv))
    return (q, v, tau), tuple(da.from_array(x, chunks=(24, 1)) for x in (q, v, tau))


CALLS = {
    "forward_dynamics": lambda r, q, v, tau: r.forward_dynamics(q, v, tau),
    "f_ext": lambda r, q, v, tau: r.forward_dynamics(
        q, v, tau, f_ext={"tool": np.ones(6), "world": v[..., :1] + np.ones(6)}
    ),
    "float32": lambda r, q, v, tau: r.gravity(q, dtype=np.float32),
    "inverse by numbers": lambda r, q, v, tau: pp.function(
        (r.operators.mass + r.operators.I).inv @ pp.vector("tau")
    )(q, tau),
    "parameters": lambda r, q, v, tau: r.free("mass").forward_dynamics(
        q, v, tau, parameters=np.abs(v) + 1.0
    ),
    "rollout": lambda r, q, v, tau: pp.rollout(
        r, q, v, tau if isinstance(tau, da.Array) else tau[:, None], steps=4, every=2
    ),
    "controlled": lambda r, q, v, tau: pp.rollout(
        r, q, tau=pp.PD(r, r.neutral(), 1.0, 1.0), steps=4, every=2
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_dask_arrays_in_lazy_ones_out_with_the_same_bits(robot, call):
    plain, lazy = given(robot)
    wanted, found = CALLS[call](robot, *plain), CALLS[call](robot, *lazy)
    pairs = (
        list(zip(wanted, found, strict=True)) if isinstance(wanted, tuple) else [(wanted, found)]
    )
    if call in ("rollout", "controlled"):
        assert found._fields == ("q", "v")
    for x, y in pairs:
        assert isinstance(y, da.Array) and (y.shape, y.dtype) == (x.shape, x.dtype)
        assert y.numblocks[0] == 3, "cut as it came, along the batch alone"
        np.testing.assert_array_equal(y.compute(scheduler="synchronous"), x)


@pytest.mark.parametrize("shape", [(2,), (4, 2), (1, 4, 2), (6, 2), (6, 1, 2), (6, 4, 2)])
@pytest.mark.parametrize("steps", [4, 2])
def test_torques_of_a_rollout_mean_the_same_in_blocks(robot, shape, steps):
    """NumPy or lazy arrays; a block with as many motions as steps is not mistaken for either."""
    rng = np.random.default_rng(0)
    q, tau = (
        rng.standard_normal((6, 2)),
        rng.standard_normal(tuple(steps if n == 4 else n for n in shape)),
    )
    wanted = pp.rollout(robot, q, None, tau, steps=steps)
    for here in (tau, da.from_array(tau, chunks=2)):
        found = pp.rollout(robot, da.from_array(q, chunks=(2, 2)), None, here, steps=steps)
        for x, y in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(y.compute(scheduler="synchronous"), x)


def test_a_block_is_given_nothing_that_belongs_to_other_motions(robot):
    """Arguments that fit a block of two, but not the batch of six, are refused as for NumPy arrays,
    before anything runs."""
    q = np.zeros((6, 2))
    lazy, light = da.from_array(q, chunks=(2, 2)), robot.free("mass")
    masses = np.tile(light.parameters(), (2, 1))
    refused = [
        (lambda q: pp.rollout(robot, q, None, q[:2], steps=3), r"tau has shape \(2, 2\)"),
        (
            lambda q: pp.rollout(robot, q, None, np.zeros((2, 2)), steps=3),
            r"tau has shape \(2, 2\)",
        ),
        (
            lambda q: pp.rollout(robot, q, None, np.zeros((6, 2)), steps=6),
            "may be one row a step or one a batch element",
        ),
        (
            lambda q: pp.rollout(robot, q, None, np.zeros((6, 3)), steps=3),
            r"tau has shape \(6, 3\)",
        ),
        (
            lambda q: pp.rollout(robot, q, None, pp.PD(robot, np.zeros((2, 2)), 1.0, 1.0), steps=3),
            r"batch axes \(2,\)",
        ),
        (lambda q: pp.rollout(light.at(masses), q, steps=3), r"batch axes .*\(2,\)"),
    ]
    for call, words in refused:
        for given in (q, lazy):
            with pytest.raises(pp.StateError, match=words):
                call(given)


def test_large_robots_too():
    chain = pp.robots.chain(70)
    q = chain.random(0, (3,))
    found = chain.mass_matrix(da.from_array(q, chunks=(2, 70)))
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), chain.mass_matrix(q))


def test_what_travels_is_small_and_runs_in_other_processes(robot):
    plain, lazy = given(robot)
    wanted = robot.forward_dynamics(*plain), pp.rollout(robot, plain[0], steps=3)[0]
    found = robot.forward_dynamics(*lazy), pp.rollout(robot, lazy[0], steps=3)[0]
    with dask.config.set({"multiprocessing.context": "spawn"}):
        there = dask.compute(*found, scheduler="processes", num_workers=1)
    for x, y in zip(wanted, there, strict=True):
        np.testing.assert_array_equal(x, y)
    closed = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    law = pp.PD(robot, robot.neutral(), 1.0, 1.0)
    used = pp.function(robot.operators.mass.inv)
    used(plain[0])
    names = "forward_dynamics", "frame_pose", "regressor"
    functions = [robot.function(name, ("tool",) if name == "frame_pose" else ()) for name in names]
    functions[1](plain[0])
    for thing in (
        robot,
        robot.free("mass"),
        closed,
        law,
        used,
        *functions,
        functions[0].jvp("q"),
        robot.diagonalised,
    ):
        text = pickle.dumps(thing)
        assert len(text) < 20_000, thing
        again = pickle.loads(text)
        if callable(again) and thing in (used, functions[1]):
            np.testing.assert_array_equal(again(plain[0]), thing(plain[0]))


def test_what_does_not_fit_is_said_before_anything_runs(robot):
    _, (q, v, tau) = given(robot)
    refused = [
        (
            lambda: robot.forward_dynamics(q[:, :1], v, tau),
            r"q has shape \(64, 1\), expected \(..., 2\)",
        ),
        (lambda: robot.forward_dynamics(q, v[:7], tau), "batch axes do not fit together"),
        (lambda: robot.forward_dynamics(q, v, tau, check=True), "check=True works on NumPy arrays"),
        (lambda: robot.gravity(q, out=np.empty((64, 2))), "out"),
        (lambda: robot.gravity(q.astype(complex)), "dtype complex128"),
        (lambda: pp.rollout(robot, q, steps=2, out=(q, q)), "out= needs results now"),
        (lambda: robot.step(q, v, tau[:, :1], 1e-3), r"tau has shape \(64, 1\)"),
    ]
    for call, words in refused:
        with pytest.raises(pp.StateError, match=words):
            call()


@pytest.mark.parametrize("name", ["ur5", "free_flyer"])
def test_coordinates_and_linearizations_stay_lazy(name):
    """Nothing is computed before it is asked for, and the numbers are those of NumPy."""
    robot, rng = pp.load(name), np.random.default_rng(0)
    q, v = robot.random(rng, 10), rng.standard_normal((10, robot.nv))
    tau, dt = rng.standard_normal((10, robot.nv)), np.linspace(0.0, 1.0, 10)
    lazy = [da.from_array(x, chunks=(size, -1)) for x, size in ((q, 3), (v, 5), (tau, 10))]
    calls = {
        "integrate": [(0, 1), (0, 1, 0.1), (0, 1, dt), (0, 1, da.from_array(dt, chunks=2))],
        "difference": [(0, robot.integrate(q, v)), (q[0], 0)],
        "rate": [(0, 1), (0, v)],
        "velocity_of": [(0, robot.rate(q, v))],
        "normalize": [(0,)],
        "linearize": [(0, 1, 2), (0, v, 2, 1e-3), (q, v, 2)],
    }
    for method, choices in calls.items():
        for choice in choices:
            given = [lazy[x] if isinstance(x, int) else x for x in choice]
            plain = [x.compute() if isinstance(x, da.Array) else x for x in given]
            found, expected = getattr(robot, method)(*given), getattr(robot, method)(*plain)
            pairs = (
                [(found, expected)] if method != "linearize" else zip(found, expected, strict=True)
            )
            for x, y in pairs:
                assert isinstance(x, da.Array) and x.shape == y.shape, method
                np.testing.assert_allclose(x.compute(), y, rtol=1e-12, atol=1e-12)


def test_linearize_takes_a_dt_and_parameters_a_state():
    """They are cut along the batch with the state, also where one block alone would fit."""
    light, rng = pp.load("acrobot").free("mass"), np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, 6, 2))
    dt, parameters = np.linspace(1e-3, 1e-2, 6), light.randomised(6, seed=0)
    lazy = da.from_array(q, chunks=(2, 1))
    for robot in (light.at(parameters), light.at(da.from_array(parameters, chunks=(3, 1)))):
        for step in (None, 1e-2, dt, da.from_array(dt, chunks=4)):
            found = robot.linearize(lazy, v, tau, step)
            step = step.compute() if isinstance(step, da.Array) else step
            for x, y in zip(found, light.at(parameters).linearize(q, v, tau, step), strict=True):
                assert isinstance(x, da.Array) and x.shape == y.shape
                np.testing.assert_allclose(x.compute(), y, rtol=1e-12, atol=1e-12)
    with pytest.raises(pp.StateError, match="the batch axes do not fit together"):
        light.at(parameters[:2]).linearize(lazy, v, tau)
