"""The impulses of several contacts: Gauss-Seidel sweeps, and Newton's method for patches.

    w = E* lambda,   V = Omega w,   u = c + E V + R lambda_n      (`contact_space.py`)

A sweep solves one contact after the other exactly (`cone_solver.py`), and then each joint stop.
That is enough if each frame has one contact: a few sweeps find the solution. Several contacts of
one frame (a patch) share its six velocities, and stops are coupled through the links between them;
there Newton's method (`contact_newton.py`) finds all impulses together. It may run in circles:
after CYCLE iterations each cycle begins with a sweep from the best impulses so far, and the next
DAMPED_STEPS go 1 / (1 + k) of the way in cycle k = 0, 1, ... The iterations start from 0, not from
the impulses of the step before: so a step depends on its state alone. They start with a step of
Newton's method, which shares the load evenly among redundant contacts.

What CYCLES cycles do not solve starts again from 0 and follows a path: the laws are smoothed by a
speed that begins with FIRST_SPEEDS and shrinks by RATES in each step, to LAST_SPEED and then to 0.
Each step begins close to its solution. Smoothed laws of the user are solved on the path alone,
which ends at their speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.model.contact.ground import Ground
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import add, dot, is_zero_constant, square_root
from psiphi.simulation.contact.cone_solver import (
    BLOCK_NUMBERS,
    TINY,
    ContactBlock,
    ContactLaw,
    solve_contact,
)
from psiphi.simulation.contact.contact_newton import (
    PROXIMAL,
    NewtonOptions,
    Problem,
    SparseRow,
    coordinate_operations,
    joint_operations,
    newton_step,
    residual_square,
    stop_speed,
)
from psiphi.simulation.contact.contact_space import ContactSpace, Scalars, pull, symmetric, take
from psiphi.simulation.control.control_law import Values

# residuals, or changes of a sweep, as shares of the ground's tolerance
CONVERGENCE = 1e-4  # the iterations end
SWEEP_CONVERGENCE = 1e-4  # the sweeps end, if there are no steps of Newton's method
ROUNDED, LATE_CONVERGENCE = 1e-3, 0.03  # they end if the best so far is below: at first, and late
CYCLE, DAMPED_STEPS = 10, 5
CYCLES = 3  # before the path
FIRST_SPEEDS, LAST_SPEED = (10.0, 100.0), 1e-7  # m/s: of the first path, and of those after it
RATES = 0.7, 0.8, 0.9  # of the first path, the second, and the others
PATH_RATE = 0.5  # of the first path of a smoothed law
PATH_END, SMOOTH_END = 6, 24  # steps at the end of a path before the next one
PATH_PROXIMAL = 1e-6
MAX_OPERATIONS = 40_000  # of the elimination in Newton's method, which is unrolled
WILD = 1e20  # a residual (m/s) from which Newton's method starts again
UNKNOWN = 1e30  # the residual before the first iteration
NEWTON_STATE = ("best_residual", "phase", "cycle", "smooth", "sweeps", "steps")


class ContactSolver:
    """The iterations on the impulses of the contacts of `space`, as rules on named values.

    impulse (3c, and one for each stop), motion (V), done
    half                   the entries of Y (`contact_newton.py`), row by row, at its `supports`
    slip (c)               the slip parameters of the sweeps
    best, best_residual    the best impulses so far, and the square of their residual
    phase, cycle           the iteration in its cycle, and the number of the cycle; on a path the
                           steps since its end, and its number
    smooth                 the speed that smooths the law in the next iteration
    sweeps, steps          1 if the next iteration is a sweep, or a step of Newton's method
    still, free, again     with restitution: the speeds without it and without contact forces, and 1
                           after the new start without it
    """

    def __init__(
        self,
        space: ContactSpace,
        ground: Ground,
        supports: Sequence[tuple[int, ...]],
        law: ContactLaw,
    ):
        self.space, self.ground, self.count = space, ground, space.count
        self.supports, self.law = supports, law
        joints, coordinates = joint_operations(space, supports), coordinate_operations(space)
        couples = space.has_patches or space.stop_count > 0 or not law.is_exact
        self.by_joints = joints < coordinates
        self.uses_newton = couples and min(joints, coordinates) <= MAX_OPERATIONS

    @property
    def uses_sweeps(self) -> bool:
        """Whether sweeps are among the iterations: they solve the law of Coulomb."""
        return self.law.is_exact

    @property
    def problem(self) -> dict[str, int]:
        """{name: size} of what the iterations read."""
        space, n = self.space, self.count
        sizes = {
            "omega": space.size * (space.size + 1) // 2,
            "block": BLOCK_NUMBERS * n,
            "friction": n,
        }
        sizes |= {"place": space.place_size} if space.has_places else {}
        sizes |= {"half": self.half_size} if self.half_size else {}
        sizes |= {} if self.ground.is_rigid else {"compliance": n}
        n += space.stop_count
        return sizes | ({"still": n, "free": n} if self.ground.rebounds else {})

    @property
    def half_size(self) -> int:
        """The number of entries of Y that Newton's method reads."""
        return sum(map(len, self.supports)) if self.uses_newton and self.by_joints else 0

    def pack_half(self, Y: Sequence[Sequence[Any]]) -> Scalars:
        """The entries of Y."""
        for row, support in zip(Y, self.supports, strict=True):
            others = (x for k, x in enumerate(row) if k not in support)
            if not all(is_zero_constant(x) for x in others):
                raise ValueError("internal error in psiphi: a response outside its support")
        return [row[k] for row, support in zip(Y, self.supports, strict=True) for k in support]

    def _half(self, numbers: np.ndarray | None) -> list[SparseRow] | None:
        """The rows of Y, from their entries."""
        if numbers is None:
            return None
        values = iter(entries(numbers))
        return [{k: next(values) for k in support} for support in self.supports]

    @property
    def state(self) -> dict[str, int]:
        """{name: size} of what the iterations change."""
        size = self.space.impulse_size
        sizes = {"impulse": size, "slip": self.count, "speed": size, "done": 1}
        if self.uses_newton:
            sizes |= {"motion": self.space.size, "best": size}
            sizes |= dict.fromkeys(NEWTON_STATE, 1)
        return sizes | ({"again": 1} if self.ground.rebounds else {})

    def start(self, zero: Any) -> dict[str, Scalars]:
        """The state before the first iteration, apart from speed; `zero` is 0 in each lane."""
        first = {name: [zero] * size for name, size in self.state.items() if name != "speed"}
        if self.uses_newton:
            first |= {"best_residual": [zero + UNKNOWN], "steps": [zero + 1.0]}
            if self.law.smooth:
                first["smooth"] = [zero + FIRST_SPEEDS[0]]
        return first

    def velocities(
        self,
        place: np.ndarray,
        omega: np.ndarray,
        speed: np.ndarray,
        impulse: Scalars,
        compliance: np.ndarray | None = None,
    ) -> list[Scalars]:
        """u of each contact and stop."""
        rows = self.space.rows(place)
        w = self.space.wrench(rows, impulse)
        V = [dot(row, w) for row in symmetric(entries(omega), self.space.size)]
        found = self.space.velocities(rows, entries(speed), V)
        if compliance is not None:
            for u, R, part in zip(found, entries(compliance), self.space.parts, strict=False):
                u[0] = u[0] + R * impulse[part][0]
        return found

    def result(self, impulse: np.ndarray, friction: np.ndarray) -> np.ndarray:
        """The impulses within their friction cones. Those of a sweep are; Newton's method has found
        them up to its residual."""
        lam, out = entries(impulse), []
        if not self.uses_newton or self.law.smooth:  # smoothed impulses are inside
            return impulse
        for i, mu in enumerate(entries(friction)):
            n, t0, t1 = lam[3 * i : 3 * i + 3]
            n = maximum(n, 0.0)
            size = square_root(t0 * t0 + t1 * t1 + TINY)
            share = minimum(mu * n / size, 1.0)
            out += [n, share * t0, share * t1]
        return stack_entries([*out, *lam[3 * self.count :]])

    # -- the iterations ----------------------------------------------------------------------------

    def sweep(self, **places: np.ndarray) -> Values:
        """Solve each contact once with the latest impulses of the others."""
        problem, state = self._read(places)
        lam, x, change = list(state["impulse"]), list(state["slip"]), 0.0
        w = self.space.wrench(problem.rows, lam)
        for columns, own in self.space.groups.items():
            V = [dot(row, w) for row in take(problem.omega, columns)]
            for i in own:
                at, block = slice(3 * i, 3 * i + 3), problem.blocks[i]
                old = lam[at]
                others = zip(problem.velocity(i, V, lam[3 * i]), block.times(old), strict=True)
                lam[at], x[i], error = solve_contact(
                    block, [a - b for a, b in others], problem.friction[i], x[i]
                )
                step = [p - q for p, q in zip(lam[at], old, strict=True)]
                change = change + block.normal * block.normal * dot(step, step) + error * error
                push = pull(problem.rows[i], step)
                self.space.add_wrench(w, i, push)
                if i != own[-1]:
                    omega = [take(row, columns) for row in take(problem.omega, columns)]
                    V = add(V, [dot(row, push) for row in omega])
        change = change + self._stop_sweep(problem, lam, w)
        new = {"impulse": lam, "slip": x}
        if self.uses_newton:
            V = [dot(row, w) for row in problem.omega]
            return self._advance(problem, state, new | {"motion": V}, state["sweeps"][0])
        limit = (SWEEP_CONVERGENCE * self.ground.tolerance) ** 2
        new |= {"done": [1.0 - less(limit, change)]}
        return self._store(problem, state, new, 1.0)

    def newton(self, **places: np.ndarray) -> Values:
        """One step of Newton's method for all contacts."""
        problem, state = self._read(places)
        (phase,), (cycle,), (smooth,) = state["phase"], state["cycle"], state["smooth"]
        on_path = self._on_path(cycle)
        damped = (1.0 - on_path) * less(phase, DAMPED_STEPS + 0.5)
        size = NewtonOptions(
            share=1.0 / (1.0 + cycle * damped),
            proximal=choose(on_path, PATH_PROXIMAL, PROXIMAL),
            smooth=smooth,
            smooth_stops=maximum(smooth - self.law.smooth, 0.0),
        )
        lam, V = newton_step(problem, state["impulse"], state["motion"], size)
        new = {"impulse": lam, "motion": V, "slip": state["slip"]}
        return self._advance(problem, state, new, state["steps"][0])

    def _stop_sweep(self, problem: Problem, lam: Scalars, w: Scalars) -> Any:
        """Solve each stop once, in `lam` and w; the sum of the squares of the changes (m/s)."""
        change: Any = 0.0
        for i in range(self.space.count, self.space.count + self.space.stop_count):
            (k,), part = self.space.columns[i], self.space.parts[i]
            A, (old,) = problem.omega[k][k], lam[part]
            u = stop_speed(problem, i, dot(problem.omega[k], w))
            new = old - u / A
            lam[part] = [new if self.space.is_locked(i) else maximum(new, 0.0)]
            step = lam[part][0] - old
            self.space.add_wrench(w, i, pull(problem.rows[i], [step]))
            change = change + A * A * step * step
        return change

    def _read(self, places: Mapping[str, np.ndarray]) -> tuple[Problem, dict[str, Scalars]]:
        blocks, size = entries(places["block"]), BLOCK_NUMBERS
        given = {
            name: entries(places[name])
            for name in ("friction", "compliance", "still", "free")
            if name in places
        }
        problem = Problem(
            self.space,
            symmetric(entries(places["omega"]), self.space.size),
            self.space.rows(places.get("place")),
            [ContactBlock(*blocks[size * i : size * i + size]) for i in range(self.count)],
            entries(places["speed"]),
            half=self._half(places.get("half")),
            law=self.law,
            **given,
        )
        return problem, {name: entries(places[name]) for name in self.state}

    def _advance(
        self,
        problem: Problem,
        state: dict[str, Scalars],
        new: dict[str, Scalars],
        active: Any,
    ) -> Values:
        """The state after an iteration. If a cycle ends, a sweep from the best impulses is next, or
        a path; if a path ends, another one."""
        (best,), (phase,), (cycle,), (smooth,) = (
            state[x] for x in ("best_residual", "phase", "cycle", "smooth")
        )
        square = residual_square(problem, new["impulse"], new["motion"])
        better, on_path = less(square, best), self._on_path(cycle)
        at_end = less(smooth, self.law.smooth + LAST_SPEED)
        last = choose(on_path, SMOOTH_END if self.law.smooth else PATH_END, CYCLE - 1.5)
        ends = maximum(less(last, phase) * (1.0 - on_path * (1.0 - at_end)), less(WILD**2, square))
        starts_path = ends * self._on_path(cycle + 1.0)
        first = choose(on_path, FIRST_SPEEDS[1] * (1.0 + 0.25 * cycle), FIRST_SPEEDS[0])
        limits = [
            (x * self.ground.tolerance) ** 2 for x in (CONVERGENCE, ROUNDED, LATE_CONVERGENCE)
        ]
        solved, rounded = less(square, limits[0]), less(best, limits[1])
        late = less(0.5, cycle) * less(best, limits[2])
        kept = [choose(better, p, q) for p, q in zip(new["impulse"], state["best"], strict=True)]
        following = zip(kept, new["impulse"], strict=True)
        goes_on, sweeps = 1.0 - starts_path, ends * (1.0 - starts_path) * self.uses_sweeps
        plan = {
            "impulse": [goes_on * choose(ends, p, q) for p, q in following],
            "motion": [goes_on * x for x in new["motion"]],
            "best": kept,
            "best_residual": [minimum(square, best)],
            "done": [maximum(solved, (1.0 - better) * maximum(rounded, late))],
            "phase": [(1.0 - ends) * (phase + choose(on_path, at_end, 1.0))],
            "cycle": [cycle + ends],
            "smooth": [choose(starts_path, first, self._next_speed(smooth, cycle))],
            "sweeps": [sweeps],
            "steps": [1.0 - sweeps],
        }
        return self._store(problem, state, new | plan, active)

    def _on_path(self, cycle: Any) -> Any:
        """1 if this cycle is a path, else 0."""
        return 1.0 + 0.0 * cycle if self.law.smooth else less(CYCLES - 0.5, cycle)

    def _next_speed(self, smooth: Any, cycle: Any) -> Any:
        """The speed of the next step of a path."""
        first, target = (0.0, self.law.smooth) if self.law.smooth else (float(CYCLES), 0.0)
        quick = PATH_RATE if self.law.smooth else RATES[0]
        slow = choose(less(cycle, first + 1.5), RATES[1], RATES[2])
        speed = smooth * choose(less(cycle, first + 0.5), quick, slow)
        return choose(less(speed, maximum(LAST_SPEED, target)), target, speed)

    def _store(
        self, problem: Problem, state: dict[str, Scalars], new: dict[str, Scalars], active: Any
    ) -> Values:
        """The new state where the iteration is `active` and not yet done, else the old one."""
        if self.ground.rebounds:
            new = self._without_energy(problem, state, new)
        runs = active * (1.0 - state["done"][0])
        out = {
            name: [choose(runs, p, q) for p, q in zip(values, state[name], strict=True)]
            for name, values in new.items()
        }
        for name in {"sweeps", "steps"} & out.keys():
            out[name] = [(1.0 - out["done"][0]) * x for x in out[name]]
        return {name: stack_entries(values) for name, values in out.items()}

    def _without_energy(
        self, problem: Problem, state: dict[str, Scalars], new: dict[str, Scalars]
    ) -> dict[str, Scalars]:
        """A new start with e = 0 where restitution has added energy, lambda . (c_f + c+) > 0."""
        assert problem.still is not None and problem.free is not None
        lam, c = new["impulse"], problem.speed
        normals = [part.start for part in self.space.parts]
        before, still = list(c), list(c)
        for j, x, y in zip(normals, problem.free, problem.still, strict=True):
            before[j], still[j] = x, y
        V = self._motion(problem, lam)
        after = [x for u in self.space.velocities(problem.rows, before, V) for x in u]
        (again,), (done,) = state["again"], new["done"]
        restart = done * less(0.0, dot(lam, add(before, after))) * (1.0 - again)
        first = self.start(0.0 * restart) | {
            "speed": still,
            "again": [1.0 + 0.0 * restart],
        }
        new = {"speed": c, "again": [again]} | new
        return {
            name: [choose(restart, p, q) for p, q in zip(first[name], values, strict=True)]
            for name, values in new.items()
        }

    def _motion(self, problem: Problem, lam: Scalars) -> Scalars:
        """V = Omega E* lambda."""
        w = self.space.wrench(problem.rows, lam)
        return [dot(row, w) for row in problem.omega]
