"""Screenshots for the front page of the docs: `python tools/pictures.py`.

Needs Chromium and playwright. `tools/docs.py` does not take them, since they differ slightly
between machines.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import psiphi as pp

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SIZE, COLORS = (1240, 660), 256  # pixels in the browser; colours of the file


def motions() -> dict[str, tuple[pp.Trajectory, float]]:
    """The motions, and the time of each screenshot."""
    arm = pp.load("iiwa14")
    start, goal = (
        np.array([0.4, 0.5, 0.0, -1.2, 0.0, 0.9, 0.0]),
        np.array([-0.9, 0.9, 0.4, -1.6, 0.3, 0.7, 0.5]),
    )
    reach = pp.simulate(arm, start, tau=pp.ComputedTorque(arm, goal, kp=30.0, kd=9.0), duration=2.0)
    return {"two_arms": (pp.scenes.load("two_arms").run(duration=3.0), 1.4), "reach": (reach, 0.5)}


def save_screenshot(page: Page, motion: pp.Trajectory, t: float, path: Path) -> None:
    """Write a PNG file of a motion at time t."""
    with tempfile.TemporaryDirectory() as folder:
        page.goto(f"{motion.html(Path(folder) / 'page.html').as_uri()}#t={t}")
        page.wait_for_function("window.psiphi && window.psiphi.drawn !== null")
        page.wait_for_timeout(500)
        image = Image.open(io.BytesIO(page.screenshot()))
    image.convert("RGB").quantize(COLORS, Image.Quantize.FASTOCTREE).save(path, optimize=True)


def main() -> int:
    chromium = os.environ.get("PSIPHI_CHROMIUM") or shutil.which("chromium")
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        for name, (motion, t) in motions().items():
            save_screenshot(page, motion, t, FOLDER / f"{name}.png")
            print(FOLDER / f"{name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
