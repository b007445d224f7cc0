"""The impulses of several contacts: Gauss-Seidel sweeps, and Newton's method for patches.

    w = E* lambda,   V = Omega w,   u = c + E V + R lambda_n      (`contact_space.py`)

A sweep solves one contact after the other exactly (`cone_solver.py`), and then each joint stop.
That is enough if each frame has one contact: a few sweeps find the solution. Several contacts of
one frame (a patch) share its six velocities, and stops are coupled through the links between them;
there Newton's method (`contact_newton.py`) finds all impulses together. It may run in circles:
after CYCLE iterations each cycle begins with a sweep from the best impulses so far, and the next
DAMPED_STEPS go 1 / (1 + k) of the way in cycle k = 0, 1, ... The iterations start from 0, not from
the impulses of the step before: so a step depends on its state alone. They start with a step of
Newton's method, which shares the load evenly among redundant contacts. What CYCLES cycles do not
solve starts again from 0, with a sweep and with steps that keep closer to the impulses before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.model.contact.ground import Ground
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import add, dot, is_zero_constant, square_root
from psiphi.simulation.contact.cone_solver import BLOCK_NUMBERS, TINY, ContactBlock, solve_contact
from psiphi.simulation.contact.contact_newton import (
    PROXIMAL,
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
CONVERGENCE = 1e-6  # the iterations end
SWEEP_CONVERGENCE = 1e-4  # the sweeps end, if there are no steps of Newton's method
ROUNDED, LATE_CONVERGENCE = 1e-3, 0.1  # they end if the best so far is below: at first, and late
CYCLE, DAMPED_STEPS = 10, 5
CYCLES = 5  # before a new start
CAREFUL = 1e-2  # PROXIMAL after it
MAX_OPERATIONS = 40_000  # of the elimination in Newton's method, which is unrolled
WILD = 1e20  # a residual (m/s) from which Newton's method starts again
UNKNOWN = 1e30  # the residual before the first iteration


class ContactSolver:
    """The iterations on the impulses of the contacts of `space`, as rules on named values.

    impulse (3c, and one for each stop), motion (V), done
    half                   the entries of Y (`contact_newton.py`), row by row, at its `supports`
    slip (c)               the slip parameters of the sweeps
    best, best_residual    the best impulses so far, and the square of their residual
    phase, cycle           the iteration in its cycle, and the number of the cycle
    sweeps, steps          1 if the next iteration is a sweep, or a step of Newton's method
    still, free, again     with restitution: the speeds without it and without contact forces, and 1
                           after the new start without it
    """

    def __init__(self, space: ContactSpace, ground: Ground, supports: Sequence[tuple[int, ...]]):
        self.space, self.ground, self.count = space, ground, space.count
        self.supports = supports
        joints, coordinates = joint_operations(space, supports), coordinate_operations(space)
        couples = space.has_patches or space.stop_count > 0
        self.by_joints = joints < coordinates
        self.uses_newton = couples and min(joints, coordinates) <= MAX_OPERATIONS

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
            sizes |= dict.fromkeys(("best_residual", "phase", "cycle", "sweeps", "steps"), 1)
        return sizes | ({"again": 1} if self.ground.rebounds else {})

    def start(self, zero: Any) -> dict[str, Scalars]:
        """The state before the first iteration, apart from speed; `zero` is 0 in each lane."""
        first = {name: [zero] * size for name, size in self.state.items() if name != "speed"}
        if self.uses_newton:
            first |= {"best_residual": [zero + UNKNOWN], "steps": [zero + 1.0]}
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
        if not self.uses_newton:
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
        (phase,), (cycle,) = state["phase"], state["cycle"]
        restarted = less(CYCLES - 0.5, cycle)
        since_start = cycle - CYCLES * restarted
        proximal = choose(restarted, CAREFUL, PROXIMAL)
        share = 1.0 / (1.0 + since_start * less(phase, DAMPED_STEPS + 0.5))
        lam, V = newton_step(problem, state["impulse"], state["motion"], share, proximal)
        new = {"impulse": lam, "motion": V, "slip": state["slip"]}
        return self._advance(problem, state, new, state["steps"][0])

    def _stop_sweep(self, problem: Problem, lam: Scalars, w: Scalars) -> Any:
        """Solve each stop once, in `lam` and w; the sum of the squares of the changes (m/s)."""
        change: Any = 0.0
        for i in range(self.space.count, self.space.count + self.space.stop_count):
            (k,), part = self.space.columns[i], self.space.parts[i]
            A, (old,) = problem.omega[k][k], lam[part]
            u = stop_speed(problem, i, dot(problem.omega[k], w))
            lam[part] = [maximum(old - u / A, 0.0)]
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
        """The state after an iteration: a sweep from the best impulses is next if a cycle ends."""
        (best,), (phase,), (cycle,) = (state[x] for x in ("best_residual", "phase", "cycle"))
        square = residual_square(problem, new["impulse"], new["motion"])
        better, ends = less(square, best), maximum(less(CYCLE - 1.5, phase), less(WILD**2, square))
        again = ends * less(CYCLES - 1.5, cycle) * less(cycle, CYCLES - 0.5)
        limits = [
            (x * self.ground.tolerance) ** 2 for x in (CONVERGENCE, ROUNDED, LATE_CONVERGENCE)
        ]
        solved, rounded = less(square, limits[0]), less(best, limits[1])
        late = less(0.5, cycle) * less(best, limits[2])
        kept = [choose(better, p, q) for p, q in zip(new["impulse"], state["best"], strict=True)]
        following = zip(kept, new["impulse"], strict=True)
        plan = {
            "impulse": [(1.0 - again) * choose(ends, p, q) for p, q in following],
            "best": kept,
            "best_residual": [minimum(square, best)],
            "done": [maximum(solved, (1.0 - better) * maximum(rounded, late))],
            "phase": [(1.0 - ends) * (phase + 1.0)],
            "cycle": [cycle + ends],
            "sweeps": [ends],
            "steps": [1.0 - ends],
        }
        return self._store(problem, state, new | plan, active)

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
