"""The regressor of the joint torques: tau = Y pi, linear in the bodies' inertial parameters.

The parameters of a body are pi = [m, m c (3), Ixx Ixy Ixz Iyy Iyz Izz] about the public origin of
its link, in link axes. A motion with w, w' and v' (minus gravity) needs the wrench

    F = m v' + U m c          N = m c x v' + I w' + w x I w          U = w'~ + w~ w~

Its torque at joint coordinate i, with screw [s; t] = phi* H* e_i at that origin, is s . N + t . F.
So the entries of row i of Y are

    m: t . v'        m c: v' x s + U* t        I: s (x) w' + (s x w) (x) w, symmetrised
"""

from __future__ import annotations

from functools import partial

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import EYE3, gauges
from psiphi.compiler.recursions.newton_euler import acceleration_tensor, body_motion, world_at_rest
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, Argument, BodyView, Program, Sweep
from psiphi.model.components import path_to_body
from psiphi.model.model import Model
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import motion
from psiphi.model.spatial.screws import add, cross, dot
from psiphi.model.spatial.small_matrices import body_part

PARAMETERS = 10  # per body
PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def regressor_program(tree: Tree, blocks: bool = False) -> Program:
    """Y (nv, 10 bodies) in one sweep; with `blocks`, the blocks at `block_places`, (blocks, 10).

    Messages grow along the tree, so the sweep cannot run in a loop.
    """
    model, width = tree.model, PARAMETERS * len(tree.model.bodies)
    inputs = (
        Argument("q", (model.nq,), "q"),
        Argument("v", (model.nv,), "v"),
        Argument("a", (model.nv,), "v"),
    )
    starts = (
        {pair: PARAMETERS * n for n, pair in enumerate(block_places(model))} if blocks else None
    )
    shape = (model.nv, width) if starts is None else (len(starts), PARAMETERS)
    sweep = Sweep(BASE_TO_TIP, partial(regressor_step, width=width, starts=starts))
    rest = partial(BodyView.store, moved=world_at_rest(model.gravity_vector.tolist()), screws={})
    return Program("regressor", inputs, (Argument("Y", shape),), (sweep,), rest, can_loop=False)


def block_places(model: Model) -> list[tuple[int, int]]:
    """(coordinate, body) of the blocks of Y that can be nonzero, by rows.

    A joint carries the bodies of its subtree; with embedded loops every pair is included.
    """
    if model.embedding is not None:
        return [(i, k) for i in range(model.nv) for k in range(len(model.bodies))]
    return sorted(
        (i, k)
        for k in range(len(model.bodies))
        for j in path_to_body(model.parent, k)
        for i in model.joints[j].coordinates
    )


def regressor_step(body: BodyView, width: int, starts: dict[tuple[int, int], int] | None) -> None:
    """Base to tip: the screws of all inboard joints at this body, and their blocks of Y.

    `width` is that of Y; `starts` are the offsets of the blocks if only blocks are stored.
    """
    moved = body_motion(body, body.joint_input("a"), "moved")
    first, block = body.slices["v"].start, body.slices["x"].start // 6
    # phi* H* e_i of every joint between the base and this body
    screws = {i: motion(body.path, screw) for i, screw in body.parent["screws"].items()}
    screws |= {first + i: row for i, row in enumerate(body.H)}
    body.store(screws=ScrewStack(screws))
    for n, gauge in enumerate(gauges(body)):
        R, r = EYE3, [0.0, 0.0, 0.0]
        if gauge is not None:  # r is the public origin in working axes
            R, r = gauge.rotation.tolist(), gauge.inv.translation.tolist()
        # parameters are about the public origin, in public axes: v' becomes R (v' + U r)
        w, wd, vd, U = (body_part(x, n, 3) for x in moved)
        vd = small_matrices.apply(R, add(vd, small_matrices.apply(U, r)))
        w, wd = small_matrices.apply(R, w), small_matrices.apply(R, wd)
        U = acceleration_tensor(w, wd)
        for i, screw in screws.items():
            at_body = body_part(screw, n)
            s = small_matrices.apply(R, at_body[:3])
            t = small_matrices.apply(R, add(at_body[3:], cross(at_body[:3], r)))
            column = (block + n) * PARAMETERS
            start = i * width + column if starts is None else starts[i, block + n]
            body.write("Y", start, _regressor_row(s, t, w, wd, vd, U))


class ScrewStack(dict):
    """{coordinate: its screw at each body of a link}."""

    def extract_body(self, index: int, count: int) -> ScrewStack:
        return ScrewStack({i: body_part(screw, index) for i, screw in self.items()})


def _regressor_row(s: list, t: list, w: list, wd: list, vd: list, U: list) -> list:
    """The ten entries for one joint coordinate and one body."""
    # s . (I w' + w x I w) = s* I w' + (s x w)* I w; I is symmetric, so off-diagonal entries add up
    c = cross(s, w)
    first = add(cross(vd, s), small_matrices.apply(small_matrices.transpose(U), t))
    second = []
    for i, j in PAIRS:
        entry = s[i] * wd[j] + c[i] * w[j]
        second.append(entry if i == j else entry + (s[j] * wd[i] + c[j] * w[i]))
    return [dot(t, vd), *first, *second]
