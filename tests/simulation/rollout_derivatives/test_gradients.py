"""Derivatives of motions with respect to the initial state, torques and a controller's numbers,
compared with finite differences."""

import copy

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.rollout_derivatives import rollout_adjoint
from psiphi_bench.closed_cells import four_bar
from tests.robot.embedding.mechanisms import fourbar
from tests.robot.mechanisms.cells import pinned_arm

ARM = pp.load("pelican")  # two hinges
RNG = np.random.default_rng(0)
Q, V = RNG.standard_normal((2, 3, 2))


def flyer():
    """A floating body with an arm: q has a quaternion."""
    b = pp.Builder("flyer")
    b.body("base", mass=3.0, com=(0.1, 0.0, 0.05), inertia=(0.3, 0, 0, 0.2, 0, 0.4))
    b.body("arm", mass=1.0, com=(0.3, 0.0, 0.0), inertia=(0.01, 0, 0, 0.1, 0, 0.1))
    b.joint("flight", "free", parent="world", child="base")
    b.joint("hinge", "revolute", parent="base", child="arm", axis=(0, 1, 0))
    return b.build()


def slopes(robot, motion, run, changes, h=1e-6):
    """(dq, dv) by central differences, for changes of q (tangent), v and other inputs."""
    first = motion.q[..., 0, :], motion.v[..., 0, :]

    def at(s):
        own = {name: s * x for name, x in changes.items() if name not in "qv"}
        return run(robot.integrate(first[0], s * changes["q"]), first[1] + s * changes["v"], own)

    return [(x - y) / (2.0 * h) for x, y in zip(at(h), at(-h), strict=True)]


def agree(robot, q, v, run, names, rtol=1e-6):
    """vjp and jvp of a motion agree with differences of it, for random weights and changes."""
    motion = run(q, v, {})
    given = {"q": motion.v[..., 0, :], "v": motion.v[..., 0, :]} | {
        name: motion.vjp()[name] for name in names
    }
    changes = {name: RNG.standard_normal(x.shape) for name, x in given.items()}
    weights = [RNG.standard_normal(x.shape) for x in motion]
    dq, dv = slopes(robot, motion, run, changes)
    own = motion.jvp(**changes)
    np.testing.assert_allclose(own[0], dq, rtol=rtol, atol=rtol * np.abs(dq).max())
    np.testing.assert_allclose(own[1], dv, rtol=rtol, atol=rtol * np.abs(dv).max())
    found = motion.vjp(*weights)
    total = sum((found[name] * x).sum() for name, x in changes.items())
    assert total == pytest.approx(
        (own[0] * weights[0]).sum() + (own[1] * weights[1]).sum(), rel=1e-9
    )


@pytest.mark.parametrize("method", ["euler", "rk4", "implicit", "midpoint", "lie"])
def test_every_method(method):
    tau = RNG.standard_normal((8, 2))
    agree(
        ARM,
        Q,
        V,
        lambda q, v, d: pp.rollout(ARM, q, v, tau + d.get("tau", 0.0), 0.01, 8, method),
        ["tau"],
    )


@pytest.mark.parametrize("shape", [(2,), (3, 2), (8, 2), (3, 8, 2), (1, 8, 2)])
@pytest.mark.parametrize("every", [1, 3])
def test_torques_of_every_shape(shape, every):
    tau = RNG.standard_normal(shape)

    def run(q, v, d):
        return pp.rollout(ARM, q, v, tau + d.get("tau", 0.0), 0.01, 8, every=every, damping=0.1)

    agree(ARM, Q, V, run, ["tau"])
    found = run(Q, V, {}).vjp(np.ones((3, 1 + 8 // every, 2)))["tau"]
    assert found.shape == shape
    if every == 3 and 8 in shape:
        assert not found[..., 6:, :].any() and found[..., 5, :].any(), (
            "steps behind the last sample change nothing"
        )


def test_gains_of_coordinates_without_motors_change_nothing():
    """A floating base, a joint that is named passive, the pins of a closed chain."""
    robot, bar = flyer(), four_bar()
    closed, rate = bar.project(bar.assemble([0.9, -0.4, 1.9], hold=["motor"]), np.ones(3))
    for system, q, v, more, idle in (
        (robot, robot.random(seed=1), np.ones(7), {}, range(6)),
        (ARM, Q[0], V[0], {"passive": ["shoulder"], "gravity": True}, [0]),
        (bar, closed, rate, {}, [1, 2]),
    ):
        law = pp.PD(system, q, kp=np.full(system.nv, 30.0), kd=np.full(system.nv, 2.0), **more)
        found = pp.rollout(system, q, v, law, 0.01, 2, "euler").vjp(
            np.ones((3, system.nq)), np.ones((3, system.nv))
        )
        assert "motors" not in found, "which joints have motors is nothing to change by a little"
        for name in ("kp", "kd"):
            assert found[name].any() and not found[name][list(idle)].any(), (system.name, name)


def test_gains():
    def run(q, v, d):
        law = copy.copy(pp.PD(ARM, [0.3, -0.2], kp=30.0, kd=[2.0, 1.0]))
        law.numbers = {name: x + d.get(name, 0.0) for name, x in law.numbers.items()}
        return pp.rollout(ARM, q, v, law, 0.01, 10, effort=8.0)

    agree(ARM, Q, V, run, ["kp", "kd"])


@pytest.mark.parametrize("method", ["rk4", "midpoint"])
def test_parameters_that_are_losses_and_springs(method):
    """Damping and stiffness are separate inputs of a kernel: their gradients are added to those of
    the parameters."""
    light = ARM.with_spring("*", 40.0).free("mass", "damping", "stiffness")
    p = light.parameters() + 0.1

    def run(q, v, d):
        return pp.rollout(
            light.at(p + d.get("parameters", 0.0)),
            q,
            v,
            None,
            0.01,
            6,
            method,
            damping=True,
            springs=True,
        )

    agree(light, Q, V, run, ["parameters"])
    plain = pp.rollout(light.at(p), Q, V, None, 0.01, 6, method, damping=0.2)
    names = light.parameter_names
    others = [k for k, name in enumerate(names) if not name.endswith("mass")]
    assert not plain.vjp(np.ones_like(plain.q))["parameters"][others].any(), (
        "numbers of the call are none of the robot's"
    )


@pytest.mark.parametrize("method", ["euler", "rk4", "implicit", "midpoint"])
@pytest.mark.parametrize("word", ["damping", "stiffness"])
def test_losses_and_springs_that_are_zero_so_far(word, method):
    """Derivatives with respect to a parameter that is zero agree with one-sided differences."""
    light, h = ARM.free(word), 1e-4

    def run(p):
        return pp.rollout(
            light.at(p), Q[0], V[0], None, 0.01, 6, method, damping=True, springs=True
        )

    for p in (np.zeros(2), np.array([0.0, 0.3])):
        motion = run(p)
        gradient = motion.vjp(np.ones_like(motion.q))["parameters"]
        for k, unit in enumerate(np.eye(2)):
            at = [run(p + i * h * unit).q.sum() for i in range(4)]
            want = (-11 * at[0] + 18 * at[1] - 9 * at[2] + 2 * at[3]) / (6 * h)
            assert gradient[k] == pytest.approx(want, abs=1e-8) and gradient[k] != 0.0, p


def test_a_flying_base():
    robot = flyer()
    q, v, tau = (
        robot.random(seed=1),
        RNG.standard_normal(robot.nv),
        RNG.standard_normal((5, robot.nv)),
    )
    agree(
        robot,
        q,
        v,
        lambda q, v, d: pp.rollout(robot, q, v, tau + d.get("tau", 0.0), 0.01, 5),
        ["tau"],
    )


def bent(robot, q, v, run, names, rtol=1e-6, h=1e-6):
    """hvp of a motion agrees with differences of its gradients, for random weights and changes."""
    motion = run(q, v, {})
    given = {"q": motion.v[..., 0, :], "v": motion.v[..., 0, :]} | {
        name: motion.vjp()[name] for name in names
    }
    changes = {name: RNG.standard_normal(x.shape) for name, x in given.items()}
    weights = [RNG.standard_normal(x.shape) for x in motion]

    def at(s):
        own = {name: s * x for name, x in changes.items() if name not in "qv"}
        return run(robot.integrate(q, s * changes["q"]), v + s * changes["v"], own).vjp(*weights)

    there, back, found = at(h), at(-h), motion.hvp(*weights, **changes)
    assert found.keys() == there.keys()
    for name, x in found.items():
        want = (there[name] - back[name]) / (2.0 * h)
        np.testing.assert_allclose(x, want, rtol=rtol, atol=rtol * np.abs(want).max(), err_msg=name)
    return motion, weights, changes, found


def test_second_derivatives(monkeypatch):
    """Torques of each step, and parameters of losses; in pieces and from checkpoints, too."""
    tau = RNG.standard_normal((8, 2))

    def run(q, v, d):
        return pp.rollout(ARM, q, v, tau + d.get("tau", 0.0), 0.01, 8, "euler", every=2)

    motion, weights, changes, whole = bent(ARM, Q, V, run, ["tau"])
    monkeypatch.setattr(rollout_adjoint, "MEMORY_LIMIT", 4 * 3 * 4 * 3)  # three steps at a time
    parts = motion.hvp(*weights, **changes)
    assert all(np.allclose(whole[name], parts[name], rtol=1e-12, atol=1e-12) for name in whole)
    light = ARM.free("mass", "damping")
    p = light.parameters() + 0.1

    def run(q, v, d):
        return pp.rollout(
            light.at(p + d.get("parameters", 0.0)), q, v, None, 0.01, 5, "euler", damping=True
        )

    bent(light, Q, V, run, ["parameters"])


def test_second_derivatives_of_a_flying_base():
    robot = flyer()
    q, v = robot.random(seed=1), RNG.standard_normal(robot.nv)
    for speed in (
        v,
        0.0 * v,
        v * [0, 0, 0, 1, 1, 1, 0],
    ):  # at rest, only rounding turns the base
        bent(
            robot,
            q,
            speed,
            lambda q, v, d: pp.rollout(robot, q, v, None, 0.01, 3, "euler"),
            [],
            h=1e-4,
        )


def test_second_derivatives_of_embedded_loops():
    """q changes along the closed mechanism."""
    robot, loops, options = fourbar()
    robot = pp.embed(robot, loops, **options)
    q, v, tau = (
        robot.random(seed=2),
        0.5 * RNG.standard_normal(robot.nv),
        RNG.standard_normal((2, robot.nv)),
    )
    losses = {"damping": 0.2, "friction": 0.3, "friction_speed": 0.5}

    def run(q, v, d):
        return pp.rollout(robot, q, v, tau + d.get("tau", 0.0), 0.01, 2, "euler", **losses)

    bent(robot, q, v, run, ["tau"], rtol=1e-5)


def test_torques_that_are_cut_have_no_gradient():
    tau = np.array([[5.0, 0.1]] * 6)
    motion = pp.rollout(ARM, Q[0], V[0], tau, 0.01, 6, effort=1.0)
    gradient = motion.vjp(np.ones_like(motion.q))["tau"]
    assert not gradient[:, 0].any() and gradient[:-1, 1].all()


@pytest.mark.parametrize("every", [1, 3, 24])
def test_memory_is_bounded_by_checkpoints(every, monkeypatch):
    tau = RNG.standard_normal((24, 2))
    motion = pp.rollout(ARM, Q, V, tau, 0.01, 24, every=every)
    weights, change = [RNG.standard_normal(x.shape) for x in motion], RNG.standard_normal(tau.shape)
    held = []
    pieces = rollout_adjoint.RolloutAdjoint._pieces

    def seen(self, *asked):
        for piece in pieces(self, *asked):
            held.append(piece[1] - piece[0])
            yield piece

    monkeypatch.setattr(rollout_adjoint.RolloutAdjoint, "_pieces", seen)
    for most, derivative in (
        (3, motion.vjp),
        (2, lambda *weights: motion.hvp(*weights, tau=change)),
    ):
        monkeypatch.setattr(rollout_adjoint, "MEMORY_LIMIT", 1 << 24)
        whole = derivative(*weights)
        monkeypatch.setattr(
            rollout_adjoint, "MEMORY_LIMIT", 2 * 3 * 4 * 3
        )  # three steps at once; with changes one, but two are the minimum
        held.clear()
        parts = derivative(*weights)
        assert max(held) <= most and sum(held) == 24
        assert all(np.allclose(whole[name], parts[name], rtol=1e-12, atol=1e-12) for name in whole)


def test_it_is_a_tuple_still():
    q, v = motion = pp.rollout(ARM, Q, V, steps=4)
    assert isinstance(motion, tuple) and q is motion.q and v is motion.v
    assert "tau" not in motion.vjp(np.ones_like(q))
    copied = copy.deepcopy(motion)
    assert not hasattr(copied, "vjp") and copied._fields == ("q", "v")
    assert np.array_equal(copied.v, v)


@pytest.mark.parametrize("every", [1, 5])
def test_other_numbers_in_its_arrays_are_seen(every):
    """Derivatives are taken at the states in the arrays: if these were overwritten, an error is
    raised."""
    out = tuple(np.empty((3, 20 // every + 1, 2)) for _ in range(2))
    motion = pp.rollout(ARM, Q, V, tau=np.zeros((20, 2)), steps=20, every=every, out=out)
    assert motion.vjp(np.ones(2))["tau"].shape == (20, 2)
    pp.rollout(ARM, Q, V, tau=np.ones((20, 2)), steps=20, every=every, out=out)
    for derivative in (motion.vjp, motion.jvp):
        with pytest.raises(pp.Error, match="were overwritten"):
            derivative()
    motion = pp.rollout(ARM, Q, steps=20, every=every)
    motion.q[..., -1, 0] += 1e-9
    with pytest.raises(pp.Error, match="copy the arrays"):
        motion.vjp(np.ones(2))


def test_what_drove_a_motion_is_that_of_its_run():
    """Gains and goals that are changed in place after the run change no gradient. If the reference
    has changed, an error is raised, because derivatives evaluate it again."""
    place, size = np.array([0.1, 0.2]), np.array([0.3, -0.4])
    timed = pp.PD(ARM, lambda t: (size * np.sin(t), size * np.cos(t)), kp=30.0, kd=2.0)
    for run in (
        pp.rollout,
        lambda *given: pp.simulate(*given[:4], dt=0.01, duration=0.05, compiled=True),
    ):
        law = pp.PD(ARM, place, kp=[30.0, 20.0], kd=2.0)
        motion = run(ARM, Q, V, law, 0.01, 5)
        ask = (
            motion.vjp,
            lambda *w, of=motion: of.hvp(*w, kp=1.0),
            lambda *w, of=motion: dict(enumerate(of.jvp(kp=1.0))),
        )
        before = [f(np.ones(2)) for f in ask]
        law.numbers["kp"] *= 3.0
        place += 1.0
        for then, f in zip(before, ask, strict=True):
            now = f(np.ones(2))
            assert all(np.array_equal(x, now[name]) for name, x in then.items())
        motion = run(ARM, Q, V, timed, 0.01, 5)
        assert motion.vjp(np.ones(2))["kp"].any()
        np.multiply(size, 2.0, out=size)
        for derivative in (motion.vjp, motion.jvp, motion.hvp):
            with pytest.raises(
                pp.StateError, match=r"reference has changed|differs between two calls"
            ):
                derivative()


def test_what_has_no_derivative_says_so():
    puma = pp.robots.puma560()
    blocked = pp.rollout(puma, puma.neutral(), steps=3, limits="block")
    with pytest.raises(pp.Error, match=r"limits=.block"):
        blocked.vjp(np.ones_like(blocked.q))
    motion = pp.rollout(ARM, Q, V, steps=3)
    with pytest.raises(pp.Error, match=r"q_weight has shape \(7,\), expected \(3, 4, 2\)"):
        motion.vjp(np.ones(7))
    with pytest.raises(pp.Error, match="jvp with respect to 'kp', which is not an input"):
        motion.jvp(kp=1.0)
    long = pp.rollout(pp.robots.chain(66), np.zeros(66), steps=1)
    for derivative in (long.vjp, long.jvp, long.hvp):
        with pytest.raises(pp.Error, match="66 bodies: its steps run in loops over links"):
            derivative()


def test_parameters():
    light = ARM.free("mass")
    own = light.parameters()

    def run(q, v, d):
        return pp.rollout(light.at(own + d.get("parameters", 0.0)), q, v, np.ones((6, 2)), 0.01, 6)

    agree(ARM, Q, V, run, ["tau", "parameters"][1:])


def test_simulations_by_compiled_steps():
    """`pp.simulate` runs the same kernel, with the same derivatives, also with events and
    sampling."""
    tau = RNG.standard_normal((8, 2))
    options = {
        "limits": "record",
        "events": {"far": lambda t, q, v: q[..., 0] + 100.0},
        "compiled": True,
    }
    for drive in (tau, None, pp.PD(ARM, [0.1, 0.2], kp=3.0, kd=0.5)):
        motion = pp.simulate(ARM, Q, V, drive, duration=0.08, dt=0.01, every=2, **options)
        same = pp.rollout(ARM, Q, V, drive, 0.01, 8, every=2)
        weights = RNG.standard_normal(motion.q.shape), RNG.standard_normal(motion.v.shape)
        found, wanted = motion.vjp(*weights), same.vjp(*weights)
        assert set(found) == set(wanted) and all(
            np.array_equal(found[name], wanted[name]) for name in wanted
        )
        assert all(
            np.array_equal(*pair) for pair in zip(motion.jvp(v=V[0]), same.jvp(v=V[0]), strict=True)
        )


def test_simulations_without_derivatives_say_so():
    run = dict(duration=0.04, dt=0.01)
    whole = pp.simulate(ARM, Q, V, compiled=True, **run)
    for motion in (
        pp.simulate(ARM, Q, V, compiled=False, **run),
        pp.simulate(ARM, Q, V, method="RK45", **run),
        pp.simulate(ARM, Q, V, compiled=True, every=3, **run),  # the last sample is not on the grid
        pp.simulate(
            ARM,
            Q,
            V,
            compiled=True,
            events={"now": lambda t, q, v: 0.02 - t + 0.0 * q[..., 0]},
            stop=True,
            **run,
        ),
        whole[1:],
        copy.deepcopy(whole),
    ):
        with pytest.raises(pp.StateError, match="no derivatives"):
            motion.vjp(np.zeros(motion.q.shape))


def closed_agree(system, q, v, tau, **options):
    """jvp and vjp of the motion of a closed chain agree with differences between states on the
    constraints."""
    h, rng = 1e-5, np.random.default_rng(1)
    _, w, rows = np.linalg.svd(system.constraint_jacobian(q))
    move, dv, dtau = (
        rng.standard_normal(system.nv - (w > 1e-9).sum()) @ rows[(w > 1e-9).sum() :],
        *rng.standard_normal((2, system.nv)),
    )
    near = []
    for x in (h, -h):
        there, _ = system.project(system.integrate(q, x * move), v)
        near.append((*system.project(there, v + x * dv), tau + x * dtau))
    ahead, behind = (pp.rollout(system, *state, steps=len(tau), **options) for state in near)
    changes = {
        "q": system.difference(near[1][0], near[0][0]) / (2 * h),
        "v": (near[0][1] - near[1][1]) / (2 * h),
    }
    changes["tau"] = np.broadcast_to(dtau, tau.shape)
    motion = pp.rollout(system, q, v, tau, steps=len(tau), **options)
    moved = motion.jvp(**changes)
    for own, x, y in zip(moved, ahead, behind, strict=True):
        np.testing.assert_allclose(own, (x - y) / (2 * h), atol=1e-7 * np.abs(own).max())
    weights = [rng.standard_normal(x.shape) for x in motion]
    found = motion.vjp(*weights)
    total = sum((found[name] * x).sum() for name, x in changes.items())
    assert total == pytest.approx(
        sum((x * w).sum() for x, w in zip(moved, weights, strict=True)), rel=1e-9
    )


@pytest.mark.parametrize(("kind", "method"), [("ball", "rk4"), ("hinge", "euler")])
def test_closed_chains(kind, method):
    """Dynamics and the projection after each step; the hinge has redundant rows."""
    system = four_bar(kind)
    q, v = system.project(system.assemble([0.9, -0.4, 1.9], hold=["motor"]), np.ones(3))
    closed_agree(system, q, v, RNG.standard_normal((12, 3)), method=method, every=3)


def test_second_derivatives_where_rows_follow_in_every_posture():
    """A plane loop of hinges: changes of gradients agree with their differences."""
    system, h = four_bar(), 1e-4
    q, v = system.project(system.assemble([0.9, -0.4, 1.9], hold=["motor"]), np.ones(3))
    tau, x, weights = np.array([2.0, 0.0, 0.0]), RNG.standard_normal(3), RNG.standard_normal((5, 3))
    motion = pp.rollout(system, q, v, tau, dt=5e-3, steps=4, method="euler")
    found = motion.hvp(weights, tau=x)
    ahead, behind = (
        pp.rollout(system, q, v, tau + s * x, dt=5e-3, steps=4, method="euler").vjp(weights)
        for s in (h, -h)
    )
    for name in ("q", "v", "tau"):
        np.testing.assert_allclose(
            found[name], (ahead[name] - behind[name]) / (2 * h), rtol=1e-5, atol=1e-8
        )
    with pytest.raises(pp.StateError, match="which is not an input of this motion"):
        motion.hvp(1.0, kp=1.0)


def test_second_derivatives_where_rows_follow_as_the_mechanism_is_closed():
    """A plate on three equal legs in the plane: one row is redundant while the mechanism is closed.
    Along initial states on the constraints, with velocity x, the second derivative of a motion is
    x* H x + g . x'."""
    b = pp.Builder("plate", gravity=(0, -9.81, 0))
    b.body("plate", mass=2.0, com=(0.5, 0.1, 0), inertia=np.diag([0.1, 0.2, 0.3]))
    for i in range(3):
        b.body(f"leg{i}", mass=1.0 + i, com=(0, 0.3, 0), inertia=np.diag([0.02, 0.01, 0.02]))
        b.joint(f"j{i}", "revolute", "world", f"leg{i}", xyz=(i, 0, 0))
        b.frame(f"top{i}", f"leg{i}", xyz=(0, 0.7, 0))
        b.frame(f"plate{i}", "plate", xyz=(i, 0, 0))
    b.joint("slide", "planar", "world", "plate", axis=(0, 0, 1))
    system, rng, h = (
        pp.connect(b.build(), [pp.Loop("ball", f"top{i}", f"plate{i}") for i in range(3)]),
        RNG,
        4e-3,
    )
    q, v = system.project(system.assemble(system.neutral() + 0.3), np.ones(6))
    _, w, Vt = np.linalg.svd(system.constraint_jacobian(q))
    dq, dv, weights = (
        Vt[(w > 1e-9).sum() :][0],
        rng.standard_normal(6),
        rng.standard_normal((2, 3, 6)),
    )
    first, second = (
        np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h),
        np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h * h),
    )
    starts = []
    for x in np.arange(-3, 4) * h:
        near, _ = system.project(system.integrate(q, x * dq), v)
        starts.append(system.project(near, v + x * dv))
    path = np.array([np.concatenate([system.difference(q, near), rate]) for near, rate in starts])
    motions = [pp.rollout(system, *start, dt=0.02, steps=2, method="euler") for start in starts]
    values = np.array([(weights[0] * m.q).sum() + (weights[1] * m.v).sum() for m in motions])
    x, gradient = first @ path, np.concatenate([motions[3].vjp(*weights)[name] for name in "qv"])
    turned = motions[3].hvp(*weights, q=x[:6], v=x[6:])
    bend = np.concatenate([turned["q"], turned["v"]]) @ x
    assert gradient @ x == pytest.approx(first @ values, rel=1e-7)
    assert bend + gradient @ (second @ path) == pytest.approx(
        second @ values, abs=1e-6 * np.abs(values).max()
    )


@pytest.mark.parametrize("redundant", [False, True])
@pytest.mark.parametrize("lead", [(3, 1), (1, 2)])
def test_closed_chains_with_parameters_of_several_axes(lead, redundant):
    """Motions (3, 2) of chains that differ along one batch axis: each equals its motion alone, and
    so do the linearizations."""
    robot = four_bar().robot if redundant else ARM
    loop = pp.Loop("distance", "tool", "world", length=0.3)
    if redundant:
        loop = pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 0, 1))
    light, rng = robot.free("mass"), np.random.default_rng(4)
    chain, own = pp.connect(light, [loop]), light.parameters()
    first = chain.at(own).assemble([0.9, -0.4, 1.9] if redundant else [0.5, 1.0])
    q, v = chain.at(own).project(first, np.ones(light.nv))
    p, tau = own + 0.1 * rng.random((*lead, 1)), np.ones(light.nv)
    options = {"dt": 0.01, "method": "euler"}
    motion = pp.rollout(chain.at(p), np.broadcast_to(q, (3, 2, len(q))), v, tau, steps=3, **options)
    w = rng.standard_normal(motion.q.shape)
    found = (
        motion.vjp(w)["v"],
        motion.hvp(w, tau=tau)["v"],
        *motion.jvp(parameters=np.ones(p.shape)),
    )
    grown = [chain.at(p).linearize(q, v, tau), chain.at(p).linearize(q, v, tau, **options)]
    for at in np.ndindex(3, 2):
        here = tuple(min(i, n - 1) for i, n in zip(at, lead, strict=True))
        alone = chain.at(p[here])
        one = pp.rollout(alone, q, v, tau, steps=3, **options)
        want = (
            one.vjp(w[at])["v"],
            one.hvp(w[at], tau=tau)["v"],
            *one.jvp(parameters=np.ones(len(own))),
        )
        for x, y in zip(found, want, strict=True):
            np.testing.assert_allclose(x[at], y, rtol=1e-9, atol=1e-12)
        for (A, B), (a, b) in zip(
            grown, [alone.linearize(q, v, tau), alone.linearize(q, v, tau, **options)], strict=True
        ):
            assert np.allclose(A[here], a, atol=1e-9) and np.allclose(B[here], b, atol=1e-12)


def test_closed_chains_have_none_where_the_rank_changes():
    """A stretched chain at rest has no derivative: a single motion raises an error, in a batch it
    is NaN, and the other motions have derivatives."""
    system = pinned_arm(pin=(2.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0))
    rest = np.zeros((2, 2))
    alone = pp.rollout(system, rest[0], rest[0], steps=3)
    for ask in (
        lambda: alone.vjp(np.ones((4, 2))),
        lambda: alone.hvp(np.ones((4, 2)), q=np.ones(2)),
    ):
        with pytest.raises(pp.SingularError, match="no derivative"):
            ask()
    assert np.isnan(pp.rollout(system, rest, rest, steps=3).vjp(np.ones((2, 4, 2)))["v"]).all()
