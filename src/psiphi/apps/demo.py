"""`psiphi demo`: two arms carry a box.

Simulates the scene, prints a summary and writes one page with the animation and the plots.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import cast

from psiphi import scenes, viewer
from psiphi.robot.mechanisms.system import System

SCENE = "two_arms"


def main(
    output: str | os.PathLike[str] = "psiphi-demo.html",
    duration: float | None = None,
    progress_bar: Callable[[float], AbstractContextManager] = lambda duration: nullcontext(),
) -> int:
    """Simulate the scene, print a summary and write the page.

    `progress_bar(duration)` returns a context manager with the bar.
    """
    start = time.perf_counter()
    scene = scenes.load(SCENE)
    system = cast(System, scene.system)
    print(
        f"{scene.title}: {len(system.bodies)} bodies, {system.nv} coordinates, "
        f"{system.nc} constraint rows."
    )
    print(
        "Forward dynamics with closed loops, derived and compiled for this scene: "
        f"{system.flops()} operations.\n"
    )
    options = {} if duration is None else {"duration": duration}
    ready = time.perf_counter()
    with progress_bar(duration or scene.options["duration"]) as bar:
        motion = scene.run(**options, progress=bar)
    done = time.perf_counter()
    print(motion.summary())
    page = viewer.html(motion, output, title=scene.title)
    size = page.stat().st_size / 1000
    print(f"\nset up in {ready - start:.1f} s, simulated in {done - ready:.1f} s")
    print(
        f"Page with the animation and the plots ({size:.0f} kB, opens in any browser, "
        "no server, no network):"
    )
    print(f"  {page.resolve().as_uri()}")
    return 0
