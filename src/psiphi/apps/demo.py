"""`psiphi demo`: two arms carry a box. Simulated, summed up, and written as one page with the animation and the plots."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from psiphi import scenes, viewer

SCENE = "two_arms"


def main(
    output: str | os.PathLike[str] = "psiphi-demo.html",
    duration: float | None = None,
    watched: Callable[[float], Any] = lambda duration: nullcontext(),
) -> int:
    """Simulate the scene, print what happened, write the page. `watched(duration)` makes a progress bar."""
    start = time.perf_counter()
    case = scenes.load(SCENE)
    system = case.system
    print(
        f"{case.title}: {len(system.bodies)} bodies, {system.nv} coordinates, {system.nc} constraint rows."
    )
    print(
        f"Its forward dynamics, loops closed, was derived and compiled for it: {system.flops()} operations.\n"
    )
    options = {} if duration is None else {"duration": duration}
    ready = time.perf_counter()
    with watched(duration or case.options["duration"]) as bar:
        motion = case.run(**options, progress=bar)
    done = time.perf_counter()
    print(motion.summary())
    page = viewer.html(motion, output, title=case.title)
    size = page.stat().st_size / 1000
    print(f"\nset up in {ready - start:.1f} s, simulated in {done - ready:.1f} s")
    print(
        f"The page with the animation and the plots ({size:.0f} kB, opens in any browser, no server, no network):"
    )
    print(f"  {page.resolve().as_uri()}")
    return 0
