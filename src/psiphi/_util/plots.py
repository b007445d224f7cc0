"""Matplotlib figures without pyplot: no window opens, no figure stays in memory, notebooks work."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from psiphi._util import validate
from psiphi._util.errors import Error
from psiphi._util.extras import import_optional
from psiphi._util.text import shown

if TYPE_CHECKING:
    import matplotlib.figure
    import matplotlib.text


def empty_figure(width: float, height: float) -> matplotlib.figure.Figure:
    """An empty figure; width and height are in inches."""
    base = import_optional("matplotlib.figure", "a plot", "psiphi[plot]").Figure
    return _notebook_figure(base)(figsize=(width, height), layout="constrained")


@cache
def _notebook_figure(base: type) -> type:
    class Figure(base):
        """A figure that notebooks display without pyplot."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=100)
            return out.getvalue()

    return Figure


def save_figure(
    figure: matplotlib.figure.Figure, path: str | os.PathLike[str] | None
) -> matplotlib.figure.Figure:
    """Save the figure to `path`, unless it is None. Returns the figure."""
    if path is None:
        return figure
    name = validate.path("the file", path, "a path", 'give a name like "motion.png"')
    try:
        figure.savefig(name)
    except (OSError, ValueError) as error:
        cause = f"cannot write {shown(name)}: {getattr(error, 'strerror', None) or error}"
        raise Error(cause, "end the name in .png, .svg or .pdf, in a folder that exists") from error
    return figure


def literal_text(texts: Iterable[matplotlib.text.Text], labels: Iterable[str]) -> None:
    """Set the labels without mathtext: "$" is a character, and a leading "_" does not hide them."""
    for text, label in zip(texts, labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
