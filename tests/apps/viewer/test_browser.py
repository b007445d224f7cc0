"""Pages in a browser: the robot is drawn, the slider moves it, nothing is fetched, no errors."""

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes, viewer
from tests.apps.viewer.browser import colors, differing, page, picture
from tests.apps.viewer.robots import plain, swing

STAGE = (0, 80, 590, 470)  # inside the 3-D view: no title, no controls


@pytest.fixture(scope="module")
def opened():
    with page() as opened:
        opened.context.set_offline(True)
        yield opened


def show(opened, path, time: float | None = None, mode: str = ""):
    """Load a page from disk and wait until it has drawn."""
    opened.goto("about:blank")
    opened.complaints.clear()
    opened.goto(f"{path.as_uri()}#{mode}" + ("" if time is None else f"t={time}"))
    opened.wait_for_function("window.psiphi && window.psiphi.drawn !== null", timeout=60_000)
    return picture(opened, STAGE)


def test_the_robot_is_seen_and_the_slider_moves_it(opened, tmp_path):
    motion = swing(1.0)
    path = viewer.html(motion, tmp_path / "puma.html")
    requests = []
    opened.on("request", lambda request: requests.append(request.url))
    first = show(opened, path, 0.0)
    assert colors(first) > 300
    robot = np.abs(first.astype(int) - first[5, 5]).max(axis=-1) > 60
    assert 0.02 < robot.mean() < 0.6, "a robot, neither a speck nor everything"
    again = show(opened, path, 0.0)
    assert differing(first, again) < 50, "the same picture twice"
    opened.locator("#time").fill("1.0")
    opened.wait_for_function("window.psiphi.drawn === 1")
    later = picture(opened, STAGE)
    assert differing(first, later) > 3000
    assert opened.locator("#clock").text_content() == "1.00 / 1.00 s"
    assert not opened.complaints and all(
        url.startswith(("file:", "about:", "data:")) for url in requests
    )


def test_time_never_runs_backwards(opened, tmp_path):
    """The time stamp of the first frame of a slow page is older than the call of play()."""
    path = viewer.html(swing(1.0), tmp_path / "puma.html")
    show(opened, path, 0.0)
    assert (
        opened.evaluate(
            "() => { play(true); paint(performance.now() - 5000); play(false); return now }"
        )
        >= 0.0
    )
    show(opened, path, mode="t=1e")
    assert opened.evaluate("() => Number.isFinite(now)")


def test_the_controls_fit_any_window(opened, tmp_path):
    path = viewer.html(swing(0.5), tmp_path / "puma.html")
    size = opened.viewport_size
    for width in (870, 500, 1400):
        opened.set_viewport_size({"width": width, "height": 600})
        show(opened, path, 0.0)
        bar, button = opened.locator("#bar").bounding_box(), opened.locator("#reset").bounding_box()
        assert button["x"] + button["width"] <= bar["x"] + bar["width"], f"at {width} pixels"
    opened.set_viewport_size(size)


def test_play_orbit_zoom_and_frames(opened, tmp_path):
    path = viewer.html(pp.load("ur5"), tmp_path / "ur5.html")
    still = show(opened, path, 0.0)
    opened.locator("#play").click()
    opened.wait_for_function("window.psiphi.drawn > 0.2")
    opened.locator("#play").click()
    opened.evaluate("window.psiphi.seek(0)")
    opened.wait_for_function("window.psiphi.drawn === 0")
    assert differing(still, picture(opened, STAGE)) < 50, "back where it was"
    opened.mouse.move(300, 300)
    opened.mouse.down()
    opened.mouse.move(420, 330, steps=3)
    opened.mouse.up()
    opened.wait_for_timeout(200)
    turned = picture(opened, STAGE)
    assert differing(still, turned) > 3000
    opened.mouse.wheel(0, -600)
    opened.wait_for_timeout(200)
    near = picture(opened, STAGE)
    assert differing(turned, near) > 3000
    opened.locator("#frames").check()
    opened.wait_for_timeout(200)
    assert differing(near, picture(opened, STAGE)) > 100
    assert not opened.complaints


@pytest.mark.parametrize("mode", ["", "painter,"])
def test_a_robot_without_shapes_and_a_browser_without_webgl(opened, tmp_path, mode):
    path = viewer.html(plain(pp.load("puma560")), tmp_path / "plain.html")
    first, later = show(opened, path, 0.0, mode), show(opened, path, 0.6, mode)
    assert colors(first) > 300 and differing(first, later) > 1500
    assert not opened.complaints


def test_forces_are_red_arrows_and_plots_have_cursors(opened, tmp_path):
    path = viewer.html(scenes.load("two_arms").run(duration=0.1), tmp_path / "box.html")
    shown = show(opened, path, 0.1)
    red = (shown[..., 0] > 150) & (shown[..., 1] < 90) & (shown[..., 2] < 90)
    assert red.sum() > 150
    opened.locator("#forces").uncheck()
    opened.wait_for_timeout(200)
    hidden = picture(opened, STAGE)
    assert (
        (hidden[..., 0] > 150) & (hidden[..., 1] < 90) & (hidden[..., 2] < 90)
    ).sum() < red.sum() / 5
    assert opened.locator("svg.plot").count() >= 5 and opened.locator("#legend b").count() == 2
    x = [float(line.get_attribute("x1")) for line in opened.locator(".cursor").all()]
    assert min(x) > 400, "the cursors stand at the end"
    assert not opened.complaints


def test_feet_that_touch_are_green(opened, tmp_path):
    """A ball in the air and on the ground: green where it holds, and in the legend."""
    b = pp.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("root", "free", "world", "ball")
    robot = pp.Robot.of(b.build()).with_contacts({"ball": pp.Sphere(0.4)})
    motion = pp.simulate(robot, [0, 0, 0.6, 0, 0, 0, 1], duration=0.5, contacts=pp.Ground())
    path = viewer.html(motion, tmp_path / "ball.html")

    def green(time):
        shown = show(opened, path, time).astype(int)
        return (shown[..., 1] > shown[..., 0] + 40) & (shown[..., 1] > shown[..., 2] + 40)

    air, ground = green(0.0).sum(), green(0.5).sum()
    assert ground > 500 + 5 * air, (air, ground)
    assert opened.locator("#legend p").text_content().split() == ["open", "holds", "slides"]
    assert not opened.complaints


@pytest.mark.parametrize("kind", ["recorded", "live"])
def test_a_lost_context_is_restored(opened, tmp_path, kind):
    """A sleeping laptop or a reset of the driver loses the context: the page draws again."""
    path = viewer.html(pp.load("puma560"), tmp_path / "puma.html", live=kind == "live")
    before = show(opened, path, 0.0, "paused," if kind == "live" else "")
    opened.evaluate(
        "() => { window.lost = canvas.getContext('webgl2').getExtension('WEBGL_lose_context');"
        " canvas.addEventListener('webglcontextrestored', () => { window.back = true; });"
        " lost.loseContext(); }"
    )
    opened.wait_for_function("canvas.getContext('webgl2').isContextLost()")
    opened.evaluate("() => { dirty = true; }")  # a frame without context changes nothing
    opened.wait_for_function("!dirty")
    assert colors(picture(opened, STAGE)) < colors(before) / 2
    opened.evaluate("() => lost.restoreContext()")
    opened.wait_for_function("window.back && !dirty")
    assert differing(before, picture(opened, STAGE)) < 50, "the same picture as before"
    assert not opened.complaints


INSIDE = """() => {  // the largest coordinate of a vertex in any frame; 1 is the picture's edge
  let most = 0;
  for (const i of S.poses.keys()) {
    const T = view().eyes, at = bodies(S.t[i]);
    for (const { body, local, solid: { p } } of pieces) {
      const M = times(T, times(at(body), local));
      for (let k = 0; k < p.length; k += 3) {
        const [x, y, w] = [0, 1, 3].map(
          r => M[r] * p[k] + M[4 + r] * p[k + 1] + M[8 + r] * p[k + 2] + M[12 + r]);
        most = Math.max(most, Math.abs(x / w), Math.abs(y / w));
      }
    }
  }
  return most;
}"""


@pytest.mark.parametrize("width", [1000, 700])
@pytest.mark.parametrize("name", ["anymal_c", "rod", "ur5", "puma560"])
def test_the_whole_mechanism_is_in_the_picture(opened, tmp_path, name, width):
    """At all times of a motion, and in a picture of any shape."""
    if name == "rod":
        b = pp.Builder("rod")
        b.body("rod", mass=2.0, inertia=np.diag([0.001, 1 / 6, 1 / 6]))
        b.joint("free", "free", "world", "rod")
        path = viewer.html(b.build(), tmp_path / "page.html", q=[0, 0, 0, 0, 0, 0, 1])
    else:
        path = viewer.html(pp.load(name), tmp_path / "page.html")
    opened.set_viewport_size({"width": width, "height": 560})
    try:
        show(opened, path, 0.0)
        assert 0.3 < opened.evaluate(INSIDE) < 1.0
    finally:
        opened.set_viewport_size({"width": 1000, "height": 560})
