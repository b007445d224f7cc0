"""Changed MJCF files beside MuJoCo: psiphi refuses them, or has MuJoCo's accelerations.

python tests/io/mujoco/test_mutated_mjcf.py 3000
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / part) for part in ("", "src", "benchmarks")]

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import psiphi as pp  # noqa: E402
from tests.io.mujoco.mjcf_scenes import SCENES  # noqa: E402
from tests.oracles import reference  # noqa: E402

mujoco = pytest.importorskip("mujoco")
BIT = mujoco.mjtDisableBit
PLAIN = int(BIT.mjDSBL_CONSTRAINT | BIT.mjDSBL_ACTUATION | BIT.mjDSBL_SPRING | BIT.mjDSBL_DAMPER)
NUMBER = re.compile(r"-?\d+\.?\d*")
ATTRIBUTE = re.compile(r' [a-z]+="[^"]*"')
ELEMENT = re.compile(r"<(joint|geom|site|freejoint)\b[^>]*/>")
HEADERS = (
    '<compiler angle="radian"/>',
    '<compiler eulerseq="zyx"/>',
    '<compiler eulerseq="XYZ"/>',
    '<compiler autolimits="false"/>',
    '<compiler inertiafromgeom="true" settotalmass="5"/>',
    '<compiler boundmass="0.3" boundinertia="0.01"/>',
    '<compiler balanceinertia="true" fusestatic="true"/>',
    '<option gravity="1 -2 3"/>',
    '<option integrator="implicit" timestep="0.01"/>',
    '<default><geom density="300"/></default>',
    '<default><joint pos="0.1 0.2 -0.1" armature="0.03"/></default>',
)
INSERTED = (
    '<inertial pos="0.1 0 0.2" mass="1.5" diaginertia="0.02 0.03 0.04"/>',
    '<inertial pos="0 0.1 0" quat="0.9 0.1 0.2 0.3" mass="0.7" diaginertia="0.02 0.03 0.04"/>',
    '<inertial pos="0 0 0" mass="1" fullinertia="0.03 0.04 0.05 0.001 0.002 0.003"/>',
    '<geom type="cylinder" size="0.05 0.1" euler="20 0 40" mass="0.4"/>',
    '<geom type="capsule" size="0.03 0.1" zaxis="1 1 0"/>',
    '<geom type="ellipsoid" size="0.1 0.2 0.15" xyaxes="1 0 0 0 0 1"/>',
    '<body pos="0.1 0.2 0.3" axisangle="1 0 1 40"><geom size="0.05"/></body>',
    '<frame pos="0.1 0 0" euler="0 0 30"><geom size="0.05" pos="0.1 0 0"/></frame>',
)


def mutated(seed: int) -> str:
    """A scene with one to four changes."""
    rng = np.random.default_rng(seed)
    text = list(SCENES.values())[int(rng.integers(len(SCENES)))]
    for _ in range(int(rng.integers(1, 5))):
        text = _change(text, rng)
    return text


def _change(text: str, rng: np.random.Generator) -> str:
    def one(found: list) -> re.Match | None:
        return found[int(rng.integers(len(found)))] if found else None

    kind = int(rng.integers(7))
    if kind <= 1 and (number := one(list(NUMBER.finditer(text)))):
        x = float(number[0])
        changes = (-x, 10 * x, 0.0, x + rng.normal(), 1e-3 * x, rng.normal())
        return f"{text[: number.start()]}{changes[int(rng.integers(6))]:.6g}{text[number.end() :]}"
    if kind == 2 and (attribute := one(list(ATTRIBUTE.finditer(text)))):
        return text[: attribute.start()] + text[attribute.end() :]
    if kind == 3 and (element := one(list(ELEMENT.finditer(text)))):
        return text[: element.start()] + text[element.end() :]
    if kind == 4 and (element := one(list(ELEMENT.finditer(text)))):
        again = re.sub(r' name="[^"]*"', "", element[0])
        return text[: element.end()] + again + text[element.end() :]
    if kind == 5:
        head = text.index(">") + 1
        return text[:head] + HEADERS[int(rng.integers(len(HEADERS)))] + text[head:]
    body = one(list(re.finditer(r"<body\b[^>/]*>", text)))
    if body is None:
        return text
    return text[: body.end()] + INSERTED[int(rng.integers(len(INSERTED)))] + text[body.end() :]


def outcome(seed: int) -> str:
    """ "same", "refused", "invalid" (for MuJoCo), "singular"; or what differs."""
    mujoco.set_mju_user_warning(lambda message: None)  # it would be written to a file
    text = mutated(seed)
    try:
        peer = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        peer = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = pp.from_mujoco(text)
    except pp.Error as error:
        if __name__ == "__main__" and peer is not None:
            print(seed, "refused:", str(error)[:100])
        return "refused" if peer is not None else "invalid"
    if peer is None:
        return "MuJoCo refuses it"
    peer.opt.disableflags |= PLAIN
    peer.opt.density = peer.opt.viscosity = 0.0
    layout, data = pp.interop.mujoco(robot, peer), mujoco.MjData(peer)
    rng = np.random.default_rng(seed)
    q, v, push = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
    data.qfrc_applied[:] = layout.to_tau(push, q)
    mujoco.mj_forward(peer, data)
    theirs = layout.from_a(data.qacc, data.qpos, data.qvel)
    condition = float(np.linalg.cond(reference.mass_matrix(robot, q)))
    if condition > 1e9:
        return "singular"
    ours = reference.forward_dynamics(robot, q, v, push)
    size = 1.0 + np.abs(theirs).max(initial=0.0)
    off = np.abs(ours - theirs).max(initial=0.0) / size
    if off < max(1e-9, 1e-13 * condition):
        return "same"
    return f"accelerations differ by {off:.2g} of {size:.2g}, condition {condition:.2g}"


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_mutated_files(start):
    found = {seed: outcome(seed) for seed in range(start, start + 25)}
    good = ("same", "refused", "invalid", "singular")
    assert {seed: x for seed, x in found.items() if x not in good} == {}
    assert Counter(found.values())["same"] > 8


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for seed in range(10_000, 10_000 + int(sys.argv[1])):
        try:
            result = outcome(seed)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        if result not in ("same", "refused", "invalid", "singular"):
            print(seed, result, flush=True)
            result = "wrong"
        counts[result] += 1
    print(dict(counts))
