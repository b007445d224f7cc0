"""The contacts of a robot with a ground, and of its links with each other, in one step of time.

    v_f = v + h M^-1 (tau - bias),  c = J v_f + G lambda,  G = J M^-1 J*,  v+ = v_f + M^-1 J* lambda

lambda are impulses (N s), c velocities of the contact points (m/s), three rows a contact: normal,
tangent, tangent. J = E J_frame, where E takes the velocities of frames to those of points at the
levers l: its row for the direction a is [l x a, a]. Of a pair of links, c is the velocity of the
first relative to the second. Each contact obeys the laws of Signorini and
Coulomb (`cone_solver.py`) with c_n + b in place of c_n:

    gap > 0     b = gap / h: the point may come down to the ground, not below
    gap < 0     b = max(0.2 gap / h, -0.1 m/s): the depth shrinks by a fifth per step
    impact      b = e c-, if the point would pass the ground and arrives faster than 1 cm/s
    compliant   b = k gap / (h k + d) for gap < 0, and c_n + R lambda_n + b with
                R = 1 / (h (h k + d)): exactly implicit Euler for a spring k and a damper d

A joint stop (`limits="block"`) obeys 0 <= lambda _|_ S v+ + b >= 0 with its own gap, S = 1 at the
lower limit and -1 at the upper; the nearer one acts. A joint whose limits are equal is locked, S v+
+ b = 0 with any lambda. All are solved in sweeps, and where several
contacts share a link or joints stop, by Newton's method (`contact_solver.py`). If restitution e
adds energy, lambda . (c_f + c+) > 0, the step is solved again with e = 0.

The rules run on arrays (..., n) and on tapes (`compiled_rollout/contact_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.ir.lane_blocks import GridLookup
from psiphi.compiler.passes import UNROLL_LIMIT, is_large
from psiphi.model.contact.closest_points import contact_axes
from psiphi.model.contact.contact_pairs import ContactPair, ContactSolid, Place
from psiphi.model.contact.contact_points import ContactPoint, on_shared_frames
from psiphi.model.contact.given_contacts import NUMBERS, GivenContacts
from psiphi.model.contact.ground import Ground, check_ground
from psiphi.model.model import WORLD
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import (
    add,
    cross,
    dot,
    is_zero_constant,
    square_root,
    subtract,
)
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.cone_solver import (
    BLOCK_NUMBERS,
    ContactBlock,
    ContactLaw,
    violation,
)
from psiphi.simulation.contact.contact_solver import ContactSolver
from psiphi.simulation.contact.contact_space import (
    ContactPlace,
    ContactSpace,
    Sides,
    StepPlaces,
    gram,
    lower,
    take,
)
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.forces.joint_limit_impact import JointStops

CORRECTION = 0.2  # the share of a depth that one step undoes
CORRECTION_SPEED = 0.1  # m/s, at most
IMPACT_SPEED = 0.01  # m/s, above which a contact rebounds
MAX_CONTACTS = 64
# A_nn is zero if it is below SINGULAR (A_tt + A_ss): the contact cannot move along its normal, as
# the foot of a straight leg. No impulse undoes a depth there, and the residual says so
SINGULAR, SMALLEST = 1e-13, 1e-30
WORLD_NAME, NO_LEVER, SIGNS = "world", (0.0, 0.0, 0.0), (1.0, -1.0)


class GroundContact:
    """The contact points of `robot` on `ground`, and its pairs of solids, as rules on named values.
    What is on one link has one frame, also if the robot has it on several.

    place: levers, the axes of pairs, and the sides of stops (`contact_space.py`)
    gap (c) and speed (3c): c_f + b; impulse (3c): lambda. Both have an entry more for each stop.
    omega, block (7c): Omega (`contact_space.py`) and the entries of `ContactBlock`
    """

    def __init__(self, robot: Robot, ground: Ground, stops: JointStops | None = None):
        check_ground("the ground", ground)
        pairs = robot.contact_pairs
        given = ground if isinstance(ground, GivenContacts) else None
        if not robot.contact_points and not pairs and given is None:
            raise StateError(
                f"contacts is {ground}, but {robot.name} has no contact points",
                'give it shapes: robot.with_contacts({"*_foot": pp.Sphere(0.03)}), or '
                'robot.with_contacts("collision") for those of its file',
            )
        parts = [*robot.contact_points, *(solid for pair in pairs for solid in pair.solids)]
        names = () if given is None else check_pairs(robot, given)
        parts += [ContactPoint("", x, NO_LEVER) for pair in names for x in pair if x != WORLD_NAME]
        parts = list(on_shared_frames(parts, robot.frames))
        self.robot, self.ground, self.stops = robot, ground, stops
        last = len(robot.contact_points) + 2 * len(pairs)
        frames, parts = iter([x.frame for x in parts[last:]]), parts[:last]
        # of given contacts: (frame, sign of the force on it)
        signed = [[*zip(pair, SIGNS, strict=True)] for pair in names]
        self.given: tuple[Sides, ...] = tuple(
            tuple((next(frames), sign) for name, sign in pair if name != WORLD_NAME)
            for pair in signed
        )
        self.points = tuple(x for x in parts if isinstance(x, ContactPoint))
        solids = [x for x in parts if isinstance(x, ContactSolid)]
        self.pairs = tuple(
            replace(pair, first=first, second=second)
            for pair, first, second in zip(pairs, solids[::2], solids[1::2], strict=True)
        )
        if self.count > MAX_CONTACTS:
            raise StateError(
                f"{robot.name} has {self.count} contact points, at most {MAX_CONTACTS} are solved "
                "together",
                "give fewer or simpler shapes, spheres instead of boxes for instance",
            )
        if is_large(robot):
            raise StateError(
                f"{robot.name} has {len(robot.joints)} bodies, and contacts are compiled for "
                f"robots of up to {UNROLL_LIMIT}",
                "lock joints that matter less: robot.lock(...)",
            )
        sides = [*[((point.frame, 1.0),) for point in self.points], *map(self._sides, self.pairs)]
        sides += self.given
        self._check_shapes()
        with_axes = len(self.points) if ground.grid is None else 0
        locked = [] if stops is None else stops.locked.tolist()
        self.space = ContactSpace(sides, ground.axes, with_axes, locked)
        self.frames = self.space.frames
        self.law = ContactLaw(ground.law == "convex", float(ground.smooth), self._mobility)
        self.solver = ContactSolver(self.space, ground, self._supports, self.law)
        if not self.law.is_exact and not self.solver.uses_newton:
            raise StateError(
                f"{ground} is solved by Newton's method, and {self.count} contact points of "
                f"{robot.name} are too many for it",
                "give fewer or simpler shapes, or the law of Coulomb: pp.Ground(friction=...)",
            )

    def _check_shapes(self) -> None:
        """Raise an error for contact points whose distance from heights is not known."""
        grid = self.ground.grid
        if grid is None:
            return
        for point in self.points:
            if point.axis is not None:
                raise StateError(
                    f"{point.name} is the rim of a cylinder, and the ground has heights",
                    "use spheres or pp.Points in place of the cylinder",
                )
            if not grid.block_of(point.radius):
                raise StateError(
                    f"{point.name} has the radius {point.radius:g} m, and the heights of the "
                    f"ground are {min(grid.spacing):g} m apart",
                    f"use spheres of up to {grid.largest_radius():g} m, or fewer heights",
                )

    def _sides(self, pair: ContactPair) -> Sides:
        """The frames of a pair that move, and the signs of its force on them."""
        both = (pair.first.frame, 1.0), (pair.second.frame, -1.0)
        return tuple(side for side in both if self.robot.frame(side[0]).body != WORLD)

    @property
    def _supports(self) -> list[tuple[int, ...]]:
        """For each coordinate the velocities between its frames, or its joint, and the base."""
        robot, space = self.robot, self.space
        everything = tuple(range(robot.nv))
        if robot.embedding is not None:  # its links are not a tree
            return [everything for _ in range(space.size)]
        found: list[tuple[int, ...]] = [() for _ in range(space.size)]
        bodies = [robot.frame(name).body for name in self.frames]
        for frames, columns, is_own in zip(
            space.members, space.columns, space.is_own, strict=False
        ):
            for n, k in enumerate(columns):
                of = frames if is_own else [frames[n // 6]]
                found[k] = self._path(bodies[j] for j in of)
        if self.stops is not None:
            for i, k in enumerate(self.stops.v, start=space.contact_size):
                body = next(
                    j for j, x in enumerate(robot.joints) if x.v_slice.start <= k < x.v_slice.stop
                )
                found[i] = self._path([body])
        return found

    def _path(self, bodies: Iterable[int]) -> tuple[int, ...]:
        """The velocities of the joints between some bodies and the base."""
        joints, on_path = self.robot.joints, set()
        for body in bodies:
            while body != WORLD:
                on_path.add(body)
                body = self.robot.parent[body]
        return tuple(
            k
            for j in sorted(on_path)
            for k in range(joints[j].v_slice.start, joints[j].v_slice.stop)
        )

    @property
    def _mobility(self) -> float | None:
        """The A_nn of a smoothed law, the same for all configurations: that of the robot's mass
        shared among the contacts."""
        if not self.ground.smooth:
            return None
        return self.count / sum(body.mass for body in self.robot.bodies)

    @property
    def count(self) -> int:
        """The number of contacts."""
        return len(self.points) + len(self.pairs) + len(self.given)

    @property
    def stop_count(self) -> int:
        """The number of joint stops."""
        return 0 if self.stops is None else len(self.stops.q)

    @property
    def residual_count(self) -> int:
        """The number of residuals: of the contacts, and of the stops."""
        return self.count + self.stop_count

    @property
    def residual_names(self) -> tuple[str, ...]:
        """What each residual is of: the contacts, and the coordinates with stops."""
        if self.stops is None:
            return self.names
        return (*self.names, *(self.robot.coordinate_names[k] for k in self.stops.q))

    @property
    def names(self) -> tuple[str, ...]:
        given = self.ground.contact_names if isinstance(self.ground, GivenContacts) else ()
        return (*(x.name for x in (*self.points, *self.pairs)), *given)

    @property
    def key(self) -> list:
        """What the code depends on."""
        ground = self.ground
        points = [[p.frame, p.center, p.radius, p.axis, p.angle] for p in self.points]
        fixed = [self._fixed_place(name) for name in self._fixed_frames]
        laws = [ground.is_rigid, ground.rebounds, ground.iterations, ground.tolerance, self.law]
        laws += [] if self.stops is None else [x.tolist() for x in self.stops.range]
        surface = [ground.axes, ground.offset] if ground.grid is None else [ground.grid]
        return [points, *surface, *laws, *map(repr, self.pairs), *fixed, *map(list, self.given)]

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """{name: (..., c)} of the ground's numbers that act."""
        ground = self.ground
        values = {"friction": ground.friction}
        values |= {"restitution": ground.restitution} if ground.rebounds else {}
        if ground.stiffness is not None:
            values |= {"stiffness": ground.stiffness, "damping": ground.damping}
        return {name: self._per_contact(name, x) for name, x in values.items()}

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """{name: (..., n)} of arrays that are read where contacts are: the heights."""
        if self.ground.grid is None:
            return {}
        heights = self.ground.heights
        return {"height": heights.reshape(*heights.shape[:-2], -1)}

    def found(self, q: np.ndarray, ground: Ground | None = None) -> dict[str, np.ndarray]:
        """{name: (..., n)} of the given contacts at q (..., nq), which are those of `ground`."""
        own = self.ground if ground is None else ground
        if not isinstance(own, GivenContacts):
            return {}
        numbers, friction = own.found(q)
        values = {"given": numbers.reshape(*numbers.shape[:-2], -1)}
        if friction is None:
            return values
        return values | {"friction": self._per_contact("friction", friction)}

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
        q: np.ndarray | None = None,
        v: np.ndarray | None = None,
        cells: np.ndarray | None = None,
        given: np.ndarray | None = None,
        **numbers: np.ndarray,
    ) -> Values:
        """The geometry, the velocities without contact forces, and the start of the solver; near: 1
        if a contact acts.

        `poses` are the 4 x 4 poses of the frames, one after the other; `velocities` their spatial
        velocities in world axes with v_f, `velocities_before` with the v of the start. With stops,
        q and v are the configuration and v_f."""
        (step,) = entries(h)
        places, gaps = self.geometry(poses, cells, given)
        sides, stops, free_stops = self._stop_speeds(step, q, v)
        moving = self._speeds(places, velocities)
        k = entries(numbers["stiffness"]) if "stiffness" in numbers else [None] * self.count
        d = entries(numbers["damping"]) if "damping" in numbers else [None] * self.count
        bias = [_bias(gap, step, *kd) for gap, *kd in zip(gaps, k, d, strict=True)]
        speed = [x for (n, t0, t1), b in zip(moving, bias, strict=True) for x in (n + b, t0, t1)]
        near: Any = 0.0 * step
        for normal in (*speed[::3], *stops):
            near = maximum(near, less(normal, 0.0))
        # others act also on contacts that part, if they slide or are smoothed
        if not self.law.is_exact or any(self.space.locked):
            near = 1.0 + 0.0 * near
        found = {
            "place": self.space.pack(StepPlaces(places, sides)),
            "gap": gaps,
            "speed": [*speed, *stops],
            "near": [near],
            "residual": [0.0 * near] * self.residual_count,
            "mode": [0.0 * near] * self.count,
            "margin": speed[::3],
            **self.solver.start(0.0 * near),
        }
        if self.ground.stiffness is not None:
            found["compliance"] = [1.0 / (step * (step * x + y)) for x, y in zip(k, d, strict=True)]
        if velocities_before is not None:
            arriving = [n for n, *_ in self._speeds(places, velocities_before)]
            rows = zip(gaps, moving, bias, arriving, entries(numbers["restitution"]), strict=True)
            rebound = [_rebound(step, *row) for row in rows]
            found |= {
                "still": [*speed[::3], *stops],
                "free": [*(n for n, *_ in moving), *free_stops],
                "speed": [
                    *(
                        x
                        for i, r in enumerate(rebound)
                        for x in (speed[3 * i] + r, *speed[3 * i + 1 : 3 * i + 3])
                    ),
                    *stops,
                ],
            }
        return {name: stack_entries(values) for name, values in found.items()}

    def responses(
        self,
        Y: Sequence[Sequence[Any]],
        place: np.ndarray,
        compliance: np.ndarray | None = None,
    ) -> Values:
        """Omega = Y Y*, where Y has a row m^-1 J* w for each test wrench w, M = m m*; and the block
        of each contact."""
        omega, rows = gram(Y), self.space.rows(place)
        blocks: list[Any] = []
        for i, E in enumerate(rows[: self.count]):
            columns = self.space.columns[i]
            own = [take(row, columns) for row in take(omega, columns)]
            A = [[dot(row, [dot(x, b) for x in own]) for b in E] for row in E]
            if compliance is not None:
                A[0][0] = A[0][0] + entries(compliance)[i]
            if not is_zero_constant(A[0][0]):
                size = A[1][1] + A[2][2] + SMALLEST
                A[0][0] = A[0][0] + less(A[0][0], SINGULAR * size) * size
            blocks += ContactBlock.of(A)
        found = {"omega": lower(omega), "block": blocks}
        if self.solver.half_size:
            found["half"] = self.solver.pack_half(Y)
        return {name: stack_entries(values) for name, values in found.items()}

    def half_response(
        self, Y: Sequence[Sequence[Any]], place: np.ndarray, impulse: np.ndarray
    ) -> np.ndarray:
        """m^-1 J* E* lambda, the sum of the rows of Y."""
        w = self.space.wrench(self.space.rows(place), entries(impulse))
        return stack_entries([dot(w, column) for column in zip(*Y, strict=True)])

    def apply(
        self,
        place: np.ndarray,
        omega: np.ndarray,
        block: np.ndarray,
        speed: np.ndarray,
        friction: np.ndarray,
        impulse: np.ndarray,
        total: np.ndarray,
        compliance: np.ndarray | None = None,
    ) -> Values:
        """For each contact its mode (0 open, 1 sticks, 2 slips), its margin, its residual, and the
        sum of the squares of that over the steps; residuals also of the stops."""
        lam, residual, modes, margin = entries(impulse), [], [], []
        after = self.solver.velocities(place, omega, speed, lam, compliance)
        normals = entries(block)[::BLOCK_NUMBERS]
        still = self.ground.tolerance**2
        for i, (u, mu) in enumerate(zip(after, entries(friction), strict=False)):
            own = lam[3 * i : 3 * i + 3]
            A = normals[i] if self.law.mobility is None else self.law.mobility
            push = [A * x for x in own]
            y = [a - b for a, b in zip(push, u, strict=True)]
            margin.append(_margin(y, mu))
            if self.law.is_exact:
                residual.append(violation(own, u, mu, 1.0 / normals[i]))
                slides = less(still, u[1] * u[1] + u[2] * u[2])
                modes.append(less(0.0, own[0]) * (1.0 + slides))
                continue
            residual.append(self.law.residual(y, push, mu))
            bound = mu * maximum(y[0], 0.0)
            slides = less(bound * bound, y[1] * y[1] + y[2] * y[2])
            modes.append(less(0.0, y[0]) * (1.0 + slides))
        sizes = entries(omega)
        rows = zip(self.space.parts, self.space.columns, after, strict=True)
        for i, (part, (k, *_), (u, *_)) in list(enumerate(rows))[self.count :]:
            push = sizes[k * (k + 3) // 2] * lam[part][0]
            residual.append(u if self.space.is_locked(i) else minimum(push, u))
        squares = [x + r * r for x, r in zip(entries(total), residual, strict=True)]
        found = {"residual": residual, "total": squares, "mode": modes, "margin": margin}
        return {name: stack_entries(values) for name, values in found.items()}

    # -- geometry ----------------------------------------------------------------------------------

    def geometry(
        self,
        poses: np.ndarray,
        cells: np.ndarray | None = None,
        given: np.ndarray | None = None,
    ) -> tuple[list[ContactPlace], list[Any]]:
        """The place of each contact, and its gap. `cells` are what `lookup` finds at
        `grid_points`, for a ground with heights; by default of the heights themselves. `given` are
        the numbers of given contacts."""
        T, places, gaps = entries(poses), [], []
        if self.lookup is not None and cells is None:
            cells = self.cells(poses)
        for i, point in enumerate(self.points):
            rotation, origin = self._frame_place(T, point.frame)
            place, gap = self._on_ground(i, rotation, origin, cells)
            places.append(place)
            gaps.append(gap)
        for pair, sides in zip(self.pairs, self.space.sides[len(self.points) :], strict=False):
            first, second = (self._frame_place(T, solid.frame) for solid in pair.solids)
            at = pair.approach(first, second)
            levers = [subtract(at.point, self._frame_place(T, name)[1]) for name, _ in sides]
            places.append(ContactPlace(levers, contact_axes(at.normal)))
            gaps.append(at.gap)
        numbers = [] if given is None else entries(given)
        for i, sides in enumerate(self.given):
            *at, gap = numbers[NUMBERS * i : NUMBERS * i + NUMBERS]
            levers = [subtract(at[:3], self._frame_place(T, name)[1]) for name, _ in sides]
            places.append(ContactPlace(levers, contact_axes(at[3:])))
            gaps.append(gap)
        return places, gaps

    def _on_ground(
        self, i: int, rotation: Any, origin: Any, cells: np.ndarray | None
    ) -> tuple[ContactPlace, Any]:
        """The place of contact point i and its distance from the ground."""
        grid, point = self.ground.grid, self.points[i]
        if grid is None or self.lookup is None or cells is None:
            normal = self.ground.axes[0]
            lever = point.lever(rotation, normal)
            return ContactPlace([lever]), dot(normal, add(origin, lever)) - self.ground.offset
        center, sizes = point.arm(rotation), self.lookup.sizes
        first = sum(sizes[:i])
        own = entries(cells[..., first : first + sizes[i]])
        at = grid.touch(add(origin, center), point.radius, self.lookup.cells[i], own)
        return ContactPlace([add(center, at.lever)], contact_axes(at.normal)), at.gap

    @cached_property
    def lookup(self) -> GridLookup | None:
        """The heights about the contact points, if the ground has heights."""
        grid = self.ground.grid
        if grid is None or not self.points:
            return None
        blocks = (grid.block_of(point.radius) for point in self.points)
        return GridLookup(grid.shape, tuple(blocks))

    def grid_points(self, poses: np.ndarray) -> np.ndarray:
        """(..., 2 points): where `lookup` looks."""
        grid, lookup, T, found = self.ground.grid, self.lookup, entries(poses), []
        assert grid is not None and lookup is not None
        for point, m in zip(self.points, lookup.cells, strict=True):
            rotation, origin = self._frame_place(T, point.frame)
            found += grid.grid_point(add(origin, point.arm(rotation)), m)
        return stack_entries(found)

    def cells(self, poses: np.ndarray, samples: bool = False) -> np.ndarray | None:
        """What `lookup` finds for poses (..., 16 frames); with `samples` they have an axis of
        samples after those of the ground's heights. None for a plane."""
        if self.lookup is None:
            return None
        (table,) = self.tables.values()
        table = table[..., None, :] if samples and table.ndim > 1 else table
        points = self.grid_points(poses)
        try:
            return self.lookup.on(points, table)["cells"]
        except ValueError:
            lead = self.ground.heights.shape[:-2]
            raise StateError(
                f"the height of the ground has batch axes {lead}, and the state "
                f"{points.shape[:-1]}",
                "give heights (nx, ny), or with an entry for each motion",
            ) from None

    def _frame_place(self, T: list[Any], frame: str) -> Place:
        """The rotation and the origin of a frame, from the entries of the poses."""
        if frame in self._fixed_frames:
            return self._fixed_place(frame)
        k = 16 * self.frames.index(frame)
        rotation = [T[k + 4 * i : k + 4 * i + 3] for i in range(3)]
        return rotation, [T[k + 4 * i + 3] for i in range(3)]

    @cached_property
    def _fixed_frames(self) -> tuple[str, ...]:
        """The frames of solids that are fixed to the world."""
        names = {solid.frame for pair in self.pairs for solid in pair.solids}
        return tuple(sorted(names - set(self.frames)))

    def _fixed_place(self, frame: str) -> Place:
        pose = self.robot.frame(frame).pose
        return pose.rotation.tolist(), pose.translation.tolist()

    def _speeds(self, places: list[ContactPlace], velocities: np.ndarray) -> list[list[Any]]:
        """The velocities of the contacts in their axes."""
        V, out = entries(velocities), []
        for place, sides, frames in zip(places, self.space.sides, self.space.members, strict=True):
            total: list[Any] = []
            for k, (_, sign), lever in zip(frames, sides, place.levers, strict=True):
                v = add(V[6 * k + 3 : 6 * k + 6], cross(V[6 * k : 6 * k + 3], lever))
                u = [sign * x for x in v]
                total = add(total, u) if total else u
            out.append([dot(axis, total) for axis in place.axes or self.ground.axes])
        return out

    def _stop_speeds(
        self, h: Any, q: np.ndarray | None, v: np.ndarray | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """For each stop its side, S v_f + b, and S v_f."""
        sides, speeds, moving = [], [], []
        if self.stops is not None and q is not None and v is not None:
            x, rates = entries(q), entries(v)
            for k, j, *ends in zip(
                self.stops.q, self.stops.v, *(x.tolist() for x in self.stops.range), strict=True
            ):
                low, high = x[k] - ends[0], ends[1] - x[k]
                is_low = less(low, high)
                side = 2.0 * is_low - 1.0
                gap = choose(is_low, low, high)
                sides.append(side)
                moving.append(side * rates[j])
                speeds.append(moving[-1] + _bias(gap, h, None, None))
        return sides, speeds, moving

    def stop_sides(self, q: np.ndarray) -> list[Any]:
        """The side of each stop: 1 if its lower limit is the nearer one, else -1."""
        return self._stop_speeds(1.0, q, np.zeros(self.robot.nv))[0]

    def axes(
        self, poses: np.ndarray, samples: bool = False, given: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., c, 3, 3): normal, tangent, tangent of each contact, in world axes."""
        places, _ = self.geometry(poses, self.cells(poses, samples), given)
        found = [place.axes or self.ground.axes for place in places]
        flat = np.broadcast_arrays(*(x for axes in found for axis in axes for x in axis))
        return np.stack(flat, axis=-1).reshape(*flat[0].shape, self.count, 3, 3)

    def forces(self, impulse: np.ndarray, axes: np.ndarray, dt: np.ndarray) -> np.ndarray:
        """The mean forces (..., c, 3) of a step in world axes, from its impulses (..., 3c)."""
        contacts = impulse[..., : 3 * self.count]
        shaped = contacts.reshape(*impulse.shape[:-1], self.count, 1, 3)
        return (shaped @ axes)[..., 0, :] / dt


def check_pairs(robot: Robot, given: GivenContacts) -> list[tuple[str, str]]:
    """The names of the frames of given contacts; an error if they cannot move to each other."""
    found = []
    for first, second in given.pairs:
        names = robot.frame(first).name, robot.frame(second).name
        bodies = [robot.frame(name).body for name in names]
        if bodies[0] == bodies[1]:
            raise StateError(
                f"pairs has {(first, second)}, which are on one body of {robot.name}, or both "
                "fixed",
                "name frames of links that move relative to each other",
            )
        words = [WORLD_NAME if b == WORLD else x for x, b in zip(names, bodies, strict=True)]
        found.append((words[0], words[1]))
    return found


def _bias(gap: Any, h: Any, k: Any, d: Any) -> Any:
    """b of a contact without restitution."""
    if k is None:
        inside = maximum(CORRECTION * gap / h, -CORRECTION_SPEED)
    else:
        inside = gap * k / (h * k + d)
    return choose(less(gap, 0.0), inside, gap / h)


def _margin(y: Sequence[Any], mu: Any) -> Any:
    """How far y = A_nn lambda - c is from another mode: from y_n = 0 and, if y_n > 0, from |y_t| =
    |y_t| = mu y_n."""
    edge = square_root(y[1] * y[1] + y[2] * y[2]) - mu * y[0]
    return choose(less(y[0], 0.0), -y[0], minimum(y[0], maximum(edge, -edge)))


def _rebound(h: Any, gap: Any, speed: Sequence[Any], bias: Any, arriving: Any, e: Any) -> Any:
    """What restitution adds to b: e c- takes the place of b at an impact."""
    passes = less(gap + h * speed[0], 0.0)
    fast = less(arriving, -IMPACT_SPEED)
    acts = passes * fast * less(0.0, e)
    return acts * (e * arriving - bias)
