"""Starting configurations: the row of a random table whose frames are nearest to the goal.

Random starts need 13 steps and solve half of a Panda's poses; the nearest of 256 needs 8 steps and
solves two thirds. A table has 256 rows; each further start of a problem uses another table. The
nearest row is found by a product of two matrices in float32.
"""

from __future__ import annotations

import numpy as np

from psiphi.apps.ik.ik_tasks import Task
from psiphi.robot.robot import Robot

ROWS = 256  # configurations in a table
BLOCK = 64  # problems per matrix product, always: its rounding may depend on its size
SEED = 18
MAX_TABLES = 64  # in memory


class SeedTable:
    """Random values of the coordinates `index` of q; the others as in `base`.

    `ranked` is False if the tasks also depend on coordinates that are fixed: then the nearest row
    is unknown, and starts are random.
    """

    def __init__(
        self,
        robot: Robot,
        tasks: tuple[Task, ...],
        index: np.ndarray,
        base: np.ndarray,
        ranked: bool,
    ):
        self.robot, self.tasks, self.base, self.ranked = robot, tasks, base, ranked
        self.index = index
        self.scale = np.concatenate([task.scale for task in tasks])
        self.tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def table(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Configurations (ROWS, nq), and [x, -|x|^2 / 2] (ROWS, goal + 1), x their scaled goals."""
        if number not in self.tables:
            if len(self.tables) >= MAX_TABLES:
                self.tables.clear()
            q = np.tile(self.base, (ROWS, 1))
            random = self.robot.random(seed=SEED + number, size=ROWS)
            q[:, self.index] = random[:, self.index]
            x = np.concatenate([task.current(self.robot, q) for task in self.tasks], axis=-1)
            x = x * self.scale
            keys = np.concatenate([x, -0.5 * (x * x).sum(axis=-1, keepdims=True)], axis=-1)
            self.tables[number] = q, keys.astype(np.float32)
        return self.tables[number]

    def start(self, goal: np.ndarray, number: int) -> np.ndarray:
        """(B, nq): the row nearest to each goal (B, goal).

        |x - g|^2 / 2 is least where x g - |x|^2 / 2 is greatest.
        """
        if not self.ranked:
            row = self.table(number // ROWS)[0][number % ROWS]
            return np.broadcast_to(row, (len(goal), len(self.base)))
        q, keys = self.table(number)
        blocks = -(-len(goal) // BLOCK)
        g = np.ones((blocks * BLOCK, keys.shape[1]), dtype=np.float32)
        g[: len(goal), :-1] = goal * self.scale
        nearest = [(g[k * BLOCK : (k + 1) * BLOCK] @ keys.T).argmax(axis=1) for k in range(blocks)]
        return q[np.concatenate(nearest)[: len(goal)]]
