"""Screenshots and the moving picture of README and docs: `python tools/pictures.py [NAME]`.

Needs Chromium and playwright. `tools/docs.py` does not take them, since they differ slightly
between machines.
"""

from __future__ import annotations

import io
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import psiphi as pp

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
SIZE, COLORS = (1240, 660), 256  # pixels in the browser; colours of the file
SMALL, RATE, QUALITY = (560, 315), 16, 40  # of the moving picture: pixels, frames a second
LOOP = (1.0, 2.5)  # s, three steps of each foot
BARE = """header, #legend, #hint, footer, aside { display: none !important }
main { display: block !important; height: 100vh !important } #stage { height: 100vh !important }"""
FOLLOW = """([t, x, y]) => {  // moment t, the camera beside the trunk
  psiphi.seek(t);
  Object.assign(camera, { at: [x, y, 0.36], far: 1.95, turn: -0.75, tilt: 0.24 });
  focus = [x, y, 0.36];
  dirty = true;
}"""


def motions() -> dict[str, tuple[pp.Trajectory, float]]:
    """The motions, and the time of each screenshot."""
    arm = pp.load("iiwa14")
    start, goal = (
        np.array([0.4, 0.5, 0.0, -1.2, 0.0, 0.9, 0.0]),
        np.array([-0.9, 0.9, 0.4, -1.6, 0.3, 0.7, 0.5]),
    )
    reach = pp.simulate(arm, start, tau=pp.ComputedTorque(arm, goal, kp=30.0, kd=9.0), duration=2.0)
    return {"two_arms": (pp.scenes.load("two_arms").run(duration=3.0), 1.4), "reach": (reach, 0.5)}


def trot() -> pp.Trajectory:
    """ANYmal trots, as in the example."""
    return runpy.run_path(str(ROOT / "examples" / "quadruped_ground.py"))["walk"]


def open_motion(page: Page, motion: pp.Trajectory, t: float) -> None:
    """The page of a motion, paused at time t."""
    with tempfile.TemporaryDirectory() as folder:
        page.goto(f"{motion.html(Path(folder) / 'page.html').as_uri()}#t={t}")
        page.wait_for_function("window.psiphi && window.psiphi.drawn !== null")


def screenshot(page: Page) -> Image.Image:
    """What the page shows, once it is drawn."""
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done), 60))")
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save_screenshot(page: Page, motion: pp.Trajectory, t: float, path: Path) -> None:
    """Write a PNG file of a motion at time t."""
    open_motion(page, motion, t)
    page.wait_for_timeout(500)
    image = screenshot(page)
    image.quantize(COLORS, Image.Quantize.FASTOCTREE).save(path, optimize=True)


def save_moving(page: Page, motion: pp.Trajectory, path: Path) -> None:
    """Write a WebP file that shows LOOP of a motion in real time; the camera follows the base."""
    page.set_viewport_size({"width": SMALL[0], "height": SMALL[1]})
    open_motion(page, motion, LOOP[0])
    page.add_style_tag(content=BARE)
    page.evaluate("resize()")
    times = np.arange(LOOP[0], LOOP[1], 1 / RATE)
    ways = [np.interp(times, motion.t, motion.q[:, k]) for k in (0, 1)]
    frames = []
    for moment in np.stack([times, *ways], axis=-1).tolist():
        page.evaluate(FOLLOW, moment)
        frames.append(screenshot(page))
    options = {"save_all": True, "append_images": frames[1:], "loop": 0, "method": 6}
    frames[0].save(path, duration=round(1000 / RATE), quality=QUALITY, **options)


def main(names: list[str]) -> int:
    chromium = os.environ.get("PSIPHI_CHROMIUM") or shutil.which("chromium")
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        for name, (motion, t) in (motions() if names != ["trot"] else {}).items():
            if not names or name in names:
                save_screenshot(page, motion, t, FOLDER / f"{name}.png")
        if not names or "trot" in names:
            save_moving(page, trot(), FOLDER / "trot.webp")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
