"""Run time of batches, single calls and two threads. Each library has its preferred layout.

All measurements but the last use one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256

import numpy as np

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.agreement import one_state, states
from psiphi_bench.best_of import best
from psiphi_bench.peers.lazy_import import mujoco, pinocchio
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.row import Measurement, Size, microseconds

BATCH, BIG_BATCH = 4096, 100_000
PARALLEL = {
    "forward_dynamics": ("abaInParallel", "tau"),
    "inverse_dynamics": ("rneaInParallel", "a"),
}


def batch(
    function: str, names: tuple[str, ...], base: str
) -> Callable[[Size], Iterator[Measurement]]:
    """A function on a row-major batch, and Pinocchio's C++ loop over columns."""

    def measure(size: Size) -> Iterator[Measurement]:
        pp.set_threads(1)
        for name in names:
            robot, peer = example_robots.load_with_pinocchio(name, base)
            ours, theirs = best(
                *_batch_calls(function, robot, peer, states(robot, BATCH)), seconds=size.seconds
            )
            yield Measurement(
                name, theirs / ours, microseconds(ours / BATCH), microseconds(theirs / BATCH)
            )

    return measure


def _batch_calls(function: str, robot: Robot, peer: Pin, state: dict) -> tuple[Callable, Callable]:
    call, last = PARALLEL[function]
    q, v, x = state["q"], state["v"], state[last]
    out = np.empty_like(v)
    L = peer.layout
    columns = [np.asfortranarray(rows.T) for rows in (L.to_q(q), L.to_v(v, q), L.to_tau(x, q), out)]
    pool = pinocchio.ModelPool(peer.peer, 1)
    return partial(getattr(robot, function), q, v, x, out=out), partial(
        getattr(pinocchio, call), 1, pool, *columns
    )


def one_call(size: Size) -> Iterator[Measurement]:
    """One forward dynamics of a UR5 from Python, arrays in, array out."""
    robot, peer = example_robots.load_with_pinocchio("UR5")
    state, L = one_state(robot), peer.layout
    q, v, tau = state["q"], state["v"], state["tau"]
    ours, theirs = best(
        partial(robot.forward_dynamics, q, v, tau),
        partial(pinocchio.aba, peer.peer, peer.data, L.to_q(q), L.to_v(v, q), L.to_tau(tau, q)),
        seconds=2 * size.seconds,
    )
    yield Measurement("UR5", ours / theirs, microseconds(ours), microseconds(theirs))


def one_calls(size: Size) -> Iterator[Measurement]:
    """Other functions of control loops, one state per call."""
    for name, base in (("UR5", "fixed"), ("G1", "free")):
        robot, peer = example_robots.load_with_pinocchio(name, base)
        state = one_state(robot)
        q, v, a, (model, data, L) = (
            state["q"],
            state["v"],
            state["a"],
            (peer.peer, peer.data, peer.layout),
        )
        their_q, their_v, their_a = their_state = L.to_q(q), L.to_v(v, q), L.to_tau(a, q)
        for what, ours, theirs in (
            (
                "inverse dynamics",
                (robot.inverse_dynamics, q, v, a),
                (pinocchio.rnea, model, data, their_q, their_v, their_a),
            ),
            (
                "bias",
                (robot.bias, q, v),
                (pinocchio.nonLinearEffects, model, data, their_q, their_v),
            ),
            ("mass matrix", (robot.mass_matrix, q), (pinocchio.crba, model, data, their_q)),
            ("integrate", (robot.integrate, q, v), (pinocchio.integrate, model, their_q, their_v)),
            (
                "difference",
                (robot.difference, q, q),
                (pinocchio.difference, model, their_q, their_q),
            ),
            (
                "linearize",
                (robot.linearize, q, v, a),
                (pinocchio.computeABADerivatives, model, data, *their_state),
            ),
        ):
            x, y = best(
                *(partial(call, *args) for call, *args in (ours, theirs)), seconds=size.seconds
            )
            yield Measurement(f"{name}, {what}", x / y, microseconds(x), microseconds(y))


def one_call_mujoco(size: Size) -> Iterator[Measurement]:
    """The same in MuJoCo without constraints; the state is already in its data."""
    robot = pp.load(example_robots.urdf("UR5"))
    peer, state = Mj(robot), one_state(robot)
    peer.data.qpos[:], peer.data.qvel[:], peer.data.qfrc_applied[:] = (
        state["q"],
        state["v"],
        state["tau"],
    )
    ours, theirs = best(
        partial(robot.forward_dynamics, state["q"], state["v"], state["tau"]),
        partial(mujoco.mj_forward, peer.peer, peer.data),
        seconds=size.seconds,
    )
    yield Measurement("UR5", ours / theirs, microseconds(ours), microseconds(theirs))


FEET = ("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT")


def operational_space(size: Size) -> Iterator[Measurement]:
    """J M^-1 J* of a quadruped's four feet, and Pinocchio's fastest method, one state per call."""
    pp.set_threads(1)
    robot, peer = example_robots.load_with_pinocchio("ANYmal", "free")
    s = robot.operators
    f = pp.function(s.J(*FEET) @ s.mass.inv @ s.J(*FEET).T)
    q = states(robot, BATCH)["q"]
    calls = {
        "computeDelassusMatrix": _delassus(peer, q[0]),
        "computeMinverse": _with_inverse(peer, q[0]),
    }
    ours, *theirs = best(
        partial(f, q, out=np.empty((BATCH, 24, 24))), *calls.values(), seconds=size.seconds
    )
    fastest = min(zip(theirs, calls, strict=True))
    note = f"Pinocchio's fastest: {fastest[1]}; {f.flops} flops"
    yield Measurement(
        "ANYmal, four feet",
        BATCH * fastest[0] / ours,
        microseconds(ours / BATCH),
        microseconds(fastest[0]),
        note,
    )


def _delassus(peer: Pin, q: np.ndarray) -> Callable:
    """Pinocchio's Delassus matrix of four 6-D contacts."""
    model, data, at = peer.peer, peer.data, peer.layout.to_q(q)
    contacts = []
    for foot in FEET:
        frame = model.frames[peer.frame_id(foot)]
        axes, kind = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED, pinocchio.ContactType.CONTACT_6D
        contacts.append(
            pinocchio.RigidConstraintModel(kind, model, frame.parentJoint, frame.placement, axes)
        )
    return partial(
        pinocchio.computeDelassusMatrix,
        model,
        data,
        at,
        contacts,
        [c.createData() for c in contacts],
        0.0,
    )


def _with_inverse(peer: Pin, q: np.ndarray) -> Callable:
    """J M^-1 J* from Pinocchio's inverse mass matrix and Jacobians."""
    model, data, at = peer.peer, peer.data, peer.layout.to_q(q)
    feet, axes = [peer.frame_id(foot) for foot in FEET], pinocchio.LOCAL_WORLD_ALIGNED

    def call() -> np.ndarray:
        inverse = pinocchio.computeMinverse(model, data, at)
        pinocchio.computeJointJacobians(model, data, at)
        J = np.vstack([pinocchio.getFrameJacobian(model, data, foot, axes) for foot in feet])
        return J @ inverse @ J.T

    return call


def two_threads(size: Size) -> Iterator[Measurement]:
    """One batch on one thread and on two, and the speedup of two threads that only hash."""
    for name in ("UR5", "Panda"):
        robot = pp.load(example_robots.urdf(name))
        state = states(robot, BIG_BATCH)
        call = partial(
            robot.forward_dynamics,
            state["q"],
            state["v"],
            state["tau"],
            out=np.empty_like(state["v"]),
        )
        alone, together, one, two = np.min(list(_rounds(call, size)), axis=0).tolist()
        note = f"two threads that only hash: {2 * alone / together:.3g}x"
        yield Measurement(
            name,
            one / two,
            microseconds(two / BIG_BATCH),
            f"{microseconds(one / BIG_BATCH)} on one",
            note,
        )
    pp.set_threads(1)


def _rounds(call: Callable, size: Size) -> Iterator[list[float]]:
    """Rounds of timings, until enough of them had two free cores or the limit is reached."""
    wanted, attempts = (2, 8) if size.quick else (8, 60)
    while wanted and attempts:
        alone, together = _hash_seconds()
        yield [alone, together, *(_on_threads(n, call, size.seconds / 5) for n in (1, 2))]
        wanted, attempts = wanted - (2 * alone > 1.7 * together), attempts - 1


def _hash_seconds(data: bytes = bytes(2_000_000)) -> list[float]:
    """Seconds to hash data on one thread, and on two threads at once (without the GIL)."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(sha256, (b"", b"")))
        return best(
            partial(sha256, data), lambda: list(pool.map(sha256, (data, data))), seconds=0.02
        )


def _on_threads(n: int, call: Callable, seconds: float) -> float:
    pp.set_threads(n)
    return best(call, seconds=seconds)[0]
