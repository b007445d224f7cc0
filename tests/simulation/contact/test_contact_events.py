"""Contacts that are made and lost during a motion, against mechanics in closed form."""

import numpy as np
import pytest

import psiphi as pp

NORMAL, ALONG = np.array([0.6, 0.0, 0.8]), np.array([0.8, 0.0, -0.6])


def body(points: dict, plane, mass=2.0, inertia=(0.1, 0.1, 0.1), friction=0.0) -> pp.System:
    """A free body whose points stay on one side of a plane through the origin of the world."""
    b = pp.Builder("body")
    b.body("block", mass=mass, inertia=np.diag(inertia))
    b.joint("free", "free", "world", "block")
    for name, place in points.items():
        b.frame(name, "block", xyz=place)
    kind = "rough" if friction else "sliding"
    loops = [
        pp.Loop(kind, name, "world", axis=tuple(plane), name=name, friction=friction)
        for name in points
    ]
    return pp.connect(b.build(), loops)


def test_a_ball_lands_on_a_slope_and_slides():
    """The point falls, loses its normal velocity by the impulse m v_n, and slides on with g along
    the plane."""
    cell = body({"tip": (0, 0, 0)}, NORMAL)
    q = np.array([*(0.4 * NORMAL), 0, 0, 0, 1.0])
    v0 = np.array([0, 0, 0, 0.3, 0.5, 0.0])
    motion = pp.simulate(cell, q, v0, duration=0.8, dt=1e-3, contacts="open")
    (event,) = motion.events
    g = np.array([0, 0, -9.81])
    (hit,) = (t for t in np.roots([0.5 * (g @ NORMAL), v0[3:] @ NORMAL, 0.4]).real if t > 0)
    assert (event.name, event.what, event.stopped) == ("contact made", "tip", False) and abs(
        event.t - hit
    ) < 1e-5
    before = v0[3:] + g * hit
    assert event.value == pytest.approx(-2.0 * before @ NORMAL, rel=1e-5)
    end = motion.final.v[3:]
    np.testing.assert_allclose(end @ NORMAL, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        [end @ ALONG, end[1]], [v0[3:] @ ALONG + (g @ ALONG) * 0.8, 0.5], atol=1e-9
    )
    assert abs(motion.final.q[:3] @ NORMAL) < 1e-9 and motion.residual[:, 0].max() < 1e-9
    np.testing.assert_allclose(motion.forces[-1, 0, 3:], 2.0 * (g @ NORMAL) * NORMAL, atol=1e-6)
    assert not motion.forces[:50].any() and motion.system is cell


def test_a_contact_that_would_pull_is_lost():
    """A block at rest is lifted by twice its weight times t: it leaves the ground at 0.5 s."""
    cell = body({"tip": (0, 0, 0)}, (0, 0, 1))
    q = np.array([0, 0, 0, 0, 0, 0, 1.0])

    def lift(t, q, v):
        return np.array([0, 0, 0, 0, 0, 2.0 * 2.0 * 9.81 * t])

    motion = pp.simulate(cell, q, tau=lift, duration=1.0, dt=5e-3, contacts="open")
    (event,) = motion.events
    assert (
        (event.name, event.what) == ("contact lost", "tip")
        and abs(event.t - 0.5) < 6e-3
        and event.value < 0
    )
    assert motion.final.v[5] == pytest.approx(9.81 * 0.25, abs=2e-3), (
        "the integral of (2 t - 1) g from 0.5 to 1"
    )
    held = pp.simulate(cell, q, tau=lift, duration=1.0, dt=5e-3, stop=())
    assert np.abs(held.final.q[2]) < 1e-9 and held.forces[-1, 0, 5] > 0, (
        "contacts that hold pull, too"
    )


def test_a_rod_falls_on_its_end():
    """J = v / (1/m + x^2 / I) at the end that hits first, x its distance along the table; that end
    comes to rest."""
    m, half, tilt = 2.0, 0.5, 0.4
    I = m * (2 * half) ** 2 / 12
    cell = body({"left": (-half, 0, 0), "right": (half, 0, 0)}, (0, 0, 1), m, (1e-3, I, I))
    q = np.array([0, 0, half * np.sin(tilt) + 0.2, 0, np.sin(tilt / 2), 0, np.cos(tilt / 2)])
    motion = pp.simulate(cell, q, duration=1.2, dt=1e-3, contacts="open")
    first = motion.events[0]
    meant = np.sqrt(2 * 9.81 * 0.2) / (1 / m + (half * np.cos(tilt)) ** 2 / I)
    assert (
        first.name == "contact made"
        and first.what == "right"
        and first.value == pytest.approx(meant, rel=1e-5)
    )
    assert {event.what for event in motion.events if event.name == "contact made"} == {
        "left",
        "right",
    }
    assert (
        np.diff(motion.energy).max() < 1e-3 and np.abs(motion.final.v[[0, 1, 2, 4, 5]]).max() < 1e-9
    )
    assert abs(motion.final.v[3]) < 5e-5 and abs(motion.final.q[0]) < 5e-5, (
        "nothing pushes sideways"
    )
    np.testing.assert_allclose(motion.forces[-1, :, 5], -m * 9.81 / 2, rtol=1e-6)
    stopped = pp.simulate(cell, q, duration=1.2, dt=1e-3, contacts="open", stop="contact made")
    assert stopped.events[-1].stopped and stopped.t[-1] == pytest.approx(first.t, abs=1e-3)


def test_what_cannot_open_says_so():
    cell, q = body({"tip": (0, 0, 0)}, (0, 0, 1)), np.array([0, 0, 0.1, 0, 0, 0, 1.0])
    with pytest.raises(pp.StateError, match="q0 is not on the constraints"):
        pp.simulate(cell, q, duration=0.1)
    with pytest.raises(pp.StateError, match="q0 is not on the constraints"):
        pp.simulate(cell, q - 0.2 * np.eye(7)[2], duration=0.1, contacts="open")
    with pytest.raises(pp.StateError, match="one motion at a time"):
        pp.simulate(cell, np.stack([q, q]), duration=0.1, contacts="open")
    with pytest.raises(pp.StateError, match="does not work with the method RK45"):
        pp.simulate(cell, q, duration=0.1, contacts="open", method="RK45")
    with pytest.raises(pp.StateError, match=r"compiled=True.*finds the times at which"):
        pp.simulate(cell, q, duration=0.1, contacts="open", compiled=True)
    with pytest.raises(pp.StateError, match=r"no contact of .* can open"):
        pp.simulate(body({"tip": (0, 0, 0)}, (0, 0, 1), friction=None), q, contacts="open")
    with pytest.raises(pp.StateError, match="only closed systems"):
        pp.simulate(pp.load("ur5"), np.zeros(6), contacts="open")
    with pytest.raises(pp.StateError, match="expected one of hold, open"):
        pp.simulate(cell, q, contacts="free")
    with pytest.raises(pp.StateError, match="others take none"):
        pp.connect(pp.load("ur5"), [pp.Loop("ball", "tool0", "world", friction=0.0)])


def bouncing(restitution: float, friction: float = 0.3, points: dict | None = None) -> pp.System:
    b = pp.Builder("ball")
    b.body("ball", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    b.joint("free", "free", "world", "ball")
    loops = []
    for name, place in (points or {"tip": (0, 0, 0)}).items():
        b.frame(name, "ball", xyz=place)
        loops.append(
            pp.Loop(
                "rough",
                name,
                "world",
                axis=(0, 0, 1),
                friction=friction,
                name=name,
                restitution=restitution,
            )
        )
    return pp.connect(b.build(), loops)


def test_a_ball_bounces_as_high_as_newton_says_and_comes_to_rest():
    """c+ = -e c-: e of the speed, e^2 of the height, and rest after t (1 + e) / (1 - e)."""
    e, height = 0.5, 0.2
    fall = np.sqrt(2.0 * height / 9.81)
    motion = pp.simulate(
        bouncing(e), [0, 0, height, 0, 0, 0, 1.0], duration=0.7, dt=1e-3, contacts="open"
    )
    bounces = [event for event in motion.events if event.name == "contact bounces"]
    times = fall + 2.0 * fall * np.cumsum([0.0, *(e ** np.arange(1, len(bounces)))])
    np.testing.assert_allclose([event.t for event in bounces], times, rtol=0, atol=1e-4)
    speeds = 9.81 * fall * e ** np.arange(len(bounces))
    np.testing.assert_allclose(
        [event.value for event in bounces], 2.0 * (1.0 + e) * speeds, rtol=1e-3, atol=5e-3
    )
    (rest,) = (event for event in motion.events if event.name == "contact made")
    assert len(bounces) > 4 and abs(rest.t - fall * (1.0 + e) / (1.0 - e)) < 0.02
    assert np.abs(motion.final.v).max() < 1e-9 and abs(motion.final.q[2]) < 1e-9
    between = (motion.t > times[0] + 1e-2) & (motion.t < times[1] - 1e-2)
    np.testing.assert_allclose(motion.energy[between], e**2 * motion.energy[0], rtol=1e-4)


def test_blows_that_bounce_keep_energy_or_lose_it_and_what_does_not_open_does_not_bounce():
    tilted, points = (
        [0, 0, 0.5, 0, np.sin(0.2), 0, np.cos(0.2)],
        {"left": (-0.5, 0, 0), "right": (0.5, 0, 0)},
    )
    motion = pp.simulate(
        bouncing(1.0, 1e-9, points), tilted, duration=0.5, dt=1e-3, contacts="open"
    )
    assert [event.name for event in motion.events][:1] == ["contact bounces"]
    assert np.ptp(motion.energy) < 1e-4 * motion.energy[0]
    rough = pp.simulate(bouncing(0.7, 0.3, points), tilted, duration=0.5, dt=1e-3, contacts="open")
    assert (
        np.diff(rough.energy).max() < 1e-4 * rough.energy[0]
        and rough.energy[-1] < 0.95 * rough.energy[0]
    )
    with pytest.raises(
        pp.StateError, match=r"restitution of loops\[0\] is 1.5, expected a number from 0 to 1"
    ):
        bouncing(1.5)
    robot = bouncing(0.5).robot
    with pytest.raises(pp.StateError, match="only a one-sided constraint"):
        pp.connect(robot, [pp.Loop("ball", "tip", "world", restitution=0.5)])


def rocker(inertia: float) -> tuple[pp.System, np.ndarray]:
    """A rod of 1 kg on two points at 0.1 m from its centre, one of them 1 cm above the ground."""
    points = {"left": (-0.1, 0, 0), "right": (0.1, 0, 0)}
    rod = body(points, (0, 0, 1), 1.0, (1e-3, inertia, inertia), friction=0.5)
    tilt = 0.05
    return rod, np.array([0, 0, 0.1 * np.sin(tilt), 0, np.sin(tilt / 2), 0, np.cos(tilt / 2)])


@pytest.mark.parametrize(("inertia", "duration"), [(0.02, 0.4), (0.1, 1.6)])
def test_a_rocking_rod_comes_to_rest_under_its_weight(inertia, duration):
    """Each end rebounds with (I - m a^2) / (I + m a^2) of the speed of the other: infinitely many
    impacts in a finite time. The forces with the impulses of impacts are the change of m v."""
    rod, q = rocker(inertia)
    dt = 1e-3 if duration < 1 else 2e-3
    motion = pp.simulate(rod, q, duration=duration, dt=dt, contacts="open")
    up = -motion.forces[:, :, 5].sum(axis=1)
    momentum = np.diff(motion.q[:, 2]) / dt
    gained = momentum[-1] - momentum[0] + 9.81 * (duration - dt)
    assert dt * up[1:].sum() == pytest.approx(gained, abs=2 * 9.81 * dt)
    assert np.diff(motion.energy).max() < 1e-9
    if inertia < 0.1:  # the other still rocks
        assert len(motion.events) < 30
        assert abs(motion.final.v).max() < 1e-12
        assert up[-50:] == pytest.approx(9.81, rel=1e-9)


def test_a_box_put_down_on_a_corner_comes_to_rest():
    half = np.array([0.1, 0.06, 0.05])
    signs = [(x, y) for x in (-1, 1) for y in (-1, 1)]
    corners = {f"corner {x} {y}": (x * half[0], y * half[1], -half[2]) for x, y in signs}
    inertia = (half @ half - half**2) / 3
    box = body(corners, (0, 0, 1), 1.0, inertia, friction=0.5)
    axis = np.array([0.6, 0.8, 0.0])
    q = np.array([0, 0, 0, *(np.sin(0.05) * axis), np.cos(0.05)])
    q[2] = -min(box.robot.frame_pose(q, name)[2, 3] for name in corners)
    motion = pp.simulate(box, q, duration=0.6, dt=2e-3, contacts="open")
    assert abs(motion.final.v).max() < 1e-12
    assert motion.residual[-1].max() < 1e-9
    assert -motion.forces[-20:, :, 5].sum(axis=1) == pytest.approx(9.81, rel=1e-9)
    assert len(motion.events) < 60


def test_too_many_changes_in_a_step_are_refused(monkeypatch):
    monkeypatch.setattr("psiphi.simulation.contact.contact_events.MAX_EVENTS", 1)
    rod, q = rocker(0.02)
    with pytest.raises(pp.SimulationError, match=r"smaller dt.*contacts=pp\.Ground"):
        pp.simulate(rod, q, duration=0.2, contacts="open")
