"""A headless Chromium for tests of pages; tests skip, and say why, where there is none."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

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
def page(width: int = 1000, height: int = 560) -> Iterator:
    """A page of a browser; what it complains about is collected in `page.complaints`."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    path = os.environ.get("PSIPHI_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or name it in PSIPHI_CHROMIUM")
    with home(), api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
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
