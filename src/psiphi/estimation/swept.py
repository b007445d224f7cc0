"""Stages as the sweeps see them: links with a path, a map and an inertia, as lists of numbers of any size.

A stage that measures nothing measures zero with noise 1: no gain comes of it, and every stage has a map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from psiphi.spatial.dense import apply, transpose
from psiphi.spatial.screws import dot

if TYPE_CHECKING:
    from psiphi.estimation.linear import LinearTree, Stage


@dataclass(frozen=True)
class Symmetric:
    """A symmetric matrix of any size, with the manners of a spatial inertia."""

    rows: list

    @property
    def size(self) -> int:
        return len(self.rows)

    @staticmethod
    def from_entries(entry) -> Symmetric:
        n = 1 + max(r for r, _ in entry)
        return Symmetric([[entry[r, c] for c in range(n)] for r in range(n)])

    def entry(self, r: int, c: int):
        return self.rows[r][c]

    def __matmul__(self, x) -> list:
        return [dot(row, x) for row in self.rows]


@dataclass(frozen=True)
class Transition:
    """phi(p, k) of a linear model, as a displacement: force phi f, motion phi* V."""

    phi: list

    def force(self, f) -> list:
        return apply(self.phi, f)

    def motion(self, V) -> list:
        return apply(transpose(self.phi), V)


@dataclass(frozen=True)
class Ground:
    """The way from a root to nowhere: nothing gets there, nothing comes back."""

    size: int

    def force(self, f) -> list:
        return []

    def motion(self, V) -> list:
        return [0.0] * self.size


class StageLink:
    """One stage. The arrays M, phi, outputs and noise serve the covariances, the lists the data."""

    def __init__(self, index: int, stage: Stage):
        self.index, self.parent = index, stage.parent
        self.size, self.width = len(stage.covariance), len(stage.outputs)
        self.M, self.phi = stage.covariance, stage.transition
        self.outputs = stage.outputs if self.width else np.zeros((1, self.size))
        self.noise = np.asarray(stage.noise) if self.width else np.ones(1)
        way = Ground(self.size) if stage.parent < 0 else Transition(stage.transition.tolist())
        self._H, self._path = self.outputs.tolist(), [way]

    def H(self, q) -> list:
        return self._H

    def path(self, q) -> list:
        return self._path


class Swept:
    """A linear tree with what `psiphi.sweeps` asks of any tree: links, parents, where each one's numbers are."""

    def __init__(self, model: LinearTree):
        self.links = tuple(StageLink(k, stage) for k, stage in enumerate(model.stages))
        self.parent = model.parent
        self.gauge, self.gravity = (None,) * len(self.links), (0.0, 0.0, 0.0)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Outputs of each stage, those that measure nothing included."""
        return tuple(len(link.outputs) for link in self.links)

    @cached_property
    def _ends(self) -> tuple[list[int], list[int]]:
        states, outputs = ([0, *np.cumsum(n).tolist()] for n in ([x.size for x in self.links], self.widths))
        return states, outputs

    @property
    def nx(self) -> int:
        return self._ends[0][-1]

    @property
    def nv(self) -> int:
        return self._ends[1][-1]

    def slices(self, k: int) -> dict[str, slice]:
        states, outputs = self._ends
        return {"q": slice(0, 0), "v": slice(outputs[k], outputs[k + 1]), "x": slice(states[k], states[k + 1])}
