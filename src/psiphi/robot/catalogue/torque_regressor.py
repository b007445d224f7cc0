"""The regressor of the joint torques: tau = Y pi, linear in the bodies' inertial parameters.

A body's parameters are pi = [m, m c (3), Ixx Ixy Ixz Iyy Iyz Izz] about its link's public origin, in link axes. Moving with w,
w' and v' (less gravity) it needs the wrench

    F = m v' + U m c          N = m c x v' + I w' + w x I w          U = w'~ + w~ w~

and joint coordinate i feels it through its screw [s; t] = phi* H* e_i, seen from there: Y row = s . N + t . F. So

    m: t . v'        m c: v' x s + U* t        I: s (x) w' + (s x w) (x) w, symmetric
"""

from __future__ import annotations

from functools import partial
from typing import Any

from psiphi.compiler.recursions.body_step import EYE3, gauges
from psiphi.compiler.recursions.newton_euler import move, tensor, world_at_rest
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, Argument, BodyView, Program, Sweep
from psiphi.model.components import way_to
from psiphi.model.model import Model
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import motion
from psiphi.model.spatial.screws import add, cross, dot
from psiphi.model.spatial.small_matrices import part

PARAMETERS = 10  # of a body
PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def program(tree: Any, blocks: bool = False) -> Program:
    """Y (nv, 10 bodies) in one sweep: messages grow along the tree, so that it is written out.

    `blocks`: those at `places` alone, (blocks, 10)."""
    model, width = tree.model, PARAMETERS * len(tree.model.bodies)
    inputs = (
        Argument("q", (model.nq,), "q"),
        Argument("v", (model.nv,), "v"),
        Argument("a", (model.nv,), "v"),
    )
    at = {pair: PARAMETERS * n for n, pair in enumerate(places(model))} if blocks else None
    shape = (len(at), PARAMETERS) if at is not None else (model.nv, width)
    sweep = Sweep(BASE_TO_TIP, partial(regress, width=width, at=at))
    rest = partial(BodyView.keep, moved=world_at_rest(model.gravity_vector.tolist()), screws={})
    return Program("regressor", inputs, (Argument("Y", shape),), (sweep,), rest, local=False)


def places(model: Model) -> list[tuple[int, int]]:
    """(coordinate, body), by rows: where Y has anything, since a joint feels what it carries (embedded loops: all)."""
    if model.embedding is not None:
        return [(i, k) for i in range(model.nv) for k in range(len(model.bodies))]
    # joint i feels body k where i is on the way from k to the base
    return sorted(
        (i, k)
        for k in range(len(model.bodies))
        for j in way_to(model.parent, k)
        for i in model.joints[j].coordinates
    )


def regress(site: BodyView, width: int, at: dict[tuple[int, int], int] | None) -> None:
    """Base to tip: the screws of all joints inboard, carried along, and their rows for this body's parameters.

    `width` is that of Y; `at` says where blocks of it go instead."""
    moved = move(site, site.of("a"), "moved")
    first, body = site.slices["v"].start, site.slices["x"].start // 6
    # phi* H* e_i of every joint on the way here: the rows of Y that this body has a part in
    screws = {i: motion(site.path, screw) for i, screw in site.parent["screws"].items()}
    screws |= {first + i: row for i, row in enumerate(site.H)}
    site.keep(screws=ScrewStack(screws))
    for n, gauge in enumerate(gauges(site)):
        R, r = EYE3, [0.0, 0.0, 0.0]
        if gauge is not None:
            R, r = (
                gauge.rotation.tolist(),
                gauge.inv.translation.tolist(),
            )  # r: the public origin in working axes
        # parameters are about the public origin, in public axes: there the body has v' + U r, and U turned
        w, wd, vd, U = (part(x, n, 3) for x in moved)
        vd = small_matrices.apply(R, add(vd, small_matrices.apply(U, r)))
        w, wd = small_matrices.apply(R, w), small_matrices.apply(R, wd)
        U = tensor(w, wd)
        for i, screw in screws.items():
            own = part(screw, n)
            s, t = (
                small_matrices.apply(R, own[:3]),
                small_matrices.apply(R, add(own[3:], cross(own[:3], r))),
            )
            there = i * width + (body + n) * PARAMETERS if at is None else at[i, body + n]
            site.write("Y", there, _row(s, t, w, wd, vd, U))


class ScrewStack(dict):
    """{coordinate: its screw as the bodies of a link see it}."""

    def taken(self, at: int, count: int) -> ScrewStack:
        return ScrewStack({i: part(screw, at) for i, screw in self.items()})


def _row(s: list, t: list, w: list, wd: list, vd: list, U: list) -> list:
    """One joint coordinate's ten entries."""
    # s . (I w' + w x I w) = s* I w' + (s x w)* I w: six products, two a pair off the diagonal, since I is symmetric
    c = cross(s, w)
    first = add(cross(vd, s), small_matrices.apply(small_matrices.transpose(U), t))
    second = []
    for i, j in PAIRS:
        entry = s[i] * wd[j] + c[i] * w[j]
        second.append(entry if i == j else entry + (s[j] * wd[i] + c[j] * w[i]))
    return [dot(t, vd), *first, *second]
