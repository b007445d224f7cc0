"""The task of operational-space control on a tape: the wrench that moves a frame as wanted.

    f = Lambda (x''_ref - x'')        x''_ref = kp e + kd (x'_ref - x'),   kp e cut to what kd balances at the speed

e is x_ref - x, of a pose with the turn as a rotation vector; Lambda = policy(X) of X = J M^-1 J*, see `control/task_space.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from psiphi.control.task_space import LEVER
from psiphi.rollouts.parts import Values, trace
from psiphi.spatial.choices import choose, least, less, most
from psiphi.spatial.rotations import TINY, logarithm, quaternion
from psiphi.spatial.screws import dot, root
from psiphi.spatial.small import product, transpose
from psiphi.spatial.spectrum import applied, spectrum
from psiphi.sweeps.unroll import Straight


def task(rows: int, policy: str) -> Straight:
    """f_ext = -f of the last `rows` (3 or 6) rows; `gains`: kp, kd, the largest pull, and the policy's number."""
    sizes = {"T": 16, "twist": 6, "drift": 6, "X": 36, "x_ref": 16 if rows == 6 else 3, "r_ref": rows, "gains": 4}
    first = 6 - rows

    def rule(T, twist, drift, X, x_ref, r_ref, gains) -> Values:
        kp, kd, pull, number = gains
        R, p = _split(T)
        error = _apart(p, x_ref) if rows == 3 else _turn(R, _split(x_ref)[0]) + _apart(p, _split(x_ref)[1])
        wanted = []
        for k in range(0, rows, 3):
            part = [kp * e for e in error[k : k + 3]]
            wanted += [pull / most(root(dot(part, part)), pull) * x for x in part]
        missing = [
            a + kd * (rate - now) - drifting
            for a, rate, now, drifting in zip(wanted, r_ref, twist[first:], drift[first:], strict=True)
        ]
        keep = _felt([X[7 * r] for r in range(6)])
        inner = [[keep[r] * keep[c] * X[6 * min(r, c) + max(r, c)] for c in range(first, 6)] for r in range(first, 6)]
        force = POLICIES[policy](inner, missing, number)
        return {"f_ext": [0.0] * first + [-x for x in force]}

    return trace("task", sizes, rule)


def _split(T: list) -> tuple[list, list]:
    """Rotation and position of a pose, given row by row."""
    return [T[4 * r : 4 * r + 3] for r in range(3)], [T[4 * r + 3] for r in range(3)]


def _apart(p: list, q: list) -> list:
    return [b - a for a, b in zip(p, q, strict=True)]


def _turn(R: list, wanted: list) -> list:
    """The rotation vector from R to the wanted rotation, in world axes."""
    return logarithm(quaternion(product(wanted, transpose(R))))[0]


def _felt(diagonal: list) -> list:
    """1 for the rows of X that are more than rounding, 0 for others: see `task_space.felt`."""
    turn, slide = (a + b + c for a, b, c in (diagonal[:3], diagonal[3:]))
    return [less(LEVER**2 * slide, turn)] * 3 + [less(LEVER**2 * turn, slide)] * 3


def _faded(X: list, b: list, fade) -> list:
    scale = []
    for k in range(0, len(X), 3):
        mean = (X[k][k] + X[k + 1][k + 1] + X[k + 2][k + 2]) * (1.0 / 3.0)
        scale += [1.0 / root(most(mean, TINY))] * 3
    w, planes = spectrum([[x * (a * c) for x, c in zip(row, scale, strict=True)] for a, row in zip(scale, X, strict=True)])
    shares = []
    for value in w:
        x = least(most(value / fade, 0.0), 1.0)
        shares.append(x * x * (3.0 - 2.0 * x) / choose(less(0.0, value), value, 1.0))
    inner = applied(shares, planes, [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)]


def _top(w: list):
    """The largest eigenvalue, or 0."""
    return reduce(most, w, 0.0)


def _kept(w: list, rcond) -> list:
    """1 for eigenvalues above rcond times the largest, 0 for the others."""
    floor = rcond * _top(w)
    return [less(floor, value) for value in w]


def _pseudo(X: list, b: list, rcond) -> list:
    w, planes = spectrum(X)
    return applied([on / choose(on, x, 1.0) for on, x in zip(_kept(w, rcond), w, strict=True)], planes, b)


def _exact(X: list, b: list, rcond) -> list:
    """0 / 0 where an eigenvalue is too small."""
    w, planes = spectrum(X)
    return applied([on / (on * x) for on, x in zip(_kept(w, rcond), w, strict=True)], planes, b)


def _damped(X: list, b: list, damping) -> list:
    w, planes = spectrum(X)
    small = damping * _top(w)
    return applied([x / (x * x + (small * small + TINY)) for x in w], planes, b)


POLICIES: dict[str, Callable[[list, list, object], list]] = {
    "faded": _faded,
    "pseudo": _pseudo,
    "exact": _exact,
    "damped": _damped,
}
