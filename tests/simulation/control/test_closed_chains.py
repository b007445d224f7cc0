"""Lyapunov, Decoupled, OperationalSpace and ComputedTorque of closed chains, beside dense algebra
on the mechanisms without constraints."""

import numpy as np
import pytest

import psiphi as pp

MOVE = 0.5  # rad/s, of references


@pytest.fixture(scope="module")
def five_bar():
    """Two degrees of freedom, motors at the two cranks; the pin that closes it has three rows in
    the plane, one of which is redundant."""
    b = pp.Builder("five_bar", gravity=(0.0, -9.81, 0.0))
    for name, length in (("left", 0.5), ("reach", 0.7), ("right", 0.4), ("follow", 0.8)):
        b.body(name, 1.0 + length, com=(length / 2, 0.02, 0), inertia=np.diag([0.01, 0.06, 0.07]))
    b.joint("one", "revolute", "world", "left")
    b.joint("elbow", "revolute", "left", "reach", xyz=(0.5, 0, 0))
    b.joint("two", "revolute", "world", "right", xyz=(0.6, 0, 0))
    b.joint("knee", "revolute", "right", "follow", xyz=(0.4, 0, 0))
    b.frame("tip", "reach", xyz=(0.7, 0, 0))
    b.frame("heel", "follow", xyz=(0.8, 0, 0))
    return pp.connect(b.build(), [pp.Loop("ball", "tip", "heel")], passive=["elbow", "knee"])


@pytest.fixture(scope="module")
def closed(five_bar):
    return five_bar.assemble([2.2, -1.2, 1.0, 0.9], hold=["one", "two"])


@pytest.fixture(scope="module")
def cell():
    """A rigid hand on a gantry with a ball joint, and a point hand on a gantry, hold a beam."""

    def gantry(name, wrist):
        b = pp.Builder(name)
        parent = "world"
        for axis, letter in zip(np.eye(3), "xyz", strict=True):
            b.body(letter, 1.5, com=(0.05, 0.02, 0.0), inertia=np.diag([0.03, 0.02, 0.04]))
            b.joint("slide_" + letter, "prismatic", parent, letter, axis=tuple(axis))
            parent = letter
        if wrist:
            b.body("wrist", 0.7, com=(0.1, 0.0, 0.03), inertia=np.diag([0.01, 0.02, 0.015]))
            b.joint("ball", "spherical", parent, "wrist")
            parent = "wrist"
        b.frame("hand", parent, xyz=(0.1, 0, 0))
        return b.build()

    return pp.grasp(
        [(gantry("hold", True), None, "hand"), (gantry("rest", False), (1.0, 0, 0), "hand")],
        pp.Body.box(3.0, (0.8, 0.1, 0.2), "beam"),
        [(-0.4, 0, 0), (0.4, 0, 0)],
        ["rigid", "point"],
    )


@pytest.fixture(scope="module")
def held(cell):
    start = cell.neutral()
    start[-7:] = [0.5, 0.1, 0.2, 0.1, -0.2, 0.3, np.sqrt(0.86)]
    return cell.assemble(start, hold=[cell.joints[-1].name])


def directions(system, q, own):
    """N with v = N y' and Jc v = 0, by least squares."""
    Jc = system.constraint_jacobian(q)
    others = np.setdiff1d(np.arange(system.nv), own)
    N = np.zeros((system.nv, len(own)))
    N[own] = np.eye(len(own))
    N[others] = -np.linalg.lstsq(Jc[:, others], Jc[:, own], rcond=1e-10)[0]
    return N


def cranks(system, start, own):
    """t -> q, v, a of the independent coordinates of a flat chain; the others are left alone."""
    x = np.zeros(system.nv)
    x[own] = [0.6, -0.4]

    def reference(t):
        return (
            start + x * np.sin(MOVE * t),
            x * MOVE * np.cos(MOVE * t),
            -x * MOVE**2 * np.sin(t * MOVE),
        )

    return reference


def tumble(system, start, own):
    """t -> q, v, a of an object along q exp(x sin t)."""
    x = np.zeros(system.nv)
    x[own] = [0.5, -0.3, 0.4, 0.2, -0.3, 0.1]
    return lambda t: (system.integrate(start, x * np.sin(t)), x * np.cos(t), -x * np.sin(t))


def errors(system, own, motion, reference, pull):
    """e and s = v - N y_r', with v_d by differences, at the times of a motion."""
    found, step = [], 1e-6
    for t, q, v in zip(motion.t, motion.q, motion.v, strict=True):
        q_ref, v_ref, _ = reference(t)
        e = system.difference(q, q_ref)
        ahead, behind = (
            system.integrate(system.integrate(q_ref, h * v_ref), -e) for h in (step, -step)
        )
        v_r = system.difference(behind, ahead) / (2 * step) + pull * e
        found.append((e[own], v - directions(system, q, own) @ v_r[own]))
    return (np.stack([pair[i] for pair in found]) for i in range(2))


CASES = [("five_bar", "closed", [0, 2], cranks, None), ("cell", "held", range(9, 15), tumble, None)]


@pytest.fixture(params=[0, 1], ids=["five_bar", "object"])
def chain(request):
    system, start, own, make, _ = CASES[request.param]
    system, start, own = request.getfixturevalue(system), request.getfixturevalue(start), [*own]
    return system, start, own, make(system, start, own)


@pytest.mark.parametrize(("kp", "pull"), [(60.0, 0.0), (40.0, 3.0)])
def test_the_energy_of_the_error_falls_as_said(chain, kp, pull):
    """The energy with M, e and s = v - N y_r' decreases at the rate of the gains, whatever the
    share of the contacts."""
    system, start, own, reference = chain
    kd = 8.0
    share = [2.0, 1.0] if system.object else None
    control = pp.Lyapunov(system, reference, kp, kd, pull, share=share)
    push = np.zeros(system.nv)
    push[own] = 0.3 * np.cos(np.arange(len(own)))
    q = system.assemble(
        system.integrate(start, push),
        hold=[j.name for j in system.joints if {*j.coordinates} & {*own}],
    )
    motion = pp.simulate(system, q, tau=control, duration=0.12, dt=1e-3, compiled=True)
    e, s = errors(system, own, motion, reference, pull)
    M = system.robot.mass_matrix(motion.q)
    energy = 0.5 * np.einsum("ti,tij,tj->t", s, M, s) + 0.5 * kp * (e**2).sum(-1)
    rate = -kd * (s[:, own] ** 2).sum(-1) - pull * kp * (e**2).sum(-1)
    gone = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(motion.t))])
    assert (np.diff(energy) < 0.0).all() and energy[-1] < 0.95 * energy[0]
    assert np.allclose(energy, energy[0] + gone, atol=1e-4 * energy[0])


def test_each_velocity_error_fades_by_itself(chain):
    """s = m* (y' - y_r') with the Cholesky factor m of N* M N: each entry at its own rate."""
    system, start, own, reference = chain
    k, pull = np.zeros(system.nv), 2.0
    k[own] = np.linspace(5.0, 9.0, len(own))
    control = pp.Decoupled(system, reference, k, pull)
    motion = pp.simulate(system, start, tau=control, duration=0.08, dt=1e-3, compiled=True)
    _, missing = errors(system, own, motion, reference, pull)
    seen = []
    for q, s in zip(motion.q, missing, strict=True):
        N = directions(system, q, own)
        m = np.linalg.cholesky(N.T @ system.robot.mass_matrix(q) @ N)
        seen.append(m.T @ s[own])
    fades = seen[0] * np.exp(-k[own] * motion.t[:, None])
    assert np.allclose(seen, fades, atol=1e-5 * np.abs(seen[0]).max())


@pytest.mark.parametrize("size", [3, 6])
def test_a_frame_obeys_its_task_and_the_rest_is_nearest(cell, held, size):
    """x'' = x''_ref of the closed chain by its dense system; M (a - u) is a force on constraints
    and task alone."""
    rng = np.random.default_rng(size)
    frame, kp, kd = cell.object, 90.0, 15.0
    v = cell.project(held, rng.standard_normal(cell.nv))[1]
    pose = cell.frame_pose(cell.integrate(held, 0.05 * rng.standard_normal(cell.nv)), frame)
    target = pose if size == 6 else pose[:3, 3]
    control = pp.OperationalSpace(cell, frame, target, kp, kd, posture=held, speed=1e3)
    a = cell.forward_dynamics(held, v, control(0.0, held, v), method="KKT")
    twist = cell.robot.frame_velocity(held, v, frame)[6 - size :]
    found = cell.robot.frame_acceleration(held, v, a, frame)[6 - size :]
    now = cell.frame_pose(held, frame)
    error = pose[:3, 3] - now[:3, 3]
    if size == 6:
        turn = pose[:3, :3] @ now[:3, :3].T
        angle = np.arccos((np.trace(turn) - 1) / 2)
        skew = (turn - turn.T) * angle / (2 * np.sin(angle))
        error = np.concatenate([[skew[2, 1], skew[0, 2], skew[1, 0]], error])
    assert np.allclose(found, kp * error - kd * twist, atol=1e-7 * np.abs(found).max())
    u = -6.0 * v  # at its posture
    K = np.vstack([cell.constraint_jacobian(held), cell.robot.jacobian(held, frame)[6 - size :]])
    force = cell.robot.mass_matrix(held) @ (a - u)
    rest = force - K.T @ np.linalg.lstsq(K.T, force, rcond=None)[0]
    assert np.abs(rest).max() < 1e-8 * np.abs(force).max()


@pytest.mark.parametrize("law", [pp.Lyapunov, pp.Decoupled, pp.OperationalSpace, pp.ComputedTorque])
def test_contacts_share_the_load(cell, held, law):
    """Contact forces, by the dense system, minimize sum |f_i|^2 / share_i: f / share is orthogonal
    to every internal force."""
    v = cell.project(held, 0.3 * np.cos(np.arange(cell.nv)))[1]
    arguments = (
        (cell.object, cell.frame_pose(held, cell.object)) if law is pp.OperationalSpace else (held,)
    )
    for share in (None, [4.0, 1.0]):
        tau = law(cell, *arguments, share=share)(0.0, held, v)
        _, forces = cell.forward_dynamics(held, v, tau, forces=True, method="KKT")
        weighted = forces / (np.ones(2) if share is None else np.array(share))[:, None]
        # the point contact: equal and opposite forces along the line of the contacts
        first, second = (cell.frame_pose(held, contact.second)[:3, 3] for contact in cell.contacts)
        internal = np.zeros((2, 6))
        for axis in np.eye(3):
            internal[0, 3:], internal[1, 3:] = -axis, axis
            internal[0, :3] = -np.cross(second - first, axis)
            assert abs((weighted * internal).sum()) < 1e-8 * np.abs(forces).max()


@pytest.mark.parametrize("law", [pp.Lyapunov, pp.Decoupled, pp.OperationalSpace])
def test_a_compiled_motion_says_the_same(five_bar, closed, law):
    arguments = {
        pp.OperationalSpace: ("tip", five_bar.frame_pose(closed, "tip")[:3, 3] - [0.05, 0.02, 0]),
    }.get(law, (closed + 0.1,))
    control = law(five_bar, *arguments)
    q = np.stack([closed, five_bar.assemble(closed + 0.05, hold=["one", "two"])])
    kernel, steps = (
        pp.simulate(
            five_bar, q, tau=control, duration=0.03, dt=1e-3, method="rk4", compiled=compiled
        )
        for compiled in (True, False)
    )
    assert np.allclose(kernel.q, steps.q, atol=1e-12) and np.allclose(kernel.v, steps.v, atol=1e-10)


def test_what_is_refused(five_bar, closed, cell, held):
    for law in (pp.Lyapunov, pp.Decoupled):
        with pytest.raises(pp.StateError, match="2 degrees of freedom"):
            law(five_bar, closed, joints=["one"])
        with pytest.raises(pp.StateError, match="no closed configuration"):
            law(
                pp.connect(five_bar.robot, [pp.Loop("distance", "tip", "world", length=9.0)]),
                closed,
            )
        with pytest.raises(pp.StateError, match="no motor drives"):
            law(pp.connect(five_bar.robot, five_bar_loops(five_bar), actuated=["one"]), closed)
        with pytest.raises(pp.StateError, match="positive numbers"):
            law(cell, held, share=[1.0, -1.0])
        with pytest.raises(pp.StateError, match="share="):
            law(pp.load("pelican"), np.zeros(2), share=[1.0])
        with pytest.raises(pp.StateError, match="joints="):
            law(pp.load("pelican"), np.zeros(2), joints=["shoulder"])
    with pytest.raises(pp.SingularError, match="singular"):  # out of its plane
        pp.OperationalSpace(five_bar, "tip", np.ones(3))(0.0, closed, np.zeros(4))
    with pytest.raises(pp.StateError, match="one task"):
        pp.OperationalSpace(cell, cell.object, np.zeros(3), policy="damped")


def five_bar_loops(system):
    return [pp.Loop("ball", contact.first, contact.second) for contact in system.contacts]


@pytest.mark.parametrize("law", [pp.ComputedTorque, pp.Lyapunov, pp.Decoupled])
def test_one_reference_and_many_states_of_a_held_object(cell, held, law):
    """Each element of a batch beside the same state alone."""
    law = law(cell, held, 4.0, 1.0)
    q = np.tile(held, (3, 1))
    _, v = cell.project(q, np.random.default_rng(0).standard_normal((3, cell.nv)))
    tau = law(0.0, q, v)
    for i in range(3):
        np.testing.assert_allclose(law(0.0, q[i], v[i]), tau[i], rtol=1e-12, atol=1e-12)
