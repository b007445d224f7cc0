"""Motions: rollouts and `mujoco.rollout`, conservation, order, and the motion of MuJoCo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.agreement import one_state, states
from psiphi_bench.peers.lazy_import import LazyModule, mujoco
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.row import Measurement, Size, microseconds

BATCH, STEPS, DT = 4096, 1000, 1e-3
MUJOCO_ROBOTS = (
    ("UR5", "fixed"),
    ("Panda", "fixed"),
    ("ANYmal", "free"),
    ("solo12", "free"),
    ("G1", "free"),
)
ADAPTIVE = dict(method="DOP853", rtol=1e-13, atol=1e-13, dt=0.05)

mujoco_rollout: Any = LazyModule("mujoco.rollout")


def rollouts(size: Size) -> Iterator[Measurement]:
    """A batch of motions with torques that change at every step, RK4, one core.

    The minimum of several passes over preallocated arrays.
    """
    pp.set_threads(1)
    robot = pp.load(example_robots.urdf("UR5"))
    state = states(robot, BATCH)
    q, v, tau = (
        state["q"],
        state["v"],
        np.random.default_rng(1).standard_normal((BATCH, STEPS, robot.nv)),
    )
    out = np.zeros((BATCH, STEPS + 1, robot.nq)), np.zeros((BATCH, STEPS + 1, robot.nv))
    pp.rollout(robot, q[:8], v[:8], tau[:8], DT, STEPS)
    ours, theirs, part = float("inf"), float("inf"), 64 if size.quick else 512
    for _ in range(2):
        theirs = min(theirs, _their_rollout(robot, q[:part], v[:part], tau[:part]))
        for _ in range(3):
            ours = min(
                ours,
                _timed(lambda: pp.rollout(robot, q, v, tau, DT, STEPS, out=out)) / (BATCH * STEPS),
            )
    note = f"per RK4 step, {BATCH} x {STEPS} steps; mujoco.rollout on {part} x {STEPS}"
    yield Measurement("UR5", theirs / ours, microseconds(ours), microseconds(theirs), note)


def _their_rollout(robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> float:
    """Seconds per step of mujoco.rollout, with preallocated arrays."""
    model = _with_steps(Mj(robot).peer, mujoco.mjtIntegrator.mjINT_RK4)
    start = np.concatenate([np.zeros((len(q), 1)), q, v], axis=1)
    states = np.zeros((len(q), STEPS, start.shape[1]))
    control, data = mujoco.mjtState.mjSTATE_QFRC_APPLIED.value, mujoco.MjData(model)
    run = mujoco_rollout.rollout
    run(model, [data], start[:1], tau[:1], control_spec=control)
    return _timed(lambda: run(model, [data], start, tau, control_spec=control, state=states)) / (
        len(q) * STEPS
    )


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _with_steps(model: Any, integrator: Any) -> Any:
    model.opt.integrator, model.opt.timestep = integrator, DT
    return model


def energy_drift(adaptive: bool) -> Callable[[Size], Iterator[Measurement]]:
    """max |E - E(0)| / largest kinetic energy of an undamped UR5 from random states, 10 s."""

    def measure(size: Size) -> Iterator[Measurement]:
        robot = pp.load(example_robots.urdf("UR5"))
        state = states(robot, (2 if size.quick else 10) if adaptive else 10 * size.states)
        options: dict[str, Any] = dict(ADAPTIVE) if adaptive else dict(dt=DT, every=10)
        drift = pp.simulate(robot, state["q"], state["v"], duration=10.0, **options).drift
        yield Measurement(
            f"UR5, {len(drift)} states", float(drift.max()), note=f"median {np.median(drift):.1e}"
        )

    return measure


def order(size: Size) -> Iterator[Measurement]:
    """log2 of the ratio of errors at halved steps; an error is the distance to half the step."""
    trees = {
        "UR5": pp.load(example_robots.urdf("UR5")),
        "ANYmal, free": pp.load(example_robots.urdf("ANYmal"), base="free"),
    }
    trees["balls and free bodies"] = pp.robots.random_tree(5, seed=1, kinds=("spherical", "free"))
    for name, robot in trees.items():
        for method in ("rk4", "lie"):
            yield Measurement(f"{name}, {method}", observed_order(robot, method))


def observed_order(
    robot: Robot, method: str, duration: float = 0.2, steps: tuple[int, ...] = (40, 80, 160)
) -> float:
    """The observed order from two halvings of the step."""
    state = one_state(robot)
    ends = []
    for n in steps:
        options = dict(duration=duration, dt=duration / n, every=n, method=method)
        ends.append(pp.simulate(robot, state["q"], state["v"], **options).final)  # type: ignore[arg-type]
    off = [distance(robot, ends[i], ends[i + 1]) for i in range(2)]
    return float(np.log2(off[0] / off[1]))


def distance(robot: Robot, one: Any, other: Any) -> float:
    """The largest difference of two states, on the manifold."""
    return float(max(np.abs(robot.difference(one.q, other.q)).max(), np.abs(one.v - other.v).max()))


def momentum_drift(adaptive: bool) -> Callable[[Size], Iterator[Measurement]]:
    """Relative change of the momentum of a free-floating robot with two moving arms, 10 s."""

    def measure(size: Size) -> Iterator[Measurement]:
        robot, rates = two_arms(), np.arange(1.0, 7.0)
        q, v = robot.random(seed=2), 0.3 * np.random.default_rng(2).standard_normal(robot.nv)
        if adaptive:
            tau: Any = lambda t, q, v: np.concatenate([np.zeros(6), np.sin(t * rates)])  # noqa: E731
        else:
            wave = np.sin(np.outer(DT * np.arange(10_000), rates))
            tau = np.concatenate([np.zeros((10_000, 6)), wave], axis=1)
        options: dict[str, Any] = dict(ADAPTIVE) if adaptive else dict(dt=DT, every=10)
        motion = pp.simulate(robot, q, v, tau, duration=10.0, **options)
        p = robot.momentum(motion.q, motion.v)
        yield Measurement(
            "two arms on a free hull", float(np.abs(p - p[0]).max() / np.abs(p[0]).max())
        )

    return measure


def two_arms() -> Robot:
    """A free-floating hull with two arms of three joints; no gravity."""
    b = pp.Builder("space robot", gravity=(0, 0, 0))
    b.body("hull", mass=50.0, inertia=np.diag([3.0, 4.0, 5.0]))
    b.joint("fly", "free", parent="world", child="hull")
    for side, y in (("left", 0.4), ("right", -0.4)):
        parent = "hull"
        for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (1, 1, 0))):
            name = f"{side}{k}"
            b.body(name, mass=3.0, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.05, 0.05]))
            b.joint(
                f"joint {name}",
                "revolute",
                parent=parent,
                child=name,
                xyz=(0.4 if k else 0.3, 0 if k else y, 0),
                axis=axis,
            )
            parent = name
    return b.build()


def same_motion(size: Size) -> Iterator[Measurement]:
    """The state after 1000 RK4 steps of 1 ms, compared with MuJoCo without contacts."""
    for name, base in MUJOCO_ROBOTS[:2] if size.quick else MUJOCO_ROBOTS:
        yield Measurement(f"{name}, {base}", difference_from_mujoco(name, base))


def difference_from_mujoco(
    name: str, base: str, method: str = "rk4", integrator: Any = None
) -> float:
    """max |ours - theirs| / max(1, |theirs|) of q (on the manifold) and v after one second."""
    robot = pp.load(example_robots.urdf(name), base=base)
    peer, rng = Mj(robot), np.random.default_rng(0)
    q, v = robot.random(rng), 0.3 * rng.standard_normal(robot.nv)
    model = _with_steps(
        peer.peer, mujoco.mjtIntegrator.mjINT_RK4 if integrator is None else integrator
    )
    data, L = mujoco.MjData(model), peer.layout
    data.qpos[:], data.qvel[:] = L.to_q(q), L.to_v(v, q)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    theirs = L.from_q(data.qpos), L.from_v(data.qvel, data.qpos)
    ours = pp.simulate(robot, q, v, duration=STEPS * DT, dt=DT, every=STEPS, method=method).final
    off = np.abs(robot.difference(ours.q, theirs[0])).max(), np.abs(ours.v - theirs[1]).max()
    return float(max(x / max(1.0, np.abs(y).max()) for x, y in zip(off, theirs, strict=True)))
