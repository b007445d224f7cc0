"""Random motions, and what `pp.simulate` records beside q and v, held against q and v.

    python tests/soundness/motions.py --count 5000 --seed 1

A case is a system and options of `simulate`. Its checks:

    slopes       a = dv/dt by differences, and dq/dt = v
    energy       E = v* M v / 2 - sum of m g . c + springs, and E - E0 = work of torques, losses
                 (by their formulas) and stops
    torques      tau is what the law, the table and the effort limits say
    ways         the kernel, Python steps, `rollout`, `every=`, and each motion of a batch alone
                 give the same samples
    balance      contacts: impulses and weight are the change of momentum; stops: M a + C v + g =
                 tau + their forces
    events       those of a batch are those of its motions alone

A failing case is made smaller by leaving out options one by one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2] / part) for part in ("", "src", "benchmarks")]

import numpy as np  # noqa: E402

import psiphi as pp  # noqa: E402
from tests.model.flexible.flexible_robots import arm as flexible_arm  # noqa: E402
from tests.simulation.simulate import motions as known  # noqa: E402

G = np.array([0.0, 0.0, -9.81])
STEPS, DT = 36, 2e-3
ORDERS = {"rk4": 4, "lie": 4, "implicit": 2, "midpoint": 2, "euler": 1, "RK45": 4}
FRICTION_SPEED = 0.05


class Case(NamedTuple):
    """A system and options, by names; `seed` is that of the state."""

    system: str
    seed: int
    options: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options)
        return f"Case({self.system!r}, {self.seed}, dict({options}))"

    @property
    def chosen(self) -> dict[str, Any]:
        return dict(self.options)


# -- systems ---------------------------------------------------------------------------------------


@cache
def arm() -> pp.Robot:
    """A hinge, a slide, a hinge; limits, motors and losses."""
    b = pp.Builder("arm")
    kinds, axes = ("revolute", "prismatic", "revolute"), ((0, 1, 0), (1, 0, 0), (0, 0.6, 0.8))
    for k, (kind, axis) in enumerate(zip(kinds, axes, strict=True)):
        b.body(f"b{k}", mass=1.0 + 0.5 * k, com=(0.2, 0.05, 0.0), inertia=(0.02, 0.05, 0.05))
        b.joint(
            f"j{k}",
            kind,
            parent=f"b{k - 1}" if k else "world",
            child=f"b{k}",
            xyz=(0.3 * bool(k), 0, 0),
            axis=axis,
            lower=-0.4,
            upper=0.5,
            effort=3.0,
            damping=0.4,
            friction=0.3,
            stiffness=20.0,
            rest=0.1,
            armature=0.05,
        )
    return pp.Robot.of(b.build())


@cache
def walker() -> pp.Robot:
    """A free body with two legs, on balls."""
    b = pp.Builder("walker")
    b.body("hull", mass=4.0, inertia=(0.04, 0.05, 0.06))
    b.joint("root", "free", "world", "hull")
    for side, y in (("left", 0.15), ("right", -0.15)):
        b.body(side, mass=0.5, com=(0, 0, -0.15), inertia=(0.004, 0.004, 0.001))
        b.joint(
            f"{side} hip", "revolute", "hull", side, xyz=(0, y, -0.05), axis=(0, 1, 0), effort=6.0
        )
        b.frame(f"{side} toe", side, xyz=(0.05, 0, -0.3))
        b.frame(f"{side} heel", side, xyz=(-0.05, 0, -0.3))
    balls = {name: pp.Sphere(0.02) for name in ("*toe", "*heel")}
    return pp.Robot.of(b.build()).with_contacts(balls)


@cache
def crate() -> pp.Robot:
    b = pp.Builder("crate")
    b.body("crate", mass=1.0, inertia=(0.004, 0.006, 0.008))
    b.joint("root", "free", "world", "crate")
    return pp.Robot.of(b.build()).with_contacts({"crate": pp.Box((0.2, 0.16, 0.12))})


@cache
def tripod() -> pp.Robot:
    """A free body on three points."""
    b = pp.Builder("tripod")
    b.body("tripod", mass=1.0, com=(0.0, 0.01, 0.0), inertia=(0.004, 0.006, 0.008))
    b.joint("root", "free", "world", "tripod")
    feet = pp.Points([[0.1, 0.0, -0.05], [-0.1, 0.08, -0.05], [-0.1, -0.08, -0.05]])
    return pp.Robot.of(b.build()).with_contacts({"tripod": feet})


@cache
def linkage() -> pp.Robot:
    """The four-bar as a tree of independent coordinates."""
    cell = known.four_bar()
    loops = [pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 0, 1))]
    return pp.embed(cell.robot, loops, at=closed_posture(), free="motor")


@cache
def closed_posture() -> np.ndarray:
    return known.four_bar().assemble([0.5, 0.5, 0.5])


SYSTEMS: dict[str, Callable[[], Any]] = {
    "arm": arm,
    "juggler": known.juggler,
    "walker": walker,
    "crate": crate,
    "tripod": tripod,
    "flexible": flexible_arm,
    "closed": known.four_bar,
    "embedded": linkage,
}
ON_GROUND = ("walker", "crate", "tripod")
MANY = ("arm", "arm", "juggler", "walker", "walker", "crate", "flexible", "closed", "embedded")
FEW = ("arm", "arm", "juggler", "tripod", "tripod", "flexible", "closed", "embedded")


def dt(case: Case) -> float:
    """The step, which resolves the modes of flexible links."""
    return DT / 8 if case.system == "flexible" else DT


def initial(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """q0 and v0, with the batch axes of the case."""
    system, rng = SYSTEMS[case.system](), np.random.default_rng([case.seed, 5])
    shape, nv = case.chosen.get("batch", ()), system.nv
    robot = getattr(system, "robot", system)
    if case.system in ("closed", "embedded"):
        if case.system == "closed":
            q = np.broadcast_to(closed_posture(), (*shape, robot.nq))
            v = rng.uniform(-1, 1, (*shape, nv))
            return system.project(q.copy(), v)
        q = np.broadcast_to(robot.neutral(), (*shape, robot.nq))
        q = robot.normalize(robot.integrate(q, rng.uniform(-0.3, 0.3, (*shape, nv)), 1.0))
        return q, rng.uniform(-1, 1, (*shape, nv))
    q = np.broadcast_to(robot.neutral(), (*shape, robot.nq))
    q = robot.integrate(q, rng.uniform(-0.3, 0.3, (*shape, nv)), 1.0)
    if case.system == "flexible":
        q = np.broadcast_to(robot.neutral(), (*shape, robot.nq)) + 0.02 * rng.uniform(-1, 1)
    v = rng.uniform(-1, 1, (*shape, nv))
    if "ground" in case.chosen:
        q = robot.on_ground(q, ground(case.chosen["ground"]))
        q[..., 2] += rng.choice([0.0, 0.005])
    return q, 0.5 * v if case.system == "flexible" else v


# -- laws, by names --------------------------------------------------------------------------------


def wave(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A law that reads one motion."""
    n = len(v)
    return 2.0 * np.sin(8.0 * t + np.arange(n)) - 0.5 * v - 0.2 * np.linalg.norm(v) * v


def motor_mask(case: Case) -> np.ndarray:
    """(nv,): 0 at the coordinates that `passive` names, else 1."""
    system = SYSTEMS[case.system]()
    out = np.ones(system.nv)
    for name in case.chosen.get("passive", ()):
        out[system.joint(name).v_slice] = 0.0
    return out


def torque(case: Case) -> Any:
    """The argument tau."""
    system, name = SYSTEMS[case.system](), case.chosen.get("tau")
    nv, rng = system.nv, np.random.default_rng([case.seed, 6])
    shape = case.chosen.get("batch", ()) if case.chosen.get("per motion") else ()
    driven = motor_mask(case)
    if name == "constant":
        return driven * rng.uniform(-4, 4, (*shape, nv))
    if name == "table":
        rows = driven * rng.uniform(-4, 4, (*shape, STEPS // 12, nv))
        return np.repeat(rows, 12, axis=-2)
    if name == "law":
        return wave
    if name == "marked":
        return pp.law(wave)
    if name == "pd":
        q = getattr(system, "robot", system).neutral()
        return pp.PD(system, closed_posture() if case.system == "closed" else q, kp=20.0, kd=2.0)
    return None


def ground(name: str) -> pp.Ground:
    return {
        "rigid": pp.Ground(friction=0.6),
        "smooth": pp.Ground(friction=0.0),
        "bouncy": pp.Ground(friction=0.4, restitution=0.5),
        "soft": pp.Ground(friction=0.7, stiffness=2e4, damping=50.0),
        "sloped": pp.Ground(friction=0.9, normal=(0.1, 0.0, 1.0)),
    }[name]


def draw(seed: int, i: int, cheap: bool = False) -> Case:
    """Case i of a run; `cheap` ones share most of their kernels."""
    rng = np.random.default_rng([seed, i])

    def pick(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    system = pick(*(FEW if cheap else MANY))
    options: dict[str, Any] = {}
    if system in ON_GROUND and rng.random() < 0.7:
        options["ground"] = pick("rigid", *(("smooth", "bouncy", "soft", "sloped") * (not cheap)))
    else:
        options["method"] = pick(*ORDERS)
    if system == "arm" and options["method"] != "RK45" and rng.random() < 0.5:
        options["limits"] = "block"
    if rng.random() < 0.7:
        options["tau"] = pick("constant", "table", "law", "marked", "pd")
        if cheap and "ground" in options:
            options["tau"] = "law"  # its steps run in Python, with one kernel for all laws
    if options.get("tau") in ("law", "marked", "pd") and rng.random() < 0.3:
        options["hold"] = True
    for name in ("damping", "friction"):
        if rng.random() < 0.3 and not (cheap and "ground" in options):
            options[name] = pick(0.3, True) if system == "arm" else 0.3
    if system == "flexible" or (system == "arm" and rng.random() < 0.4):
        options["springs"] = True
    if "tau" in options and system in ("arm", "walker") and rng.random() < 0.3:
        options["effort"] = pick(True, 1.5)
    if system == "walker" and rng.random() < 0.3:
        options["passive"] = ("root", "left hip")
    if rng.random() < 0.4:
        options["batch"] = pick((2,), (3,), (2, 1))
        if options.get("tau") in ("constant", "table") and rng.random() < 0.5:
            options["per motion"] = True
    if rng.random() < 0.4:
        options["every"] = pick(2, 5, 7)
    if (
        options.get("method", "RK45" if cheap else "") != "RK45"
        and rng.random() < 0.3 - 0.2 * cheap
    ):
        options["compiled"] = True
    if rng.random() < 0.3:
        options["event"] = True
    return Case(system, int(rng.integers(1000)), tuple(options.items()))


# -- running ---------------------------------------------------------------------------------------


def crossing(t: float, q: np.ndarray, v: np.ndarray) -> float:
    """An event that reads one motion."""
    return float(np.sin(20.0 * t) + 0.5 + 0.1 * np.linalg.norm(v))


def arguments(case: Case, **changes: Any) -> dict[str, Any]:
    """The options of `pp.simulate`."""
    chosen = case.chosen | changes
    names = ("hold", "damping", "friction", "springs", "effort", "passive", "limits", "every")
    out = {name: chosen[name] for name in (*names, "method", "compiled") if name in chosen}
    if "ground" in chosen:
        out["contacts"] = ground(chosen["ground"])
    if chosen.get("friction") is not None:
        out["friction_speed"] = FRICTION_SPEED
    if chosen.get("event"):
        out["events"] = {"crossing": crossing}
    if chosen.get("method") == "RK45":
        out |= dict(rtol=1e-10, atol=1e-10)
    return out


def run(case: Case, **changes: Any) -> pp.Trajectory:
    q, v = initial(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = arguments(case, **changes)
        tau = torque(case)
        return pp.simulate(SYSTEMS[case.system](), q, v, tau, STEPS * dt(case), dt(case), **options)


# -- checks ----------------------------------------------------------------------------------------

Failures = Iterator[str]


def elements(motion: pp.Trajectory) -> Iterator[pp.Trajectory]:
    for place in np.ndindex(*motion.batch):
        yield motion.element(*place) if motion.batch else motion


def blows(motion: pp.Trajectory) -> np.ndarray:
    """(n - 1,): whether the velocity or the torque may jump in a step."""
    n = len(motion) - 1
    out = np.zeros(n, dtype=bool)
    if motion.stop_forces is not None:
        acts = (motion.stop_forces != 0.0).any(axis=-1)
        out |= acts[1:] != acts[:-1]
        out |= np.abs(np.diff(motion.stop_forces, axis=0)).max(axis=-1) > 2.0
    return out | np.roll(out, 1) | np.roll(out, -1)


def slopes(case: Case, motion: pp.Trajectory) -> Failures:
    """a = dv/dt: the mean slope of a step lies between the accelerations at its ends."""
    a, h = motion.a, np.diff(motion.t)[:, None]
    slope = np.diff(motion.v, axis=0) / h
    if "ground" in case.chosen:  # the change of v in the step, by its duration
        error = np.abs(slope - a[:-1])
        limit = 1e-6 * (1.0 + np.abs(slope).max())
    else:
        low, high = np.minimum(a[1:], a[:-1]), np.maximum(a[1:], a[:-1])
        change = np.abs(np.diff(a, axis=0)).max(axis=1, keepdims=True)
        near = np.maximum(np.maximum(change, np.roll(change, 1, 0)), np.roll(change, -1, 0))
        error = np.maximum(low - slope, slope - high)
        # a is that of the start of a step whose torque is constant
        held = case.chosen.get("hold", False) or case.chosen.get("tau") == "table"
        lossy = "damping" in case.chosen or "friction" in case.chosen
        implicit = lossy and ORDERS[case.chosen["method"]] <= 2
        first_order = ORDERS[case.chosen["method"]] == 1 or "limits" in case.chosen or held
        limit = (1.0 if first_order else 0.3) * near + 1e-5 * (1.0 + np.abs(a).max())
        limit = limit + first_order * 20.0 * h * (1.0 + np.abs(a).max())
        limit = limit + implicit * 0.4 * np.abs(a).max()  # the error of implicit losses
    over = (error > limit).any(axis=1) & ~blows(motion)
    if over.any():
        k = int(over.argmax())
        yield f"a is not dv/dt at sample {k}: {a[k]} and {a[k + 1]}, slope {slope[k]}"
    system = SYSTEMS[case.system]()
    robot = getattr(system, "robot", system)
    rate = robot.difference(motion.q[:-1], motion.q[1:]) / h
    mean = (motion.v[1:] + motion.v[:-1]) / 2.0
    limit = 1.0 * h * np.abs(slope).max() + 1e-5 + 2.0 * h * np.abs(motion.v).max() ** 2
    if (np.abs(rate - mean) > limit).any():
        yield "v is not dq/dt"


def losses(case: Case, robot: pp.Robot, v: np.ndarray) -> np.ndarray:
    """The generalised forces of damping and friction, by their formulas."""
    total = np.zeros_like(v)
    for name in ("damping", "friction"):
        value = case.chosen.get(name, False)
        if value is False:
            continue
        rows = np.array(getattr(robot, name)) if value is True else np.full(robot.nv, value)
        size = 1.0 if name == "damping" else 1.0 / np.sqrt(v**2 + FRICTION_SPEED**2)
        total = total - rows * v * size
    return total


def stored(case: Case, robot: pp.Robot, q: np.ndarray) -> np.ndarray | float:
    """The energy of springs."""
    if not case.chosen.get("springs"):
        return 0.0
    if case.system == "arm":
        return (0.5 * np.array(robot.stiffness) * (q - np.array(robot.rest)) ** 2).sum(axis=-1)
    stiffness = np.array([[900.0, 50.0], [50.0, 4000.0]])
    modes = q[..., 1:3]
    return 0.5 * np.einsum("...i,ij,...j->...", modes, stiffness, modes)


def energy(case: Case, motion: pp.Trajectory) -> Failures:
    system = SYSTEMS[case.system]()
    robot = getattr(system, "robot", system)
    q, v, h = motion.q, motion.v, np.diff(motion.t)
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", v, robot.mass_matrix(q), v)
    mass = sum(body.mass for body in robot.bodies)
    if case.system not in ("flexible", "embedded"):
        fall = np.array([0.0, -9.81, 0.0]) if case.system == "closed" else G
        expected = kinetic - mass * robot.center_of_mass(q) @ fall + stored(case, robot, q)
        if not np.allclose(motion.energy, expected, atol=1e-9 * (1 + np.abs(expected).max())):
            yield f"energy is {motion.energy[0]}, expected {expected[0]}"
    power_in = np.einsum("ni,ni->n", motion.tau, v)
    lost = np.einsum("ni,ni->n", losses(case, robot, v), v)
    held = case.chosen.get("hold") or case.chosen.get("tau") == "table" or "ground" in case.chosen
    if held:
        mean = (v[1:] + v[:-1]) / 2.0
        work = h * np.einsum("ni,ni->n", motion.tau[:-1], mean)
    else:
        work = h * (power_in[1:] + power_in[:-1]) / 2.0
    total = np.concatenate([[0.0], np.cumsum(work)])
    if motion.work is not None and not np.allclose(
        motion.work, total, atol=1e-10 * (1 + np.abs(total).max())
    ):
        yield f"work ends at {motion.work[-1]}, expected {total[-1]}"
    total[1:] += np.cumsum(h * (lost[1:] + lost[:-1]) / 2.0)
    if motion.stop_work is not None:
        total += motion.stop_work
    change = motion.energy - motion.energy[0]
    size = 0.1 + np.abs(kinetic).max() + np.abs(change).max()
    if case.chosen.get("ground") == "soft":  # it stores energy, which is not recorded
        return
    if "ground" in case.chosen:  # contacts only take energy
        rise = change - total
        if np.diff(rise).max() > 0.02 * size:
            yield f"contacts add {np.diff(rise).max()} J in a step"
        return
    lossy = "damping" in case.chosen or "friction" in case.chosen
    first_order = ORDERS[case.chosen["method"]] <= 1 + lossy or "limits" in case.chosen
    limit = (0.1 if first_order else 0.004) * size
    if np.abs(change - total).max() > limit:
        k = int(np.abs(change - total).argmax())
        yield f"energy less work is off by {np.abs(change - total).max():.3g} J at sample {k}"


def torques(case: Case, motion: pp.Trajectory, place: tuple[int, ...]) -> Failures:
    """tau at the samples is what was asked for."""
    system, given = SYSTEMS[case.system](), torque(case)
    robot = getattr(system, "robot", system)
    name, nv = case.chosen.get("tau"), system.nv
    if name is None:
        meant = np.zeros((len(motion), nv))
    elif name == "constant":
        meant = np.broadcast_to(given[place] if given.ndim > 1 else given, (len(motion), nv))
    elif name == "table":
        table = given[place] if given.ndim > 2 else given
        meant = table[np.minimum(np.arange(len(motion)), STEPS - 1)]
    elif name == "pd":
        goal = closed_posture() if case.system == "closed" else robot.neutral()
        meant = 20.0 * robot.difference(motion.q, goal) - 2.0 * motion.v
    else:
        meant = np.array([wave(*x) for x in zip(motion.t, motion.q, motion.v, strict=True)])
    if case.system == "closed" and name == "pd":
        return
    meant = meant * motor_mask(case)
    if name == "pd" and "passive" not in case.chosen:  # floating bases and modes have no motors
        for j in robot.joints:
            if j.kind == "free" or j.modes is not None:
                meant[:, j.v_slice] = 0.0
    effort = case.chosen.get("effort")
    if effort is not None:
        most = np.array(robot.effort) if effort is True else effort
        meant = np.clip(meant, -most, most)
    if not np.allclose(motion.tau, meant, atol=1e-7, equal_nan=False):
        k = int(np.abs(motion.tau - meant).max(axis=1).argmax())
        yield f"tau at sample {k} is {motion.tau[k]}, expected {meant[k]}"


def balance(case: Case, motion: pp.Trajectory) -> Failures:
    """Forces of contacts and stops."""
    system = SYSTEMS[case.system]()
    if "ground" in case.chosen:
        mass = sum(body.mass for body in system.bodies)
        momentum = system.momentum(motion.q, motion.v)[:, 3:]
        turns = system.frame_pose(motion.q[:-1], system.bodies[0].name)[:, :3, :3]
        push = motion.forces[:-1].sum(axis=1)
        outer = push + mass * G + np.einsum("nij,nj->ni", turns, motion.tau[:-1, 3:6])
        outer = outer + np.einsum(
            "nij,nj->ni", turns, losses(case, system, motion.v)[:-1, 3:6]
        )  # of the root
        error = np.abs(momentum[1:] - momentum[0] - DT * np.cumsum(outer, axis=0))
        size = DT * np.abs(push).sum() + DT * mass * (5.0 + 5.0 * np.abs(motion.v).max() ** 2)
        if (error > 0.03 * size + 0.004 * mass).any():
            yield f"momentum changes by other than the impulses: {error.max():.3g} N s"
        reported = any(event.name == "contact not solved" for event in motion.events)
        if motion.contact_residual.max() > 1e-6 and not reported:
            yield f"contact residual {motion.contact_residual.max():.3g} without an event"
        push = motion.forces @ np.array(ground(case.chosen["ground"]).axes[0])
        if push.min() < -1e-6:
            yield f"a contact pulls by {push.min()} N"
    if motion.stop_forces is not None:
        robot = system
        q, v = motion.q, motion.v
        needed = robot.inverse_dynamics(q, v, motion.a) - motion.tau - losses(case, robot, v)
        if case.chosen.get("springs"):
            needed = needed + np.array(robot.stiffness) * (q - np.array(robot.rest))
        resting = ((q == robot.lower) | (q == robot.upper)) & (v == 0.0)
        inward = np.where(q == robot.lower, 1.0, -1.0)
        limit = 1e-6 * (1.0 + np.abs(needed).max())
        if (np.abs(np.where(resting, 0.0, needed)) > limit).any():
            yield "the equation of motion does not hold beside the stops"
        if (inward * needed < -limit)[resting].any():
            yield "a stop pulls"
        inside = (q > robot.lower) & (q < robot.upper)
        if motion.stop_forces[inside].any():
            yield "a stop acts on a joint that is inside its limits"
        stay = resting[1:] & resting[:-1] & ~blows(motion)[:, None]
        error = np.abs(motion.stop_forces[1:] - (needed[1:] + needed[:-1]) / 2.0)
        if (error > 0.15 * (1.0 + np.abs(needed[1:])))[stay].any():
            yield "the force of a stop at rest is not that of statics"
        if (q < np.array(robot.lower)).any() or (q > np.array(robot.upper)).any():
            yield "q is beyond its limits"
        if (motion.stop_work > 1e-4).any():
            yield f"stops add {motion.stop_work.max()} J"


def same(one: pp.Trajectory, other: pp.Trajectory, near: float, what: str) -> Failures:
    for name in ("q", "v", "a", "tau", "energy", "forces", "stop_forces", "stop_work", "gaps"):
        x, y = getattr(one, name), getattr(other, name)
        if (x is None) != (y is None):
            yield f"{what}: only one has {name}"
        elif x is not None:
            scale = 1.0 + np.abs(x).max(initial=0.0)
            if name in ("a", "forces", "stop_forces"):
                scale *= 1e3 if one.stop_forces is not None or one.gaps is not None else 10
            if x.shape != y.shape or not np.allclose(x, y, rtol=0, atol=near * scale):
                size = np.abs(x - y).max() if x.shape == y.shape else (x.shape, y.shape)
                yield f"{what}: {name} differs by {size}"


def ways(case: Case, motion: pp.Trajectory) -> Failures:
    """Other ways to compute the same motion; `motion` has every step."""
    every = case.chosen.get("every", 1)
    near = 1e-6 if case.chosen.get("method") == "RK45" else 1e-9
    if every > 1:
        thin = run(case)
        wanted = [*range(0, STEPS + 1, every), *([STEPS] if STEPS % every else [])]
        lead = (slice(None),) * len(motion.batch)
        for name in ("q", "v", "a", "tau", "energy", "gaps", "stop_work"):
            x, y = getattr(motion, name), getattr(thin, name)
            if x is not None and not np.allclose(x[(*lead, wanted)], y, rtol=0, atol=1e-6):
                yield f"every={every}: {name} differs"
        if thin.stop_forces is not None:
            sums = [
                (np.diff(m.t)[:, None] * m.stop_forces[(*lead, slice(1, None))]).sum(axis=-2)
                for m in (motion, thin)
            ]
            if not np.allclose(*sums, atol=1e-8):
                yield f"every={every}: impulses of stops differ"
    if motion.batch:
        for place in np.ndindex(*motion.batch):
            alone = Alone(case, place).run()
            yield from same(motion.element(*place), alone, near, f"motion {place} alone")
            mine = [(e.name, e.t) for e in motion.events if e.where == place]
            if [e[0] for e in mine] != [e.name for e in alone.events] or not np.allclose(
                [e[1] for e in mine], [e.t for e in alone.events], atol=1e-6
            ):
                yield f"events of motion {place} alone differ"
    if case.chosen.get("compiled"):
        slow = run(case, every=1, compiled=False)
        yield from same(motion, slow, near, "Python steps")
        if not case.chosen.get("event"):
            q, v = initial(case)
            names = ("hold", "damping", "friction", "friction_speed", "springs", "effort",
                     "passive", "limits", "method", "contacts")  # fmt: skip
            options = {k: x for k, x in arguments(case, every=1).items() if k in names}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                states = pp.rollout(SYSTEMS[case.system](), q, v, torque(case), dt(case), STEPS,
                                    **options)  # fmt: skip
            if not np.allclose(states[0], motion.q, rtol=0, atol=1e-9):
                yield "pp.rollout differs"


class Alone:
    """One motion of a batch."""

    def __init__(self, case: Case, place: tuple[int, ...]):
        self.case, self.place = case, place

    def run(self) -> pp.Trajectory:
        q, v = (x[self.place] for x in initial(self.case))
        tau = torque(self.case)
        if self.case.chosen.get("per motion"):
            tau = tau[self.place]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = arguments(self.case, every=1)
            system, h = SYSTEMS[self.case.system](), dt(self.case)
            return pp.simulate(system, q, v, tau, STEPS * h, h, **options)


def examine(case: Case) -> list[str]:
    """What is wrong with the motion of a case; nothing if all checks hold."""
    motion = run(case, every=1)
    out: list[str] = []
    places = list(np.ndindex(*motion.batch)) if motion.batch else [()]
    for place, one in zip(places, elements(motion), strict=True):
        if not np.isfinite(one.v).all() or len(one) != STEPS + 1:
            out.append("not finite")
            continue
        for check in (slopes, energy, balance):
            out += check(case, one)
        out += torques(case, one, place)
    return out + list(ways(case, motion))


def examine_safely(case: Case) -> list[str]:
    try:
        return examine(case)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def shrink(case: Case) -> Case:
    """The case with as few options as fail in the same way."""
    first = examine_safely(case)[0].split(":")[0].split(" at ")[0]
    changed = True
    while changed:
        changed = False
        for name, _ in case.options:
            if name == "method":
                continue
            rest = tuple(x for x in case.options if x[0] != name)
            if not any(k in ("method", "ground") for k, _ in rest):
                continue
            smaller = case._replace(options=rest)
            if any(words.startswith(first) for words in examine_safely(smaller)):
                case, changed = smaller, True
                break
    return case


def main() -> int:
    parser = argparse.ArgumentParser(description="random motions")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="make failing cases smaller")
    args = parser.parse_args()
    kinds: Counter[str] = Counter()
    begun = time.perf_counter()
    for i in range(args.start, args.start + args.count):
        case = draw(args.seed, i)
        wrong = examine_safely(case)
        if wrong:
            kinds[wrong[0][:30]] += 1
            case = shrink(case) if args.small else case
            print(i, case, *wrong[:3], sep="\n    ", flush=True)
    seconds = time.perf_counter() - begun
    print(f"{args.count} motions in {seconds:.0f} s, {sum(kinds.values())} wrong: {dict(kinds)}")
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
