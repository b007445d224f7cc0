"""Live pages in Chromium: results equal those of the library, links can be pulled, names are
escaped, the file needs no other file."""

import re

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes, viewer
from psiphi._util.errors import StateError
from psiphi.apps.viewer.live import live_page
from psiphi.model.builder.builder import Builder
from tests.apps.viewer.browser import SPOT, differing, page, picture, show
from tests.apps.viewer.contrast import pale
from tests.robot.embedding.mechanisms import MECHANISMS

STAGE = (0, 70, 510, 260)
RUN = """([mode, values, aims, count]) => {
  document.querySelector(`#modes input[value=${mode}]`).checked = true;
  document.getElementById("ends").checked = !!values.ends;
  for (const name in values) if (psiphi.sliders[name]) psiphi.sliders[name].value = values[name];
  psiphi.restart();
  psiphi.scene.live.joints.forEach((j, i) => { j.slider.value = aims[i]; });
  psiphi.aim();
  psiphi.advance(count);
  return [[...psiphi.memory.Q], [...psiphi.memory.V]];
}"""


@pytest.fixture(scope="module")
def opened():
    with page(900, 340) as opened:
        opened.context.set_offline(True)
        yield opened


def ball_and_slide():
    b = Builder("ball and slide")
    b.body("cart", mass=2.0, com=(0.1, 0, 0), inertia=np.diag([0.02, 0.03, 0.04]))
    b.body("arm", mass=1.0, com=(0, 0.1, -0.4), inertia=np.diag([0.05, 0.04, 0.02]))
    b.joint("rail", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.joint("ball", "spherical", parent="cart", child="arm", xyz=(0, 0, -0.1))
    return pp.Robot.of(b.build())


def four_bar():
    return scenes.load("four_bar").system


def elastic():
    """Springs that are stiff for the step, one that is not, and one that is a table."""
    robot = pp.load("ur5").with_elastic("wrist_1_joint", 4e5, rotor=1e-4, ratio=50.0)
    return robot.with_spring(
        "elbow_joint", spring={"deflection": [-1.0, 0.0, 1.0], "torque": [-3.0, 0.0, 8.0]}
    )


def embedded():
    robot, loops, options = MECHANISMS["fourbar"]()
    return pp.embed(robot, loops, **options)


DRIVEN = {"kp": 90.0, "kd": 4.0, "gravity": 9.81, "damping": 0.0, "ends": True}
CASES = {
    "ur5, held": (
        lambda: pp.load("ur5"),
        "hold",
        {"kp": 80.0, "kd": 6.0, "gravity": 9.81, "damping": 0.0},
        0.3,
    ),
    "panda, PD only, stiff": (
        lambda: pp.load("panda"),
        "pd",
        {"kp": 60.0, "kd": 55.0, "gravity": 9.81, "damping": 0.5},
        0.1,
    ),
    "ball and slide, held": (
        ball_and_slide,
        "hold",
        {"kp": 50.0, "kd": 3.0, "gravity": 9.81, "damping": 0.2},
        0.2,
    ),
    "anymal falls": (lambda: pp.load("anymal_c"), "fall", {"gravity": 9.81, "damping": 0.3}, 0.0),
    "acrobot on the moon": (
        lambda: pp.load("acrobot"),
        "float",
        {"gravity": 1.62, "damping": 0.4},
        0.0,
    ),
    "elastic, held": (
        elastic,
        "hold",
        {"kp": 80.0, "kd": 6.0, "gravity": 9.81, "damping": 0.0},
        0.3,
    ),
    "an embedded four-bar falls": (embedded, "fall", {"gravity": 9.81, "damping": 0.3}, 0.0),
    "panda falls onto its stops": (
        lambda: pp.load("panda"),
        "fall",
        {"gravity": 9.81, "damping": 0.3, "ends": True},
        0.0,
    ),
    "stanford arm to its stops": (lambda: pp.load("stanford_arm"), "hold", DRIVEN, 9.0),
    "four bar, held": (
        four_bar,
        "hold",
        {"kp": 30.0, "kd": 2.0, "gravity": 9.81, "damping": 0.1},
        0.1,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_second_in_the_page_is_a_second_of_the_library(opened, tmp_path, case):
    """With the same start, law and steps, equal to `pp.simulate` to 1e-9."""
    make, mode, values, away = CASES[case]
    system = make()
    robot = getattr(system, "robot", system)
    alive = live_page.read_live_page(system)
    if robot is system:
        q, v = (
            robot.integrate(alive.q0, 0.2 * np.ones(robot.nv)),
            0.3 * np.random.default_rng(0).standard_normal(robot.nv),
        )
        if values.get("ends"):
            q = np.clip(q, robot.lower, robot.upper)
        alive = live_page.read_live_page(system, q, v)
    q0, v0 = alive.q0, alive.v0
    show(opened, viewer.html(system, tmp_path / "live.html", live=True, q=q0, v=v0))
    data = opened.evaluate("psiphi.scene.live")
    inertia = np.diagonal(robot.mass_matrix(q0))
    aim = np.zeros(robot.nv)
    aims = []
    for joint in data["joints"]:
        here = 0.0 if joint["q"] is None else q0[joint["q"]]
        aims.append(min(max(here + away, joint["low"]), joint["high"]))
        aim[joint["v"]] = aims[-1] - here
    q, v = map(np.array, opened.evaluate(RUN, [mode, values, aims, 1000]))

    weight = values["gravity"] / float(np.linalg.norm(robot.gravity_vector))
    light = (
        system
        if weight == 1.0
        else pp.load("acrobot", gravity=tuple(weight * np.array(robot.gravity_vector)))
    )
    losses, tau = values["damping"] * inertia, None
    if mode in ("hold", "pd"):
        target = robot.integrate(q0, aim)
        tau = pp.PD(system, target, values["kp"] * inertia, 0.0, gravity=mode == "hold")
        losses = losses + values["kd"] * inertia * alive.motors
    elif mode == "float":
        tau = pp.GravityCompensation(light)
    ends = "block" if values.get("ends") else "ignore"
    motion = pp.simulate(
        light, q0, v0, tau, duration=1.0, damping=losses, springs=True, limits=ends
    )
    if values.get("ends"):
        at = (motion.q == np.array(robot.lower)) | (motion.q == np.array(robot.upper))
        assert at.any(), "a joint has come to its end"
    assert np.abs(motion.q[0] - motion.final.q).max() > 0.01, "it moved"
    assert np.abs(q - motion.final.q).max() < 1e-9 and np.abs(v - motion.final.v).max() < 1e-8
    assert not opened.complaints


def test_a_payload_is_parameters_of_a_free_robot(opened, tmp_path):
    """The payload slider equals `robot.free(...).payload`; a free robot uses its parameters."""
    robot = pp.load("ur5")
    light = robot.free("inertia", links="wrist_3_link")
    q0 = np.array([0.3, -1.0, 1.2, 0.4, 0.3, 0.0])
    show(opened, robot.html(tmp_path / "a.html", live=True, q=q0, payload="tool"))
    heavy = light.at(light.payload("tool", 3.0))
    motion = pp.simulate(heavy, q0, duration=1.0)
    q, _ = opened.evaluate(RUN, ["fall", {"load": 3.0, "gravity": 9.81}, q0.tolist(), 1000])
    assert np.abs(q - motion.final.q).max() < 1e-9
    q, _ = opened.evaluate(RUN, ["fall", {"load": 0.0, "gravity": 9.81}, q0.tolist(), 1000])
    assert (
        np.abs(q - pp.simulate(robot, q0, duration=1.0).final.q).max()
        < 1e-9
        < np.abs(q - motion.final.q).max()
    )
    show(opened, heavy.html(tmp_path / "b.html", live=True, q=q0))
    q, _ = opened.evaluate(RUN, ["fall", {"gravity": 9.81}, q0.tolist(), 1000])
    assert np.abs(q - motion.final.q).max() < 1e-9 and not opened.complaints


def test_the_brake_is_the_derivative_part_of_a_pd(opened):
    """kd taken as a loss is the same law as pp.PD's own kd, where it is not stiff."""
    robot = pp.load("ur5")
    q0, inertia = np.full(6, 0.2), np.diagonal(robot.mass_matrix(np.full(6, 0.2)))
    one = pp.simulate(
        robot,
        q0,
        tau=pp.PD(robot, np.zeros(6), 50 * inertia, 0.0),
        damping=2.0 * inertia,
        duration=0.5,
    )
    other = pp.simulate(
        robot, q0, tau=pp.PD(robot, np.zeros(6), 50 * inertia, 2.0 * inertia), duration=0.5
    )
    assert np.abs(one.final.q - other.final.q).max() < 1e-9


def test_a_link_is_pulled(opened, tmp_path):
    """A drag pulls the robot with a spring and shows the force; after release the force is zero. A
    drag beside the robot rotates the view."""
    robot = pp.load("ur5")
    show(opened, robot.html(tmp_path / "ur5.html", live=True, q=[0, -1.2, 1.2, 0, 0, 0]))
    before = picture(opened, STAGE)
    spot = opened.evaluate(SPOT, 3)
    opened.mouse.move(*spot)
    opened.mouse.down()
    opened.mouse.move(spot[0] + 40, spot[1] - 50, steps=3)
    opened.wait_for_function("psiphi.steps > 300 && psiphi.held && psiphi.drawn > 0.3")
    force = np.array(opened.evaluate("[...psiphi.memory.pull]"))
    body = opened.evaluate("psiphi.held.body")
    assert body >= 2 and np.linalg.norm(force) > 1.0
    said = opened.locator("#newtons").text_content() or ""
    assert re.fullmatch(r"[\d.]+ N", said)
    assert differing(before, picture(opened, STAGE)) > 200
    pulled = np.array(opened.evaluate("[...psiphi.memory.Q]"))
    assert np.abs(pulled - [0, -1.2, 1.2, 0, 0, 0]).max() > 0.01
    opened.mouse.up()
    assert (
        opened.evaluate("psiphi.held") is None and opened.locator("#newtons").text_content() == ""
    )
    assert opened.evaluate("(psiphi.advance(3000), look(), [...psiphi.memory.pull])") == [
        0.0,
        0.0,
        0.0,
    ]
    q = np.array(opened.evaluate("[...psiphi.memory.Q]"))
    assert np.abs(q - [0, -1.2, 1.2, 0, 0, 0]).max() < 1e-3, "the motors bring it back"
    turn = opened.evaluate("psiphi.camera.turn")
    opened.mouse.move(30, 200)
    opened.mouse.down()
    opened.mouse.move(90, 200, steps=2)
    opened.mouse.up()
    assert opened.evaluate("psiphi.camera.turn") != turn and opened.evaluate("psiphi.held") is None
    assert not opened.complaints


def test_a_finger_that_is_pulled_stays_in_its_hand(opened, tmp_path):
    """Joints end at their limits when the page opens, under a load too; a switch lets them go."""
    robot = pp.load("panda")
    show(opened, robot.html(tmp_path / "panda.html", live=True, payload="panda_hand"))
    assert opened.locator("#ends").is_checked()
    pull = """() => { psiphi.restart(); look();
      const F = psiphi.memory, k = psiphi.scene.live.joints.length - 1; F.pulled[k] = 1;
      F.pull_target.set([0, 1, 2].map(i => F.p[3 * k + i] + 0.5 * F.R[9 * k + 3 * i + 1]));
      psiphi.advance(500); return [...F.Q]; }"""
    within = np.array(opened.evaluate(pull))
    assert (
        (robot.lower <= within).all() and (within <= robot.upper).all() and within[8] in (0.0, 0.04)
    )
    opened.locator("#ends").focus()
    opened.keyboard.press(" ")
    assert not opened.locator("#ends").is_checked() and not -0.1 < opened.evaluate(pull)[8] < 0.1
    light = robot.free("inertia", links=robot.bodies[robot.frame("panda_hand").body].name)
    q0 = np.array(opened.evaluate("psiphi.scene.live.start.q"))
    heavy = pp.simulate(
        light.at(light.payload("panda_hand", 2.0)), q0, duration=0.5, limits="block"
    )
    q, _ = opened.evaluate(
        RUN,
        ["fall", {"load": 2.0, "gravity": 9.81, "damping": 0.0, "ends": True}, q0.tolist(), 500],
    )
    assert (
        np.abs(q - heavy.final.q).max() < 1e-9
        and (heavy.q[-1] == robot.upper).any()
        and not opened.complaints
    )


def test_the_pull_is_an_external_force(opened, tmp_path):
    """With a fixed pull target, the first step is `forward_dynamics` with that wrench on that
    frame."""
    robot = pp.load("acrobot")
    show(opened, robot.html(tmp_path / "a.html", live=True, q=[0.4, 0.3], dt=1e-6))
    grip, hand, k, c = np.array([0.1, 0.0, -0.5]), np.array([1.0, 0.5, 0.2]), 40.0, 3.0
    v = opened.evaluate(
        """([grip, hand, k, c]) => {
        document.querySelector("[value=fall]").checked = true; psiphi.restart();
        const F = psiphi.memory; F.pulled[1] = 1; F.pull_point.set(grip); F.pull_target.set(hand);
        F.pull_stiffness[1] = k; F.pull_damping[1] = c;
        psiphi.advance(1); return [...F.V]; }""",
        [grip.tolist(), hand.tolist(), k, c],
    )
    q = np.array([0.4, 0.3])
    T = robot.frame_pose(q, robot.bodies[1].name)
    arm = T[:3, :3] @ grip
    force = k * (hand - T[:3, 3] - arm)
    wrench = np.concatenate([np.cross(arm, force), force])
    a = robot.forward_dynamics(q, np.zeros(2), np.zeros(2), f_ext={robot.bodies[1].name: wrench})
    assert np.allclose(np.array(v) / 1e-6, a, rtol=1e-4)


def test_contact_forces_of_a_closed_chain(opened, tmp_path):
    """Two arms hold a box of 5 kg: the contact forces sum to its weight, and the box can be pulled
    while the loops stay closed."""
    case = scenes.load("two_arms")
    show(opened, case.html(tmp_path / "box.html"))
    forces = np.array(
        opened.evaluate("(psiphi.advance(50), look(), [...psiphi.memory.forces])")
    ).reshape(2, 6)
    assert abs(forces[:, 5].sum() - 5.0 * 9.81) < 1e-3 and opened.locator("#legend b").count() == 2
    state = """() => { const F = psiphi.memory, k = psiphi.scene.bodies.length - 1;
      F.pulled[k] = 1; F.pull_target.set([F.p[3 * k], F.p[3 * k + 1] + 0.3, F.p[3 * k + 2] + 0.2]);
      psiphi.advance(400); return [[...F.Q], [...F.V]]; }"""
    q, v = map(np.array, opened.evaluate(state))
    assert np.abs(q - case.q0).max() > 0.02
    assert np.abs(case.system.constraint_residual(q, v)).max() < 1e-8
    assert not opened.complaints


def test_it_says_so_when_it_cannot_keep_up_or_diverges(opened, tmp_path):
    robot = pp.load("pelican")
    show(opened, robot.html(tmp_path / "p.html", live=True))
    opened.evaluate("""() => { const { step, ...rest } = psiphi.memory.code;
      const wait = ms => { const end = performance.now() + ms; while (performance.now() < end); };
      const slow = () => { wait(4); step(); };
      psiphi.memory.code = { ...rest, step: slow };
      play(true); }""")
    opened.wait_for_function(
        "/of real time/.test(document.getElementById('said').textContent)", timeout=30_000
    )
    assert opened.evaluate("psiphi.kept") < 0.9
    opened.evaluate(
        "(play(false), psiphi.restart(), psiphi.memory.v.fill(1e200), psiphi.memory.code.begin(), "
        "psiphi.advance(5))"
    )
    assert "diverged" in opened.locator("#said").text_content()
    opened.locator("#again").click()
    assert opened.locator("#said").text_content() == ""


def test_hostile_names_stay_text(opened, tmp_path):
    b = Builder("</script><img src=x onerror=alert(1)>")
    b.body("<b>&\"'", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.1]))
    b.joint(
        "<img src=x onerror=document.title='got'>",
        "revolute",
        parent="world",
        child="<b>&\"'",
        axis=(0, 1, 0),
    )
    path = pp.Robot.of(b.build()).html(tmp_path / "h.html", live=True)
    show(opened, path)
    assert opened.locator("img").count() == 0 and "got" not in opened.title()
    assert opened.locator("#targets .row span").text_content().startswith("<img src=x")
    assert opened.locator("h1").text_content().startswith("</script>")
    assert not opened.complaints


def test_without_webassembly_there_is_a_picture_and_words(opened, tmp_path):
    path = pp.load("pelican").html(tmp_path / "p.html", live=True)
    text = path.read_text(encoding="utf-8").replace('typeof WebAssembly !== "object"', "true")
    path.write_text(text, encoding="utf-8")
    show(opened, path)
    assert (
        opened.locator("#still svg").is_visible()
        and "still picture" in opened.locator("#said").text_content()
    )


def test_fingers_pull_and_pinch(opened, tmp_path):
    """One finger near a link pulls it; two fingers zoom. The page does not scroll."""
    show(opened, pp.load("pelican").html(tmp_path / "p.html", live=True))
    hand = opened.context.new_cdp_session(opened)

    def touch(kind, *spots):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(spots)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    x, y = opened.evaluate(SPOT, 1)
    q = np.array(opened.evaluate("[...psiphi.memory.Q]"))
    touch("touchStart", (x, y))
    touch("touchMove", (x + 40, y - 30))
    opened.wait_for_function("psiphi.held && psiphi.drawn > 0.2")
    touch("touchEnd")
    assert (
        np.abs(np.array(opened.evaluate("[...psiphi.memory.Q]")) - q).max() > 1e-3
        and opened.evaluate("psiphi.held") is None
    )
    far = opened.evaluate("psiphi.camera.far")
    touch("touchStart", (60, 200))
    touch("touchStart", (60, 200), (90, 220))
    touch("touchMove", (60, 200), (160, 270))
    touch("touchEnd")
    assert (
        opened.evaluate("psiphi.camera.far") < 0.6 * far
        and opened.evaluate("scrollY") == 0
        and not opened.complaints
    )


def test_words_stand_out(opened, tmp_path):
    """WCAG's 4.5 : 1 for all text of the page in every motor mode, and for pages of motions."""
    show(opened, scenes.load("four_bar").html(tmp_path / "b.html"))
    for mode in ("hold", "fall"):
        opened.evaluate(f"document.querySelector('#modes input[value={mode}]').click()")
        assert pale(opened) == []
    opened.goto(pp.load("pelican").html(tmp_path / "p.html").as_uri())
    assert pale(opened) == []
    opened.add_style_tag(content="header p { color: #aab }")
    assert len(pale(opened)) == 1, "what is pale is found"


def test_the_controls_fit_a_phone_and_work_by_keyboard(opened, tmp_path):
    path = pp.load("pelican").html(tmp_path / "p.html", live=True)
    size = opened.viewport_size
    opened.set_viewport_size({"width": 375, "height": 700})
    show(opened, path)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 375
    opened.keyboard.press(".")
    assert opened.evaluate("psiphi.steps") == 10
    opened.keyboard.press("r")
    opened.wait_for_function("psiphi.steps > 20")
    opened.keyboard.press(" ")
    opened.locator("#targets input").first.focus()
    opened.keyboard.press("End")
    assert opened.evaluate("psiphi.memory.aim[0]") > 3.0
    opened.set_viewport_size(size)
    assert not opened.complaints


def test_the_file_stands_alone_and_is_small(tmp_path):
    """(The pages of all bundled robots are weighed in tests/test_site.py.)"""
    path = pp.load("pelican").html(tmp_path / "pelican.html", live=True)
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 100_000
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", text) and "{{" not in text
    assert not re.search(r"\b(fetch|import|XMLHttpRequest|WebSocket)\s*\(", text)
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: pp.load("ur5"), {"q": [1.0]}, r"expected \(\.\.\., 6\)"),
        (lambda: pp.load("ur5"), {"q": np.zeros((2, 6))}, "one configuration"),
        (lambda: pp.load("ur5"), {"dt": 0.0}, "expected a positive number"),
        (lambda: pp.load("ur5"), {"dt": 1e-9}, "in a live page"),
        (lambda: pp.load("ur5"), {"element": 1}, "element: only for pages"),
        (lambda: pp.load("ur5"), {"method": "magic"}, "expected one of"),
        (lambda: scenes.load("four_bar").system, {"q": np.ones(3)}, "not on the constraints"),
        (lambda: "ur5", {}, "no nq"),
        (lambda: pp.load("ur5"), {"payload": "elbow"}, "no frame"),
        (lambda: pp.load("ur5"), {"limits": "stop"}, "expected one of ignore, block"),
        (lambda: scenes.load("four_bar").system, {"limits": "block"}, "robots only"),
        (lambda: pp.load("ur5"), {"payload": "world"}, "on the world"),
        (lambda: scenes.load("four_bar").system, {"payload": "tip"}, "closed chain"),
        (lambda: many_sets(), {}, "one set"),
        (lambda: pp.Robot.of(long_chain()), {}, "up to 64"),
    ],
)
def test_what_cannot_live_is_refused(tmp_path, make, options, words):
    with pytest.raises(StateError, match=words):
        viewer.html(make(), tmp_path / "x.html", live=True, **options)
    assert not list(tmp_path.iterdir())


def many_sets():
    light = pp.load("pelican").free("mass")
    return light.at([light.parameters()] * 3)


def long_chain():
    from tests import zoo

    return zoo.chain("chain", ["revolute"] * 70, seed=1)
