"""Live pages in Chromium: pulls each bundled robot and scene with the mouse and times its steps.

    python benchmarks/pulled_pages.py [--names ur5 g1] [--pictures FOLDER] [--seconds 2]

Needs `pip install playwright` and chromium. Prints for each page: microseconds of one step (of 1 ms
by RK4 with the mouse spring and the joint limits; of 2 ms on a ground, where the robot stands, and
where it falls without motors), also as a share of real time; the share of real
time that the browser reached while a link was pulled and drawn without a GPU; the largest motion of
a joint. Then the time of one forward dynamics in the page and from Python.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import sys
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from live_pages import pages

import psiphi as pp
from psiphi.backends.target import TARGETS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SPOT = """() => {  // a visible point on the outermost link: the middle of a solid
  const T = view().eyes, b = canvas.getBoundingClientRect();
  for (const x of [...pieces].reverse()) {
    const p = origin(times(on(x.body), x.local));
    const q = [0, 1, 3].map(r => T[r] * p[0] + T[4 + r] * p[1] + T[8 + r] * p[2] + T[12 + r]);
    const spot = [
      b.left + (q[0] / q[2] + 1) * b.width / 2,
      b.top + (1 - q[1] / q[2]) * b.height / 2,
    ];
    const found = touched({ clientX: spot[0], clientY: spot[1] }, on);
    if (found && found.body === x.body) return spot;
  }
}"""
TIME = """([mode, count]) => {
  let best = Infinity;
  psiphi.play(false);
  document.querySelector(`#modes input[value=${mode}]`).click();
  for (let i = 0; i < 8; i++) {
    psiphi.restart();
    const t = performance.now();
    psiphi.advance(count);
    best = Math.min(best, performance.now() - t);
  }
  return 1000 * best / count;
}"""
CALL = """async ([text, name, given]) => {
  const f = await (await import("data:text/javascript;base64," + text))[name].load();
  Object.keys(f.constructor.inputs).forEach((key, i) => f[key].set(given[i]));
  let best = Infinity;
  for (let i = 0; i < 40; i++) {
    const t = performance.now();
    for (let k = 0; k < 4000; k++) f.run();
    best = Math.min(best, performance.now() - t);
  }
  return best / 4;
}"""


@contextmanager
def chromium(width: int = 1100, height: int = 680) -> Iterator[Any]:
    """A page of a headless browser; `complaints` collects its errors."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("PSIPHI_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        opened = browser.new_page(viewport={"width": width, "height": height})
        opened.set_default_timeout(120_000)
        opened.complaints = []
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        try:
            yield opened
        finally:
            browser.close()


def pull(
    opened: Any, path: Path, seconds: float, picture: Path | None = None, steps: int = 500
) -> tuple[float, float, float, float, str]:
    """Microseconds per step, their share of real time, the share of real time that was reached, the
    largest motion of a joint, messages. `steps` are timed, eight times."""
    opened.complaints.clear()
    opened.goto("about:blank")
    opened.goto(f"{path.as_uri()}#paused")
    opened.wait_for_function("window.psiphi && psiphi.drawn !== null")
    step, h = opened.evaluate(TIME, ["hold", steps]), opened.evaluate("psiphi.scene.live.h")
    words = []
    if opened.evaluate("psiphi.scene.live.ground !== null"):
        words.append(f"{opened.evaluate(TIME, ['fall', 2 * steps]):.1f} us while it falls")
        opened.evaluate("document.querySelector('#modes input[value=hold]').click()")
    opened.evaluate("psiphi.restart()")
    opened.wait_for_timeout(300)
    x, y = opened.evaluate(SPOT)
    before = np.array(opened.evaluate("[...psiphi.memory.Q]"))
    opened.mouse.move(x, y)
    opened.mouse.down()
    opened.mouse.move(x + 60, y - 50, steps=2)
    opened.wait_for_timeout(1000 * seconds)
    assert opened.evaluate("psiphi.held") is not None, "nothing is held"
    real_time, message = opened.evaluate(
        "[psiphi.kept, document.getElementById('said').textContent]"
    )
    if picture is not None:
        opened.screenshot(path=str(picture))
    moved = float(np.abs(np.array(opened.evaluate("[...psiphi.memory.Q]")) - before).max())
    opened.mouse.up()
    words += [message, *opened.complaints]
    return step, 1e-6 * step / h, real_time, moved, "; ".join(filter(None, words))


def calls(opened: Any, name: str) -> tuple[float, float]:
    """Microseconds of one forward dynamics in the page and from Python."""
    robot, rng = pp.load(name), np.random.default_rng(0)
    inputs = [robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)]
    text = TARGETS["wasm"].emit(robot.function("forward_dynamics").source.code, "d", "fd")
    opened.goto("about:blank")
    in_page = opened.evaluate(
        CALL, [base64.b64encode(text.encode()).decode(), "fd", [x.tolist() for x in inputs]]
    )
    call = timeit.Timer(lambda: robot.forward_dynamics(*inputs))
    return in_page, min(call.repeat(40, 4000)) / 4000 * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", nargs="*", help="names of robots and scenes (default: all)")
    parser.add_argument(
        "--pictures", type=Path, help="folder for a screenshot of each page while it is pulled"
    )
    parser.add_argument("--seconds", type=float, default=2.5, help="duration of each pull")
    args = parser.parse_args()
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    good = True
    with chromium() as opened, TemporaryDirectory() as folder:
        print("page           size   step     of real time   while drawn        pulled")
        for name, text in pages(args.names).items():
            path = Path(folder, f"{name}.html")
            path.write_text(text, encoding="utf-8")
            step, share, real_time, moved, message = pull(
                opened, path, args.seconds, args.pictures and args.pictures / f"{name}.png"
            )
            good &= share < 1.0 and moved > 1e-3 and not opened.complaints
            cost = f"{len(text) / 1e3:5.0f} kB {step:6.1f} us {100 * share:8.1f} %"
            motion = f"{real_time:14.2f}   {moved:8.3f} rad or m"
            print(f"{name:<13}{cost}  {motion}  {message}", flush=True)
        for name, limit in (("ur5", 2.0), ("g1", 4.0)):
            in_page, in_python = calls(opened, name)
            good &= in_page <= limit * in_python
            times = f"{in_page:.3f} us in the page, {in_python:.3f} us per call from Python"
            times += f": {in_page / in_python:.2f}x"
            print(f"forward dynamics of {name}: {times}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
