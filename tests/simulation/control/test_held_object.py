"""Control of a held object: the closed system has the desired motion and contact forces."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.spatial.rotations import logarithm, quaternions, skew
from psiphi_bench import closed_cells
from psiphi_bench.interpreted_robot import uncompiled
from tests.robot.mechanisms.cells import inertia_at_object

FREE = {
    "weld": slice(0),
    "hinge": [2],
    "soft": [0, 1],
    "ball": [0, 1, 2],
}  # moments that a contact cannot give, about z = its axis


def motion(cell, q, v, a) -> tuple[np.ndarray, ...]:
    """Pose, velocity and acceleration [w; v] of the object, in world axes."""
    T = cell.frame_pose(q, cell.object)
    R, (w, x), (dw, dx) = T[:3, :3], v[-6:].reshape(2, 3), a[-6:].reshape(2, 3)
    return T, np.concatenate([R @ w, R @ x]), np.concatenate([R @ dw, R @ (dx + np.cross(w, x))])


def load(cell, q, v, a, push) -> np.ndarray:
    """By Newton and Euler: the sum of all contact wrenches [moment; force] on the object, in world
    axes, about its origin."""
    body, (T, V, A) = cell.bodies[-1], motion(cell, q, v, a)
    R, w, dw = T[:3, :3], V[:3], A[:3]
    c, I = R @ body.com, R @ body.inertia @ R.T
    force = body.mass * (
        A[3:] + np.cross(dw, c) + np.cross(w, np.cross(w, c)) + np.array([0, 0, 9.81])
    )
    return np.concatenate([I @ dw + np.cross(w, I @ w) + np.cross(c, force), force]) - push


def transfers(cell, q) -> list[np.ndarray]:
    """A_i: the motion of the object at its origin -> that of the contact point."""
    origin = cell.frame_pose(q, cell.object)[:3, 3]
    arms = [cell.frame_pose(q, contact.first)[:3, 3] - origin for contact in cell.contacts]
    return [np.block([[np.eye(3), np.zeros((3, 3))], [-skew(l), np.eye(3)]]) for l in arms]


def given(cell, q) -> list[np.ndarray]:
    """N_i (6, k): the wrenches that a contact can give, in world axes."""
    out = []
    for contact in cell.contacts:
        R = cell.frame_pose(q, contact.second)[:3, :3]
        axis = np.array(contact.shape.axis)
        turned = np.linalg.qr(np.column_stack([axis, np.eye(3)]))[0][:, [1, 2, 0]]  # its axis last
        moments = np.delete(R @ turned, FREE[contact.kind], axis=1)
        N = np.zeros((6, moments.shape[1] + 3))
        N[:3, : moments.shape[1]], N[3:, moments.shape[1] :] = moments, R
        out.append(N)
    return out


@pytest.mark.parametrize(("seed", "arms"), [(1, 2), (12, 2), (3, 3), (20, 3), (7, 2)])
def test_motion_and_forces_are_as_wanted(seed, arms):
    """Contacts of all kinds: the acceleration is that of the law; the forces balance it and are the
    nearest to the desired ones by W^-1."""
    closed, rng = closed_cells.random_cell(seed, arms), np.random.default_rng(seed)
    cell, q, v = closed.system, closed.q, closed.v
    T, V, _ = motion(cell, q, v, v)
    goal, rate, ahead = (
        cell.robot.integrate(q, 0.1 * rng.standard_normal(cell.nv)),
        *rng.standard_normal((2, 6)),
    )
    there = cell.frame_pose(goal, cell.object)
    N, S = given(cell, q), rng.standard_normal((arms, 6, 6))
    wanted = np.stack([n @ rng.standard_normal(n.shape[1]) for n in N])
    back = [cell.frame_pose(q, contact.second)[:3, :3].T for contact in cell.contacts]
    local = np.stack(
        [np.concatenate([R @ f[:3], R @ f[3:]]) for R, f in zip(back, wanted, strict=True)]
    )
    weights = S @ np.swapaxes(S, -1, -2) + np.eye(6)
    push = rng.standard_normal(6)
    control = pp.ObjectControl(
        cell,
        lambda t: (there, rate, ahead),
        30.0,
        9.0,
        measured=push,
        forces=local,
        share=weights,
        posture=goal,
    )
    tau = control(0.0, q, v)
    assert not tau[-6:].any()
    a, forces = cell.forward_dynamics(
        q, v, tau, forces=True, f_ext={cell.object: push}, method="KKT"
    )
    turn = np.array(logarithm(quaternions(T[:3, :3] @ there[:3, :3].T))[0])
    error = np.concatenate([turn, T[:3, 3] - there[:3, 3]])
    np.testing.assert_allclose(
        motion(cell, q, v, a)[2], ahead - 9.0 * (V - rate) - 30.0 * error, atol=1e-8
    )
    A = np.vstack(transfers(cell, q))
    np.testing.assert_allclose(A.T @ forces.reshape(-1), load(cell, q, v, a, push), atol=1e-7)
    turned = [
        np.kron(np.eye(2), R.T) @ W @ np.kron(np.eye(2), R)
        for R, W in zip(back, weights, strict=True)
    ]
    inner = np.zeros((6 * arms, sum(n.shape[1] for n in N)))
    at = np.cumsum([0, *(n.shape[1] for n in N)])
    for i, n in enumerate(N):
        inner[6 * i : 6 * i + 6, at[i] : at[i + 1]] = n
    off = np.concatenate(
        [np.linalg.solve(W, f) for W, f in zip(turned, forces - wanted, strict=True)]
    )
    squeezes = inner @ np.linalg.svd(A.T @ inner)[2][6:].T  # what contacts can do and moves nothing
    np.testing.assert_allclose(squeezes.T @ off, 0.0, atol=1e-7)
    outside = forces.reshape(-1) - inner @ np.linalg.lstsq(inner, forces.reshape(-1))[0]
    np.testing.assert_allclose(outside, 0.0, atol=1e-8)


def test_arms_keep_their_posture_where_the_object_leaves_them_free():
    """a_m is the nearest to the acceleration u of the posture, by the mass matrix: M (a - u) does
    no work along null(Jm)."""
    closed = closed_cells.random_cell(12, 2)
    cell, q, v = closed.system, closed.q, closed.v
    goal = cell.robot.integrate(q, 0.2 * np.random.default_rng(1).standard_normal(cell.nv))
    control = pp.ObjectControl(
        cell, cell.frame_pose(q, cell.object), posture=goal, posture_kp=5.0, posture_kd=3.0
    )
    a = cell.forward_dynamics(q, v, control(0.0, q, v))
    u = 5.0 * cell.robot.difference(q, goal) - 3.0 * v
    Jm = cell.constraint_jacobian(q)[:, :-6]
    free = np.linalg.svd(Jm)[2][np.linalg.matrix_rank(Jm) :]
    assert len(free) and np.abs(free @ (a - u)[:-6]).max() > 1e-6, (
        "by the mass matrix, not by squares"
    )
    np.testing.assert_allclose(
        free @ cell.robot.mass_matrix(q)[:-6, :-6] @ (a - u)[:-6], 0.0, atol=1e-9
    )


def test_impedance():
    """M_d (A - A_ref) + B E' + K E = f with f measured. With f unknown, the same with the inertia
    M_d of object and arms together."""
    rng = np.random.default_rng(4)
    arms = [pp.robots.random_tree(7, int(rng.integers(1 << 30)), "revolute", 0.0) for _ in range(2)]
    closed = closed_cells.grasping_cell(arms, ("rigid", "rigid"), rng)
    cell, q, v = closed.system, closed.q, closed.v
    there = cell.frame_pose(
        cell.robot.integrate(q, 0.1 * rng.standard_normal(cell.nv)), cell.object
    )
    rate, ahead, f = rng.standard_normal((3, 6))
    M, B, K = (x @ x.T + np.eye(6) for x in rng.standard_normal((3, 6, 6)))
    T, V, _ = motion(cell, q, v, v)
    turn = np.array(logarithm(quaternions(T[:3, :3] @ there[:3, :3].T))[0])
    pull = B @ (V - rate) + K @ np.concatenate([turn, T[:3, 3] - there[:3, 3]])
    for inertia, felt in ((M, M), (None, inertia_at_object(cell, q))):
        more = {} if inertia is None else {"measured": f}
        control = pp.ObjectControl(
            cell,
            lambda t: (there, rate, ahead),
            stiffness=K,
            damping=B,
            inertia=inertia,
            squeeze=5.0,
            **more,
        )
        a = cell.forward_dynamics(q, v, control(0.0, q, v), f_ext={cell.object: f})
        np.testing.assert_allclose(felt @ (motion(cell, q, v, a)[2] - ahead) + pull, f, atol=1e-7)


def test_a_motion_obeys_its_equation_compiled_and_in_python():
    """e'' + kd e' + kp e = 0 along a path, in a kernel, in Python, and in batched rollouts."""
    puma = pp.load("puma560")
    bent = np.array([0.1, -0.8, 0.6, 0.2, 0.5, 0.0])
    cell = pp.grasp([(puma, None, "tool")], pp.Body.box(2.0, (0.2, 0.1, 0.1)), [(-0.1, 0, 0)])
    q = cell.assemble(
        [*bent, *puma.frame_pose(bent, "tool")[:3, 3], 0, 0, 0, 1],
        hold=[j.name for j in cell.joints[:6]],
    )
    start = cell.frame_pose(q, cell.object)

    def path(t: float):
        there, rate, ahead = start.copy(), np.zeros(6), np.zeros(6)
        there[:3, 3] += [0.02 + 0.03 * np.sin(3 * t), 0.0, 0.01]
        rate[3], ahead[3] = 0.09 * np.cos(3 * t), -0.27 * np.sin(3 * t)
        return there, rate, ahead

    control = pp.ObjectControl(cell, path, kp=100.0, kd=12.0, posture=q)
    one, other = (
        pp.simulate(cell, q, tau=control, duration=0.06, dt=2e-3, compiled=flag)
        for flag in (True, False)
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-11)
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-8)
    t, swing = one.t[-1], np.sqrt(100.0 - 36.0)
    rate = np.array([-0.09, 0.0, 0.0])  # it starts at rest, behind its path
    error = one.final.q[-7:-4] - path(t)[0][:3, 3]
    first = q[-7:-4] - path(0.0)[0][:3, 3]
    meant = np.exp(-6 * t) * (
        first * np.cos(swing * t) + (rate + 6 * first) / swing * np.sin(swing * t)
    )
    np.testing.assert_allclose(error, meant, atol=1e-8)
    starts = np.stack(
        [q, cell.project(cell.robot.integrate(q, np.full(cell.nv, 1e-3)), np.zeros(cell.nv))[0]]
    )
    rolled, _ = pp.rollout(cell, starts, tau=control, steps=30, dt=2e-3)
    np.testing.assert_allclose(rolled[0, -1], one.final.q, atol=1e-10)
    assert np.abs(rolled[1, -1] - rolled[0, -1]).max() > 1e-5


def test_what_cannot_be_done_is_said():
    """Two points cannot turn an object about the line through them; a robot, or a cell without an
    object, has nothing to control."""
    cell = closed_cells.facing_pumas(["point", "point"])
    q, rest = closed_cells.elbows_up(cell), np.zeros(cell.nv)
    here = cell.frame_pose(q, cell.object)
    spin = np.array([1.0, 0, 0, 0, 0, 0])
    still = pp.ObjectControl(cell, here)
    assert np.abs(cell.forward_dynamics(q, rest, still(0.0, q, rest))).max() < 1e-8
    turning = pp.ObjectControl(cell, lambda t: (here, np.zeros(6), spin))
    with pytest.raises(pp.StateError, match=r"needs a force on|no contact can give"):
        turning(0.0, q, rest)
    both = turning(0.0, np.stack([q, q]), rest)
    assert both.shape == (2, cell.nv) and np.isnan(both).all()
    for wrong, words in (
        ({"kp": 1.0, "stiffness": 1.0}, "beside kp"),
        ({"kp": -1.0}, "without negative eigenvalues"),
        ({"kp": np.triu(np.ones((6, 6)))}, "symmetric"),
        ({"stiffness": 1.0, "measured": np.zeros(6)}, "natural inertia needs no measurement"),
        ({"inertia": 0.0}, "positive definite"),
        ({"share": [1.0, -1.0]}, "positive numbers"),
        ({"forces": np.zeros((3, 6))}, "2 wrenches"),
        ({"squeeze": np.nan}, "newtons"),
        ({"target": np.zeros(3)}, "pose"),
        ({"target": lambda t: 1 / 0}, "failed at t = 0"),
        ({"posture": np.zeros(cell.nq)}, "quaternion"),
    ):
        with pytest.raises(pp.StateError, match=words):
            pp.ObjectControl(cell, **({"target": here} | wrong))
    with pytest.raises(pp.StateError, match="expected a closed system"):
        pp.ObjectControl(pp.load("ur5"), here)
    with pytest.raises(pp.StateError, match="holds no object"):
        pp.ObjectControl(closed_cells.four_bar(), here)
    flyer = pp.load("puma560", base="free")
    table = pp.Loop("sliding", "box/box", "world", axis=(0, 0, 1))
    flying = pp.grasp([(flyer, None, "tool")], pp.Body.box(1.0, (1, 1, 1)), [None], loops=[table])
    with pytest.raises(
        pp.StateError, match="joints without motors that only box/box loads, together with"
    ):
        pp.ObjectControl(flying, here)


def polisher() -> tuple[pp.System, np.ndarray]:
    """A PUMA holds a tool whose tip slides on a tilted plane; the origin of the tool is its tip."""
    puma = pp.load("puma560")
    bent = np.array([0.1, -0.8, 0.6, 0.2, 0.5, 0.0])
    grip = np.eye(4)
    grip[:3, 3] = 0.02, 0.01, 0.15
    tip = puma.frame_pose(bent, "tool") @ np.linalg.inv(grip)
    surface = np.eye(4)
    surface[:3, :3] = [[1, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]]
    surface[:3, 3] = tip[:3, 3]
    arm = puma.with_frame("surface", "world", surface)
    tool = pp.Body("tool", 1.5, (0.0, 0.0, 0.1), np.diag([0.01, 0.012, 0.004]))
    loop = pp.Loop("sliding", "tool/tool", f"{puma.name}/surface", axis=(0, 0, 1))
    cell = pp.grasp([(arm, None, "tool")], tool, [grip], loops=[loop])
    return cell, np.concatenate([bent, tip[:3, 3], quaternions(tip[:3, :3])])


def test_force_and_motion_on_a_surface():
    """The tip moves along the plane and presses with 7 N: A is the desired acceleration, projected
    by the inertia P_obj."""
    cell, q = polisher()
    cell = uncompiled(cell)
    assert cell.nc == 7 and np.abs(cell.constraint_residual(q)).max() < 1e-9
    rng = np.random.default_rng(3)
    q, v = cell.project(q, rng.standard_normal(cell.nv))
    T, V, _ = motion(cell, q, v, v)
    ahead, forces = rng.standard_normal(6), np.zeros((2, 6))
    forces[1, 5] = -7.0  # on the plane, in its axes
    control = pp.ObjectControl(cell, lambda t: (T, V, ahead), forces=forces)
    a, found = cell.forward_dynamics(q, v, control(0.0, q, v), forces=True)
    normal = np.array([0.0, -0.6, 0.8])
    np.testing.assert_allclose(found[1], [0, 0, 0, *(-7.0 * normal)], atol=1e-8)
    tool, puma, grip = cell.bodies[-1], pp.load("puma560"), cell.frames["tool/grip1"].pose
    free = uncompiled(pp.grasp([(puma, None, "tool")], tool, [grip]))
    P, E = inertia_at_object(free, q), np.concatenate([np.zeros(3), normal])
    X = np.linalg.solve(P, E)
    np.testing.assert_allclose(
        motion(cell, q, v, a)[2], ahead - X * (E @ ahead) / (E @ X), atol=1e-8
    )


def test_polishing():
    """Along a line on the plane, compiled: the force is the desired one at all times, and the tip
    stays on the plane and near the line."""
    cell, q = polisher()
    start = cell.frame_pose(q, cell.object)
    way = np.array([0.0, 0.8, 0.6])

    def line(t: float):
        there = start.copy()
        there[:3, 3] += 0.05 * t * way
        return there, np.concatenate([np.zeros(3), 0.05 * way])

    forces = np.zeros((2, 6))
    forces[1, 5] = -7.0
    control = pp.ObjectControl(cell, line, forces=forces)
    v0 = cell.project(q, np.zeros(cell.nv))[1]
    motion = pp.simulate(cell, q, v0, control, duration=0.5, dt=5e-3, hold=True, compiled=True)
    pressed = motion.forces[:, 1, 3:] @ [0.0, -0.6, 0.8]
    np.testing.assert_allclose(pressed, -7.0, atol=1e-6)
    gone = motion.final.q[-7:-4] - start[:3, 3]
    assert abs(gone @ [0.0, -0.6, 0.8]) < 1e-10 and abs(gone @ way - 0.025) < 2e-3


def test_a_cell_that_flies():
    """A floating base without thrusters: the object and the forces of both hands are as desired,
    and the base moves by conservation of momentum."""
    tree, rng = pp.robots.random_tree(16, 5, "revolute", 0.6, base="free"), np.random.default_rng(8)
    hands = tuple(body.name for k, body in enumerate(tree.bodies) if k not in tree.parent)[:2]
    q = tree.random(rng)
    at = [tree.frame_pose(q, hand) for hand in hands]
    cell = uncompiled(
        pp.grasp([(tree, None, hands)], pp.Body.box(1.0, (0.5, 0.4, 0.3)), at, ["rigid", "point"])
    )
    q, v = cell.project(np.concatenate([q, [0, 0, 0, 0, 0, 0, 1]]), rng.standard_normal(cell.nv))
    T, V, _ = motion(cell, q, v, v)
    ahead, forces = rng.standard_normal(6), np.zeros((2, 6))
    forces[:, 3:] = rng.standard_normal((2, 3))
    control = pp.ObjectControl(cell, lambda t: (T, np.zeros(6), ahead), kd=3.0, forces=forces)
    tau = control(0.0, q, v)
    a, found = cell.forward_dynamics(q, v, tau, forces=True, method="KKT")
    assert len(cell.idle) == 12 and not tau[cell.idle].any()
    np.testing.assert_allclose(motion(cell, q, v, a)[2], ahead - 3.0 * V, atol=1e-8)
    A = np.vstack(transfers(cell, q))
    np.testing.assert_allclose(A.T @ found.reshape(-1), load(cell, q, v, a, np.zeros(6)), atol=1e-8)
    loosely = pp.ObjectControl(cell, lambda t: (T, np.zeros(6), ahead), kd=3.0)
    b, less = cell.forward_dynamics(q, v, loosely(0.0, q, v), forces=True)
    assert (
        np.abs(A.T @ (found - less).reshape(-1)).max() < 1e-8 < 1e-2 < np.abs(found - less).max()
    ), "held harder, moved alike"
    np.testing.assert_allclose(motion(cell, q, v, b)[2], ahead - 3.0 * V, atol=1e-8)
