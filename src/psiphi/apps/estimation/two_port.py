"""Two-ports: a sub-chain as it is seen from its two ends. S2 section 12 asked for fast gains; this is what is fast.

    Q     what it hands inward as articulated inertia, its tip free
    psi   how it transmits forces from its tip inward
    Om    the compliance of its tip, its base held

Outboard 1 on inboard 2, with X = (I + Q1 Om2)^-1:   Q = Q2 + psi2 X Q1 psi2*,  psi = psi2 X psi1,  Om = Om1 + psi1* Om2 X psi1.
Joining is associative: a chain of N links is one in depth log N, equal links in log N joins, a load at the tip one 6 x 6 step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

MOST = 2**40  # equal links


@dataclass(frozen=True, eq=False)
class TwoPort:
    """Q, psi and Om, each (..., 6, 6): forces at the tip's body axes in, forces at the axes of the body that carries it out.

    >>> import numpy as np, psiphi as pp
    >>> pp.estimation.TwoPort(np.eye(6), np.eye(6), np.zeros((6, 6)))
    <two-port>
    """

    Q: np.ndarray
    psi: np.ndarray
    Om: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Its batch axes; in `two_ports` the last one counts links."""
        return self.Q.shape[:-2]

    def __getitem__(self, at: Any) -> TwoPort:
        """Of the batch axes: ports[..., :3] are the three outermost links."""
        try:
            return TwoPort(
                *(
                    np.moveaxis(
                        np.moveaxis(x, (-2, -1), (0, 1))[(slice(None), slice(None), *_axes(at))],
                        (0, 1),
                        (-2, -1),
                    )
                    for x in self._all
                )
            )
        except (IndexError, TypeError, ValueError) as error:
            raise StateError(
                f"two-ports of shape {self.shape} at {shown(at)}: {error}", "index their batch axes"
            ) from error

    def on(self, inner: TwoPort) -> TwoPort:
        """This sub-chain, carried by another.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports[0].on(ports[1])
        <two-port>
        """
        if not isinstance(inner, TwoPort):
            raise StateError(f"a two-port on {shown(inner)}", "join two-ports: outer.on(inner)")
        try:
            np.broadcast_shapes(self.shape, inner.shape)
        except ValueError:
            raise StateError(
                f"two-ports of shapes {self.shape} and {inner.shape}", "make them equal or 1"
            ) from None
        T = inner.psi @ np.linalg.inv(np.eye(6) + self.Q @ inner.Om)
        back = np.swapaxes(self.psi, -1, -2)
        Om = self.Om + back @ inner.Om @ np.linalg.solve(np.eye(6) + self.Q @ inner.Om, self.psi)
        return TwoPort(
            _even(inner.Q + T @ self.Q @ np.swapaxes(inner.psi, -1, -2)), T @ self.psi, _even(Om)
        )

    def joined(self) -> TwoPort:
        """All along the last axis, outermost first, as one: neighbours join two by two, log2 N times.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports.joined()
        <two-port>
        """
        if not self.shape or not self.shape[-1]:
            raise StateError(
                f"two-ports of shape {self.shape}: no axis of links", "give those of `two_ports`"
            )
        ports = self
        while ports.shape[-1] > 1:
            even = ports.shape[-1] // 2 * 2
            pairs = ports[..., 0:even:2].on(ports[..., 1:even:2])
            rest = ports[..., even:]
            ports = TwoPort(
                *(np.concatenate(both, axis=-3) for both in zip(pairs._all, rest._all, strict=True))
            )
        return ports[..., 0]

    def repeated(self, n: int) -> TwoPort:
        """n of it, one on the other: log2 n joins.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports[0].repeated(1024)
        <two-port>
        """
        n = whole_number("n", n)
        if not 1 <= n <= MOST:
            raise StateError(f"n is {n}, expected 1 to 2**40", "give how many")
        half = self.repeated(n // 2) if n > 1 else self
        twice = half.on(half) if n > 1 else self
        return twice.on(self) if n > 1 and n % 2 else twice

    def felt(self, load: Numbers) -> np.ndarray:
        """What is handed inward with a body of inertia `load` (..., 6, 6) at the tip: Q + psi S (I + Om S)^-1 psi*.

        >>> import numpy as np, psiphi as pp
        >>> ports = pp.estimation.two_ports(pp.load("ur5"), np.ones(6))
        >>> ports.joined().felt(np.eye(6)).shape
        (6, 6)
        """
        S = real_array(
            "load", load, (6, 6), "give a spatial inertia (6, 6) in the axes of the outermost link"
        )
        if not np.isfinite(S).all() or np.abs(S - np.swapaxes(S, -1, -2)).max(
            initial=0.0
        ) > 1e-9 * np.abs(S).max(initial=1.0):
            raise StateError(
                "load is no inertia: not finite, or not symmetric", "give [[I, m c~], [-m c~, m]]"
            )
        with np.errstate(all="ignore"):
            added = (
                self.psi
                @ S
                @ np.linalg.inv(np.eye(6) + self.Om @ S)
                @ np.swapaxes(self.psi, -1, -2)
            )
        return _even(self.Q + added)

    @property
    def _all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.Q, self.psi, self.Om

    def __repr__(self) -> str:
        return f"<two-port{f's of shape {self.shape}' if self.shape else ''}>"


def _even(x: np.ndarray) -> np.ndarray:
    return 0.5 * (x + np.swapaxes(x, -1, -2))


def _axes(at: Any) -> tuple:
    return at if isinstance(at, tuple) else (at,)


def two_ports(robot: Robot, q: Numbers) -> TwoPort:
    """Every link of a chain at q (..., nq) as a two-port, (..., N), outermost first: (phi M+ phi*, phi tau_bar, H* D^-1 H).

    >>> import numpy as np, psiphi as pp
    >>> arm = pp.load("ur5")
    >>> whole = pp.estimation.two_ports(arm, arm.random(seed=0)).joined()
    >>> whole.felt(np.diag([0.01, 0.01, 0.01, 2.0, 2.0, 2.0])).shape
    (6, 6)
    """
    check_robot("two_ports", robot, Robot)
    if (
        not robot.joints
        or not is_chain(robot)
        or sum(parent == WORLD for parent in robot.parent) != 1
    ):
        raise StateError(
            f"two_ports: {robot.name} is no chain",
            "take a part of it: robot.subtree(...), robot.lock(...)",
        )
    if robot.freed is not None:
        raise StateError(
            f"two_ports: numbers of {robot.name} are inputs", "take the robot before `free`"
        )
    q = robot.state_array("q", q, robot.nq)
    lead, links = q.shape[:-1], []
    for unit in reversed(DenseLetters(robot, q, np.zeros(robot.nv)).units):
        D, G, M_plus = articulate_joint(np.broadcast_to(unit.M, (*lead, 6, 6)), unit.S, unit.rotor)
        back = np.swapaxes(unit.S, -1, -2)
        through = unit.phi @ (np.eye(6) - G @ back)
        ends = (
            unit.phi @ M_plus @ np.swapaxes(unit.phi, -1, -2),
            through,
            unit.S @ np.linalg.inv(D) @ back,
        )
        links.append([np.broadcast_to(x, (*lead, 6, 6)) for x in ends])
    return TwoPort(*(np.stack(parts, axis=-3) for parts in zip(*links, strict=True)))
