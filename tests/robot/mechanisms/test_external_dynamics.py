"""S4 section 4: closed chains of arms whose forward dynamics come from elsewhere."""

import numpy as np
import pytest

import psiphi as pp


@pytest.fixture(scope="module")
def arms():
    """Two arms of six hinges and slides, with different masses."""
    made = []
    for i, mass in enumerate((1.0, 1.7)):
        b = pp.Builder(f"arm{i}")
        axes = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
        parent = "world"
        for k, axis in enumerate(axes):
            b.body(f"l{k}", mass, com=(0.1, 0.02, 0.03), inertia=np.diag([0.02, 0.03, 0.04]))
            kind = "prismatic" if k == 2 else "revolute"
            b.joint(f"j{k}", kind, parent, f"l{k}", axis=axis, xyz=(0.2 * (k > 0), 0, 0.1))
            parent = f"l{k}"
        b.frame("hand", parent, xyz=(0.1, 0, 0))
        made.append(b.build())
    return made


@pytest.fixture(scope="module")
def cell(arms):
    """A bar in two hands, one rigid, one a point."""
    return pp.grasp(
        [(arms[0], None, "hand"), (arms[1], (1.9, 0.3, 0.1), "hand")],
        pp.Body.box(2.0, (0.6, 0.1, 0.1), "bar"),
        [(-0.3, 0, 0), (0.3, 0, 0)],
        ["rigid", "point"],
    )


@pytest.fixture(scope="module")
def state(cell):
    rng = np.random.default_rng(2)
    q = cell.assemble([*(0.4 * rng.standard_normal(12)), 1.3, 0.2, 0.4, 0, 0, 0, 1])
    v = cell.project(q, rng.standard_normal(cell.nv))[1]
    return q, v, 5.0 * rng.standard_normal(12)


def by_matrices(arm):
    """Free dynamics with NumPy's solve."""

    def dynamics(q, v, tau):
        return np.linalg.solve(arm.mass_matrix(q), tau - arm.bias(q, v))

    return dynamics


def test_python_functions_give_the_dynamics_of_the_chain(cell, arms, state):
    """Both arms by NumPy, or one of them, single or in batches."""
    want, pushes = cell.forward_dynamics(*state, forces=True)
    functions = {f"arm{i}": by_matrices(arm) for i, arm in enumerate(arms)}
    for some in (functions, {"arm1": functions["arm1"]}):
        a, forces = cell.with_dynamics(some).forward_dynamics(*state, forces=True)
        assert np.allclose(a, want, atol=1e-8 * np.abs(want).max())
        assert np.allclose(forces, pushes, atol=1e-7 * np.abs(pushes).max())

    def many(q, v, tau):
        missing = (tau - arms[0].bias(q, v))[..., None]
        return np.linalg.solve(arms[0].mass_matrix(q), missing)[..., 0]

    batch = [np.stack([x, x]) for x in state]
    a = cell.with_dynamics({"arm0": many}, batched=True).forward_dynamics(*batch)
    assert np.allclose(a, want, atol=1e-8 * np.abs(want).max())


def test_an_arm_of_mujoco(cell, arms, state, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    arms[0].save(tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)

    def dynamics(q, v, tau):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        return data.qacc

    want = cell.forward_dynamics(*state)
    a = cell.with_dynamics({"arm0": dynamics}).forward_dynamics(*state)
    assert np.allclose(a, want, atol=1e-7 * np.abs(want).max())


def test_functions_that_are_not_linear_in_torques(cell, arms, state):
    """A small network of saturated torques: the chain satisfies its constraints, each arm moves by
    its own function under the contact forces, and the object by Newton and Euler."""
    q, v, tau = state
    rng = np.random.default_rng(7)
    W, V = 0.05 * rng.standard_normal((20, 6)), rng.standard_normal((6, 20))

    def network(x, y, load):
        torque = 40.0 * np.tanh(load / 40.0) + V @ np.tanh(W @ load + 0.1 * np.sin(W @ x))
        return by_matrices(arms[0])(x, y, torque)

    chain = cell.with_dynamics({"arm0": network})
    a, forces = chain.forward_dynamics(q, v, tau, forces=True)
    Jc, bias = cell.constraint_jacobian(q), cell.bias_on_constraints(q, v)
    assert np.abs(Jc @ a + bias).max() < 1e-8 * np.abs(a).max()
    contact = cell.contacts[0]
    J = cell.robot.jacobian(q, contact.first)[:, :6]
    push = -forces[0].copy()  # on the hand, at the origin of its frame
    assert np.allclose(
        a[:6], network(q[:6], v[:6], tau[:6] + J.T @ push), atol=1e-7 * np.abs(a).max()
    )
    turn = cell.frame_pose(q, cell.object)[:3, :3]
    centre = 2.0 * (turn @ (a[15:18] + np.cross(v[12:15], v[15:18])) - cell.robot.gravity_vector)
    assert np.allclose(centre, forces[:, 3:].sum(axis=0), atol=1e-7 * np.abs(forces).max())


def test_it_can_be_simulated(cell, arms, state):
    q = state[0]
    chain = cell.with_dynamics({"arm0": by_matrices(arms[0])})
    hold = pp.ComputedTorque(cell, q)
    found, want = (
        pp.simulate(x, q, tau=hold, duration=0.02, dt=5e-3, method="rk4", compiled=False)
        for x in (chain, cell)
    )
    assert np.allclose(found.q, want.q, atol=1e-9) and np.allclose(found.v, want.v, atol=1e-7)
    assert np.allclose(found.forces, want.forces, atol=1e-6)


def test_what_is_refused(cell, arms, state):
    with pytest.raises(pp.StateError, match="no mechanism"):
        cell.with_dynamics({"arm7": by_matrices(arms[0])})
    with pytest.raises(pp.StateError, match="expected a function"):
        cell.with_dynamics({"arm0": 3})
    with pytest.raises(pp.StateError, match="expected a dict"):
        cell.with_dynamics(by_matrices(arms[0]))
    for bad, words in (
        (lambda q, v, tau: tau[:2], "acceleration of arm0 has shape"),
        (lambda q, v, tau: 1 / 0, "dynamics of arm0 failed"),
    ):
        with pytest.raises(pp.StateError, match=words):
            cell.with_dynamics({"arm0": bad}).forward_dynamics(*state)
    rigid = dict.fromkeys(("arm0", "arm1"), lambda q, v, tau: np.ones(6))  # they do not yield
    with pytest.raises(pp.SingularError, match="no contact forces"):
        cell.with_dynamics(rigid).forward_dynamics(*state)
