"""What a robot's torques tell of its inertia: the parameters, and which combinations of them can be seen at all.

    tau = Y(q, v, a) pi + rotors a,     pi = [m, m c, Ixx Ixy Ixz Iyy Iyz Izz] a body, about its link's origin in link axes

Columns of Y that are combinations of others, in every motion, cannot be told apart: with Y = Y_b K for the independent columns
Y_b, only the base parameters K pi matter. They are found from Y at random motions, which give the rank with probability one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import frozen, several
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.functions.arrays.array_dispatch import constant, mathematics
from psiphi.model.components import names_of_entries
from psiphi.model.model import Model
from psiphi.model.parameters.free_parameters import INERTIA, ten

MORE = ("armature", "damping", "friction")
DEPENDENT = 1e-10  # of the longest column: what is left of a column beside the others, where it depends on them
CLEAN = 1e-10  # of a row's largest coefficient: one that is none


def parameters(model: Model) -> np.ndarray:
    """pi of all bodies, (10 bodies,)."""
    return frozen(np.concatenate([np.zeros(0), *(ten(body) for body in model.bodies)]))


def parameter_names(model: Model, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """ "forearm.m", "forearm.mx", ..., then "elbow.damping" and the like."""
    own = [f"{body.name}.{word}" for body in model.bodies for word in INERTIA]
    return (
        *own,
        *(f"{name}.{word}" for word in more for name in names_of_entries(model.joints, "v")),
    )


def more_columns(words: tuple[str, ...], v: Any, a: Any) -> list[Any]:
    """Columns of rotors, of damping and of dry friction: a, v and sign v on the diagonal."""
    diagonal = {
        "armature": lambda: a,
        "damping": lambda: v,
        "friction": lambda: mathematics(v).sign(v),
    }
    made = [diagonal[word]() for word in words]
    return [x[..., None] * constant(x, np.eye(x.shape[-1])) for x in made]


def checked_words(more: Any) -> tuple[str, ...]:
    """Some of armature, damping, friction."""
    words = (
        (more,)
        if isinstance(more, str)
        else tuple(several("more", more, f"name some of {', '.join(MORE)}"))
    )
    for word in words:
        if not isinstance(word, str) or word not in MORE:
            raise StateError(f"the regressor has no columns of {shown(word)}", nearest(word, MORE))
    if len(set(words)) < len(words):
        raise StateError(f"more is {shown(more)}", f"name some of {', '.join(MORE)}, each once")
    return words


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """What the torques of a robot can tell: `matrix` @ parameters, (rank,); tau = Y[..., columns] @ values.

    `names` are those of all parameters, `columns` the independent ones; `gap` says how clear that is: the largest rest of a
    dependent column, and the smallest of an independent one, both by the longest column.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    matrix: np.ndarray
    values: np.ndarray
    gap: tuple[float, float]

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.columns)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Parameters that no torque depends on."""
        return tuple(
            name for name, column in zip(self.names, self.matrix.T, strict=True) if not column.any()
        )

    @property
    def combinations(self) -> tuple[str, ...]:
        """Each in words: "forearm.Izz + 0.0484 wrist.m"."""
        return tuple(" ".join(self._terms(row)) for row in self.matrix)

    def _terms(self, row: np.ndarray) -> list[str]:
        lead = int(np.flatnonzero(row == 1.0)[0])
        rest = [(value, self.names[i]) for i, value in enumerate(row) if value and i != lead]
        return [
            self.names[lead],
            *(f"{'-' if value < 0 else '+'} {_times(abs(value))}{name}" for value, name in rest),
        ]

    def __repr__(self) -> str:
        return f"<BaseParameters: {self.rank} of {len(self.names)}>"


def _times(value: float) -> str:
    number = f"{value:.6g}"
    return "" if number == "1" else f"{number} "


def base_parameters(robot: Any, more: Any = (), seed: int = 0) -> BaseParameters:
    """From Y at random motions, interpreted: nothing is compiled."""
    if robot.freed is not None:
        raise StateError(
            f"base_parameters: numbers of {robot.name} are inputs", "ask the robot before `free`"
        )
    if not robot.nv:
        raise StateError(
            f"base_parameters: nothing of {robot.name} moves",
            'pp.load(..., base="free") lets it fly',
        )
    words, rng = checked_words(more), np.random.default_rng(seed)
    names = parameter_names(robot, words)
    q, v, a = motions(robot, rng, 2 + 2 * len(names) // max(1, robot.nv))
    source = robot.function("regressor").source
    (Y,) = interpret(source.program, source.tree, q, v, a)
    Y = np.concatenate([Y, *more_columns(words, v, a)], axis=-1).reshape(-1, len(names))
    return base_of(
        names, Y, np.concatenate([parameters(robot), *(getattr(robot, word) for word in words)])
    )


def motions(
    robot: Any, rng: np.random.Generator, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v and a in which nothing is special; of embedded loops, closed ones."""
    v, a = rng.standard_normal((2, count, robot.nv))
    if robot.embedding is not None and robot.embedding.loops:
        return robot.random(rng, (count,)), v, a
    return robot.integrate(robot.neutral(), rng.uniform(-np.pi, np.pi, (count, robot.nv))), v, a


def base_of(names: tuple[str, ...], Y: np.ndarray, own: np.ndarray) -> BaseParameters:
    """The base parameters of rows Y at random motions; `own` are the robot's parameters."""
    columns, matrix, gap = independent(Y)
    return BaseParameters(names, columns, matrix, frozen(matrix @ own), gap)


def independent(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """(columns, K, gap) with Y = Y[:, columns] K: each column that the ones before it cannot make, and how the others are made.

    >>> columns, K, _ = independent(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    >>> columns.tolist(), K.tolist()
    ([0, 2], [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    """
    R: Any = np.linalg.qr(Y, mode="r")
    size = np.linalg.norm(R, axis=0)
    longest = size.max(initial=0.0) or 1.0
    basis, columns, left = np.zeros((R.shape[0], 0)), [], np.zeros(R.shape[1])
    for i in range(R.shape[1]):
        x = R[:, i] / longest
        for _ in range(2):  # twice is enough
            x = x - basis @ (basis.T @ x)
        left[i] = np.linalg.norm(x)
        if left[i] > DEPENDENT:
            basis = np.column_stack([basis, x / left[i]])
            columns.append(int(i))
    picked = np.array(columns, dtype=int)
    K = (
        np.linalg.lstsq(R[:, picked] / size[picked], R, rcond=None)[0] / size[picked, None]
        if columns
        else R[:0]
    )
    K = np.where(np.abs(K) < CLEAN * np.abs(K).max(axis=1, initial=1.0, keepdims=True), 0.0, K)
    K[:, picked] = np.eye(len(picked))
    gap = float(np.delete(left, picked).max(initial=0.0)), float(left[picked].min(initial=1.0))
    return picked, frozen(K), gap
