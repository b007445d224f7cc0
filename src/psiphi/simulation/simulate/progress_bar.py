"""A progress bar on stderr: redrawn in a terminal, a line now and then in a log."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self, TextIO

import numpy as np

from psiphi.backends.compile_notice import is_interactive

BAR_WIDTH = 16  # with its numbers the bar fits into 79 columns
LOG_LINES = 10


class ProgressBar:
    """Shows the time, the speed and the largest |v| of a simulation when it is called.

    A terminal or a notebook gets a bar, which is erased at the end. Other streams get ten lines if
    `always` is True, else nothing.
    """

    def __init__(self, duration: float, stream: TextIO | None = None, always: bool = False):
        self.duration = duration
        self.stream = getattr(sys.stderr, "unescaped", sys.stderr) if stream is None else stream
        self.is_interactive = is_interactive(self.stream)
        self.enabled = self.stream is not None and (always or self.is_interactive)
        self.start = time.perf_counter()
        self.columns = shutil.get_terminal_size().columns - 1  # a longer line would wrap
        self.bar_drawn = False
        self.lines_written = 0

    def __call__(self, t: float, q: np.ndarray | None, v: np.ndarray | None) -> None:
        if not self.enabled:
            return
        part = min(1.0, t / self.duration) if self.duration else 1.0
        if self.is_interactive:
            self.stream.write("\r" + self._line(part, t, v)[: self.columns].ljust(self.columns))
            self.bar_drawn = True
        elif int(part * LOG_LINES) > self.lines_written:
            self.lines_written = int(part * LOG_LINES)
            self.stream.write(self._line(part, t, v) + "\n")
        self.stream.flush()

    def _line(self, part: float, t: float, v: np.ndarray | None) -> str:
        rate, speeds = self._rate(t), () if v is None else v.reshape(-1)[:4096]
        fastest = max((abs(float(x)) for x in speeds if x == x), default=0.0)
        numbers = f"{rate:.2g} x real time  largest speed {fastest:.3g}"
        return f"{self._bar(part)}  t = {t:.2f} s  {numbers}"

    def _rate(self, amount: float) -> float:
        """`amount` per second since the start."""
        return amount / max(time.perf_counter() - self.start, 1e-9)

    def _bar(self, part: float) -> str:
        full = int(part * BAR_WIDTH)
        return f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] {100 * part:3.0f}%"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar_drawn:
            self.stream.write("\r" + " " * self.columns + "\r")
            self.stream.flush()
