"""Base parameters: the combinations of inertial parameters that joint torques depend on.

    tau = Y(q, v, a) pi + rotors a,     pi = [m, m c, Ixx Ixy Ixz Iyy Iyz Izz] per body

pi is about the origin of the link, in link axes. With Y = Y_b K for the independent columns Y_b of
Y, torques depend only on the base parameters K pi. They are found from Y at random motions, which
give the rank with probability one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_list, frozen
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.functions.arrays.array_dispatch import array_module, convert_like
from psiphi.model.components import entry_names
from psiphi.model.model import Model
from psiphi.model.parameters.free_parameters import INERTIA, standard_parameters

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot

JOINT_PARAMETERS = ("armature", "damping", "friction")
# relative to the longest column: a smaller remainder means that a column depends on the others
DEPENDENT_COLUMN = 1e-10
ZERO_COEFFICIENT = 1e-10  # relative to the largest coefficient of a row


def model_parameters(model: Model) -> np.ndarray:
    """pi of all bodies, (10 bodies,)."""
    return frozen(
        np.concatenate([np.zeros(0), *(standard_parameters(body) for body in model.bodies)])
    )


def parameter_names(model: Model, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """ "forearm.m", "forearm.mx", ..., then "elbow.damping" etc."""
    of_bodies = (f"{body.name}.{group}" for body in model.bodies for group in INERTIA)
    of_joints = (f"{name}.{group}" for group in more for name in entry_names(model.joints, "v"))
    return (*of_bodies, *of_joints)


def diagonal_columns(groups: tuple[str, ...], v: AnyArray, a: AnyArray) -> list[Any]:
    """The columns of armature, damping and friction: a, v and sign v on the diagonal."""
    diagonal = {
        "armature": lambda: a,
        "damping": lambda: v,
        "friction": lambda: array_module(v).sign(v),
    }
    entries = [diagonal[group]() for group in groups]
    return [x[..., None] * convert_like(x, np.eye(x.shape[-1])) for x in entries]


def check_groups(more: str | Iterable[str]) -> tuple[str, ...]:
    """`more` as a tuple: some of "armature", "damping", "friction"."""
    groups = (
        (more,)
        if isinstance(more, str)
        else tuple(as_list("more", more, f"name some of {', '.join(JOINT_PARAMETERS)}"))
    )
    for group in groups:
        if not isinstance(group, str) or group not in JOINT_PARAMETERS:
            raise StateError(
                f"the regressor has no columns of {shown(group)}", nearest(group, JOINT_PARAMETERS)
            )
    if len(set(groups)) < len(groups):
        raise StateError(
            f"more is {shown(more)}", f"name some of {', '.join(JOINT_PARAMETERS)}, each once"
        )
    return groups


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations of parameters that torques depend on.

    `values` = `matrix` @ parameters (rank,), and tau = Y[..., columns] @ values. `names` are the
    names of all parameters, `columns` the indices of the independent columns of Y. `gap` shows how
    well the rank is determined: the largest remainder of a dependent column and the smallest of an
    independent one, relative to the longest column.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    matrix: np.ndarray
    values: np.ndarray
    gap: tuple[float, float]

    @property
    def rank(self) -> int:
        """The number of base parameters."""
        return len(self.columns)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Parameters that no torque depends on."""
        return tuple(
            name for name, column in zip(self.names, self.matrix.T, strict=True) if not column.any()
        )

    @property
    def combinations(self) -> tuple[str, ...]:
        """The combinations as text: "forearm.Izz + 0.0484 wrist.m"."""
        return tuple(" ".join(self._terms(row)) for row in self.matrix)

    def _terms(self, row: np.ndarray) -> list[str]:
        lead = int(np.flatnonzero(row == 1.0)[0])
        rest = [(value, self.names[i]) for i, value in enumerate(row) if value and i != lead]
        return [
            self.names[lead],
            *(
                f"{'-' if value < 0 else '+'} {_format_factor(abs(value))}{name}"
                for value, name in rest
            ),
        ]

    def __repr__(self) -> str:
        return f"<BaseParameters: {self.rank} of {len(self.names)}>"


def _format_factor(value: float) -> str:
    number = f"{value:.6g}"
    return "" if number == "1" else f"{number} "


def base_parameters(robot: Robot, more: str | Sequence[str] = (), seed: int = 0) -> BaseParameters:
    """The base parameters, from Y at random motions; nothing is compiled."""
    if robot.freed is not None:
        raise StateError(
            f"base_parameters: {robot.name} has free parameters", "use the robot before `free`"
        )
    if not robot.nv:
        raise StateError(
            f"base_parameters: {robot.name} has no moving joint",
            'pp.load(..., base="free") makes its base free',
        )
    groups, rng = check_groups(more), np.random.default_rng(seed)
    names = parameter_names(robot, groups)
    q, v, a = random_motions(robot, rng, 2 + 2 * len(names) // max(1, robot.nv))
    source = robot.unbound_function("regressor").source
    (Y,) = interpret(source.program, source.tree, q, v, a)
    Y = np.concatenate([Y, *diagonal_columns(groups, v, a)], axis=-1).reshape(-1, len(names))
    return base_from_rows(names, Y, all_parameters(robot, groups))


def all_parameters(robot: Model, groups: tuple[str, ...]) -> np.ndarray:
    """The parameters of the bodies, then those of the joints named in `groups`."""
    return np.concatenate([model_parameters(robot), *(getattr(robot, group) for group in groups)])


def random_motions(
    robot: Model, rng: np.random.Generator, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v and a in general position; embedded loops are closed."""
    v, a = rng.standard_normal((2, count, robot.nv))
    if robot.has_loops:
        return robot.random(rng, (count,)), v, a
    return robot.integrate(robot.neutral(), rng.uniform(-np.pi, np.pi, (count, robot.nv))), v, a


def base_from_rows(names: tuple[str, ...], Y: np.ndarray, pi: np.ndarray) -> BaseParameters:
    """The base parameters of rows Y at random motions; pi are the robot's parameters."""
    columns, matrix, gap = independent_columns(Y)
    return BaseParameters(names, columns, matrix, frozen(matrix @ pi), gap)


def independent_columns(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """(columns, K, gap) with Y = Y[:, columns] K: a column is independent of those before it.

    >>> columns, K, _ = independent_columns(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    >>> columns.tolist(), K.tolist()
    ([0, 2], [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    """
    R: Any = np.linalg.qr(Y, mode="r")
    size = np.linalg.norm(R, axis=0)
    longest = size.max(initial=0.0) or 1.0
    basis, found, remainder = np.zeros((R.shape[0], 0)), [], np.zeros(R.shape[1])
    for i in range(R.shape[1]):
        x = R[:, i] / longest
        for _ in range(2):  # Gram-Schmidt with one reorthogonalisation
            x = x - basis @ (basis.T @ x)
        remainder[i] = np.linalg.norm(x)
        if remainder[i] > DEPENDENT_COLUMN:
            basis = np.column_stack([basis, x / remainder[i]])
            found.append(int(i))
    columns = np.array(found, dtype=int)
    K = (
        np.linalg.lstsq(R[:, columns] / size[columns], R, rcond=None)[0] / size[columns, None]
        if found
        else R[:0]
    )
    threshold = ZERO_COEFFICIENT * np.abs(K).max(axis=1, initial=1.0, keepdims=True)
    K = np.where(np.abs(K) < threshold, 0.0, K)
    K[:, columns] = np.eye(len(columns))
    dependent, independent = np.delete(remainder, columns), remainder[columns]
    gap = float(dependent.max(initial=0.0)), float(independent.min(initial=1.0))
    return columns, frozen(K), gap
