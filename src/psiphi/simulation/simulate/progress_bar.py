"""How far a simulation is, on stderr: a bar where a person is watching, a line now and then in a log."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, Self

BAR_WIDTH = 16  # of the bar alone; with its numbers it fits into 79 columns
LOG_LINES = 10  # lines in a log


class ProgressBar:
    """`ProgressBar(duration)` is what `simulate` calls now and then: time, speed, the largest |v|.

    A terminal or a notebook gets a bar, which is gone when all is done; another stream nothing, or with `always` ten lines.
    """

    def __init__(self, duration: float, stream: Any = None, always: bool = False):
        self.duration = duration
        self.stream = getattr(sys.stderr, "unescaped", sys.stderr) if stream is None else stream
        self.is_interactive = in_notebook() or bool(getattr(self.stream, "isatty", lambda: False)())
        self.enabled = self.stream is not None and (always or self.is_interactive)
        self.start = time.perf_counter()
        self.columns = shutil.get_terminal_size().columns - 1  # a longer line would wrap, and stay
        self.bar_drawn = False
        self.lines_written = 0  # of PARTS

    def __call__(self, t: float, q, v) -> None:
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

    def _line(self, part: float, t: float, v) -> str:
        speed = self._rate(t)
        fastest = max((abs(float(x)) for x in v.reshape(-1)[:4096] if x == x), default=0.0)
        return f"{self._bar(part)}  t = {t:.2f} s  {speed:.2g} x real time  largest speed {fastest:.3g}"

    def _rate(self, amount: float) -> float:
        """So much a second, since it began."""
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


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: it shows what is written to stderr, and obeys a carriage return."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
