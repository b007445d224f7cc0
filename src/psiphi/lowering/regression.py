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

from psiphi.spatial import small
from psiphi.spatial.screws import add, cross, dot, motion
from psiphi.steps.local import EYE3
from psiphi.steps.newton import move, tensor, world_at_rest
from psiphi.sweeps.program import BASE_TO_TIP, Argument, Program, Site, Sweep

PARAMETERS = 10  # of a body
PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def program(tree: Any) -> Program:
    """Y (nv, 10 bodies) in one sweep: messages grow along the tree, so that it is written out."""
    model, width = tree.model, PARAMETERS * len(tree.links)
    inputs = Argument("q", (model.nq,), "q"), Argument("v", (model.nv,), "v"), Argument("a", (model.nv,), "v")
    sweep = Sweep(BASE_TO_TIP, partial(regress, width=width))
    rest = partial(Site.keep, moved=world_at_rest(model.gravity_vector.tolist()), screws={})
    return Program("regressor", inputs, (Argument("Y", (model.nv, width)),), (sweep,), rest, local=False)


def regress(site: Site, width: int) -> None:
    """Base to tip: the screws of all joints inboard, carried along, and their rows for this body's parameters.

    `width` is that of Y."""
    w, wd, vd, U = move(site, site.of("a"), "moved")
    first = site.slices["v"].start
    screws = {i: motion(site.path, screw) for i, screw in site.parent["screws"].items()}
    screws |= {first + i: row for i, row in enumerate(site.H)}
    site.keep(screws=screws)
    R, r = EYE3, [0.0, 0.0, 0.0]
    if site.gauge is not None:
        R, r = site.gauge.rotation.tolist(), site.gauge.inv.translation.tolist()  # r: the public origin in working axes
    vd = small.apply(R, add(vd, small.apply(U, r)))
    w, wd = small.apply(R, w), small.apply(R, wd)
    U = tensor(w, wd)
    for i, screw in screws.items():
        s, t = small.apply(R, screw[:3]), small.apply(R, add(screw[3:], cross(screw[:3], r)))
        site.write("Y", i * width + site.link.index * PARAMETERS, _row(s, t, w, wd, vd, U))


def _row(s: list, t: list, w: list, wd: list, vd: list, U: list) -> list:
    """One joint coordinate's ten entries."""
    c = cross(s, w)
    first = add(cross(vd, s), small.apply(small.transpose(U), t))
    second = []
    for i, j in PAIRS:
        entry = s[i] * wd[j] + c[i] * w[j]
        second.append(entry if i == j else entry + (s[j] * wd[i] + c[j] * w[i]))
    return [dot(t, vd), *first, *second]
