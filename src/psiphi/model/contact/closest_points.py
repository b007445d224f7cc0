"""The closest points of two solids without branches, on numbers, arrays and tape expressions.

A solid is a core and a radius about it. A sphere's core is its centre, a capsule's the segment
between the centres of its ends, that of a box is the box. With the closest points a and b of the
cores, at a distance d, and the radii r

    normal = (a - b) / d,  from the second solid to the first
    gap    = d - r_a - r_b
    point  = the middle between the surfaces, b + (r_b + gap / 2) normal

A centre inside a box has the normal of the nearest face, and d < 0. Where cores that are points or
segments meet, d = 0, the normal is z.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, maximum, minimum, sign
from psiphi.model.spatial.screws import add, cross, dot, square_root, subtract

TINY = 1e-24  # the square of a distance (m) that counts as 0
PARALLEL = 1e-12  # sin^2 of the angle between segments that count as parallel
AXIS_SHARE = 0.34  # some coordinate of a unit vector has a smaller square

Scalars = list[Any]


class Core(NamedTuple):
    """A core: its centre, and its half axes, vectors: none, one of a segment, three of a box.
    `lengths` are the lengths of the half axes, numbers."""

    center: Scalars
    half_axes: Sequence[Scalars] = ()
    lengths: Sequence[float] = ()


class Approach(NamedTuple):
    """Where two solids are closest."""

    point: Scalars
    normal: Scalars
    gap: Any


def closest(first: Core, second: Core, radii: tuple[float, float]) -> Approach:
    """The closest points of two solids with these cores and radii; not of a box and a segment or a
    box."""
    if len(second.half_axes) == 3:
        normal, distance, b = _on_box(first.center, second)
    elif len(first.half_axes) == 3:
        normal, distance, a = _on_box(second.center, first)
        normal = [-x for x in normal]
        b = subtract(a, [distance * x for x in normal])
    else:
        a, b = _on_segments(first, second)
        normal, distance = _direction(subtract(a, b), [0.0, 0.0, 1.0])
    gap = distance - (radii[0] + radii[1])
    return Approach(add(b, [(radii[1] + 0.5 * gap) * x for x in normal]), normal, gap)


def contact_axes(normal: Scalars) -> list[Scalars]:
    """The normal, and two tangents: it times the coordinate axis x, y or z that is far from it."""
    nx, ny, nz = normal
    take_x = less(nx * nx, AXIS_SHARE)
    take_y = (1.0 - take_x) * less(ny * ny, AXIS_SHARE)
    e = [take_x, take_y, 1.0 - take_x - take_y]
    t = cross(e, normal)
    size = 1.0 / square_root(dot(t, t))
    t = [size * x for x in t]
    return [normal, t, cross(normal, t)]


def _direction(d: Scalars, otherwise: Scalars) -> tuple[Scalars, Any]:
    """d / |d| and |d|."""
    square = dot(d, d)
    apart = less(TINY, square)
    size = square_root(choose(apart, square, 1.0))
    return [choose(apart, x / size, y) for x, y in zip(d, otherwise, strict=True)], apart * size


def _on_segments(first: Core, second: Core) -> tuple[Scalars, Scalars]:
    """The closest points of two cores that are points or segments."""
    if not first.half_axes and not second.half_axes:
        return first.center, second.center
    if not second.half_axes:
        return _on_segment(second.center, first), second.center
    if not first.half_axes:
        return first.center, _on_segment(first.center, second)
    (x,), (y,) = first.half_axes, second.half_axes
    xx, yy = first.lengths[0] ** 2, second.lengths[0] ** 2
    xy, d = dot(x, y), subtract(second.center, first.center)
    dx, dy = dot(d, x), dot(d, y)
    determinant = xx * yy - xy * xy
    crossing = less(PARALLEL * xx * yy, determinant)
    s = (dx * yy - dy * xy) / choose(crossing, determinant, 1.0)
    # parallel: the middle of the part of the first segment that is beside the second
    ends = [_clamp((dx + side * xy) / xx, 1.0) for side in (-1.0, 1.0)]
    s = choose(crossing, _clamp(crossing * s, 1.0), 0.5 * (ends[0] + ends[1]))
    t = _clamp((s * xy - dy) / yy, 1.0)
    s = choose(crossing, _clamp((t * xy + dx) / xx, 1.0), s)
    a = add(first.center, [s * e for e in x])
    b = add(second.center, [t * e for e in y])
    return a, b


def _on_segment(point: Scalars, segment: Core) -> Scalars:
    (axis,), (length,) = segment.half_axes, segment.lengths
    t = _clamp(dot(subtract(point, segment.center), axis) / length**2, 1.0)
    return add(segment.center, [t * e for e in axis])


def _on_box(point: Scalars, box: Core) -> tuple[Scalars, Any, Scalars]:
    """The normal, the distance and the place of the point of a box that is closest to `point`."""
    units = [
        [x / size for x in axis] for axis, size in zip(box.half_axes, box.lengths, strict=True)
    ]
    d = subtract(point, box.center)
    local = [dot(d, unit) for unit in units]
    rest = [x - _clamp(x, size) for x, size in zip(local, box.lengths, strict=True)]
    # inside: the face of least depth
    depths = [size - maximum(x, -x) for x, size in zip(local, box.lengths, strict=True)]
    least = minimum(minimum(depths[0], depths[1]), depths[2])
    on_x = 1.0 - less(least, depths[0])
    on_y = (1.0 - on_x) * (1.0 - less(least, depths[1]))
    faces = [on_x, on_y, 1.0 - on_x - on_y]
    face = [on * sign(x) for on, x in zip(faces, local, strict=True)]
    outside = less(TINY, dot(rest, rest))
    normal, distance = _direction(rest, face)
    distance = choose(outside, distance, -least)
    columns = zip(*units, strict=True)
    normal = [dot(column, normal) for column in columns]
    return normal, distance, subtract(point, [distance * x for x in normal])


def _clamp(x: Any, most: float) -> Any:
    return maximum(minimum(x, most), -most)
