"""Frames in sweeps: B spreads wrenches from frames to their bodies, B* senses motions there, in world or frame axes.

A value in frame space is {frame number: six scalars} at the bodies that carry frames. `site.mark` maps each letter
B to the frames this body carries: (number, rotation, origin) in the body's working axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter, Letter
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, gauges
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.model import WORLD
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import part


def marks(tree: Any, letters: list[FrameLetter]) -> dict[int, tuple]:
    """{body: ((letter, world axes?, ((number, R, p), ...)), ...)} for all bodies on the way to a frame."""
    found: dict[int, dict] = {}
    for letter in letters:
        world = letter.axes == "world"
        for number, name in enumerate(letter.frames):
            spot = tree.model.frame(name)
            if spot.body == WORLD:
                continue
            for k in tree.path_to(spot.body):
                found.setdefault(k, {}).setdefault((letter, world), [])
            # all bodies inboard are marked, to carry poses out to the frame; the one that has it knows where it stands
            place, (home, at) = tree.place(spot.body, spot.pose), tree.home(spot.body)
            R, p = tuple(map(tuple, place.rotation.tolist())), tuple(place.translation.tolist())
            found[home][letter, world].append((number, R, p, at))
    return {
        k: tuple((*key, tuple(here)) for key, here in letters.items())
        for k, letters in found.items()
    }


def locate(site: BodyView) -> None:
    """Base to tip: the pose of the body's axes in the world, on the way to frames."""
    if site.mark:
        R, p = pose(site.path, site.parent["R"], site.parent["p"])
        site.keep(R=R, p=p)


def here(site: BodyView, letter: FrameLetter):
    """The frames of a letter that this link carries: (number, world axes?, rotation, origin, which of its bodies)."""
    # several letters B may have frames here: each knows its own, by the numbers of its columns
    for name, world, places in site.mark:
        if name == letter:
            for number, R, p, at in places:
                yield number, world, R, p, at


def send_places(site: BodyView, letter: FrameLetter) -> None:
    """Tip to base: where each frame outboard is, rotation and origin in the world."""
    name = f"place {letter}"
    places = FramePlaces(site.children.get(name, {}))
    for number, world, R, p, at in here(site, letter):
        places[number] = (*place_in_world(site, world, R, p, at), at)
    if places:
        site.keep(**{name: places})
        site.send(
            **{
                name: FramePlaces(
                    {number: (axes, origin, 0) for number, (axes, origin, _) in places.items()}
                )
            }
        )


def arrivals(site: BodyView, letter: FrameLetter):
    """(column, its six numbers) of phi(0, k) B: wrenches on this body's frames, [R n + p x R F; R F] at the world's origin."""
    for number, world, R, p, at in here(site, letter.of):
        axes, point = place_in_world(site, world, R, p, at)
        # a unit moment stays what it is; a unit force has the lever p about the world's origin
        for i, along in enumerate(small_matrices.transpose(axes)):
            yield 6 * number + i, along + ZERO3
            yield 6 * number + 3 + i, cross(point, along) + along


def place_in_world(site: BodyView, world: bool, R, p, at: int) -> tuple[list, list]:
    """The rotation to a frame's axes and its origin, in the world: (R_k, p_k)(R, p), the body's pose and then the frame's."""
    # world axes need no rotation at the frame: its motions are read in the world's, where the levers stand anyway
    own, place = part(site.kept["R"], at, 3), part(site.kept["p"], at, 3)
    return EYE3 if world else small_matrices.product(own, R), add(
        place, small_matrices.apply(own, p)
    )


def place_of(found: Callable[[str, int], Any], number: int, count: int) -> tuple[list, list]:
    """R and p of one of `count` frames, off the entries found(result, index) of `frame_places`."""
    entry = lambda name, i, j: found(name, 6 * (count * i + number) + j)  # noqa: E731
    R = [[entry("R", 3 + i, 3 + j) for j in range(3)] for i in range(3)]
    return R, [entry("p", 2, 4), entry("p", 0, 5), entry("p", 1, 3)]


class FramePlaces(dict):
    """{frame number: (rotation to its axes, origin, the body of this link that carries it or hands it on)}; children do not
    share frames."""

    def put(self, at: int, count: int) -> FramePlaces:
        return FramePlaces(
            {number: (axes, origin, at) for number, (axes, origin, _) in self.items()}
        )

    def __add__(self, other: FramePlaces) -> FramePlaces:
        return FramePlaces({**self, **other})


def levers(site: BodyView, letter: Any, left: tuple[str, ...]):
    """(row, column, entry) of L phi(k, frame) B: the joint's screw seen from the frames outboard, in their axes.

    [w; v + w x (p_frame - p_k)] with [w; v] = L* e_i in world axes.
    """
    # e_i* H φ(k, f) B = (screw of coordinate i, moved to the frame)*: places alone, and no column climbs body by body
    rows = site.H if left == ("H",) else None
    assert rows is not None, "only H reads frames in closed form"
    start, places = site.slices["v"].start, site.kept.get(f"place {letter}", {})
    for i, row in enumerate(rows if places else ()):
        for number, (axes, origin, at) in places.items():
            R, h = part(site.kept["R"], at, 3), part(row, at)
            w, v = small_matrices.apply(R, h[:3]), small_matrices.apply(R, h[3:])
            arm = subtract(origin, part(site.kept["p"], at, 3))
            A = small_matrices.transpose(axes)
            column = small_matrices.apply(A, w) + small_matrices.apply(A, add(v, cross(w, arm)))
            for r, value in enumerate(column):
                yield start + i, 6 * number + r, value


def inputs_here(site: BodyView, name: str) -> dict[int, list]:
    """The parts of a frame-space input that belong to this body's frames."""
    # six numbers a frame, in the order in which the letter names them
    numbers = {number for _, _, places in site.mark for number, *_ in places}
    return {i: site.inputs[name][6 * i : 6 * i + 6] for i in numbers}


def every_input(site: BodyView, name: str) -> dict[int, list]:
    """A frame-space input, frame by frame."""
    values = site.inputs[name]
    return {i: values[6 * i : 6 * i + 6] for i in range(len(values) // 6)}


def senses(letter: Letter) -> bool:
    """B* or Ḃ*: motions of links to motions of frames."""
    return isinstance(letter, FrameLetter) and letter.starred


def act(site: BodyView, letter: FrameLetter, x: Any) -> Any:
    """B, B*, Ḃ or Ḃ* at this body."""
    return sense(site, letter, x) if letter.starred else spread(site, letter, x)


def _axes(site: BodyView, world: bool, R, at: int):
    """The rotation from the axes of the wrench or motion to the body's."""
    return small_matrices.transpose(part(site.kept["R"], at, 3)) if world else R


def spread(site: BodyView, letter: FrameLetter, wrenches: Any) -> list:
    """B x at this body: the sum of the frames' wrenches, moved to the body's origin. Ḃ x: they turn back as the body turns."""
    total = [[0.0] * 6 for _ in site.bodies]
    for p, at, n, F in seen_here(site, letter, wrenches):
        # d/dt of R* x for a wrench x that stands still in the world: (R* x) x w
        if letter.rate:
            w = part(site.kept["V"], at)[:3]
            n, F = cross(n, w), cross(F, w)
        total[at] = add(total[at], add(n, cross(p, F)) + F)
    return [x for own in total for x in own]


def seen_here(site: BodyView, letter: FrameLetter, wrenches: Any):
    """(origin, which body, moment, force) of the wrenches on frames of this link, in the body's axes."""
    for number, world, R, p, at in here(site, letter.of):
        # wrenches come in world axes or the frame's own: A turns them into those of the body
        if number in wrenches:  # what B* has not seen is zero: frames of the world
            A, x = _axes(site, world, R, at), wrenches[number]
            yield p, at, small_matrices.apply(A, x[:3]), small_matrices.apply(A, x[3:])


def sense(site: BodyView, letter: FrameLetter, V) -> dict[int, list]:
    """B* V at this body: the motion of each of its frames. Ḃ* V: it turns with the body."""
    out = {}
    for number, world, R, p, at in here(site, letter.of):
        A, own = small_matrices.transpose(_axes(site, world, R, at)), part(V, at)
        # at the frame's origin, v + w x p; d/dt of R y in body axes is w x y
        turn, move = own[:3], add(own[3:], cross(own[:3], p))
        if letter.rate:
            w = part(site.kept["V"], at)[:3]
            turn, move = cross(w, turn), cross(w, move)
        out[number] = small_matrices.apply(A, turn) + small_matrices.apply(A, move)
    return out


def accelerations(site: BodyView, letter: FrameLetter, moved: tuple) -> dict[int, list]:
    """[w'; v' + U r] of each frame of B* on this body, in world axes."""
    out = {}
    # d/dt of (v + w x r), r fixed in the body: v' + (w'~ + w~ w~) r
    for number, world, R, p, at in here(site, letter.of):
        _, wd, vd, U = (part(x, at, 3) for x in moved)
        A = small_matrices.transpose(_axes(site, world, R, at))
        out[number] = small_matrices.apply(A, wd) + small_matrices.apply(
            A, add(vd, small_matrices.apply(U, p))
        )
    return out


def public(site: BodyView, value, kind: str) -> list:
    """A link motion or force of the working axes in the public link frame."""
    if site.gauge is None:  # public axes, or a stage of a filter, of any size
        return value
    return [y for at, gauge in enumerate(gauges(site)) for y in _seen(part(value, at), gauge, kind)]


def working(site: BodyView, value, kind: str) -> list:
    """A link motion or force of the public link frame in the working axes."""
    if site.gauge is None:
        return value
    own = [
        y
        for at, gauge in enumerate(gauges(site))
        for y in _seen(part(value, at), gauge and gauge.inv, kind)
    ]
    return own + [0.0] * (site.link.size - len(own))


def _seen(value: list, pose: Any, kind: str) -> list:
    """What stands at a pose, from where that pose is given."""
    if pose is None:
        return value
    R, r = pose.rotation.tolist(), pose.translation.tolist()
    # the part that is free of the point (w, or F) turns; the other one also gets its lever
    head, tail = small_matrices.apply(R, value[:3]), small_matrices.apply(R, value[3:])
    return (
        head + add(tail, cross(r, head)) if kind == "motion" else add(head, cross(r, tail)) + tail
    )
