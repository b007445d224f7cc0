"""Matplotlib figures without pyplot: no window opens, nothing is kept between two of them, and notebooks show them."""

from __future__ import annotations

import io
import os
from functools import cache
from typing import Any

from psiphi._util import validate
from psiphi._util.errors import Error
from psiphi._util.extras import need
from psiphi._util.text import shown


def blank(width: float, height: float) -> Any:
    """An empty figure of so many inches."""
    base = need("matplotlib.figure", "a plot", "psiphi[plot]").Figure
    return _shown(base)(figsize=(width, height), layout="constrained")


@cache
def _shown(base: Any) -> Any:
    class Figure(base):
        """A figure that notebooks show, whether or not pyplot was ever imported."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=100)
            return out.getvalue()

    return Figure


def written(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    """The figure itself, also in the file `path`, where one is named."""
    if path is None:
        return figure
    name = validate.path("the file", path, "a path", 'give a name like "motion.png"')
    try:
        figure.savefig(name)
    except (OSError, ValueError) as error:
        cause = f"cannot write {shown(name)}: {getattr(error, 'strerror', None) or error}"
        raise Error(cause, "end the name in .png, .svg or .pdf, in a folder that exists") from error
    return figure


def plain(texts: Any, words: Any) -> None:
    """Names as they are: "$" begins no formula in them, and one that begins with "_" is shown, too."""
    for text, word in zip(texts, words, strict=True):
        text.set_parse_math(False)
        text.set_text(word)
