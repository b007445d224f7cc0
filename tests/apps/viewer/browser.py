"""A headless Chromium for tests of pages; tests skip, and say why, where there is none."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

SPOT = """k => {  // where link k is in the picture of a live page
  const T = view().eyes, p = origin(bodies[k]);
  const q = [0, 1, 3].map(r => T[r] * p[0] + T[4 + r] * p[1] + T[8 + r] * p[2] + T[12 + r]);
  return [(q[0] / q[2] + 1) * canvas.clientWidth / 2, (1 - q[1] / q[2]) * canvas.clientHeight / 2];
}"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def home() -> Iterator[None]:
    """A HOME for the browser and what drives it, where there is none: they do not start without."""
    if os.environ.get("HOME"):
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        try:
            yield
        finally:
            del os.environ["HOME"]


@contextmanager
def page(width: int = 1000, height: int = 560, *more: str) -> Iterator:
    """A page of a browser, started with the switches `more`; `page.complaints` collects its errors
    and warnings."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    path = os.environ.get("PSIPHI_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            "no Chromium on this machine: apt-get install chromium, or name it in PSIPHI_CHROMIUM"
        )
    with home(), api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--enable-unsafe-swiftshader", *more]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        context = browser.new_context(viewport={"width": width, "height": height}, offline=False)
        opened = context.new_page()
        opened.set_default_timeout(120_000)  # a busy machine takes its time
        opened.complaints = []
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        try:
            yield opened
        finally:
            browser.close()


def show(opened, path: Path, mode: str = "paused") -> None:
    """A live page, once it is drawn."""
    opened.goto("about:blank")
    opened.complaints.clear()
    opened.goto(f"{path.as_uri()}#{mode}")
    opened.wait_for_function("window.psiphi && window.psiphi.drawn !== null", timeout=60_000)


def picture(opened, box: tuple[int, int, int, int] | None = None) -> np.ndarray:
    """A screenshot as (height, width, 3) bytes; `box` is left, top, right, bottom."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install pillow)")
    shot = image.open(io.BytesIO(opened.screenshot())).convert("RGB")
    return np.asarray(shot.crop(box) if box else shot)


def colors(image: np.ndarray) -> int:
    """How many different colours."""
    return len(np.unique(image.reshape(-1, 3), axis=0))


def differing(a: np.ndarray, b: np.ndarray) -> int:
    """How many pixels differ visibly."""
    return int((np.abs(a.astype(int) - b.astype(int)).max(axis=-1) > 24).sum())
