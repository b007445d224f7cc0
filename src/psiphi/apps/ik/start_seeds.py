"""Where to start: of some hundred configurations, the one whose frames are nearest to what is wanted.

Random starts need 13 steps and reach half of a Panda's poses; the nearest of 256 needs 8 and reaches two thirds. A shelf is
256 configurations; every further start of a problem asks another shelf. What is near is a product of two matrices in float32.
"""

from __future__ import annotations

import numpy as np

from psiphi.apps.ik.ik_tasks import Task
from psiphi.robot.robot import Robot

SHELF = 256
ROWS = 64  # problems at a time, always: how a product of matrices is rounded may depend on its size
SEED = 18
KEPT = 64  # shelves


class SeedTable:
    """Random configurations of the coordinates `where` of q, the others as in `base`.

    `tells` says whether these are all that the tasks feel; else what is near is not known, and starts are only random."""

    def __init__(
        self,
        robot: Robot,
        tasks: tuple[Task, ...],
        where: np.ndarray,
        base: np.ndarray,
        tells: bool,
    ):
        self.robot, self.tasks, self.where, self.base, self.tells = robot, tasks, where, base, tells
        self.scale = np.concatenate([task.scale for task in tasks])
        self.shelves: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def shelf(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Configurations (SHELF, nq), and what stands on their backs: (SHELF, goal + 1)."""
        if number not in self.shelves:
            if len(self.shelves) >= KEPT:
                self.shelves.clear()
            q = np.tile(self.base, (SHELF, 1))
            q[:, self.where] = self.robot.random(seed=SEED + number, size=SHELF)[:, self.where]
            now = (
                np.concatenate([task.now(self.robot, q) for task in self.tasks], axis=-1)
                * self.scale
            )
            back = np.concatenate([now, -0.5 * (now * now).sum(axis=-1, keepdims=True)], axis=-1)
            self.shelves[number] = q, back.astype(np.float32)
        return self.shelves[number]

    def start(self, goal: np.ndarray, number: int) -> np.ndarray:
        """(B, nq): for every goal (B, goal) the nearest of a shelf; |x - g|^2 / 2 is least where x g - |x|^2 / 2 is most."""
        if not self.tells:
            return np.broadcast_to(
                self.shelf(number // SHELF)[0][number % SHELF], (len(goal), len(self.base))
            )
        q, back = self.shelf(number)
        blocks = -(-len(goal) // ROWS)
        wanted = np.ones((blocks * ROWS, back.shape[1]), dtype=np.float32)
        wanted[: len(goal), :-1] = goal * self.scale
        near = [(wanted[k * ROWS : (k + 1) * ROWS] @ back.T).argmax(axis=1) for k in range(blocks)]
        return q[np.concatenate(near)[: len(goal)]]
