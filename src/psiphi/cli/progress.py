"""A progress bar with live numbers, on stderr, where a person is watching."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

WIDTH = 16  # of the bar alone; with its numbers it fits into 79 columns


class Bar:
    """`Bar(duration)` is what `simulate` calls now and then: time, speed, the largest |v|."""

    def __init__(self, duration: float, stream: Any = None, always: bool = False):
        self.duration = duration
        self.stream = getattr(sys.stderr, "unescaped", sys.stderr) if stream is None else stream
        self.on = always or self.stream.isatty()
        self.start = time.perf_counter()
        self.columns = shutil.get_terminal_size().columns - 1  # a longer line would wrap, and stay
        self.drawn = False

    def __call__(self, t: float, q, v) -> None:
        if not self.on:
            return
        part = min(1.0, t / self.duration) if self.duration else 1.0
        full = int(part * WIDTH)
        speed = t / max(time.perf_counter() - self.start, 1e-9)
        fastest = max((abs(float(x)) for x in v.reshape(-1)[:4096] if x == x), default=0.0)
        bar = "#" * full + "." * (WIDTH - full)
        line = f"[{bar}] {100 * part:3.0f}%  t = {t:.2f} s  {speed:.2g} x real time  largest speed {fastest:.3g}"
        self.stream.write("\r" + line[: self.columns].ljust(self.columns))
        self.stream.flush()
        self.drawn = True

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.drawn:
            self.stream.write("\r" + " " * self.columns + "\r")
            self.stream.flush()
