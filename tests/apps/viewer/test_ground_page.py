"""Live pages of robots on a ground: the emitted step, run by Node.js, is that of the library; in
Chromium the robot stands, is pushed, slips and falls."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes, viewer
from psiphi._util.errors import StateError
from psiphi.apps.viewer.live import live_page
from psiphi.apps.viewer.scene import scene
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS
from tests.apps.viewer.browser import SPOT, differing, page, picture, show
from tests.apps.viewer.contrast import pale
from tests.backends.block_interpreter import BlockInterpreter

NODE = shutil.which("node")
RUN = """
import { readFileSync } from "node:fs";
const { code, places, given, steps, every } = JSON.parse(readFileSync(process.argv[2]));
const bytes = Uint8Array.from(atob(code), (c) => c.charCodeAt(0));
const { instance } = await WebAssembly.instantiate(bytes, { m: MATH });
const { begin, step, look, memory } = instance.exports, F = {};
for (const [name, [at, size]] of Object.entries(places)) {
  F[name] = new Float64Array(memory.buffer, at, size);
}
for (const [name, x] of Object.entries(given)) F[name].set(x);
begin(); look();
const now = () => Object.fromEntries(Object.entries(F).map(([name, x]) => [name, [...x]]));
const all = [now()];
for (let i = 1; i <= steps; i++) { step(); if (i % every === 0) { look(); all.push(now()); } }
console.log(JSON.stringify(all));
"""
# sine and cosine in steps that round equally in all languages
SERIES = (
    "{ sin: (x) => x * (1 - x * x * (1 / 6 - x * x / 120)), "
    "cos: (x) => 1 - x * x * (0.5 - x * x / 24) }"
)
SAME_SERIES = {
    Op.SIN: lambda x: x * (1 - x * x * (1 / 6 - x * x / 120)),
    Op.COS: lambda x: 1 - x * x * (0.5 - x * x / 24),
}


def crate():
    b = pp.Builder("crate")
    b.body("crate", mass=5.0, inertia=(0.05, 0.06, 0.08))
    b.joint("root", "free", "world", "crate")
    return pp.Robot.of(b.build()).with_contacts({"crate": pp.Box((0.3, 0.2, 0.1))})


def hopper():
    """A trunk on a leg with a knee, a spring in the knee, a ball as its foot and a wheel's rim; the
    foot also touches a step."""
    b = pp.Builder("hopper")
    b.body("trunk", mass=4.0, inertia=(0.05, 0.05, 0.05))
    b.body("thigh", mass=1.0, com=(0, 0, -0.1), inertia=(0.01, 0.01, 0.001))
    b.body("shank", mass=0.5, com=(0, 0, -0.1), inertia=(0.005, 0.005, 0.0005))
    b.joint("root", "free", "world", "trunk")
    b.joint("hip", "revolute", "trunk", "thigh", axis=(0, 1, 0))
    stops = {"lower": -0.01, "upper": 0.02}
    b.joint("knee", "revolute", "thigh", "shank", xyz=(0, 0, -0.25), axis=(0, 1, 0), **stops)
    b.frame("step", "world", xyz=(0.15, 0, 0.1), rpy=(0, 0, 0.2))
    robot = pp.Robot.of(b.build()).with_spring("knee", stiffness=20.0)
    shapes = {"shank": pp.Sphere(0.03, (0, 0, -0.25)), "trunk": pp.Cylinder(0.1, 0.2)}
    return robot.with_contacts(shapes | {"step": pp.Box(0.2)}, pairs=[("shank", "step")])


def turned(robot, ground, up=0.0, **angles):
    """A posture above the ground."""
    q = robot.neutral()
    q[3:7] = [0.1, -0.05, 0.02, np.sqrt(1.0 - 0.0129)]
    for name, angle in angles.items():
        q[robot.joint(name).q_slice] = angle
    q = robot.on_ground(q, ground)
    q[:3] += up * np.array(ground.axes[0])
    return q


def dumbbell():
    """A ball, and the corners of a small box above it."""
    b = pp.Builder("dumbbell")
    b.body("dumbbell", mass=5.0, inertia=(0.05, 0.06, 0.08))
    b.joint("root", "free", "world", "dumbbell")
    shapes = [pp.Sphere(0.1), pp.Box(0.1, pose=(0, 0, 0.2))]
    return pp.Robot.of(b.build()).with_contacts({"dumbbell": shapes})


SLOPE = (0.25, -0.1, 1.0)
HILLS = np.add.outer(0.1 * np.sin(np.arange(9.0)), 0.05 * np.cos(2.0 * np.arange(7.0)))
# operations that a page may take for a second of motion, with one iteration of the contacts, a
# hundredth of what one core computes
BUDGET = 3e7
CASES = {  # robot, ground, base velocity, gains of the motors, steps
    "a crate slides down a slope and rebounds": (
        crate,
        pp.Ground(friction=0.15, restitution=0.4, normal=SLOPE, point=(0, 0, -0.4)),
        (0.5, 1.0, -0.3, 0.4, -0.2, -1.0),
        0.0,
    ),
    "a dumbbell rolls over hills": (
        dumbbell,
        pp.Ground(friction=0.3, height=HILLS, size=(2.4, 1.8)),
        (0.5, 1.0, -0.3, 0.4, -0.2, -1.0),
        0.0,
    ),
    "a hopper with a load on a soft ground": (
        hopper,
        pp.Ground(friction=[0.7] + [0.3] * 7, stiffness=4e3, damping=30.0),
        (0.2, 0.1, 0.0, 0.5, 0.3, -0.5),
        15.0,
    ),
    "anymal is pushed and slips": (
        lambda: pp.load("anymal_c"),
        pp.Ground(friction=0.25),
        (0.0, 0.0, 0.0, 0.3, 1.5, 0.0),
        250.0,
    ),
    "g1 falls": (lambda: pp.load("g1"), pp.Ground(), (0.0, 0.2, 0.0, 0.8, 0.0, 0.0), 0.0),
}


STOPS = ("a hopper with a load on a soft ground",)  # limits="block"
LOADS = {"a hopper with a load on a soft ground": ("trunk", 1.5)}  # frame, kg


def run_in_node(folder, live, given, steps, every=1, math="Math"):
    """The values of all places before the first step, and after each (or some) of them."""
    script, data = folder / "run.mjs", folder / "run.json"
    script.write_text(RUN.replace("MATH", math), encoding="utf-8")
    given = {name: np.asarray(x, dtype=float).tolist() for name, x in given.items()}
    job = {"code": live["code"], "places": live["places"], "given": given}
    job |= {"steps": steps, "every": every}
    data.write_text(json.dumps(job), encoding="utf-8")
    done = subprocess.run(
        [str(NODE), str(script), str(data)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {name: np.array([row[name] for row in found]) for name in found[0]}


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
@pytest.mark.parametrize("case", CASES)
def test_a_step_in_the_page_is_a_step_of_the_library(tmp_path, case):
    """200 steps; from each state of the page, a step of the library is equal to rounding, which
    the solve of redundant contacts multiplies, where the contacts are solved to rounding. Modes,
    forces and gaps are equal as well."""
    make, ground, speed, stiffness = CASES[case]
    robot, steps = make(), 200
    v = np.zeros(robot.nv)
    v[:6] = speed
    q = turned(robot, ground, up=0.01)
    frame, mass = LOADS.get(case, (None, 0.0))
    limits = {"limits": "block" if case in STOPS else "ignore"}
    alive = live_page.read_live_page(robot, q, v, contacts=ground, payload=frame, **limits)
    live = live_page.live_data(alive, scene(robot, q=q, contacts=ground))
    assert alive.program.flops < BUDGET * alive.h
    motors, losses = alive.motors, 0.5 * np.array(live["inertia"]) * alive.motors
    kp, brake = stiffness * motors, 0.02 * stiffness * motors
    given = {
        **{"q": q, "v": v, "h": [alive.h], "home": q, "law.kp": kp, "law.motors": motors},
        **{"motor_damping": brake, "losses": losses, "mobility": live["mobility"]},
        **{"gravity_scale": [1.0], **live["ground"]["numbers"]},
    }
    if frame is not None:
        free, load = robot.free("inertia", links=frame), live["load"]
        given |= {"base_parameters": load["own"], "unit_payload": load["unit"]}
        given |= {"payload_mass": [mass]}
        robot = free.at(free.payload(frame, mass))
    found = run_in_node(tmp_path, live, given, steps)
    Q, V = found["Q"], found["V"]
    law = pp.PD(robot, q, kp, 0.0) if stiffness else None
    options = {"dt": alive.h, "contacts": ground, "damping": losses + brake, **limits}
    states = pp.rollout(robot, Q[:-1], V[:-1], law, steps=1, springs=True, **options)
    dq, dv = np.abs(states.q[:, -1] - Q[1:]).max(-1), np.abs(states.v[:, -1] - V[1:]).max(-1)
    residual = np.sqrt(np.diff(found["contact.total"].max(-1)))
    assert np.median(dv) < 1e-11 and (dv < 1e-10 + 2e3 * residual).all(), (dv, residual)
    assert (dq <= alive.h * dv + 1e-14 * (1.0 + np.abs(Q[1:]).max(-1))).all()
    assert (residual < ground.tolerance).mean() > 0.98
    of_ground = len(robot.contact_points)  # pairs follow

    modes, forces = found["contact.mode"][1:], found["ground_forces"].reshape(steps + 1, -1, 3)[1:]
    assert {0, 2} <= set(modes.ravel()) and not modes[0, :of_ground].any(), (
        "it starts above the ground"
    )
    assert (forces[modes == 0] == 0.0).all()
    if robot.name == "g1":
        stands(tmp_path, alive, live, given)
    if robot.nv > 8:  # that the library computes modes, forces and gaps costs another kernel
        return
    motion = pp.simulate(robot, Q[:-1], V[:-1], law, duration=alive.h, springs=True, **options)
    assert motion.modes is not None and motion.forces is not None and motion.gaps is not None
    assert (modes == motion.modes[:, 0]).mean() > 0.99 and (
        modes[:20] == motion.modes[:20, 0]
    ).all()
    np.testing.assert_allclose(forces[:20], motion.forces[:20, 0], atol=1e-6)
    points = found["touching_points"].reshape(steps + 1, -1, 3)[:-1]
    if ground.grid is None:
        gaps = points[:, :of_ground] @ np.array(ground.axes[0]) - ground.offset
        np.testing.assert_allclose(gaps, motion.gaps[:, 0, :of_ground], atol=1e-11)
    assert not robot.contact_pairs or forces[:, of_ground:].any(), "the pair touches"
    if case in STOPS:
        assert motion.stop_forces[:, 1].any(), "the knee stops"


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_the_emitted_step_is_the_program_to_the_last_bit(tmp_path):
    """With equal sines and cosines, WebAssembly and the interpreter of the blocks give the same
    bits in all places: of the crate (Newton's method), while it is pulled."""
    make, ground, speed, _ = CASES["a crate slides down a slope and rebounds"]
    robot = make()
    q = turned(robot, ground)
    alive = live_page.read_live_page(robot, q, speed, contacts=ground)
    live, program = live_page.live_data(alive, scene(robot, q=q)), alive.program
    given = {"q": q, "v": np.array(speed), "h": [alive.h], "home": q, "mobility": live["mobility"]}
    given |= {"gravity_scale": [1.0], "pulled": [1.0], "pull_stiffness": [200.0]}
    given |= {"pull_target": [0.3, 0.2, 0.4], **live["ground"]["numbers"]}
    steps = 25
    found = run_in_node(tmp_path, live, given, steps, math=SERIES)
    values = {name: np.zeros(size) for name, size in program.frame.sizes.items()}
    for name, x in given.items():
        values[name][:] = x
    functions = OP_FUNCTIONS | SAME_SERIES
    loops, conditions = program.loops.values(), program.conditions
    interpreter = BlockInterpreter(program.blocks, loops, conditions, functions)
    interpreter.run(program.entries["begin"], values)
    for i in range(steps + 1):
        interpreter.run(program.entries["step"] if i else (), values)
        interpreter.run(program.entries["look"], values)
        for name, x in found.items():
            np.testing.assert_array_equal(x[i], values[name], f"{name} after step {i}")
    assert len(set(found["contact.mode"].max(axis=-1))) > 1, "it touches and leaves the ground"


def test_what_does_not_run_in_a_page():
    robot, ground = crate(), pp.Ground()
    q = robot.on_ground(robot.neutral(), ground)
    deep = q.copy()
    deep[2] -= 0.1
    motion = pp.simulate(robot, q, duration=0.004, dt=2e-3, contacts=ground)
    refused = [
        ((robot, deep), {}, "inside the ground"),
        ((robot, q), {"contacts": 0.8}, "contacts is 0.8"),
        ((robot, q), {"contacts": pp.Ground(friction=[[0.5], [0.8]])}, "one motion"),
        ((hopper(), [*q, 0.0, 0.5]), {"limits": "block"}, "expected -0.01 to 0.02"),
        ((robot, q), {"limits": "off"}, "limits is 'off'"),
        ((robot, q), {"method": "rk4"}, "method is 'rk4'"),
        ((pp.load("ur5"), None), {}, "no contact points"),
        ((scenes.load("four_bar"), None), {}, "are for robots"),
        ((motion, None), {"contacts": None}, "stores the plane only"),
    ]
    for (thing, start), options, words in refused:
        with pytest.raises(StateError, match=re.escape(words)):
            live_page.read_live_page(thing, start, **{"contacts": ground, **options})
    with pytest.raises(StateError, match="contacts is 3"):
        scene(robot, contacts=3)  # type: ignore[arg-type]


def test_the_start_of_a_page_is_that_of_its_scene_or_motion(tmp_path):
    """A free base is placed on the ground; a scene has its own; a slope is drawn as one."""
    text = '[robots.dog]\nrobot = "anymal_c"\n[ground]\nfriction = 0.3\npoint = [0, 0, 1]\n'
    (tmp_path / "dog.toml").write_text(text, encoding="utf-8")
    case = scenes.load(tmp_path / "dog.toml")
    alive = live_page.read_live_page(case)
    assert alive.ground is case.options["contacts"] and (alive.q0 == case.q0).all()
    assert alive.h == 2e-3 and alive.method == "moreau"
    ground = pp.Ground(normal=SLOPE, point=(0, 0, 0.5))
    alive = live_page.read_live_page(pp.load("anymal_c"), contacts=ground)
    shown = scene(alive.system, q=alive.q0, contacts=ground)
    assert shown.ground is None and shown.slope is not None
    np.testing.assert_allclose(shown.slope.normal, ground.axes[0])
    assert scene(case.system, q=case.q0, contacts=case.options["contacts"]).ground == 1.0
    motion = pp.simulate(crate(), [0, 0, 2.0, 0, 0, 0, 1], duration=0.01, dt=2e-3, contacts=ground)
    assert live_page.read_live_page(motion, contacts=ground).q0[2] == 2.0


def stands(folder, alive, live, given):
    """With the gains of the page it stands on its soles, also after a small push."""
    q = alive.robot.on_ground(alive.robot.neutral(), alive.ground)
    kp = np.minimum(live["kp"][0], live["most"]) * alive.motors
    held = {"q": q, "home": q, "law.kp": kp, "motor_damping": live["kd"][0] * alive.motors}
    for push in (0.0, 0.2, -0.2):
        v = np.zeros(alive.robot.nv)
        v[3] = push
        found = run_in_node(folder, live, {**given, **held, "v": v}, 2000, every=500)
        assert np.abs(found["Q"][:, 2] - q[2]).max() < 0.01
        forces = found["ground_forces"][-1].reshape(-1, 3).sum(axis=0)
        weight = 9.81 * alive.robot.mass
        np.testing.assert_allclose(forces, [0, 0, weight], atol=0.05 * weight)


# -- in Chromium ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened():
    with page(900, 560) as opened:
        opened.context.set_offline(True)
        yield opened


@pytest.fixture(scope="module")
def dog(tmp_path_factory):
    """The page of ANYmal with its trunk, knees and feet; it stands with bent legs."""
    robot = pp.load("anymal_c").with_contacts("collision")
    bends = {"LF": 1.0, "RF": 1.0, "LH": -1.0, "RH": -1.0}
    angles = {f"{leg}_HFE": 0.5 * bend for leg, bend in bends.items()}
    angles |= {f"{leg}_KFE": -bend for leg, bend in bends.items()}
    q = robot.on_ground(robot.with_posture("stand", angles).postures["stand"])
    path = tmp_path_factory.mktemp("dog") / "dog.html"
    return robot, q, viewer.html(robot, path, live=True, q=q, contacts=pp.Ground())


def legend(opened):
    return {
        row.locator("span").nth(1).text_content(): row.locator("b").text_content()
        for row in opened.locator("#legend div").all()
        if row.is_visible()
    }


def test_it_stands_and_falls_when_its_motors_are_switched_off(opened, dog):
    robot, q, path = dog
    show(opened, path)
    weight = 9.81 * robot.mass
    assert legend(opened) == {} and opened.locator("#modes label").count() == 2
    before = picture(opened, (0, 70, 520, 480))
    opened.evaluate("(psiphi.advance(1000), psiphi.aim(), look())")
    opened.wait_for_function("psiphi.drawn > 1.9")
    forces = np.array(opened.evaluate("[...psiphi.memory.ground_forces]")).reshape(-1, 3)
    modes = np.array(opened.evaluate("[...psiphi.memory['contact.mode']]"))
    np.testing.assert_allclose(forces.sum(axis=0), [0, 0, weight], atol=0.01 * weight)
    names = [point.name for point in robot.contact_points]
    assert {name for name, mode in zip(names, modes, strict=True) if mode} == {
        f"{leg}_SHANK" for leg in ("LF", "LH", "RF", "RH")
    }
    assert set(modes) == {0, 1} and np.abs(forces[modes == 0]).max() == 0.0
    shown = legend(opened)
    assert set(shown) == {f"{leg}_SHANK" for leg in ("LF", "LH", "RF", "RH")}
    total = sum(float(text.removesuffix(" N")) for text in shown.values())
    assert weight < total < 1.2 * weight, "sizes of forces that lean inwards"
    after = picture(opened, (0, 70, 520, 480))
    green = lambda image: int(((image[..., 1] > 140) & (image[..., 0] < 90)).sum())  # noqa: E731
    assert green(before) < 20 < green(after), "feet that touch light up"
    opened.locator("#forces").uncheck()
    opened.wait_for_timeout(200)
    assert differing(after, picture(opened, (0, 70, 520, 480))) > 200, "arrows"
    opened.locator("#forces").check()
    z = opened.evaluate("psiphi.memory.Q[2]")
    assert abs(z - q[2]) < 0.03 and opened.locator("#said").text_content() == ""
    opened.evaluate(
        "(document.querySelector('#modes input[value=fall]').click(), psiphi.advance(1500))"
    )
    z, *spin = opened.evaluate("[psiphi.memory.Q[2], ...psiphi.memory.V]")
    assert 0.05 < z < 0.3, "the trunk lies on the ground, not below it"
    assert np.abs(spin).max() < 0.5 and not opened.complaints


def test_it_is_pushed_slips_and_says_what_touches(opened, dog):
    """A drag of the trunk lifts feet; on ice they slide; restart stands again."""
    robot, q, path = dog
    show(opened, path)
    assert "16 points of the robot can touch the ground" in opened.content()
    opened.evaluate("(psiphi.advance(200), psiphi.aim(), look())")
    opened.wait_for_function("psiphi.drawn > 0.3")
    x, y = opened.evaluate(SPOT, 0)
    opened.mouse.move(x, y)
    opened.mouse.down()
    opened.mouse.move(x + 20, y - 160, steps=4)
    opened.wait_for_function("psiphi.held && psiphi.drawn > 0.7")
    held = opened.evaluate("[...psiphi.memory.pull]")
    opened.mouse.up()
    opened.evaluate("psiphi.play(false)")
    assert np.linalg.norm(held) > 100.0
    lifted = opened.evaluate("psiphi.memory.Q[2]")
    assert lifted > q[2] + 0.02 or min(opened.evaluate("[...psiphi.memory['contact.mode']]")) == 0
    slide = """friction => { psiphi.restart(); psiphi.sliders.friction.value = friction;
      psiphi.controls(); psiphi.advance(300); psiphi.memory.V[4] += 1.0; psiphi.memory.v[4] += 1.0;
      const modes = new Set();
      for (let i = 0; i < 200; i++) {
        psiphi.advance(1); psiphi.memory["contact.mode"].forEach(m => modes.add(m));
      }
      return [psiphi.memory.Q[1], Math.max(...modes)]; }"""
    (ice, slid), (rough, _) = (opened.evaluate(slide, mu) for mu in (0.05, 1.0))
    assert ice > 0.2 > rough and slid == 2 and not opened.complaints
    opened.evaluate("psiphi.restart()")
    assert opened.evaluate("[...psiphi.memory['contact.mode']].every(m => m === 0)")


def test_unsolved_contacts_are_said(opened, dog):
    _, _, path = dog
    show(opened, path)
    opened.evaluate("(psiphi.advance(10), psiphi.memory['contact.total'][3] += 4e-6)")
    opened.evaluate("psiphi.advance(1)")
    assert "violate the law of contact by 0.002 m/s" in opened.locator("#said").text_content()
    opened.locator("#again").click()
    assert opened.locator("#said").text_content() == ""


def test_it_fits_a_phone(opened, dog):
    _, _, path = dog
    size = opened.viewport_size
    opened.set_viewport_size({"width": 390, "height": 800})
    show(opened, path)
    opened.evaluate("(psiphi.advance(1000), psiphi.aim())")
    opened.wait_for_function("psiphi.drawn > 1.9")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    assert len(legend(opened)) == 4 and pale(opened) == []
    box = opened.locator("#legend").bounding_box()
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    found = opened.evaluate("([x, y]) => document.elementFromPoint(x, y).id", middle)
    assert found == "view", "the legend does not keep pointers from the robot"
    opened.set_viewport_size(size)
