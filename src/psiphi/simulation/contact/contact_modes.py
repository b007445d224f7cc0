"""The contacts of a solved step as equations in which impulses depend smoothly on the state.

Each contact is open, sticks or slips. With the impulses lambda, the velocities c + b of the contact
points (`ground_contact.py`), and the direction d in which a contact slips, p = n x d:

    open     lambda = 0
    stick    c + b = 0
    slip     c_n + b_n = 0,   lambda_d + mu lambda_n = 0,   lambda_p + mu lambda_n c_p / |c_t| = 0

The last one turns the friction with the direction of slip. The derivative of these equations F by
lambda, with c = J v_f + G lambda, is the matrix A of `compiler/autodiff/implicit_solve.py`. Its
unknowns are in the axes (n, d, p) of each contact, and need no exchange of rows.

The modes follow from the solution, however it was found: with r = 1 / G_nn, a contact pushes if
lambda_n - r (c_n + b_n) > 0, and then sticks if |lambda_t - r c_t| < mu lambda_n.

A joint stop has u = S v + b and A_kk = S G S in place of c_n + b_n and G_nn: open or closed.

Other laws (convex, smoothed: `cone_solver.py`) have one equation for all modes, A_nn lambda = p(y).

If contacts are redundant, such as the four corners of a foot, A is singular: its null space has
changes of the impulses that the equations leave open. REGULARIZATION times G_nn on the diagonal of
its rows picks small ones. If they do not change the velocities, these have a derivative. If they
do, there is none: the friction of corners that slip in different directions depends on how they
share the load, which Coulomb's law does not say. The factors are then NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.compiler.autodiff.implicit_solve import are_accurate, factor_rows, solve_rows
from psiphi.model.spatial.branch_free import choose, less, maximum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import dot, square_root
from psiphi.simulation.contact.cone_solver import ContactLaw
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Values

REGULARIZATION = 1e-11
MOST_RESPONSE = 1e5  # of velocities to impulses that the equations hardly determine
TINY = 1e-30
PER_CONTACT = ("push", "stick", "slip", "turn", "follow", "scale")


def mode_sizes(contact: GroundContact) -> dict[str, int]:
    """{name: size} of what `find_modes` returns."""
    count, stops = contact.count, contact.stop_count
    sizes = dict.fromkeys(PER_CONTACT if contact.law.is_exact else ("scale",), count)
    sizes |= {"closed": stops} if stops else {}
    return sizes | {"direction": 2 * count, "factors": contact.space.impulse_size**2}


def find_modes(
    G: Sequence[Sequence[Any]],
    c: Sequence[Any],
    friction: np.ndarray,
    impulse: np.ndarray,
    law: ContactLaw,
    locked: Sequence[bool],
) -> Values:
    """The mode of each contact, the weights of its equations, and the factors of A; `c` are the
    c + b of the solution. The rows of joint stops follow those of the contacts.

    push, stick, slip   1 or 0
    direction           d (two numbers), in the axes of the tangents
    turn, follow        the weights of c_p and lambda_p in the last equation: 1 and 0 for stick
    scale               G_nn, which gives friction the unit of a velocity
    closed              1 or 0, of each stop
    """
    if not law.is_exact:
        return _find_factors(G, c, friction, impulse, law, locked)
    lam = entries(impulse)
    modes = [
        _mode(G[i][i], c[i : i + 3], lam[i : i + 3], mu)
        for i, mu in zip(range(0, len(c), 3), entries(friction), strict=False)
    ]
    rows = _in_mode_axes(G, modes)
    found = {name: [mode[name] for mode in modes] for name in PER_CONTACT}
    A = _matrix(rows, modes, entries(friction))
    return _with_factors(found, A, rows, modes, _closed_stops(A, G, c, lam, locked))


def _closed_stops(
    A: list[list[Any]],
    G: Sequence[Sequence[Any]],
    c: Sequence[Any],
    lam: Sequence[Any],
    locked: Sequence[bool],
) -> list[Any]:
    """1 for each closed stop, else 0; and its row in A, which begins as that of G."""
    found = []
    for k, is_locked in enumerate(locked, start=len(c) - len(locked)):
        closed = 1.0 + 0.0 * c[k] if is_locked else less(c[k], G[k][k] * lam[k])
        A[k][k] = (1.0 + REGULARIZATION) * A[k][k]
        A[k] = [closed * x for x in A[k]]
        A[k][k] = A[k][k] + (1.0 - closed)
        found.append(closed)
    return found


def _with_factors(
    found: dict[str, list[Any]],
    A: Sequence[Sequence[Any]],
    rows: Sequence[Sequence[Any]],
    modes: Sequence[dict[str, Any]],
    closed: list[Any],
) -> Values:
    """What is found, the directions, and the factors of A: NaN if it is singular."""
    factors = factor_rows(A)
    valid = are_accurate(factors, A) * _is_determined(factors, rows, modes, closed)
    valid = 1.0 / valid  # infinite, and then NaN, if not
    found |= {"closed": closed} if closed else {}
    found["direction"] = [x for mode in modes for x in mode["direction"]]
    found["factors"] = [x * valid for row in factors for x in row]
    return {name: stack_entries(values) for name, values in found.items()}


def _find_factors(
    G: Sequence[Sequence[Any]],
    c: Sequence[Any],
    friction: np.ndarray,
    impulse: np.ndarray,
    law: ContactLaw,
    locked: Sequence[bool],
) -> Values:
    """The same for laws with one equation: A = A_nn (1 - S) + S G, S = dp/dy."""
    lam, projections, scales = entries(impulse), [], []
    for i, mu in zip(range(0, len(c), 3), entries(friction), strict=False):
        scale = G[i][i] if law.mobility is None else law.mobility + 0.0 * G[i][i]
        y = [scale * x - u for x, u in zip(lam[i : i + 3], c[i : i + 3], strict=True)]
        projections.append(law.projection(y, mu, law.smooth))
        scales.append(scale)
    modes = [{"direction": p.direction, "push": p.nn} for p in projections]
    rows = _in_mode_axes(G, modes)
    A = []
    for i, (p, scale) in enumerate(zip(projections, scales, strict=True)):
        own = [list(row) for row in rows[3 * i : 3 * i + 3]]
        for k, row in enumerate(own):
            row[3 * i + k] = row[3 * i + k] + (REGULARIZATION - 1.0) * scale
        n, d, across = own
        turned = [
            [p.nn * x + p.nd * y for x, y in zip(n, d, strict=True)],
            [p.dn * x + p.dd * y for x, y in zip(n, d, strict=True)],
            [p.across * x for x in across],
        ]
        for k, row in enumerate(turned):
            row[3 * i + k] = row[3 * i + k] + scale
        A += turned
    A += [list(row) for row in rows[len(A) :]]
    closed = _closed_stops(A, G, c, lam, locked)
    return _with_factors({"scale": scales}, A, rows, modes, closed)


def _mode(scale: Any, c: Sequence[Any], lam: Sequence[Any], mu: Any) -> dict[str, Any]:
    """The mode of one contact."""
    push = less(0.0, lam[0] * scale - c[0])
    y0, y1 = c[1] - scale * lam[1], c[2] - scale * lam[2]
    bound = mu * scale * maximum(lam[0], 0.0)
    square = y0 * y0 + y1 * y1
    stick = push * less(square, bound * bound)
    slip = push - stick
    size = 1.0 / square_root(maximum(square, TINY))
    known = less(TINY, square)
    direction = [choose(known, y0 * size, 1.0), known * y1 * size]
    sliding = square_root(c[1] * c[1] + c[2] * c[2])
    share = bound / (bound + sliding + TINY)
    return {
        "push": push,
        "stick": stick,
        "slip": slip,
        "turn": stick + slip * share,
        "follow": slip * (1.0 - share) * scale,
        "scale": scale,
        "direction": direction,
    }


def _in_mode_axes(
    rows: Sequence[Sequence[Any]], modes: Sequence[dict[str, Any]]
) -> list[list[Any]]:
    """G in the axes (n, d, p) of each contact."""
    directions = [mode["direction"] for mode in modes]
    columns = zip(*(_to_modes(row, directions) for row in rows), strict=True)
    turned = (_to_modes(column, directions) for column in columns)
    return [list(row) for row in zip(*turned, strict=True)]


def _matrix(
    rows: Sequence[Sequence[Any]], modes: Sequence[dict[str, Any]], friction: Sequence[Any]
) -> list[list[Any]]:
    """A = dF/dlambda, from the rows of G in the axes of the modes."""
    A = [list(row) for row in rows]
    for i, (mode, mu) in enumerate(zip(modes, friction, strict=True)):
        n, d, p = range(3 * i, 3 * i + 3)
        idle, scale = 1.0 - mode["push"], mode["scale"]
        for row, weight in ((n, mode["push"]), (d, mode["stick"]), (p, mode["turn"])):
            A[row][row] = A[row][row] + REGULARIZATION * scale
            A[row] = [weight * x for x in A[row]]
            A[row][row] = A[row][row] + idle
        A[d][d] = A[d][d] + mode["slip"] * scale
        A[d][n] = A[d][n] + mode["slip"] * scale * mu
        A[p][p] = A[p][p] + mode["follow"]
    return A


def _is_determined(
    factors: Sequence[Sequence[Any]],
    rows: Sequence[Sequence[Any]],
    modes: Sequence[dict[str, Any]],
    closed: Sequence[Any],
) -> Any:
    """1 if G A^-1 is not large, tested with one vector: then impulses that the equations do not
    determine do not change the velocities. Else 0."""
    acts = [*(mode["push"] for mode in _three_times(modes)), *closed]
    b = [x * (0.5 + 0.618 * i % 1.0) for i, x in enumerate(acts)]
    x = solve_rows(factors, b)
    change = [dot(row, x) for row in rows]
    return less(dot(change, change), MOST_RESPONSE**2 * dot(b, b) + TINY)


def _three_times(modes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [mode for mode in modes for _ in range(3)]


def _to_modes(x: Sequence[Any], directions: Sequence[Sequence[Any]]) -> list[Any]:
    """A vector of all contacts in their axes (n, d, p), and of the stops."""
    out = []
    for i, (e0, e1) in enumerate(directions):
        normal, t0, t1 = x[3 * i : 3 * i + 3]
        out += [normal, e0 * t0 + e1 * t1, e0 * t1 - e1 * t0]
    return [*out, *x[len(out) :]]


def _from_modes(x: Sequence[Any], directions: Sequence[Sequence[Any]]) -> list[Any]:
    """The vector in the axes of the ground."""
    out = []
    for i, (e0, e1) in enumerate(directions):
        normal, along, across = x[3 * i : 3 * i + 3]
        out += [normal, e0 * along - e1 * across, e1 * along + e0 * across]
    return [*out, *x[len(out) :]]


def impulse_change(
    c: Sequence[Any],
    friction: np.ndarray,
    impulse: np.ndarray,
    near: np.ndarray,
    held: Mapping[str, np.ndarray],
    law: ContactLaw,
) -> np.ndarray:
    """-A^-1 F: zero at the solution, with the derivative of the impulses by c + b and mu. `held`
    is what `find_modes` has returned; it is not used if no contact is near."""
    flat = entries(held["direction"])
    directions = [flat[2 * i : 2 * i + 2] for i in range(len(flat) // 2)]
    equations = _equations if law.is_exact else _law_equations
    F = equations(c, entries(friction), entries(impulse), near, held, directions, law)
    if "closed" in held:
        (acts,) = entries(near)
        stops = zip(entries(held["closed"]), c[len(F) :], strict=True)
        F += [acts * closed * u for closed, u in stops]
    size, values = len(c), entries(held["factors"])
    factors = [values[size * i : size * i + size] for i in range(size)]
    return stack_entries(_from_modes([-x for x in solve_rows(factors, F)], directions))


def _law_equations(
    c: Sequence[Any],
    friction: Sequence[Any],
    lam: Sequence[Any],
    near: np.ndarray,
    held: Mapping[str, np.ndarray],
    directions: Sequence[Sequence[Any]],
    law: ContactLaw,
) -> list[Any]:
    """F = A_nn lambda - p(y) of each contact."""
    (acts,), F = entries(near), []
    for i, (mu, scale) in enumerate(zip(friction, entries(held["scale"]), strict=True)):
        push = [scale * x for x in lam[3 * i : 3 * i + 3]]
        y = [a - b for a, b in zip(push, c[3 * i : 3 * i + 3], strict=True)]
        p = law.projection(y, mu, law.smooth).point
        F += [acts * (a - b) for a, b in zip(push, p, strict=True)]
    return _to_modes(F, directions)


def _equations(
    c: Sequence[Any],
    friction: Sequence[Any],
    lam: Sequence[Any],
    near: np.ndarray,
    held: Mapping[str, np.ndarray],
    directions: Sequence[Sequence[Any]],
    law: ContactLaw,
) -> list[Any]:
    """F of each contact by its mode."""
    (acts,), F = entries(near), []
    weights = {name: entries(held[name]) for name in PER_CONTACT}
    speeds, impulses = _to_modes(c, directions), _to_modes(lam, directions)
    for i, mu in enumerate(friction):
        of = {name: acts * values[i] for name, values in weights.items()}
        (c_n, c_d, c_p), (n, d, p) = (x[3 * i : 3 * i + 3] for x in (speeds, impulses))
        slip = of["slip"] * weights["scale"][i]
        F += [of["push"] * c_n, of["stick"] * c_d + slip * (d + mu * n)]
        F.append(of["turn"] * c_p + of["follow"] * p)
    return F


def contact_velocities(
    contact: GroundContact,
    poses: np.ndarray,
    twists: np.ndarray,
    h: np.ndarray,
    impulse: np.ndarray,
    twists_before: np.ndarray | None,
    held: Mapping[str, np.ndarray],
    q: np.ndarray,
    v: np.ndarray,
    cells: np.ndarray | None = None,
    **numbers: np.ndarray,
) -> tuple[list[Any], list[Any]]:
    """c + b (+ R lambda_n) of the contacts, for the twists of the frames after the step, and that
    of the stops; and R, if the ground yields. Rebounds act where they did in the solved step: where
    its `speed` differs from `still`."""
    given: dict[str, Any] = {"poses": poses, "h": h, "velocities_before": twists_before}
    given |= {"q": q, "v": v, "cells": cells}
    count = contact.count
    found = contact.approach(velocities=twists, **given, **numbers)
    speed = entries(found["speed"])
    if twists_before is not None:
        speed[: 3 * count : 3] = entries(found["still"])[:count]
        arriving = contact.approach(velocities=twists_before, **given, **numbers)["free"]
        rows = zip(
            entries(found["free"])[:count],
            entries(arriving)[:count],
            entries(numbers["restitution"]),
            strict=True,
        )
        for i, (moving, v, e) in enumerate(rows):
            difference = entries(held["speed"])[3 * i] - entries(held["still"])[i]
            acts = less(0.0, difference * difference)
            speed[3 * i] = choose(acts, moving + e * v, speed[3 * i])
    compliance = entries(found["compliance"]) if "compliance" in found else []
    for i, x in enumerate(compliance):
        speed[3 * i] = speed[3 * i] + x * entries(impulse)[3 * i]
    return speed, compliance
