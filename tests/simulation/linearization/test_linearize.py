"""A and B of `robot.linearize` against differences of `robot.step`, MuJoCo's mjd_transitionFD, and
the limit of small steps."""

import numpy as np
import pytest

import psiphi as pp
from psiphi import interop
from psiphi.simulation.linearization import linearize_function
from psiphi_bench.peers.mujoco_peer import Mj
from tests import zoo
from tests.robot.embedding.mechanisms import fourbar

ROBOTS = {
    "arm": pp.robots.puma560(),
    "curved": pp.Robot.of(zoo.chain("curved", ["spherical", "revolute", "planar"], seed=1)),
    "floating": pp.Robot.of(zoo.free_tree(3, seed=2)),
}


def state(robot, seed=0, size=()):
    rng = np.random.default_rng(seed)
    q = robot.random(rng) if size == () else np.stack([robot.random(rng) for _ in range(size[0])])
    return q, *(0.5 * rng.standard_normal((2, *size, robot.nv)))


@pytest.mark.parametrize("method", ["euler", "rk4", "lie", "implicit"])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_step_beside_differences(name, method):
    beside_differences(ROBOTS[name], *state(ROBOTS[name]), 0.01, method)


@pytest.mark.parametrize("method", [None, "euler", "rk4", "lie", "implicit", "midpoint"])
def test_one_function_is_what_the_laws_make_of_arrays(method, monkeypatch):
    """The compiled equations: one state, batches with their own steps, free parameters, float32."""
    freed = pp.Robot.of(zoo.chain("two", ["spherical", "revolute"], seed=1)).free("mass")
    masses = freed.parameters() * np.linspace(0.8, 1.2, 3)[:, None]
    for robot in (
        pp.Robot.of(zoo.chain("flat", ["revolute", "prismatic"], seed=2)),
        freed.at(masses[1]),
        freed.at(masses),
    ):
        q, v, tau = state(robot, 5, (3,))
        for dt in [None] if method is None else [0.01, np.array([0.01, 0.02, 0.05])]:
            asked = (q, v, tau, dt, method or "rk4")
            found, single = (
                robot.linearize(*(x.astype(kind) for x in asked[:3]), *asked[3:]) for kind in "df"
            )
            short = None if dt is None else 0.01
            once, again = (
                robot.linearize(q[0], v[0], tau[0], short, asked[4]) for _ in range(2)
            )  # the second one at once
            with monkeypatch.context() as patch:
                patch.setattr(linearize_function, "linearize_function", lambda *arguments: None)
                truth, alone = (
                    robot.linearize(*asked),
                    robot.linearize(q[0], v[0], tau[0], short, asked[4]),
                )
            for n, x in enumerate(truth):
                size = np.abs(x).max()
                np.testing.assert_allclose(found[n], x, atol=1e-12 * size)
                np.testing.assert_allclose(once[n], alone[n], atol=1e-12 * size)
                np.testing.assert_array_equal(again[n], once[n])
                np.testing.assert_allclose(single[n], x, atol=1e-4 * size)
                assert single[n].dtype == np.float32


def test_a_step_of_embedded_loops():
    """Stages of rk4 leave the loop open, and its accelerations depend on all numbers of q."""
    tree, loops, options = fourbar()
    robot, rng = pp.embed(tree, loops, **options), np.random.default_rng(0)
    beside_differences(robot, robot.neutral(), *rng.standard_normal((2, robot.nv)), 0.1, "rk4")


def beside_differences(robot, q, v, tau, dt, method):
    A, B = robot.linearize(q, v, tau, dt, method)
    q1, _ = robot.step(q, v, tau, dt, method)

    def after(x, y, t):
        q2, v2 = robot.step(robot.integrate(q, x), v + y, tau + t, dt, method)
        return np.concatenate([robot.difference(np.broadcast_to(q1, q2.shape), q2), v2], axis=-1)

    e = 1e-4
    x, y, t = np.split(np.eye(3 * robot.nv), 3, axis=-1)
    near, far = (after(s * x, s * y, s * t) - after(-s * x, -s * y, -s * t) for s in (e, 2 * e))
    columns = (8 * near - far) / (12 * e)
    size = 1.0 + np.abs(columns).max()
    np.testing.assert_allclose(np.concatenate([A, B], axis=-1), columns.T, atol=1e-9 * size)


@pytest.mark.parametrize("name", ROBOTS)
def test_at_once_is_the_limit_of_short_steps(name):
    """A_h = I + h A + h² ...: two steps cancel the square. The bracket of curved joints matters."""
    robot, h = ROBOTS[name], 1e-4
    q, v, tau = state(robot, 1)
    A, B = robot.linearize(q, v, tau)
    (A1, B1), (A2, B2) = (robot.linearize(q, v, tau, s, "lie") for s in (h, 2 * h))
    eye = np.eye(2 * robot.nv)
    slope = (4 * (A1 - eye) - (A2 - eye)) / (2 * h)
    np.testing.assert_allclose(A, slope, atol=1e-5 * (1.0 + np.abs(A).max()))
    np.testing.assert_allclose(B, (4 * B1 - B2) / (2 * h), atol=1e-5 * (1.0 + np.abs(B).max()))
    curved = not robot.manifold.is_flat
    assert (np.abs(A[: robot.nv, : robot.nv]).max() > 0.1) == curved
    np.testing.assert_array_equal(A[: robot.nv, robot.nv :], np.eye(robot.nv))


def test_beside_mujoco():
    """mjd_transitionFD of an Euler step: the same columns in MuJoCo's order of velocities, for a
    fixed base."""
    mujoco = pytest.importorskip("mujoco")
    robot = pp.Robot.of(
        zoo.chain(
            "beside", ["revolute", "spherical", "prismatic", "revolute"], seed=4, armature=True
        )
    )
    peer, dt = Mj(robot.model), 0.002
    model, layout = peer.peer, interop.mujoco(robot, peer.peer)
    data = mujoco.MjData(model)
    model.opt.timestep, model.opt.integrator = dt, mujoco.mjtIntegrator.mjINT_EULER
    T = layout.to_v(np.eye(robot.nv)).T
    for seed in range(2):
        q, v, tau = state(robot, seed)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = (
            layout.to_q(q),
            layout.to_v(v),
            layout.to_tau(tau),
        )
        A = np.zeros((2 * robot.nv, 2 * robot.nv))
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
        T2 = np.kron(np.eye(2), T)
        got, _ = robot.linearize(q, v, tau, dt, "euler")
        np.testing.assert_allclose(T2 @ got @ T2.T, A, atol=1e-6)


def test_batches_float32_and_a_regulator():
    """Elements of a batch are those of single calls; what an LQR gain makes of a step is stable."""
    scipy = pytest.importorskip("scipy.linalg")
    robot = ROBOTS["curved"]
    q, v, tau = state(robot, 3, (4,))
    for dt in (None, 0.01, np.full(4, 0.01)):
        A, B = robot.linearize(q, v, tau, dt)
        assert A.shape == (4, 2 * robot.nv, 2 * robot.nv) and B.shape == (4, 2 * robot.nv, robot.nv)
        one = robot.linearize(q[2], v[2], tau[2], None if dt is None else 0.01)
        np.testing.assert_allclose(A[2], one[0], atol=1e-12)
        np.testing.assert_allclose(B[2], one[1], atol=1e-12)
    single = robot.linearize(*(x.astype(np.float32) for x in (q, v, tau)))
    assert {x.dtype for x in single} == {np.dtype(np.float32)}
    arm = ROBOTS["arm"]
    pose, rest = np.full(6, 0.3), np.zeros(6)
    A, B = arm.linearize(pose, rest, arm.gravity(pose), 0.01)
    P = scipy.solve_discrete_are(A, B, np.eye(12), 1e-3 * np.eye(6))
    K = np.linalg.solve(1e-3 * np.eye(6) + B.T @ P @ B, B.T @ P @ A)
    assert (
        np.abs(np.linalg.eigvals(A - B @ K)).max()
        < 1.0
        <= np.abs(np.linalg.eigvals(A)).max() + 1e-9
    )


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"q": [0.0] * 5}, "linearize: q "),
        ({"dt": -1.0}, "linearize: dt is -1.0"),
        ({"dt": 0.01, "method": "heun"}, "linearize: method is 'heun'"),
        ({"v": np.zeros((3, 6)), "tau": np.zeros((2, 6))}, "batch axes"),
    ],
)
def test_words(change, cause):
    given = {"q": np.zeros(6), "v": np.zeros(6), "tau": np.zeros(6)} | change
    with pytest.raises(pp.StateError, match=cause):
        ROBOTS["arm"].linearize(**given)
