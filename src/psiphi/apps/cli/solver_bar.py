"""A progress bar for solvers: iterations and costs."""

from __future__ import annotations

import numpy as np

from psiphi.simulation.simulate.progress_bar import ProgressBar


class SolverBar(ProgressBar):
    """Shows the iteration and the cost, or the median of the costs of a batch."""

    def show(self, iteration: int, costs: np.ndarray) -> None:
        """Show the state after an iteration."""
        self(float(iteration), None, np.asarray(costs))

    def _line(self, part: float, t: float, v: np.ndarray | None) -> str:
        costs = np.zeros(0) if v is None else v[np.isfinite(v)]
        cost = f"{np.median(costs):.6g}" if costs.size else "?"
        median = " (median)" if costs.size > 1 else ""
        return f"{self._bar(part)}  iteration {t:.0f}  cost {cost}{median}"
