"""The contact points of a robot on a ground, in one step of time.

    v_f = v + h M^-1 (tau - bias),  c = J v_f + G lambda,  G = J M^-1 J*,  v+ = v_f + M^-1 J* lambda

lambda are impulses (N s), c velocities of the contact points (m/s), three rows a contact: normal,
tangent, tangent. J = E J_frame, where E takes the velocity of a frame to that of a point at the
lever l: its row for the direction a is [l x a, a]. Each contact obeys the laws of Signorini and
Coulomb (`cone_solver.py`) with c_n + b in place of c_n:

    gap > 0     b = gap / h: the point may come down to the ground, not below
    gap < 0     b = max(0.2 gap / h, -1 m/s): the depth shrinks by a fifth per step
    impact      b = e c-, if the point would pass the ground and arrives faster than 1 cm/s
    compliant   b = k gap / (h k + d) for gap < 0, and c_n + R lambda_n + b with
                R = 1 / (h (h k + d)): exactly implicit Euler for a spring k and a damper d

The contacts are solved one after the other, in sweeps (block Gauss-Seidel), until none changes.
If restitution e adds energy, lambda . (c_f + c+) > 0, the step is solved again with e = 0.

The rules run on arrays (..., n) and on tapes (`compiled_rollout/contact_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.passes import UNROLL_LIMIT, is_large
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.contact.ground import Ground
from psiphi.model.spatial.branch_free import choose, less, maximum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import add, cross, dot
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.cone_solver import ContactBlock, solve_contact, violation
from psiphi.simulation.control.control_law import Values

CORRECTION = 0.2  # the share of a depth that one step undoes
CORRECTION_SPEED = 1.0  # m/s, at most
IMPACT_SPEED = 0.01  # m/s, above which a contact rebounds
CONVERGENCE = 1e-4  # of the ground's tolerance: the change of a sweep at which the sweeps end
MAX_CONTACTS = 64


class GroundContact:
    """The contact points of `robot` on `ground`, as rules on named values.

    lever (3c), gap, bias (c) and speed (3c): c_f + b
    G (9 c^2), block (6c): the entries of `ContactBlock`
    impulse (3c), slip (c): lambda, and the slip parameter of each contact
    """

    def __init__(self, robot: Robot, ground: Ground):
        points: tuple[ContactPoint, ...] = robot.contact_points
        if not points:
            raise StateError(
                f"contacts is {ground}, but {robot.name} has no contact points",
                'give it shapes: robot.with_contacts({"*_foot": pp.Sphere(0.03)}), or '
                'robot.with_contacts("collision") for those of its file',
            )
        if len(points) > MAX_CONTACTS:
            raise StateError(
                f"{robot.name} has {len(points)} contact points, at most {MAX_CONTACTS} are solved "
                "together",
                "give fewer or simpler shapes, spheres instead of boxes for instance",
            )
        if is_large(robot):
            raise StateError(
                f"{robot.name} has {len(robot.joints)} bodies, and contacts are compiled for "
                f"robots of up to {UNROLL_LIMIT}",
                "lock joints that matter less: robot.lock(...)",
            )
        self.robot, self.ground, self.points = robot, ground, points
        self.frames = tuple(dict.fromkeys(point.frame for point in points))

    @property
    def count(self) -> int:
        """The number of contact points."""
        return len(self.points)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(point.name for point in self.points)

    @property
    def key(self) -> list:
        """What the code depends on."""
        ground = self.ground
        points = [[p.frame, p.center, p.radius, p.axis, p.angle] for p in self.points]
        laws = [ground.is_rigid, ground.rebounds, ground.iterations, ground.tolerance]
        return [points, ground.axes, ground.height, *laws]

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """{name: (..., c)} of the ground's numbers that act."""
        ground = self.ground
        values = {"friction": ground.friction}
        values |= {"restitution": ground.restitution} if ground.rebounds else {}
        if ground.stiffness is not None:
            values |= {"stiffness": ground.stiffness, "damping": ground.damping}
        return {name: self._per_contact(name, x) for name, x in values.items()}

    def _per_contact(self, name: str, value: Any) -> np.ndarray:
        array = np.asarray(value, dtype=float)
        if array.ndim and array.shape[-1] not in (1, self.count):
            raise StateError(
                f"the {name} of the ground has shape {array.shape}, and {self.robot.name} has "
                f"{self.count} contact points",
                f"give one number, (..., 1), or (..., {self.count})",
            )
        return np.broadcast_to(array, (*array.shape[:-1], self.count))

    # -- the rules of a step -----------------------------------------------------------------------

    def approach(
        self,
        poses: np.ndarray,
        velocities: np.ndarray,
        h: np.ndarray,
        velocities_before: np.ndarray | None = None,
        **numbers: np.ndarray,
    ) -> Values:
        """The geometry and the velocities without contact forces; near: 1 if a contact acts.

        `poses` are the 4 x 4 poses of the frames, one after the other; `velocities` their spatial
        velocities in world axes with v_f, `velocities_before` with the v of the start."""
        (step,) = entries(h)
        levers, gaps = self.geometry(poses)
        moving = self._speeds(levers, velocities)
        k = entries(numbers["stiffness"]) if "stiffness" in numbers else [None] * self.count
        d = entries(numbers["damping"]) if "damping" in numbers else [None] * self.count
        bias = [_bias(gap, step, *kd) for gap, *kd in zip(gaps, k, d, strict=True)]
        speed = [x for (n, t0, t1), b in zip(moving, bias, strict=True) for x in (n + b, t0, t1)]
        near: Any = 0.0 * step
        for normal in speed[::3]:
            near = maximum(near, less(normal, 0.0))
        zero = [0.0 * near]
        found = {
            "lever": [x for lever in levers for x in lever],
            "gap": gaps,
            "speed": speed,
            "near": [near],
            "impulse": zero * (3 * self.count),
            "slip": zero * self.count,
            "done": zero,
            "residual": zero * self.count,
            "mode": zero * self.count,
        }
        if velocities_before is not None:
            arriving = [n for n, *_ in self._speeds(levers, velocities_before)]
            rows = zip(gaps, moving, bias, arriving, entries(numbers["restitution"]), strict=True)
            rebound = [_rebound(step, *row) for row in rows]
            found |= {
                "still": speed[::3],
                "free": [n for n, *_ in moving],
                "speed": [
                    x
                    for i, r in enumerate(rebound)
                    for x in (speed[3 * i] + r, *speed[3 * i + 1 : 3 * i + 3])
                ],
                "again": zero,
            }
        return {name: stack_entries(values) for name, values in found.items()}

    @cached_property
    def alone(self) -> tuple[bool, ...]:
        """For each frame whether it has one contact point."""
        return tuple(sum(p.frame == frame for p in self.points) == 1 for frame in self.frames)

    def test_wrenches(self, lever: np.ndarray) -> list[list[Any]]:
        """Wrenches on the frames (6 numbers a frame) that span those of the contacts: the rows of a
        contact that is alone on its frame, else the six unit wrenches of the frame."""
        out, rows = [], self._rows(lever)
        for k, is_alone in enumerate(self.alone):
            units = [[float(i == j) for i in range(6)] for j in range(6)]
            for wrench in [row for at, row in rows if at == k] if is_alone else units:
                out.append([0.0] * (6 * k) + wrench + [0.0] * (6 * (len(self.alone) - k - 1)))
        return out

    def _coordinates(self, lever: np.ndarray) -> list[tuple[int, list[Any]]]:
        """Each row of E by test wrenches: the first of them, and the coefficients from it on."""
        sizes = [3 if is_alone else 6 for is_alone in self.alone]
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        units = [[float(i == j) for i in range(3)] for j in range(3)]
        return [
            (starts[k], units[i % 3] if self.alone[k] else row)
            for i, (k, row) in enumerate(self._rows(lever))
        ]

    def delassus(
        self,
        Y: Sequence[Sequence[Any]],
        lever: np.ndarray,
        h: np.ndarray,
        stiffness: np.ndarray | None = None,
        damping: np.ndarray | None = None,
    ) -> Values:
        """G = E Y* Y E* (+ R), where Y has a row m^-1 J* w for each test wrench w, M = m m*."""
        n, size, rows = self.count, len(Y), self._coordinates(lever)
        omega: list[list[Any]] = [[None] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                omega[i][j] = omega[j][i] = dot(Y[i], Y[j])
        G: list[list[Any]] = [[None] * (3 * n) for _ in range(3 * n)]
        for j, (at, row) in enumerate(rows):
            product = [dot(omega[i][at : at + len(row)], row) for i in range(size)]
            for i, (at, row) in enumerate(rows[: j + 1]):
                G[i][j] = G[j][i] = dot(row, product[at : at + len(row)])
        if stiffness is not None and damping is not None:
            (step,) = entries(h)
            for i, (k, d) in enumerate(zip(entries(stiffness), entries(damping), strict=True)):
                G[3 * i][3 * i] = G[3 * i][3 * i] + 1.0 / (step * (step * k + d))
        blocks = [
            ContactBlock.of([G[3 * i + r][3 * i : 3 * i + 3] for r in range(3)]) for i in range(n)
        ]
        return {
            "G": stack_entries([x for row in G for x in row]),
            "block": stack_entries([x for block in blocks for x in block]),
        }

    def sweep(
        self,
        G: np.ndarray,
        block: np.ndarray,
        speed: np.ndarray,
        friction: np.ndarray,
        impulse: np.ndarray,
        slip: np.ndarray,
        done: np.ndarray,
        still: np.ndarray | None = None,
        free: np.ndarray | None = None,
        again: np.ndarray | None = None,
    ) -> Values:
        """Solve each contact once with the latest impulses of the others, unless `done`."""
        g, b, c, mu = entries(G), entries(block), entries(speed), entries(friction)
        old, x, (is_done,) = entries(impulse), entries(slip), entries(done)
        new, n, change = list(old), 3 * self.count, 0.0
        for i in range(self.count):
            own = slice(3 * i, 3 * i + 3)
            others = [*range(3 * i), *range(3 * i + 3, n)]
            r = c[own]
            for j in others:
                r = [x + g[n * row + j] * new[j] for x, row in zip(r, range(n)[own], strict=True)]
            contact = ContactBlock(*b[6 * i : 6 * i + 6])
            new[own], x[i], error = solve_contact(contact, r, mu[i], x[i])
            step = [(p - q) / contact.inverse for p, q in zip(new[own], old[own], strict=True)]
            change = change + dot(step, step) + error * error
        limit = (CONVERGENCE * self.ground.tolerance) ** 2
        moves = less(limit, change)
        found = {
            "impulse": [choose(is_done, p, q) for p, q in zip(old, new, strict=True)],
            "slip": [choose(is_done, p, q) for p, q in zip(entries(slip), x, strict=True)],
            "done": [1.0 - (1.0 - is_done) * moves],
        }
        if still is not None and free is not None and again is not None:
            restart = self._restart(found, g, c, free, again)
            (repeated,), (ended,) = entries(again), found["done"]
            kept = 1.0 - restart
            found |= {
                "impulse": [kept * p for p in found["impulse"]],
                "slip": [kept * p for p in found["slip"]],
                "done": [ended * kept],
                "again": [maximum(repeated, restart)],
                "speed": [
                    choose(restart, entries(still)[i // 3], p) if i % 3 == 0 else p
                    for i, p in enumerate(c)
                ],
            }
        return {name: stack_entries(values) for name, values in found.items()}

    def _restart(
        self, found: dict[str, list], g: list, c: list, free: np.ndarray, again: np.ndarray
    ) -> Any:
        """1 where the sweeps have ended and restitution has added energy."""
        n, lam = 3 * self.count, found["impulse"]
        before = [entries(free)[i // 3] if i % 3 == 0 else c[i] for i in range(n)]
        after = [before[i] + dot(g[n * i : n * i + n], lam) for i in range(n)]
        energy = dot(lam, add(before, after))
        return found["done"][0] * less(0.0, energy) * (1.0 - entries(again)[0])

    def half_response(
        self, Y: Sequence[Sequence[Any]], lever: np.ndarray, impulse: np.ndarray
    ) -> np.ndarray:
        """m^-1 J* E* lambda, the sum of the rows of Y."""
        weights: list[Any] = [0.0] * len(Y)
        for (at, row), x in zip(self._coordinates(lever), entries(impulse), strict=True):
            for i, e in enumerate(row, at):
                weights[i] = weights[i] + e * x
        columns = zip(*Y, strict=True)
        return stack_entries([dot(weights, column) for column in columns])

    def apply(
        self,
        v: np.ndarray,
        a: np.ndarray,
        G: np.ndarray,
        block: np.ndarray,
        speed: np.ndarray,
        friction: np.ndarray,
        impulse: np.ndarray,
        total: np.ndarray,
    ) -> Values:
        """v+ = v_f + M^-1 J* lambda; for each contact its mode (0 open, 1 sticks, 2 slips), its
        residual, and the sum of the squares of that over the steps."""
        g, c, lam, mu = entries(G), entries(speed), entries(impulse), entries(friction)
        n, residual, modes, b = 3 * self.count, [], [], entries(block)
        still = self.ground.tolerance**2
        for i in range(self.count):
            after = [c[k] + dot(g[n * k : n * k + n], lam) for k in range(3 * i, 3 * i + 3)]
            residual.append(violation(lam[3 * i : 3 * i + 3], after, mu[i], b[6 * i]))
            slides = less(still, after[1] * after[1] + after[2] * after[2])
            modes.append(less(0.0, lam[3 * i]) * (1.0 + slides))
        squares = [x + r * r for x, r in zip(entries(total), residual, strict=True)]
        rows = {"residual": residual, "total": squares, "mode": modes}
        return {"v": v + a} | {name: stack_entries(values) for name, values in rows.items()}

    # -- geometry ----------------------------------------------------------------------------------

    def geometry(self, poses: np.ndarray) -> tuple[list[list[Any]], list[Any]]:
        """The lever (3) of each contact point from the origin of its frame, and its gap."""
        T, normal = entries(poses), self.ground.axes[0]
        levers, gaps = [], []
        for point in self.points:
            k = 16 * self.frames.index(point.frame)
            rotation = [T[k + 4 * i : k + 4 * i + 3] for i in range(3)]
            lever = point.lever(rotation, normal)
            place = add([T[k + 4 * i + 3] for i in range(3)], lever)
            levers.append(lever)
            gaps.append(dot(normal, place) - self.ground.height)
        return levers, gaps

    def _speeds(self, levers: list[list[Any]], velocities: np.ndarray) -> list[list[Any]]:
        """The velocities of the contact points in the axes of the ground."""
        V, out = entries(velocities), []
        for point, lever in zip(self.points, levers, strict=True):
            k = 6 * self.frames.index(point.frame)
            u = add(V[k + 3 : k + 6], cross(V[k : k + 3], lever))
            out.append([dot(axis, u) for axis in self.ground.axes])
        return out

    def _rows(self, lever: np.ndarray) -> list[tuple[int, list[Any]]]:
        """The frame and the row [l x a, a] of E for each direction of each contact."""
        return [
            (self.frames.index(point.frame), [*cross(l, axis), *axis])
            for point, l in zip(self.points, _triples(lever), strict=True)
            for axis in self.ground.axes
        ]

    def _to_world(self, x: Sequence[Any]) -> list[Any]:
        """A vector in the axes of the ground, in world axes."""
        return [dot([axis[i] for axis in self.ground.axes], x) for i in range(3)]

    def forces(self, impulse: np.ndarray, dt: np.ndarray) -> np.ndarray:
        """The mean forces (..., c, 3) of a step in world axes, from its impulses (..., 3c)."""
        shaped = impulse.reshape(*impulse.shape[:-1], self.count, 3)
        return shaped @ np.array(self.ground.axes) / dt


def _bias(gap: Any, h: Any, k: Any, d: Any) -> Any:
    """b of a contact without restitution."""
    if k is None:
        inside = maximum(CORRECTION * gap / h, -CORRECTION_SPEED)
    else:
        inside = gap * k / (h * k + d)
    return choose(less(gap, 0.0), inside, gap / h)


def _rebound(h: Any, gap: Any, speed: Sequence[Any], bias: Any, arriving: Any, e: Any) -> Any:
    """What restitution adds to b: e c- takes the place of b at an impact."""
    passes = less(gap + h * speed[0], 0.0)
    fast = less(arriving, -IMPACT_SPEED)
    acts = passes * fast * less(0.0, e)
    return acts * (e * arriving - bias)


def _triples(x: np.ndarray) -> list[list[Any]]:
    values = entries(x)
    return [values[i : i + 3] for i in range(0, len(values), 3)]
