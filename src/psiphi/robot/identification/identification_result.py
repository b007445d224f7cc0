"""`Identification`: the result of `pp.identify`, with a report, a plot and the identified robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.plots import empty_figure, save_figure
from psiphi.model.parameters import inertial_parameters
from psiphi.robot.identification.base_parameters import BaseParameters
from psiphi.robot.identification.measurements import MeasuredRows, rms
from psiphi.robot.robot import Robot

RELATIVE_DEVIATION = 0.5  # a base parameter with a larger one counts as unidentified
ROWS = 12  # rows of a table in the report


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """Parameters of a robot identified from measured motions.

    `values` are the base parameters by least squares, and `deviations` their standard deviations,
    infinite where the data do not determine them. `parameters` are all parameters, physically
    consistent if `consistent`. `sigma` is the noise of each row.
    """

    nominal: Robot
    data: MeasuredRows
    values: np.ndarray
    deviations: np.ndarray
    condition: float  # of the weighted regressor with scaled columns: the excitation of the motion
    sigma: np.ndarray
    parameters: np.ndarray
    consistent: bool

    @property
    def base(self) -> BaseParameters:
        """The identifiable combinations; their `values` are those of the robot before."""
        return self.data.base

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `parameters`."""
        return self.base.names

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Base parameters whose deviation is infinite or above half their value.

        Each is named by its first parameter.
        """
        vague = ~(self.deviations < RELATIVE_DEVIATION * np.maximum(np.abs(self.values), 1e-300))
        return tuple(self.names[c] for c in self.base.columns[vague])

    @cached_property
    def residuals(self) -> np.ndarray:
        """(samples, rows): measured minus predicted by `parameters`."""
        return self.data.y - self.data.Y @ self.parameters

    @property
    def rms(self) -> dict[str, float]:
        """The root mean square of the residuals, by joint or wrench component."""
        return dict(zip(self.data.rows, rms(self.residuals).tolist(), strict=True))

    @property
    def shift(self) -> float:
        """The largest distance of consistent parameters from least squares.

        In standard deviations of the base parameters.
        """
        with np.errstate(all="ignore"):
            distance = np.abs(self.base.matrix @ self.parameters - self.values) / self.deviations
        return float(np.nan_to_num(distance).max(initial=0.0))

    @cached_property
    def robot(self) -> Robot:
        """The robot with the identified parameters."""
        if not self.consistent:
            raise StateError(
                "parameters identified without consistent=True may be physically inconsistent",
                "leave consistent out",
            )
        groups = self.data.groups
        free_groups = [group for group in groups if group in ("armature", "damping")]
        free = self.nominal.free("inertia", *free_groups)
        of_bodies = self.parameters[: 10 * len(self.nominal.bodies)]
        of_joints = (self._joint_values(groups.index(group)) for group in free_groups)
        robot = free.baked(np.concatenate([of_bodies, *of_joints]))
        if "friction" not in groups:
            return robot
        friction = self._joint_values(groups.index("friction"))
        return inertial_parameters.with_friction(robot, friction)

    def _joint_values(self, i: int) -> np.ndarray:
        """The parameters of the i-th group in `data.groups`."""
        start = 10 * len(self.nominal.bodies) + i * self.nominal.nv
        return self.parameters[start : start + self.nominal.nv]

    def report(self) -> str:
        """The result as text."""
        base, samples = self.base, len(self.data.y)
        condition = f"condition of the data {self.condition:.3g}"
        if self.consistent:
            condition += (
                f"; the consistent parameters are {self.shift:.2g} deviations from least squares"
            )
        lines = [
            f"{self.nominal.name}: {base.rank} base parameters of {len(self.names)}, "
            f"from {samples} samples",
            condition,
            "",
            f"{'row':28} {'rms measured':>14} {'rms residual':>12} {'share':>8}",
        ]
        for (row, residual), size in zip(self.rms.items(), rms(self.data.y), strict=True):
            share = 100 * residual / max(size, 1e-300)
            lines.append(f"{row[:28]:28} {size:14.4g} {residual:12.3g} {share:7.2f}%")
        order = np.argsort(-self.deviations / np.maximum(np.abs(self.values), 1e-300))
        title = "base parameter, least certain first"
        lines += ["", f"{title:35} {'value':>12} {'deviation':>12} {'before':>12}"]
        for i in order[:ROWS]:
            more = " + ..." if np.count_nonzero(base.matrix[i]) > 1 else ""
            name = f"{self.names[base.columns[i]]}{more}"[:35]
            value, deviation = self.values[i], self.deviations[i]
            lines.append(f"{name:35} {value:12.4g} {deviation:12.2g} {base.values[i]:12.4g}")
        if base.rank > ROWS:
            lines.append(f"... and {base.rank - ROWS} that are more certain")
        lines += [
            "",
            f"not identified by these data: {', '.join(self.unidentified) or 'none'}",
            f"not identifiable by any data: {', '.join(base.unseen) or 'none'}",
        ]
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of measured, predicted and residual rows; saved to `path`, if any."""
        rows = len(self.data.rows)
        figure = empty_figure(8.0, 1.4 * rows + 1.0)
        axes = figure.subplots(rows, 1, sharex=True, squeeze=False)
        predicted = self.data.Y @ self.parameters
        for i, (row, ax) in enumerate(zip(self.data.rows, axes[:, 0], strict=True)):
            ax.plot(self.data.y[:, i], lw=1.0, label="measured")
            ax.plot(predicted[:, i], lw=1.0, label="predicted")
            ax.plot(self.residuals[:, i], lw=0.8, label="residual")
            ax.set_ylabel(row, fontsize=7)
        axes[0, 0].legend(fontsize=7, ncol=3)
        axes[-1, 0].set_xlabel("sample")
        return save_figure(figure, path)

    def __repr__(self) -> str:
        return f"<Identification of {self.nominal.name!r}: {self.base.rank} base parameters>"
