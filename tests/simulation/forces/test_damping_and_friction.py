"""Contacts that stick, slide, open and close, against mechanics in closed form and MuJoCo."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.contact import coulomb_friction

G, SLOPE = 9.81, 0.3


def block(mu: float, slope: float = 0.0, size=(0.2, 0.1, 0.1), mass: float = 2.0) -> pp.System:
    """A block on four corners; the plane is level, and gravity leans by the slope."""
    b = pp.Builder("block", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    x, y, z = size
    b.body(
        "block",
        mass=mass,
        inertia=mass / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y]),
    )
    b.joint("free", "free", "world", "block")
    corners = {f"{i}{j}": (i * x / 2, j * y / 2, -z / 2) for i in (-1, 1) for j in (-1, 1)}
    for name, place in corners.items():
        b.frame(name, "block", xyz=place)
    return pp.connect(
        b.build(),
        [
            pp.Loop("rough", name, "world", axis=(0, 0, 1), friction=mu, name=name)
            for name in corners
        ],
    )


@pytest.mark.parametrize(("mu", "v0"), [(0.2, -0.5), (0.5, -0.5), (0.5, 0.4)])
def test_a_block_slides_up_a_slope_stops_and_holds_or_slides_back(mu, v0):
    """v' = g sin - mu g cos sgn(v) while it slides; at rest it holds where tan <= mu."""
    cell, q = block(mu, SLOPE), np.array([0, 0, 0.05, 0, 0, 0, 1.0])
    motion = pp.simulate(cell, q, [0, 0, 0, v0, 0, 0], duration=0.3, dt=2e-3, contacts="open")
    slowing = G * np.sin(SLOPE) - np.sign(v0) * mu * G * np.cos(SLOPE)
    stop = -v0 / slowing
    after = max(G * (np.sin(SLOPE) - mu * np.cos(SLOPE)), 0.0)
    held = [event for event in motion.events if event.name == "contact holds"]
    assert len(held) == 4 and all(abs(event.t - stop) < 1e-9 for event in held)
    assert sum(event.name == "contact slides" for event in motion.events) == (4 if after else 0)
    np.testing.assert_allclose(motion.final.v[3], after * (0.3 - stop), atol=1e-9)
    np.testing.assert_allclose(
        motion.final.q[0], v0 * stop / 2 + after * (0.3 - stop) ** 2 / 2, atol=1e-9
    )
    np.testing.assert_allclose(motion.forces[-1, :, 5].sum(), -2.0 * G * np.cos(SLOPE), rtol=1e-9)
    assert np.diff(motion.energy).max() < 1e-12 and motion.residual.max() < 1e-12


def test_a_high_block_that_is_stopped_tips_over_its_edge():
    """A high block thrown along rough ground does not slide to rest: its rear corners lift off."""
    cell, q = block(0.9, 0.0, (0.1, 0.1, 0.4)), np.array([0, 0, 0.2, 0, 0, 0, 1.0])
    motion = pp.simulate(cell, q, [0, 0, 0, 1.0, 0, 0], duration=0.05, dt=1e-3, contacts="open")
    assert {event.what for event in motion.events if event.name == "contact lost"} == {
        "-1-1",
        "-11",
    }
    height, width, k = 0.2, 0.05, (0.1**2 + 0.4**2) / 12
    turning = (
        G * (0.9 * height - width) / (k + width**2 - 0.9 * width * height)
    )  # about the front edge, which slides
    assert motion.a[1, 1] == pytest.approx(turning, rel=1e-2)


def rod(mu: float, tilt: float, drop: float = 0.2):
    b = pp.Builder("rod")
    b.body("rod", mass=2.0, inertia=np.diag([1e-3, 2.0 / 12, 2.0 / 12]))
    b.joint("free", "free", "world", "rod")
    b.frame("end", "rod", xyz=(0.5, 0, 0))
    loop = pp.Loop("rough", "end", "world", axis=(0, 0, 1), friction=mu, name="end")
    q = np.array([0, 0, 0.5 * np.sin(tilt) + drop, 0, np.sin(tilt / 2), 0, np.cos(tilt / 2)])
    return pp.connect(b.build(), [loop]), q


@pytest.mark.parametrize("mu", [0.2, 2.0])
def test_a_rod_falls_on_rough_ground(mu):
    """The impulse (Jx, Jz) stops the end of the rod, sideways as far as friction allows; momentum,
    angular momentum and energy agree."""
    tilt, m, I = 0.8, 2.0, 2.0 / 12
    cell, q = rod(mu, tilt)
    motion = pp.simulate(cell, q, duration=0.21, dt=1e-3, contacts="open")
    (made, *_), speed = motion.events, np.sqrt(2 * G * 0.2)
    rx, rz = 0.5 * np.cos(tilt), -0.5 * np.sin(tilt)  # from the middle to the end
    W = np.array([[1 / m + rz * rz / I, -rx * rz / I], [-rx * rz / I, 1 / m + rx * rx / I]])
    J = np.linalg.solve(W, [0.0, speed])
    if abs(J[0]) > mu * J[1]:
        sign = np.sign(J[0])
        Jz = speed / (W[1, 1] + sign * mu * W[1, 0])
        J = np.array([sign * mu * Jz, Jz])
    assert (abs(J[0]) < mu * J[1] - 1e-9) == (mu > 1.0), "one case holds, the other slides"
    assert made.name == "contact made" and made.value == pytest.approx(J[1], rel=1e-4)
    k = int(np.searchsorted(motion.t, made.t))
    np.testing.assert_allclose(motion.v[k, 1], (rz * J[0] - rx * J[1]) / I, rtol=2e-2)
    assert np.diff(motion.energy).max() < 1e-4


def test_blows_keep_coulombs_law_momentum_and_never_give_energy():
    """Random compliances and speeds: c+ = Omega lambda + c, friction cones, complementarity, and no
    gain of energy."""
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(30):
        contacts, free = int(rng.integers(1, 4)), int(rng.integers(3, 9))
        J = rng.normal(
            size=(3 * contacts + 1, free)
        )  # one bilateral row; more rows than motions, too
        L = rng.normal(size=(free, free))
        M = L @ L.T + free * np.eye(free)
        Omega, v = J @ np.linalg.solve(M, J.T), rng.normal(size=free)
        mu = rng.uniform(0.1, 0.8, contacts)
        touches = [
            coulomb_friction.ContactRow((3 * i, 3 * i + 1, 3 * i + 2), float(mu[i]))
            for i in range(contacts)
        ]
        lam = coulomb_friction.coulomb_forces(Omega, J @ v, [3 * contacts], touches)
        if lam is None:
            refused += 1
            continue
        after = v + np.linalg.solve(M, J.T @ lam)
        x, size = J @ after, 1e-7 * (1.0 + np.abs(lam).max())
        assert abs(x[-1]) < size
        for t in touches:
            n, side = t.rows[0], list(t.rows[1:])
            assert lam[n] >= 0.0 and x[n] > -size and abs(lam[n] * x[n]) < size
            assert np.hypot(*lam[side]) <= t.mu * lam[n] + size
            if np.hypot(*x[side]) > 100 * size and lam[n] > size:
                np.testing.assert_allclose(
                    lam[side], -t.mu * lam[n] * x[side] / np.hypot(*x[side]), atol=1e-4
                )
        assert after @ M @ after <= v @ M @ v + size
    assert refused <= 1, "what is not found is refused, and that is rare"


def test_fingers_that_squeeze_too_little_let_a_box_slip():
    """Two slides press a box with N: it sticks while 2 mu N >= m g, and otherwise falls with
    g - 2 mu N / m."""
    b = pp.Builder("finger")
    b.body("tip", mass=0.5, inertia=np.diag([1e-3, 1e-3, 1e-3]))
    b.joint("press", "prismatic", "world", "tip", axis=(1, 0, 0))
    finger = b.build()
    away = np.diag([-1.0, -1.0, 1.0, 1.0])
    there = np.eye(4)
    there[0, 3] = -0.05
    away[0, 3] = 0.05
    cell = pp.grasp(
        [(finger, there, "tip"), (finger, away, "tip")],
        pp.Body.box(1.0, (0.1, 0.1, 0.1)),
        [(-0.05, 0, 0), (0.05, 0, 0)],
        [pp.Contact("soft", normal=(s, 0, 0), friction=0.5, torsion=0.02) for s in (1, -1)],
    )
    q = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1.0])

    def press(t, q, v):
        squeeze = 12.0 if t < 0.05 else 6.0
        return np.array([squeeze, squeeze, *np.zeros(6)])

    motion = pp.simulate(cell, q, tau=press, duration=0.1, dt=1e-3, hold=True, contacts="open")
    slipped = [event for event in motion.events if event.name == "contact slides"]
    assert [event.what for event in slipped] == ["contact 1", "contact 2"] and abs(
        slipped[0].t - 0.05
    ) < 2e-3
    fall = 9.81 - 2 * 0.5 * 6.0
    np.testing.assert_allclose(motion.final.v[7], -fall * (0.1 - slipped[0].t), rtol=1e-6)
    np.testing.assert_allclose(motion.forces[-1, :, 5], 3.0, rtol=1e-9)


def test_a_box_that_is_thrown_stops_where_mujoco_stops_it():
    """mu = 0.4 from 1 m/s: v^2 / 2 mu g; MuJoCo's softer contacts agree to a percent."""
    mujoco = pytest.importorskip("mujoco")
    peer = mujoco.MjModel.from_xml_string(
        """<mujoco><option cone="elliptic" impratio="100" timestep="0.0005"/>
        <worldbody><geom type="plane" size="5 5 1" friction="0.4 0 0"/>
        <body pos="0 0 0.05"><freejoint/><geom type="box" size="0.1 0.05 0.05" mass="2"
        condim="3" friction="0.4 0 0" solref="0.002 1"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(peer)
    data.qvel[0] = 1.0
    for _ in range(800):
        mujoco.mj_step(peer, data)
    motion = pp.simulate(
        block(0.4),
        [0, 0, 0.05, 0, 0, 0, 1],
        [0, 0, 0, 1.0, 0, 0],
        duration=0.3,
        dt=2e-3,
        contacts="open",
    )
    assert motion.final.q[0] == pytest.approx(1.0 / (2 * 0.4 * G), abs=1e-9)
    assert motion.final.q[0] == pytest.approx(float(data.qpos[0]), rel=1e-2)
