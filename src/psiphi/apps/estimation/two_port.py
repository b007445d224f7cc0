"""Two-ports: a sub-chain described by its two ends. Fast gains, in the sense of S2 section 12.

    Q     articulated inertia of the sub-chain at its base, tip free
    psi   transmission of forces from its tip to its base
    Om    compliance of its tip, base fixed

Joining port 1 (outboard) to port 2 (inboard), with X = (I + Q1 Om2)^-1:

    Q = Q2 + psi2 X Q1 psi2*,    psi = psi2 X psi1,    Om = Om1 + psi1* Om2 X psi1

Joining is associative. A chain of N links is joined in depth log N, N equal links in log N joins,
and a load at the tip takes one 6 x 6 solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import check_robot, real_array, whole_number
from psiphi.algebra.dense.dense_letters import DenseLetters
from psiphi.algebra.expressions.operators import is_chain
from psiphi.model.body_matrices import articulate_joint
from psiphi.model.model import WORLD
from psiphi.robot.robot import Robot

MAX_COPIES = 2**40
OneIndex: TypeAlias = int | slice | EllipsisType | np.ndarray | None
Index: TypeAlias = OneIndex | tuple[OneIndex, ...]


@dataclass(frozen=True, eq=False)
class TwoPort:
    """Q, psi and Om, each (..., 6, 6).

    The tip is in the axes of the outermost body, the base in those of the body that carries it.

    >>> import numpy as np, psiphi as pp
    >>> pp.estimation.TwoPort(np.eye(6), np.eye(6), np.zeros((6, 6)))
    <two-port>
    """

    Q: np.ndarray
    psi: np.ndarray
    Om: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch axes; the last one counts links in the result of `two_ports`."""
        return self.Q.shape[:-2]

    @property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Q, psi, Om)."""
        return self.Q, self.psi, self.Om

    def __getitem__(self, index: Index) -> TwoPort:
        """Select from the batch axes: ports[..., :3] are the three outermost links."""
        key = (slice(None), slice(None), *(index if isinstance(index, tuple) else (index,)))
        try:
            return TwoPort(
                *(
                    np.moveaxis(np.moveaxis(x, (-2, -1), (0, 1))[key], (0, 1), (-2, -1))
                    for x in self.matrices
                )
            )
        except (IndexError, TypeError, ValueError) as error:
            raise StateError(
                f"two-ports of shape {self.shape} at {shown(index)}: {error}",
                "index their batch axes",
            ) from error

    def on(self, inner: TwoPort) -> TwoPort:
        """This sub-chain, carried by `inner`, as one two-port.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports[0].on(ports[1])
        <two-port>
        """
        if not isinstance(inner, TwoPort):
            raise StateError(
                f"inner is {shown(inner)}, expected a two-port", "join two-ports: outer.on(inner)"
            )
        try:
            np.broadcast_shapes(self.shape, inner.shape)
        except ValueError:
            raise StateError(
                f"two-ports of shapes {self.shape} and {inner.shape} do not broadcast",
                "make their sizes equal or 1",
            ) from None
        X_inv = np.eye(6) + self.Q @ inner.Om
        psi_X = inner.psi @ np.linalg.inv(X_inv)
        Q = inner.Q + psi_X @ self.Q @ np.swapaxes(inner.psi, -1, -2)
        Om = self.Om + np.swapaxes(self.psi, -1, -2) @ inner.Om @ np.linalg.solve(X_inv, self.psi)
        return TwoPort(_symmetrized(Q), psi_X @ self.psi, _symmetrized(Om))

    def joined(self) -> TwoPort:
        """All along the last axis, outermost first, as one: neighbours are joined log2 N times.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports.joined()
        <two-port>
        """
        if not self.shape or not self.shape[-1]:
            raise StateError(
                f"two-ports of shape {self.shape} have no axis of links, or an empty one",
                "give the result of `two_ports`",
            )
        ports = self
        while ports.shape[-1] > 1:
            even = ports.shape[-1] // 2 * 2
            pairs = ports[..., 0:even:2].on(ports[..., 1:even:2])
            rest = ports[..., even:]
            both = zip(pairs.matrices, rest.matrices, strict=True)
            ports = TwoPort(*(np.concatenate(x, axis=-3) for x in both))
        return ports[..., 0]

    def repeated(self, n: int) -> TwoPort:
        """n copies in a chain, as one: log2 n joins.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports[0].repeated(1024)
        <two-port>
        """
        n = whole_number("n", n)
        if not 1 <= n <= MAX_COPIES:
            raise StateError(f"n is {n}, expected 1 to 2**40", "give the number of copies")
        half = self.repeated(n // 2) if n > 1 else self
        twice = half.on(half) if n > 1 else self
        return twice.on(self) if n > 1 and n % 2 else twice

    def felt(self, load: Numbers) -> np.ndarray:
        """The articulated inertia at the base with a body of inertia `load` (..., 6, 6) at the tip.

        Q + psi S (I + Om S)^-1 psi*, S the load.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports.joined().felt(np.eye(6)).shape
        (6, 6)
        """
        remedy = "give a spatial inertia (6, 6) in the axes of the outermost link"
        S = real_array("load", load, (6, 6), remedy)
        asymmetry = np.abs(S - np.swapaxes(S, -1, -2)).max(initial=0.0)
        if not np.isfinite(S).all() or asymmetry > 1e-9 * np.abs(S).max(initial=1.0):
            raise StateError(
                "load is not an inertia: not finite, or not symmetric",
                "give [[I, m c~], [-m c~, m]]",
            )
        with np.errstate(all="ignore"):
            inverse = np.linalg.inv(np.eye(6) + self.Om @ S)
            added = self.psi @ S @ inverse @ np.swapaxes(self.psi, -1, -2)
        return _symmetrized(self.Q + added)

    def __repr__(self) -> str:
        return f"<two-port{f's of shape {self.shape}' if self.shape else ''}>"


def _symmetrized(x: np.ndarray) -> np.ndarray:
    return 0.5 * (x + np.swapaxes(x, -1, -2))


def two_ports(robot: Robot, q: Numbers) -> TwoPort:
    """The links of a chain at q (..., nq) as two-ports (..., N), outermost first.

    (Q, psi, Om) of a link is (phi M+ phi*, phi tau_bar, H* D^-1 H).

    >>> import numpy as np, psiphi as pp
    >>> arm = pp.load("ur5")
    >>> whole = pp.estimation.two_ports(arm, arm.random(seed=0)).joined()
    >>> whole.felt(np.diag([0.01, 0.01, 0.01, 2.0, 2.0, 2.0])).shape
    (6, 6)
    """
    check_robot("two_ports", robot, Robot)
    roots = sum(parent == WORLD for parent in robot.parent)
    if not robot.joints or not is_chain(robot) or roots != 1:
        raise StateError(
            f"two_ports: {robot.name} is not a chain",
            "take a part of it: robot.subtree(...), robot.lock(...)",
        )
    if robot.freed is not None:
        raise StateError(
            f"two_ports: {robot.name} has free parameters", "use the robot before `free`"
        )
    q = robot.state_array("q", q, robot.nq)
    batch, links = q.shape[:-1], []
    for unit in reversed(DenseLetters(robot, q, np.zeros(robot.nv)).units):
        M = np.broadcast_to(unit.M, (*batch, 6, 6))
        D, G, M_plus = articulate_joint(M, unit.S, unit.rotor)
        H = np.swapaxes(unit.S, -1, -2)
        Q = unit.phi @ M_plus @ np.swapaxes(unit.phi, -1, -2)
        psi = unit.phi @ (np.eye(6) - G @ H)
        Om = unit.S @ np.linalg.inv(D) @ H
        links.append([np.broadcast_to(x, (*batch, 6, 6)) for x in (Q, psi, Om)])
    return TwoPort(*(np.stack(parts, axis=-3) for parts in zip(*links, strict=True)))
