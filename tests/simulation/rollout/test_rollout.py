"""Compiled rollouts: the same numbers as step by step, for every method, law, joint and batch."""

import gc
import sys
import weakref

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends import kernel_cache
from psiphi.backends.cpu import rollout_kernel as kernel
from psiphi.backends.cpu.cpu_target import CpuTarget
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.control.torque_input import read_torque
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.plant import Plant
from tests.simulation.simulate.motions import juggler, puma, state

CLOSE = 1e-11


def swing(t):
    return np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6)


def both(robot, q, v, tau=None, **options):
    options = {"duration": 0.02} | options
    return [
        pp.simulate(robot, q, v, tau, compiled=compiled, **options) for compiled in (True, False)
    ]


def agree(one, other):
    for name in ("t", "q", "v", "a", "tau", "energy"):
        x, y = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(
            x, y, rtol=CLOSE, atol=CLOSE * (1.0 + np.abs(y).max()), err_msg=name
        )


@pytest.mark.parametrize("method", ["euler", "rk4", "lie"])
@pytest.mark.parametrize("robot", [puma, juggler], ids=["puma", "juggler"])
def test_compiled_is_interpreted(method, robot):
    for size in ((), 3, (2, 9)):
        q, v = state(robot(), 1, size)
        agree(*both(robot(), q, v, method=method))


LAWS = {
    "constant": lambda r: np.arange(6.0),
    "table": lambda r: np.random.default_rng(0).standard_normal((20, 6)),
    "tables": lambda r: np.random.default_rng(0).standard_normal((5, 20, 6)),
    "gravity": pp.GravityCompensation,
    "pd": lambda r: pp.PD(r, np.ones(6), 50, 5),
    "pd moving": lambda r: pp.PD(r, swing, np.arange(6.0), 5, gravity=True),
    "computed": lambda r: pp.ComputedTorque(r, np.zeros(6)),
    "computed moving": lambda r: pp.ComputedTorque(r, swing),
}


@pytest.mark.parametrize("law", list(LAWS))
def test_every_law_is_the_same_compiled(law):
    robot = puma()
    q, v = state(robot, 2, 5)
    agree(*both(robot, q, v, LAWS[law](robot)))


@pytest.mark.parametrize(
    "options",
    [dict(hold=True), dict(method="euler"), dict(damping=0.4, friction=2.0), dict(every=3)],
)
def test_options_are_the_same_compiled(options):
    robot = puma()
    q, v = state(robot, 3, 2)
    agree(*both(robot, q, v, pp.ComputedTorque(robot, swing), **options))


def test_results_do_not_depend_on_the_batch():
    """Equal bits: one motion, full and partial SIMD lanes, several threads."""
    robot = puma()
    q, v = state(robot, 4, 333)
    whole = pp.rollout(robot, q, v, steps=30)
    for some in (slice(5, 6), slice(3, 12)):
        for x, y in zip(pp.rollout(robot, q[some], v[some], steps=30), whole, strict=True):
            assert (x == y[some]).all()
    before = pp.get_threads()
    try:
        for threads in (1, 2, 3):
            pp.set_threads(threads)
            assert all(
                (x == y).all()
                for x, y in zip(pp.rollout(robot, q, v, steps=30), whole, strict=True)
            )
    finally:
        pp.set_threads(before)


@pytest.mark.parametrize("lanes", [1, 2, 4, 16])
def test_results_do_not_depend_on_the_width_of_the_machine(lanes, monkeypatch):
    robot = puma()
    q, v = state(robot, 9, 21)
    wanted = pp.rollout(robot, q, v, steps=5)
    monkeypatch.setattr(
        sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"], "HOST", CpuTarget(lanes)
    )
    assert all(
        (x == y).all() for x, y in zip(pp.rollout(robot, q, v, steps=5), wanted, strict=True)
    )


def test_every_element_has_its_own_reference():
    robot = puma()
    q, v = state(robot, 4, 3)
    goals, _ = state(robot, 5, 3)
    for reference in (goals, lambda t: np.cos(t) * goals):
        one, other = both(robot, q, v, pp.PD(robot, reference, 50.0, 5.0))
        agree(one, other)
    with pytest.raises(StateError, match=r"batch axes \(3,\), the initial state \(\)"):
        pp.simulate(robot, q[0], tau=pp.PD(robot, goals, 50.0, 5.0), duration=0.01, compiled=True)


def test_pieces_join(monkeypatch):
    """A rollout that runs in pieces has the same samples."""
    robot = puma()
    q, v = state(robot, 5, 3)
    control = pp.ComputedTorque(robot, swing)
    whole = pp.simulate(robot, q, v, control, duration=0.05, compiled=True, every=2)
    monkeypatch.setattr(
        sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"], "PIECE_SECONDS", 1e-9
    )
    pieces = pp.simulate(robot, q, v, control, duration=0.05, compiled=True, every=2)
    assert (pp.rollout(robot, q, v, control, steps=50, every=2)[0] == whole.q).all()
    assert (
        (pieces.q == whole.q).all()
        and (pieces.tau == whole.tau).all()
        and (pieces.t == whole.t).all()
    )


def test_rollout_is_simulate():
    robot = puma()
    q, v = state(robot, 6, (2, 3))
    motion = pp.simulate(robot, q, v, duration=0.03, every=4, compiled=True)
    Q, V = pp.rollout(robot, q, v, steps=30, every=4)
    assert Q.shape == (2, 3, 8, 6)
    assert (motion.q[..., :8, :] == Q).all() and (motion.v[..., :8, :] == V).all()
    assert motion.t[-1] == 0.03, "simulate keeps the last state too"
    out = np.empty_like(Q), np.empty_like(V)
    assert pp.rollout(robot, q, v, steps=30, every=4, out=out)[0] is out[0] and (out[0] == Q).all()


def test_strided_and_read_only_inputs():
    robot = puma()
    q, v = state(robot, 7, 4)
    wide = np.zeros((8, 12))
    wide[::2, ::2] = q
    view = wide[::2, ::2]
    view.flags.writeable = False
    assert (pp.rollout(robot, view, v, steps=5)[0] == pp.rollout(robot, q, v, steps=5)[0]).all()


def test_the_second_process_finds_it_in_the_cache(monkeypatch):
    robot = puma()
    q, _ = state(robot, 8)
    first = pp.rollout(robot, q, steps=3, damping=0.123)[0]
    module = sys.modules["psiphi.simulation.compiled_rollout.rollout_runner"]
    module._cache.clear()
    monkeypatch.setattr(CpuTarget, "build", lambda *_: pytest.fail("compiled again"))
    assert kernel_cache.directory() is not None
    assert (pp.rollout(robot, q, steps=3, damping=0.123)[0] == first).all()


class Mine(pp.PD):
    """A controller that is not psiphi's."""

    def __call__(self, t, q, v):
        return super().__call__(t, q, v) + np.floor(t)


@pytest.mark.parametrize(
    ("system", "tau", "options", "why"),
    [
        (puma, lambda r: lambda t, q, v: np.sort(v), {}, "cannot be traced"),
        (puma, lambda r: Mine(r, np.zeros(6), 1, 1), {}, "cannot be traced"),
        (puma, lambda r: pp.PD(pp.robots.stanford_arm(), np.zeros(6), 1, 1), {}, "another system"),
        (
            lambda: pp.robots.chain(65),
            lambda r: None,
            {"limits": "block"},
            "up to 64 bodies, and there are 65",
        ),
        (
            puma,
            lambda r: None,
            {"method": "DOP853", "dt": 5e-4, "duration": 1e-3},
            "chooses its own steps",
        ),
    ],
)
def test_what_has_no_kernel_says_so_and_runs_in_python(system, tau, options, why):
    robot = system()
    with pytest.raises(StateError, match=why):
        pp.simulate(
            robot, robot.neutral(), tau=tau(robot), compiled=True, **{"duration": 0.01} | options
        )
    assert (
        len(pp.simulate(robot, robot.neutral(), tau=tau(robot), **{"duration": 0.002} | options))
        == 3
    )


@pytest.mark.parametrize(
    ("method", "law"),
    [
        *(("euler", "pd"), ("rk4", "pd"), ("lie", "pd")),  # with losses: implicit schemes
        *(("euler", "gravity"), ("rk4", None), ("lie", "gravity")),  # without: explicit ones
    ],
)
def test_large_robots_are_loops(method, law):
    """More than 64 bodies with joints of all types: one tape per joint type, not one per joint."""
    kinds = ("revolute", "spherical", "prismatic", "planar", "universal", "free")
    robot = pp.robots.random_tree(70, 3, kinds, 0.3)
    q, v = state(robot, 1, 3)
    laws = {
        "gravity": pp.GravityCompensation(robot),
        "pd": pp.PD(robot, robot.neutral(), 10.0, 1.0),
    }
    options = dict(damping=0.1, friction=0.2, effort=5.0) if law == "pd" else {}
    agree(*both(robot, q, v, laws.get(law), duration=1e-3, dt=1e-4, method=method, **options))


def test_a_long_chain_compiles_as_fast_as_a_short_one():
    """The kernel of a longer robot has longer tables, but no more code."""
    sizes = []
    for n in (100, 400):
        plant = Plant(pp.robots.chain(n))
        drive = RolloutInput(
            read_torque(None, plant, (), 1), read_losses(plant, False, False, None)
        )
        text = kernel.rollout_module(
            RolloutProgram(plant.system, drive.options(plant, "rk4", False)).rollout, (1, 4), True
        )
        sizes.append(sum(not line.startswith("@") for line in text.splitlines()))
    assert sizes[1] < 1.5 * sizes[0]


def limited() -> pp.Robot:
    b = pp.Builder("limited")
    rng = np.random.default_rng(0)
    for k in range(4):
        b.body(f"link {k}", mass=1.0, com=(0.2, 0.05, 0), inertia=np.diag([0.02, 0.03, 0.04]))
        limits = [dict(lower=-0.5, upper=0.4), dict(lower=-0.4), dict(upper=0.6), {}][k]
        b.joint(
            f"joint {k}",
            "revolute",
            f"link {k - 1}" if k else "world",
            f"link {k}",
            axis=rng.standard_normal(3),
            **limits,
        )
    return b.build()


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_stops(method):
    """Joints that stop at their limits: several at once, after impacts and at rest."""
    robot = limited()
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-0.3, 0.3, (20, 4)), 4.0 * rng.standard_normal((20, 4))
    fast, slow = both(robot, q, v, limits="block", duration=0.4, method=method, dt=2e-3)
    for name in ("q", "v"):
        np.testing.assert_allclose(
            getattr(fast, name), getattr(slow, name), atol=1e-9, err_msg=name
        )
    lower, upper = (
        np.concatenate([getattr(j, side) for j in robot.joints]) for side in ("lower", "upper")
    )
    assert (fast.q >= lower).all() and (fast.q <= upper).all()
    assert ((fast.q == lower) & (fast.v == 0)).any() and ((fast.q == upper) & (fast.v == 0)).any()
    few = pp.simulate(
        robot, q[7:9], v[7:9], limits="block", duration=0.4, method=method, dt=2e-3, compiled=True
    )
    assert (few.q == fast.q[7:9]).all(), "to the last bit, whatever the neighbours hit"
    assert (
        pp.rollout(robot, q, v, limits="block", dt=2e-3, steps=200, method=method)[0] == fast.q
    ).all()


def test_stops_of_a_robot_without_limits():
    robot = juggler()
    q, v = state(robot, 1)
    agree(*both(robot, q, v, limits="block"))


def test_what_rollout_refuses():
    robot = puma()

    def growing(t):
        return np.ones((*[[], [2], [3]][(t > 0.004) + (t > 0.006)], 6))

    for options, why in (
        (dict(method="DOP853"), "chooses its own steps"),
        (dict(method="rk5"), "did you mean 'rk4'"),
        (dict(tau=lambda t, q, v: np.sort(v)), "cannot be traced"),
        (dict(steps=-1), "steps"),
        (dict(limits="stop"), "limits"),
        (dict(dt=0.0), "dt"),
        (dict(steps=2, out=np.empty(3)), "out"),
        (dict(steps=2, out=(np.empty((3, 6)), np.empty((3, 5)))), "out"),
        (dict(steps=2, out=()), "out"),
        (dict(steps=10**14), "keep fewer samples"),
        (
            dict(tau=pp.PD(robot, growing, 1.0, 1.0), steps=9),
            r"do not fit together: \(\), \(2,\), \(3,\)",
        ),
    ):
        with pytest.raises(StateError, match=why):
            pp.rollout(robot, robot.neutral(), **options)


def test_no_motion_and_no_steps():
    robot = puma()
    assert pp.rollout(robot, np.zeros((0, 6)), steps=3)[0].shape == (0, 4, 6)
    assert pp.rollout(robot, np.zeros((2, 6)), steps=0)[0].shape == (2, 1, 6)
    assert len(pp.simulate(robot, np.zeros(6), duration=0.0)) == 1
    assert pp.simulate(robot, np.zeros((0, 6)), duration=0.01).q.shape == (0, 11, 6)


@pytest.mark.parametrize("every", [1, 7])
def test_a_motion_diverges_at_the_same_step(every):
    """For any sampling: the event, the last state and the ends of the other motions are those of
    the steps in Python."""
    robot = puma()
    q, v = state(robot, 1, 3)
    goals = np.ones((3, 6)) * [[1.0], [1e13], [1e6]]
    fast, slow = both(robot, q, v, pp.PD(robot, goals, 1e5, 5.0), every=every)
    assert fast.events == slow.events and {e.where for e in fast.events} >= {(1,), (2,)}
    assert (fast.t == slow.t).all() and (np.isnan(fast.q) == np.isnan(slow.q)).all()


def test_torques_of_a_stopped_motion_are_not_shown():
    robot = limited()
    v = np.zeros((2, 4))
    v[1, 0] = 9.0
    fast, slow = both(robot, np.zeros((2, 4)), v, np.ones(4), limits="stop", duration=0.1)
    agree(*(motion[0] for motion in (fast, slow)))
    assert (np.isnan(fast.tau) == np.isnan(slow.tau)).all() and np.isnan(fast.tau[1, -1]).all()


@pytest.mark.parametrize("at", [0.05, 0.07, 0.1])
def test_a_reference_that_jumps_between_two_steps(at):
    """A step ends at t + dt, which may differ from (k + 1) dt: the kernel rounds as Python does, so
    the step ends on the same side of the jump."""
    robot = puma()
    q, v = state(robot, 2)
    agree(
        *both(
            robot,
            q,
            v,
            pp.PD(robot, lambda t: np.ones(6) * (t >= at), 5.0, 0.5),
            dt=0.01,
            duration=0.12,
        )
    )


def test_friction_of_a_joint_at_rest():
    """The square of a tiny friction_speed does not underflow to 0 / 0."""
    robot = puma()
    fast, slow = both(
        robot, np.zeros(6), None, pp.GravityCompensation(robot), friction=1.0, friction_speed=1e-200
    )
    agree(fast, slow)
    assert not fast.events and np.abs(fast.v).max() < 1e-9


def test_a_joint_without_room_stands_still():
    """If lower = upper, `limits="block"` acts as a weld, in the kernel and in Python."""
    spots = [0.2, None, -0.4, None]
    chains = []
    for free in ("revolute", "fixed"):
        b = pp.Builder(free)
        for k, spot in enumerate(spots):
            b.body(f"link {k}", mass=1.0, com=(0.2, 0.05, 0), inertia=np.diag([0.02, 0.03, 0.04]))
            held = free == "fixed" and spot is not None
            turn = dict(rpy=(0.0, spot, 0.0)) if held else dict(axis=(0, 1, 0))
            limits = {} if held or spot is None else dict(lower=spot, upper=spot)
            parent = f"link {k - 1}" if k else "world"
            b.joint(
                f"joint {k}",
                "fixed" if held else "revolute",
                parent,
                f"link {k}",
                xyz=(0.3 * k, 0, 0),
                **turn,
                **limits,
            )
        chains.append(b.build())
    locked, welded = chains
    q = np.array([0.2, 0.5, -0.4, 0.1])
    fast, slow = both(
        locked, [q, q], [[0.0] * 4, [1.0] * 4], limits="block", dt=1e-4, method="euler"
    )
    np.testing.assert_allclose(fast.v, slow.v, atol=1e-11)
    assert (fast.q[..., ::2] == q[::2]).all() and (fast.v[:, 1:, ::2] == 0.0).all()
    meant = pp.simulate(welded, q[1::2], dt=1e-4, duration=0.02, method="euler")
    np.testing.assert_allclose(
        fast.v[0][:, 1::2], meant.v, atol=0.3 * 1e-4
    )  # speeds are about 0.3; the error is of the order of the step


def test_compiled_is_yes_or_no():
    with pytest.raises(StateError, match="compiled is 'no', expected True or False"):
        pp.simulate(puma(), np.zeros(6), duration=0.01, compiled="no")


@pytest.mark.parametrize("kind", ["filtered", "noisy", "counted"])
def test_a_reference_that_remembers_is_refused_by_kernels(kind):
    """Kernels evaluate the reference in another order than steps in Python, so it must depend on t
    alone. A lookup in a table is accepted."""
    robot, rng, seen = pp.load("pelican"), np.random.default_rng(0), []

    def reference(t):
        seen.append(t)
        first = {
            "filtered": 1.0 - 0.999 ** len(seen),
            "noisy": rng.standard_normal(),
            "counted": float(len(seen)),
        }[kind]
        return np.array([first, 0.0])

    law = pp.PD(robot, reference, 20.0, 3.0)
    for run in (
        lambda: pp.rollout(robot, np.zeros(2), tau=law, steps=10),
        lambda: pp.simulate(robot, np.zeros(2), tau=law, duration=0.01, compiled=True),
        lambda: pp.simulate(robot, np.zeros(2), tau=law, duration=1.0),
    ):
        with pytest.raises(
            pp.StateError, match=r"at t = 0 differs between two calls.*compiled=False"
        ):
            run()
    seen.clear()
    pp.simulate(robot, np.zeros(2), tau=law, duration=0.01, compiled=False)
    assert len(seen) >= 40
    table, place = np.linspace(0.0, 1.0, 1001), [0]

    def looked_up(t):
        while place[0] < 999 and table[place[0] + 1] <= t:
            place[0] += 1
        while place[0] and table[place[0]] > t:
            place[0] -= 1
        return np.full(2, table[place[0]])

    agree(*both(robot, np.zeros(2), np.zeros(2), pp.PD(robot, looked_up, 20.0, 3.0)))


def test_a_reference_that_answers_in_one_array():
    """A reference may return the same array at each call: its values at each time are copied."""
    robot, out = pp.load("pelican"), np.zeros(2)

    def reference(t):
        out[:] = np.sin(20.0 * t), t
        return out

    same = pp.PD(robot, lambda t: np.array([np.sin(20.0 * t), t]), 20.0, 3.0)
    fast, slow = both(robot, np.zeros(2), np.zeros(2), pp.PD(robot, reference, 20.0, 3.0))
    agree(fast, slow)
    agree(fast, both(robot, np.zeros(2), np.zeros(2), same)[1])


def test_what_a_controller_was_given_is_its_own():
    """Controllers copy their goals, gains and postures: later changes, in an event for instance,
    have no effect, in kernels and in Python."""
    robot = pp.load("pelican")
    makers = {
        "goal": lambda x: pp.PD(robot, x, 20.0, 3.0),
        "gains": lambda x: pp.PD(robot, np.ones(2), x, 3.0),
        "velocity": lambda x: pp.PD(robot, (np.zeros(2), x), 20.0, 3.0),
        "target": lambda x: pp.OperationalSpace(robot, "tool", (np.array([0.3, 0.0, 0.1]), x)),
    }
    for name, make in makers.items():
        given = np.full(3 if name == "target" else 2, 0.5)
        law, same = make(given), make(given.copy())

        def late(t, q, v, given=given):
            given[:] = 7.0
            return 1.0

        motions = both(robot, np.zeros(2), np.zeros(2), law, events={"late": late})
        for motion in motions:
            agree(motion, pp.simulate(robot, np.zeros(2), np.zeros(2), same, duration=0.02))


def test_a_reference_that_an_event_changes():
    """Kernels evaluate the reference before events are found, and raise an error."""
    robot, goal = pp.load("pelican"), np.zeros(2)
    law = pp.PD(robot, lambda t: goal, 20.0, 3.0)

    def late(t, q, v):
        goal[0] = float(t > 0.01)
        return 1.0

    with pytest.raises(pp.StateError, match="it has state or is random"):
        pp.simulate(
            robot, np.zeros(2), tau=law, duration=0.02, events={"late": late}, compiled=True
        )
    goal[:] = 0.0
    moved = pp.simulate(
        robot, np.zeros(2), tau=law, duration=0.02, events={"late": late}, compiled=False
    )
    assert moved.tau[-1, 0] > 15.0


@pytest.mark.parametrize("scale", [1.00001, 0.5, -3.0, 1e200, 1e-200])
def test_quaternions_of_any_length(scale):
    """A step of an optimiser leaves |p| = 1; the motion starts at p / |p|, and so do gradients."""
    robot = pp.load("free_flyer")
    q, v = robot.random(seed=0), np.full(robot.nv, 0.3)
    scaled = q.copy()
    scaled[3:7] *= scale
    unit, other = (pp.rollout(robot, x, v, steps=3, dt=1e-2) for x in (q, scaled))
    np.testing.assert_allclose(np.abs(unit.q), np.abs(other.q), rtol=0, atol=1e-14)
    if 0.1 < abs(scale) < 10.0:
        torch = pytest.importorskip("torch")
        weight = torch.linspace(-1, 1, unit.q.size, dtype=torch.float64).reshape(unit.q.shape)
        x = torch.tensor(scaled, requires_grad=True)
        loss = lambda x: (pp.rollout(robot, x, torch.tensor(v), steps=3, dt=1e-2)[0] * weight).sum()  # noqa: E731
        assert torch.autograd.gradcheck(loss, x)
    for bad in (0.0, np.nan, np.inf):
        scaled[3:7] = q[3:7] * bad if bad == 0.0 else bad
        with pytest.raises(pp.StateError, match="initial state"):
            pp.rollout(robot, scaled, v, steps=3, dt=1e-2)


def test_a_robot_and_its_motions_are_freed_together():
    """Nothing that was computed with a robot keeps it: robots that are dropped take no memory."""
    b = pp.Builder("dropped")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.body(name, mass=1.25, com=(0, 0, -0.2), inertia=np.diag([0.02, 0.03, 0.01]))
        b.joint(f"{name} joint", "revolute", parent, name, axis=(0, 1, 0), xyz=(0, 0, -0.4))
    robot = b.build()
    q = robot.random(seed=0)
    robot.function("forward_dynamics").jacobian("q")(q, q, q)
    motion, simulated = pp.rollout(robot, q, steps=5), pp.simulate(robot, q, duration=0.005)
    assert np.isfinite(motion.vjp(motion.q)["q"]).all() and np.isfinite(simulated.energy).all()
    kept = weakref.ref(robot)
    del robot, motion, simulated, b
    gc.collect()
    assert kept() is None
