"""The matrix of an expression by blocks, labelled with names of joints, links and frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.plots import empty_figure, save_figure
from psiphi._util.text import nearest, shown
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.letters import FrameLetter, Letter
from psiphi.algebra.expressions.spaces import JOINT, LINK, ONE, Space
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Side = tuple[tuple[str, slice], ...]  # the labelled slices of one side


@dataclass(frozen=True, eq=False)
class Blocks(Mapping):
    """A matrix with labelled blocks, `blocks[row, column]`; iterates over the nonzero ones."""

    matrix: np.ndarray
    row_slices: Side
    col_slices: Side

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.row_slices)

    @property
    def cols(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.col_slices)

    def __getitem__(self, labels: tuple[str, str]) -> np.ndarray:
        row, col = labels
        return self.matrix[_slice_of(self.row_slices, row), _slice_of(self.col_slices, col)]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for row, r in self.row_slices:
            for col, c in self.col_slices:
                if self.matrix[r, c].any():
                    yield row, col

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        width = max((len(name) for name in self.rows), default=0)
        dots = [
            ["■" if self.matrix[r, c].any() else "·" for _, c in self.col_slices]
            for _, r in self.row_slices
        ]
        lines = [
            f"{name:>{width}} {' '.join(line)}" for name, line in zip(self.rows, dots, strict=True)
        ]
        return "\n".join([*lines, f"{'columns':>{width}}: {', '.join(self.cols)}"])


def label_blocks(term: Term, model: Model, matrix: np.ndarray) -> Blocks:
    """The matrix of a term with labelled blocks."""
    rows, cols = terms.spaces(term)
    core = (rows != ONE) + (cols != ONE)
    if matrix.ndim != core:
        raise StateError(
            f"blocks of a batch of shape {matrix.shape[: matrix.ndim - core]}",
            "pass one state at a time",
        )
    at_frames = [
        x for x in terms.letters(term) if isinstance(x, FrameLetter) or x.row.reference_point
    ]
    first, last = _frames(at_frames[:1], True), _frames(at_frames[-1:], False)
    matrix = (
        matrix.reshape([1 if space == ONE else -1 for space in (rows, cols)])
        if core < 2
        else matrix
    )
    return Blocks(
        matrix,
        _side(rows, model, first, matrix.shape[0]),
        _side(cols, model, last, matrix.shape[1]),
    )


def _frames(at_end: list[Letter], rows: bool) -> tuple[str, ...]:
    """The frames of the rows, or columns, of the letter at one end of a term."""
    x = at_end[0] if at_end else None
    if isinstance(x, FrameLetter):
        return x.frames if x.starred == rows else ()
    return (x.row.reference_point,) if x is not None and x.starred != rows else ()


def _side(space: Space, model: Model, frames: tuple[str, ...], count: int) -> Side:
    if space == JOINT:
        return tuple((joint.name, joint.v_slice) for joint in model.joints)
    if space == LINK:
        return tuple((body.name, slice(6 * k, 6 * k + 6)) for k, body in enumerate(model.bodies))
    if space == ONE:
        return (("", slice(0, 1)),)
    names = frames if 6 * len(frames) == count else tuple(f"frame {i}" for i in range(count // 6))
    return tuple((name, slice(6 * i, 6 * i + 6)) for i, name in enumerate(names))


def _slice_of(side: Side, name: str) -> slice:
    for label, where in side:
        if label == name:
            return where
    raise StateError(f"no block {name!r}", nearest(name, [label for label, _ in side]))


def plot(
    blocks: Blocks, title: str, path: str | os.PathLike[str] | None = None, ax: Axes | None = None
) -> Figure:
    """A figure of log10 |entries| with block borders and labels."""
    if ax is None:
        height, width = (
            min(2.5 + 0.22 * len(side), 20.0) for side in (blocks.row_slices, blocks.col_slices)
        )
        ax = empty_figure(width, height).add_subplot()
    elif not hasattr(ax, "imshow"):
        raise StateError(
            f"ax is {shown(ax)}, expected matplotlib axes",
            "leave it out to draw into a new figure",
        )
    size = np.abs(blocks.matrix)
    with np.errstate(divide="ignore"):
        ax.imshow(
            np.where(size > 0, np.log10(size), np.nan), interpolation="nearest", cmap="viridis"
        )
    for side, line, axis in (
        (blocks.row_slices, ax.axhline, ax.yaxis),
        (blocks.col_slices, ax.axvline, ax.xaxis),
    ):
        for _, where in side[1:]:
            line(where.start - 0.5, color="0.8", linewidth=0.5)
        centres = [(where.start + where.stop - 1) / 2 for _, where in side]
        axis.set_ticks(centres, [name for name, _ in side], fontsize="small", parse_math=False)
    ax.tick_params(axis="x", rotation=90)
    ax.set_title(title, parse_math=False)
    return save_figure(cast("Figure", ax.figure), path)
