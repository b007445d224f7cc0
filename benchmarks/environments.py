"""Environment steps per second of ANYmal on one core, beside MuJoCo that only steps the robot.

    OPENBLAS_NUM_THREADS=1 python benchmarks/environments.py     (pip install psiphi[peers])
    python benchmarks/environments.py --gpu [--iterations 8]      (an NVIDIA GPU, and torch)

A control step is four steps of 5 ms with PD targets and effort limits, contacts at the feet, 48
observations with noise, nine rewards, terminations, and new episodes in the step that ends one.
Actions are random. Times are processor time of one thread, the best of RUNS, in float64.

    kernel       the compiled control step alone
    gymnasium    env.vector(n).step, with observations in float32
    bare         the kernel with one observation, a constant reward and no terminations
    MuJoCo       the same four steps by mujoco.rollout: position actuators, the same robot and feet,
                 its own soft law and solver; without observations, rewards or resets

With --gpu the environments, also those of a G1 with eight points, stay on the GPU of this machine:
`env.torch(n, device="cuda").step`, with new actions at each step, the best of GPU_RUNS runs of
STEPS control steps. `agrees` is "bits" if the state of COMPARED environments after the first ten
steps is bitwise that of the CPU, else the largest difference. The residual is by how much the last
step violates Coulomb's law, the largest of all environments, and `above` the share of them with
more than 1e-6 m/s. --iterations bounds those of the contacts in a step: a warp waits for its
slowest thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import psiphi as pp

RUNS, STEPS, COUNT, DT, DECIMATION = 5, 25, 2048, 0.005, 4
KP, KD, SCALE, FRICTION, SPREAD = 80.0, 2.0, 0.25, 0.8, 0.3
GPU_RUNS, GPU_COUNTS, COMPARED = 3, (4096, 16384, 65536, 262144), 256


def stand() -> tuple[pp.Robot, np.ndarray]:
    robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    bends = {"LF": 1.0, "RF": 1.0, "LH": -1.0, "RH": -1.0}
    angles = {f"{leg}_HFE": 0.4 * bend for leg, bend in bends.items()}
    angles |= {f"{leg}_KFE": -0.8 * bend for leg, bend in bends.items()}
    return robot, robot.on_ground(robot.with_posture("stand", angles).postures["stand"])


def environment(
    robot: pp.Robot,
    q: np.ndarray,
    kp: float = KP,
    kd: float = KD,
    low: float = 0.25,
    turned: str = "*_?FE",
    damping: bool | np.ndarray = False,
    iterations: int = 200,
) -> pp.Environment:
    """A task as it is usually trained: velocity command, IMU, joints, last action."""
    return pp.environment(
        robot,
        pp.Ground(friction=FRICTION, iterations=iterations),
        actuation=pp.PD(robot, q, kp=kp, kd=kd),
        action_scale=SCALE,
        effort=True,
        damping=damping,
        dt=DT,
        decimation=DECIMATION,
        observations=[
            ("linear_velocity", {"noise": (-0.1, 0.1)}),
            ("angular_velocity", {"noise": (-0.2, 0.2)}),
            ("gravity", {"noise": (-0.05, 0.05)}),
            "command",
            ("joint_positions", {"noise": (-0.01, 0.01)}),
            ("joint_velocities", {"scale": 0.05, "noise": (-1.5, 1.5)}),
            "previous_action",
        ],
        rewards={
            "track_linear_velocity": 1.0,
            "track_angular_velocity": 0.5,
            "vertical_velocity": -2.0,
            "roll_and_pitch_rate": -0.05,
            "tilt": -1.0,
            "torques": -1e-5,
            "accelerations": -2.5e-7,
            "action_rate": -0.01,
            "power": -1e-5,
        },
        terminations=["fallen", lambda s: s.height < low],
        commands={"vx": (-1.0, 1.0), "vy": (-0.5, 0.5), "turn": (-1.0, 1.0)},
        resets={"offset": {"yaw": (-3.14, 3.14), "z": 0.03, turned: (-0.1, 0.1)}},
        episode_length=20.0,
    )


def rate(run: Callable[[], object], count: int) -> float:
    """Environment steps per second of processor time, the best of RUNS."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return count / min(times)


def mujoco_rate(robot: pp.Robot, q: np.ndarray, actions: np.ndarray) -> float:
    """mujoco.rollout with position actuators, for actions (steps, environments, 12)."""
    import mujoco
    from mujoco import rollout

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        robot.save(path)
        spec = mujoco.MjSpec.from_file(str(path))
    friction = [FRICTION, 0.005, 0.0001]
    plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [0, 0, 1], "friction": friction}
    spec.worldbody.add_geom(**plane, contype=1, conaffinity=1)
    for point in robot.contact_points:
        site = spec.site(point.frame)
        owner = spec.body(point.frame) if site is None else site.parent
        place = np.array(point.center) + (np.zeros(3) if site is None else site.pos)
        owner.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[point.radius] * 3,
            mass=0.0,
            pos=place,
            friction=friction,
            contype=1,
            conaffinity=0,
            condim=3,
        )
    for name, limit in zip(robot.joint_names[1:], np.asarray(robot.effort)[6:], strict=True):
        motor = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
        motor.set_to_position(kp=KP, kv=KD)
        motor.forcelimited, motor.forcerange = True, [-limit, limit]
    spec.option.timestep = DT
    model: Any = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([q[:3], q[[6, 3, 4, 5]], q[7:]])
    start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    targets = q[7:] + SCALE * np.clip(np.moveaxis(actions, 0, 1), -1.0, 1.0)
    control = np.repeat(targets, DECIMATION, axis=1)
    count, steps = control.shape[:2]
    states, out = np.tile(start, (count, 1)), np.empty((count, steps, len(start)))
    sensors = np.empty((count, steps, model.nsensordata))

    def run() -> None:
        rollout.rollout(model, data, states, control, nstep=steps, state=out, sensordata=sensors)

    return rate(run, count * steps // DECIMATION)


def gpu_table(iterations: int) -> None:
    """Print a row for each robot and number of environments."""
    import torch

    from ground import g1

    print(f"{torch.cuda.get_device_name()}, {time.strftime('%Y-%m-%d')}, float64")
    head = "| robot | environments | ms a step | steps per s | residual, m/s | above |"
    print(f"{head} agrees | first, s |")
    print("|" + "---|" * 8)
    walker = g1(8)
    rows = [("ANYmal, 4 points", environment(*stand(), iterations=iterations))]
    damping = walker.joint_vector(walker.kd)  # implicit: it is stiff for the wrists
    given: dict[str, Any] = {"kp": walker.kp, "kd": 0.0, "low": 0.4, "turned": "*_knee_*"}
    given |= {"damping": damping, "iterations": iterations}
    rows += [(walker.name, environment(walker.robot, walker.posture, **given))]
    for name, env in rows:
        for count in GPU_COUNTS:
            envs = env.torch(count, seed=0, device="cuda")
            envs.reset()
            size = (STEPS, count, env.action_size)
            torch.manual_seed(0)
            actions = SPREAD * torch.randn(size, device="cuda", dtype=torch.float64)
            reset = time.perf_counter()
            extras: dict[str, Any] = {}
            envs.step(actions[0])
            torch.cuda.synchronize()
            first = time.perf_counter() - reset
            state, _ = env.reset(COMPARED, seed=0)
            for k in range(10):
                state, _ = env.step(state, actions[k, :COMPARED].cpu().numpy(), "same_step")
                if k:
                    envs.step(actions[k])
            pairs = [(state[x], envs.tensors[x][:COMPARED].cpu().numpy()) for x in state]
            error = max(float(np.abs(x - y).max()) for x, y in pairs)
            times = []
            for _ in range(GPU_RUNS):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for action in actions:
                    *_, extras = envs.step(action)
                torch.cuda.synchronize()
                times.append((time.perf_counter() - begin) / STEPS)
            agrees = "bits" if error == 0.0 else f"{error:.0e}"
            residual = float(extras["contact_residual"].max())
            above = float((extras["contact_residual"] > 1e-6).double().mean())
            print(
                f"| {name} | {count} | {1e3 * min(times):.2f} | {count / min(times):.2e} | "
                f"{residual:.0e} | {100 * above:.2g} % | {agrees} | {first:.1f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true", help="environments on the GPU")
    parser.add_argument("--iterations", type=int, default=200, help="of the contacts, with --gpu")
    given = parser.parse_args()
    if given.gpu:
        gpu_table(given.iterations)
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pp.set_threads(1)
    robot, q = stand()
    started = time.perf_counter(), time.process_time()
    env = environment(robot, q)
    state, _ = env.reset(COUNT, seed=0)
    env.step(state, np.zeros((COUNT, 12)), "same_step")
    waited = time.perf_counter() - started[0], time.process_time() - started[1]
    print(f"first step after {waited[0]:.1f} s ({waited[1]:.1f} s of the processor)")
    rng = np.random.default_rng(0)
    actions = [SPREAD * rng.standard_normal((COUNT, 12)) for _ in range(STEPS)]

    def steps(env: pp.Environment) -> None:
        kernel = env.kernel("same_step")
        out = kernel.empty(COUNT)
        for name in kernel.state_sizes:
            out[name][:] = state[name]
        for action in actions:
            kernel.run(out, action, out)

    bare = pp.environment(
        robot,
        pp.Ground(friction=FRICTION),
        actuation=pp.PD(robot, q, kp=KP, kd=KD),
        action_scale=SCALE,
        effort=True,
        dt=DT,
        decimation=DECIMATION,
        observations=["height"],
        rewards={"alive": 1.0},
        commands={"vx": 0.0, "vy": 0.0, "turn": 0.0},
    )
    rows = [("kernel", rate(lambda: steps(env), COUNT * STEPS))]
    rows.append(("bare", rate(lambda: steps(bare), COUNT * STEPS)))
    try:
        envs = env.vector(COUNT, "same_step")
    except pp.Error as error:
        print(error)
    else:

        def vector() -> None:
            envs.reset(seed=0)
            for action in actions:
                envs.step(action)

        rows.insert(1, ("gymnasium", rate(vector, COUNT * STEPS)))
    try:
        rows.append(("MuJoCo", mujoco_rate(robot, q, np.array(actions)[:, :64])))
    except ImportError:
        print("MuJoCo is not installed")
    best = rows[0][1]
    for name, speed in rows:
        print(f"{name:10} {speed / 1e3:8.1f} k steps/s   {best / speed:5.2f}")
    flops = env.kernel("same_step").loop.code().flops
    print(f"{flops} operations a control step, without iterations of the contacts")


if __name__ == "__main__":
    main()
