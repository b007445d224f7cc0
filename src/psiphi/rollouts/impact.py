"""`limits="block"` on tapes: the parts of `control/stops.py` as blocks, which run where a lane needs them.

touch      q within its limits;  side: 1 at a lower limit (or both), -1 at an upper, else 0;  hit: whether anything must change
mass       M^-1
impact     A = S M^-1 S*, speed = S v, lambda = 0
sweep      one sweep of Gauss and Seidel, until each lane is done
bounce     v = v + M^-1 S* lambda
"""

from __future__ import annotations

from math import inf

from psiphi.control.stops import CLOSE, SWEEPS, Stops
from psiphi.emitters.joined import Named
from psiphi.emitters.rollout import Repeat
from psiphi.functions.robot import Robot
from psiphi.rollouts.parts import Values, catalogued, trace
from psiphi.spatial.choices import choose, least, less, most
from psiphi.spatial.screws import dot

STOPS = Repeat("stops", "touch", "hit", ("mass", "impact"), "sweep", "done", SWEEPS, "bounce")


def blocks(stops: Stops, robot: Robot) -> Named:
    """{block: (tape, {its argument: place})}."""
    nq, nv, n = robot.nq, robot.nv, len(stops.q)
    own, locked = stops.v.tolist(), stops.locked.tolist()

    def touch(q, v) -> Values:
        q, side, hit = list(q), [], 0.0
        for i, k, low, high in zip(stops.q, own, stops.lower.tolist(), stops.upper.tolist(), strict=True):
            x, rate, inward = q[i], v[k], 0.0
            if low > -inf:
                at = 1.0 - less(low, x)
                hit, inward = hit + (less(x, low) + at * less(rate, 0.0)), inward + at
                q[i] = most(q[i], low)
            if high < inf:
                at = 1.0 - less(x, high)
                hit, inward = hit + (less(high, x) + at * less(0.0, rate)), inward - at
                q[i] = least(q[i], high)
            side.append(1.0 if low == high else inward)
        return {"Q": q, "q": q, "side": side, "hit": [hit]}

    def impact(v, M_inv, side) -> Values:
        A = [side[i] * side[j] * M_inv[own[i] * nv + own[j]] for i in range(n) for j in range(n)]
        speed = [s * v[k] for s, k in zip(side, own, strict=True)]
        return {"compliance": A, "speed": speed, "impulse": [0.0] * n, "done": [0.0]}

    def sweep(compliance, speed, side, impulse, done) -> Values:
        new = list(impulse)
        for k in range(n):
            row = compliance[n * k : n * k + n]
            on = side[k] * side[k]
            after = speed[k] + dot(row, new)
            push = new[k] - after / choose(on, row[k], 1.0)
            new[k] = on * (push if locked[k] else most(0.0, push))
        change = [x - y for x, y in zip(new, impulse, strict=True)]
        moving = less(CLOSE * CLOSE * dot(new, new), dot(change, change))
        kept = [choose(done[0], x, y) for x, y in zip(impulse, new, strict=True)]
        return {"impulse": kept, "done": [1.0 - (1.0 - done[0]) * moving]}

    def bounce(v, M_inv, side, impulse) -> Values:
        push = [s * x for s, x in zip(side, impulse, strict=True)]
        v = [x + dot([M_inv[r * nv + k] for k in own], push) for r, x in enumerate(v)]
        for s, k, still in zip(side, own, locked, strict=True):
            v[k] = 0.0 if still else v[k] * (1.0 - less(s * v[k], 0.0))  # what rounding left over
        return {"V": v, "v": v}

    return {
        "touch": (trace("touch", {"q": nq, "v": nv}, touch), {}),
        "mass": (catalogued(robot, "mass_matrix_inverse"), {}),
        "impact": (trace("impact", {"v": nv, "M_inv": nv * nv, "side": n}, impact), {}),
        "sweep": (trace("sweep", {"compliance": n * n, "speed": n, "side": n, "impulse": n, "done": 1}, sweep), {}),
        "bounce": (trace("bounce", {"v": nv, "M_inv": nv * nv, "side": n, "impulse": n}, bounce), {}),
    }
