"""What was identified: numbers with deviations, what the data do not tell, a report, a picture, a robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.plots import blank, written
from psiphi.model.parameters import inertial_parameters
from psiphi.robot.identification.base_parameters import BaseParameters
from psiphi.robot.identification.measurements import MeasuredRows, rms

VAGUE = 0.5  # of its size: a deviation from which on a base parameter is hardly known
ROWS = 12  # of a table in the report


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """What measured motions tell of a robot.

    `values` are the base parameters by least squares, `deviations` their standard deviations (infinite where the data do not
    tell); `parameters` all numbers, those of bodies where that was asked for; `sigma` the noise of each row.
    """

    nominal: Any
    data: MeasuredRows
    values: np.ndarray
    deviations: np.ndarray
    condition: float  # of the weighted regressor, its columns scaled: the excitation of the motion
    sigma: np.ndarray
    parameters: np.ndarray
    consistent: bool

    @property
    def base(self) -> BaseParameters:
        """The combinations that can be told, with names; their `values` are those of the robot before."""
        return self.data.base

    @property
    def names(self) -> tuple[str, ...]:
        """Of `parameters`."""
        return self.base.names

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Base parameters whose deviation is infinite or above half their size, by the parameter that stands first."""
        vague = ~(self.deviations < VAGUE * np.maximum(np.abs(self.values), 1e-300))
        return tuple(self.names[c] for c in self.base.columns[vague])

    @cached_property
    def residuals(self) -> np.ndarray:
        """(samples, rows): measured less what `parameters` say."""
        return self.data.y - self.data.Y @ self.parameters

    @property
    def rms(self) -> dict[str, float]:
        """The residuals' root mean square, by joint (and component of a wrench)."""
        return dict(zip(self.data.rows, rms(self.residuals).tolist(), strict=True))

    @property
    def shift(self) -> float:
        """How far the parameters' own base values are from least squares at most, in standard deviations."""
        with np.errstate(all="ignore"):
            away = np.abs(self.base.matrix @ self.parameters - self.values) / self.deviations
        return float(np.nan_to_num(away).max(initial=0.0))

    @cached_property
    def robot(self) -> Any:
        """The robot with these numbers."""
        if not self.consistent:
            raise StateError(
                "identified without consistent=True: no body may have such numbers",
                "leave consistent out",
            )
        more = {"armature", "damping"} & set(self.data.words)
        light = self.nominal.free("inertia", *[word for word in self.data.words if word in more])
        n = 10 * len(self.nominal.bodies)
        parts = [self.parameters[:n]]
        for i, word in enumerate(self.data.words):
            parts += [self._of_joints(i)] if word in more else []
        found = light.baked(np.concatenate(parts))
        if "friction" not in self.data.words:
            return found
        return inertial_parameters.rubbing(
            found, self._of_joints(self.data.words.index("friction"))
        )

    def _of_joints(self, i: int) -> np.ndarray:
        start = 10 * len(self.nominal.bodies) + i * self.nominal.nv
        return self.parameters[start : start + self.nominal.nv]

    def report(self) -> str:
        """The findings, as text."""
        base, samples = self.base, len(self.data.y)
        lines = [
            f"{self.nominal.name}: {base.rank} base parameters of {len(self.names)}, from {samples} samples",
            f"condition of the data {self.condition:.3g}"
            + (
                f"; the nearest bodies are {self.shift:.2g} deviations from least squares"
                if self.consistent
                else ""
            ),
            "",
            f"{'row':28} {'rms measured':>14} {'rms left':>12} {'share':>8}",
        ]
        size = rms(self.data.y)
        for (row, left), measured in zip(self.rms.items(), size, strict=True):
            lines.append(
                f"{row[:28]:28} {measured:14.4g} {left:12.3g} {100 * left / max(measured, 1e-300):7.2f}%"
            )
        order = np.argsort(-self.deviations / np.maximum(np.abs(self.values), 1e-300))
        lines += [
            "",
            f"{'base parameter, least known first':34} {'value':>12} {'deviation':>12} {'before':>12}",
        ]
        for i in order[:ROWS]:
            name = self.names[base.columns[i]] + (
                " + ..." if np.count_nonzero(base.matrix[i]) > 1 else ""
            )
            lines.append(
                f"{name[:34]:34} {self.values[i]:12.4g} {self.deviations[i]:12.2g} {base.values[i]:12.4g}"
            )
        if base.rank > ROWS:
            lines.append(f"... and {base.rank - ROWS} that are better known")
        told = ", ".join(self.unidentified) or "none"
        lines += [
            "",
            f"hardly told by these data: {told}",
            f"told by no data: {', '.join(base.unseen) or 'none'}",
        ]
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """MeasuredRows and explained, row by row; matplotlib's figure, written to `path` where one is given."""
        rows = len(self.data.rows)
        figure = blank(8.0, 1.4 * rows + 1.0)
        axes = figure.subplots(rows, 1, sharex=True, squeeze=False)
        said = self.data.Y @ self.parameters
        for i, (row, ax) in enumerate(zip(self.data.rows, axes[:, 0], strict=True)):
            ax.plot(self.data.y[:, i], lw=1.0, label="measured")
            ax.plot(said[:, i], lw=1.0, label="explained")
            ax.plot(self.residuals[:, i], lw=0.8, label="left")
            ax.set_ylabel(row, fontsize=7)
        axes[0, 0].legend(fontsize=7, ncol=3)
        axes[-1, 0].set_xlabel("sample")
        return written(figure, path)

    def __repr__(self) -> str:
        return f"<Identification of {self.nominal.name!r}: {self.base.rank} base parameters>"
