"""Legged robots on the ground: psiphi's rollouts beside MuJoCo's, and how well contacts are solved.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ground.py        (pip install psiphi[peers])
    python benchmarks/ground.py --gpu [--only NAME] [--write FILE.md]   (an NVIDIA GPU, and torch)

Each robot trots in place or stands: a proportional law to a moving posture, and joint damping,
which is implicit in both programs. Both get the postures at the steps, computed beforehand. Times
are of one core, for one step of one robot, the best of RUNS. MuJoCo solves its own soft law, starts
from its last solution and stops at its tolerance; psiphi solves Coulomb's law. The residual is how
much the steps of psiphi violate Coulomb's law.

With --gpu the same motions run as batches of torch tensors on the GPU of this machine, and the
table has their steps per second. Arithmetic is that of float64, also for tensors of float32; all
inputs are rounded to the type of the tensors first. Results are compared with those of the CPU:
`bits` if q of COMPARED motions is bitwise equal after rounding, else the largest difference.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import psiphi as pp

DT, STEPS, BATCH, RUNS, FRICTION = 2e-3, 250, 64, 5, 0.7
QUANTILES = (0.5, 0.99, 0.999, 0.9999, 1.0)
GPU_COUNTS, GPU_RUNS, COMPARED = (4096, 16384, 65536), 3, 64
GPU_HEAD = (
    "robot",
    "type",
    "motions",
    "seconds",
    "steps per s",
    "largest residual, m/s",
    "agrees",
    "first call, s",
)
PEERS = (("ELLIPTIC", "NEWTON"), ("ELLIPTIC", "PGS"), ("PYRAMIDAL", "NEWTON"))
Motion = Callable[[float], np.ndarray]  # postures, or offsets of the joints, at a time


@dataclass
class Walker:
    """A robot on the ground, its posture, and its gait."""

    name: str
    robot: pp.Robot
    posture: np.ndarray
    gait: Motion
    kp: float
    kd: float
    radius: float  # of the spheres on its feet

    @property
    def ground(self) -> pp.Ground:
        return pp.Ground(friction=FRICTION)

    def joint_vector(self, value: float) -> np.ndarray:
        """`value` at each joint but the base."""
        return np.concatenate([np.zeros(6), np.full(self.robot.nv - 6, value)])

    def target(self, t: float) -> np.ndarray:
        return np.concatenate([self.posture[:7], self.posture[7:] + self.gait(t)])

    def samples(self) -> Motion:
        """The target at the steps, computed beforehand, as a function of time."""
        table = [self.target(DT * k) for k in range(STEPS + 1)]
        return lambda t: table[round(t / DT)]

    def starts(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        q = np.tile(self.posture, (count, 1))
        return q, 0.2 * rng.standard_normal((count, self.robot.nv))


def anymal() -> Walker:
    robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    names, q = list(robot.coordinate_names), robot.neutral()
    legs = {"LF": 1.0, "LH": -1.0, "RF": 1.0, "RH": -1.0}
    for leg, side in legs.items():
        q[names.index(f"{leg}_HFE")], q[names.index(f"{leg}_KFE")] = 0.4 * side, -0.8 * side

    def trot(t: float) -> np.ndarray:
        out = np.zeros(robot.nq)
        for leg, side in legs.items():
            phase = 6.0 * np.pi * t + (np.pi if leg in ("LH", "RF") else 0.0)
            lift = max(np.cos(phase), 0.0)
            out[names.index(f"{leg}_HFE")] = side * (0.25 * np.sin(phase) + 0.3 * lift)
            out[names.index(f"{leg}_KFE")] = -0.6 * side * lift
        return out[7:]

    return Walker("ANYmal, 4 points", robot, robot.on_ground(q), trot, 150.0, 4.0, 0.03)


def g1(points: int) -> Walker:
    robot, feet = pp.load("g1"), {}
    for side in ("left", "right"):
        x = np.linspace(-0.05, 0.12, points // 4)
        centers = [(a, b, -0.03) for a in x for b in (-0.025, 0.03)]
        feet[f"{side}_ankle_roll_link"] = [pp.Sphere(0.005, pose=c) for c in centers]
    robot = robot.with_contacts(feet)
    names, q = list(robot.coordinate_names), robot.neutral()
    bent = {"hip_pitch": -0.2, "knee": 0.4, "ankle_pitch": -0.2}
    for side in ("left", "right"):
        for joint, angle in bent.items():
            q[names.index(f"{side}_{joint}_joint")] = angle

    def steps(t: float) -> np.ndarray:
        out = np.zeros(robot.nq)
        for side, shift in (("left", 0.0), ("right", np.pi)):
            lift = max(np.cos(4.0 * np.pi * t + shift), 0.0)
            for joint, angle in bent.items():
                out[names.index(f"{side}_{joint}_joint")] = 0.6 * lift * angle
        return out[7:]

    name = f"G1, {points} points"
    return Walker(name, robot, robot.on_ground(q), steps, 150.0, 6.0, 0.005)


def psiphi_motion(walker: Walker, steps: int) -> Callable[[], pp.RolloutResult]:
    """The rollout of psiphi, compiled."""
    robot = walker.robot
    law = pp.PD(robot, walker.samples(), kp=walker.joint_vector(walker.kp), kd=0.0)
    damping, (q, v) = walker.joint_vector(walker.kd), walker.starts(BATCH)
    options = {"dt": DT, "contacts": walker.ground, "damping": damping, "every": steps}

    def run() -> pp.RolloutResult:
        return pp.rollout(robot, q, v, tau=law, steps=steps, **options)

    run()
    return run


def mujoco_motion(walker: Walker, cone: str, solver: str) -> Callable[[], None]:
    """The rollout of MuJoCo with the same bodies, spheres, gains and damping."""
    import mujoco
    from mujoco import rollout as mujoco_rollout

    robot = walker.robot
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        robot.save(path)
        spec = mujoco.MjSpec.from_file(str(path))
    friction = [FRICTION, 0.005, 0.0001]
    plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [0, 0, 1], "friction": friction}
    spec.worldbody.add_geom(**plane, contype=1, conaffinity=1)
    sphere = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [walker.radius] * 3, "mass": 0.0}
    for point in robot.contact_points:
        owner = spec.body(point.frame) or spec.site(point.frame).parent
        site = spec.site(point.frame)
        pos = np.array(point.center) + (np.zeros(3) if site is None else site.pos)
        owner.add_geom(**sphere, friction=friction, pos=pos, contype=1, conaffinity=0, condim=3)
    for name in robot.joint_names[1:]:
        spec.joint(name).damping = [walker.kd, 0.0, 0.0]
        motor = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
        motor.set_to_position(kp=walker.kp)
    spec.option.timestep = DT
    spec.option.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
    spec.option.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver}")
    model = spec.compile()
    data = mujoco.MjData(model)
    q, v = walker.starts(BATCH)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = []
    for q0, v0 in zip(q, v, strict=True):
        data.qpos[:] = _to_mujoco_q(q0)
        data.qvel[:] = np.concatenate([v0[3:6], v0[:3], v0[6:]])
        states.append(np.empty(mujoco.mj_stateSize(model, full)))
        mujoco.mj_getState(model, data, states[-1], full)
    times = DT * np.arange(STEPS)
    control = np.tile([walker.target(t)[7:] for t in times], (BATCH, 1, 1))
    state, out = np.array(states), np.empty((BATCH, STEPS, len(states[0])))
    sensors = np.empty((BATCH, STEPS, model.nsensordata))

    def run() -> None:
        mujoco_rollout.rollout(
            model, data, state, control, nstep=STEPS, state=out, sensordata=sensors
        )

    run()
    return run


def _to_mujoco_q(q: np.ndarray) -> np.ndarray:
    return np.concatenate([q[:3], q[[6, 3, 4, 5]], q[7:]])


def best(run: Callable[[], object]) -> float:
    """Microseconds for one step of one robot."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times) / (BATCH * STEPS)


def gpu_row(walker: Walker, char: str, count: int) -> tuple[str, ...]:
    """One row of the table of --gpu: a batch of motions, on torch tensors."""
    import torch

    def rounded(x: Any) -> Any:
        return np.asarray(x, char).astype(float)

    robot, kp, kd = walker.robot, walker.joint_vector(walker.kp), walker.joint_vector(walker.kd)
    q, v = map(rounded, walker.starts(count))
    q0, v0 = (torch.from_numpy(x.astype(char)).cuda() for x in (q, v))
    law = pp.PD(robot, lambda t: rounded(walker.target(t)), kp=kp, kd=0.0)
    options: dict[str, Any] = {"tau": law, "steps": STEPS, "every": STEPS, "damping": kd}
    options |= {"contacts": pp.Ground(friction=rounded(FRICTION)), "dt": float(rounded(DT))}
    times: list[float] = []
    states: Any = None
    for _ in range(1 + GPU_RUNS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        states = pp.rollout(robot, q0, v0, **options)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    host = pp.rollout(robot, q[:COMPARED], v[:COMPARED], **options)
    found = states.q[:COMPARED].cpu().numpy()
    error = float(np.abs(found - host.q.astype(char)).max())
    seconds = min(times[1:])
    return (
        walker.name,
        {"f": "float32", "d": "float64"}[char],
        f"{count}",
        f"{seconds:.3f}",
        f"{count * STEPS / seconds:.2e}",
        f"{float(states.contact_residual.max()):.0e}",
        "bits" if error == 0.0 else f"{error:.0e}",
        f"{times[0]:.1f}",
    )


def gpu_table(only: str) -> Iterator[str]:
    """The lines of the table of --gpu, of the robots with `only` in their names."""
    import torch

    yield f"{torch.cuda.get_device_name()}, {time.strftime('%Y-%m-%d')}, {STEPS} steps of {DT} s"
    yield ""
    yield f"| {' | '.join(GPU_HEAD)} |"
    yield "|" + "---|" * len(GPU_HEAD)
    for walker in (anymal(), g1(8), g1(16)):
        for char in "df" if only in walker.name else "":
            for count in GPU_COUNTS:
                yield f"| {' | '.join(gpu_row(walker, char, count))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true", help="batches on the GPU of this machine")
    parser.add_argument("--write", metavar="FILE", help="with --gpu: also write the table there")
    parser.add_argument("--only", metavar="NAME", default="", help='"ANYmal", "G1" or "G1, 8"')
    args = parser.parse_args()
    if not args.gpu:
        beside_mujoco()
        return
    lines = []
    for line in gpu_table(args.only):
        lines.append(line)
        print(line, flush=True)
    if args.write:
        Path(args.write).write_text("\n".join([*lines, ""]), encoding="utf-8")


def beside_mujoco() -> None:
    """The lines of the comparison on one core."""
    pp.set_threads(1)
    quantiles = ", ".join(f"{100 * x:g} %" for x in QUANTILES)
    print(f"us a step on one core; residual in m/s at {quantiles} of all steps of psiphi")
    for walker in (anymal(), g1(8), g1(16)):
        begin = time.perf_counter()
        run = psiphi_motion(walker, STEPS)
        first = time.perf_counter() - begin
        ours = best(run)
        peers = {
            f"{cone.lower()} {solver}": best(mujoco_motion(walker, cone, solver))
            for cone, solver in PEERS
        }
        options = {"dt": DT, "contacts": walker.ground, "damping": walker.joint_vector(walker.kd)}
        law = pp.PD(walker.robot, walker.target, kp=walker.joint_vector(walker.kp), kd=0.0)
        q, v = walker.starts(BATCH)
        states = pp.rollout(walker.robot, q, v, tau=law, steps=STEPS, **options)
        residual = np.quantile(np.nan_to_num(states.contact_residual, nan=np.inf), QUANTILES)
        ratio = min(peers["elliptic NEWTON"], peers["elliptic PGS"]) / ours
        print(
            f"{walker.name:18} psiphi {ours:6.2f} (first call {first:.1f} s), MuJoCo "
            + ", ".join(f"{name} {t:.1f}" for name, t in peers.items())
            + f": {ratio:.1f}x; residual "
            + " ".join(f"{x:.0e}" for x in residual)
            + f"; height {states.q[:, -1, 2].min():.2f} to {states.q[:, -1, 2].max():.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
