"""A ground of heights: triangles over a grid, and how points and spheres touch them.

    node (i, j)    x = x0 + i dx,  y = y0 + j dy,  z = z0 + height[i, j]

The diagonal from (i, j) to (i + 1, j + 1) cuts each cell into two triangles. Beyond the border the
heights are those of the border.

A point touches the triangle above or below it: its gap is the distance from the plane of this
triangle. A sphere touches where a triangle, or an edge, is closest to its centre. It looks at a
block of m x m cells about its centre, which contains all that it can touch.

The rules run on numbers, arrays and tape expressions. What depends on the cell in which a point is
comes from a table (`compiler/ir/lane_blocks.py`): its numbers i, j, and the heights about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi.model.spatial.branch_free import choose, less, maximum, minimum, sign
from psiphi.model.spatial.screws import add, dot, square_root, subtract

LARGEST_BLOCK = 5  # cells along each side
REACH = 0.8  # the share of the half side of a block that a sphere may fill
TINY = 1e-24  # the square of a distance (m) that counts as 0

Scalars = list[Any]


class Touch(NamedTuple):
    """Where a sphere, or a point, touches heights: from its centre to the contact point, the normal
    of the ground there, and the gap."""

    lever: Scalars
    normal: Scalars
    gap: Any


class HeightGrid(NamedTuple):
    """The nodes of heights (n0, n1): the first one, and the distances between neighbours."""

    shape: tuple[int, int]
    origin: tuple[float, float, float]
    spacing: tuple[float, float]

    def block_of(self, radius: float) -> int:
        """How many cells along each side a sphere of this radius looks at; 1 for a point; 0 if it
        is too large."""
        if not radius:
            return 1
        sides = (m for m in range(2, LARGEST_BLOCK + 1))
        return next((m for m in sides if radius <= self.largest_radius(m)), 0)

    def largest_radius(self, m: int = LARGEST_BLOCK) -> float:
        """The largest radius of spheres that look at m x m cells."""
        return REACH * 0.5 * (m - 1) * min(self.spacing)

    def grid_point(self, center: Scalars, m: int) -> Scalars:
        """The coordinates of the first cell of the block about a point, in units of the grid."""
        rows = zip(center, self.origin, self.spacing, strict=False)
        return [(x - start) * (1.0 / step) - 0.5 * (m - 1) for x, start, step in rows]

    def touch(self, center: Scalars, radius: float, m: int, cells: Scalars) -> Touch:
        """How a sphere about `center` touches the heights in `cells`, a result of the table."""
        # the centre, from the first node of the block
        i, j, *numbers = cells
        x0, y0, z0 = self.origin
        dx, dy = self.spacing
        at = [center[0] - (x0 + dx * i), center[1] - (y0 + dy * j), center[2] - z0]
        heights = [numbers[k : k + m + 1] for k in range(0, len(numbers), m + 1)]
        own = self._plane_below(at, heights, m)
        normal, gap = own.normal, own.height * own.normal[2]
        if m > 1:
            closest = self._closest(at, heights, m)
            away = subtract(at, closest)
            square = dot(away, away)
            apart = less(TINY, square)
            size = square_root(choose(apart, square, 1.0))
            side = sign(own.height)
            normal = [choose(apart, side * x / size, n) for x, n in zip(away, normal, strict=True)]
            gap = apart * side * size - radius
        return Touch([-radius * n for n in normal], normal, gap)

    def _plane_below(self, at: Scalars, heights: Sequence[Scalars], m: int) -> _Plane:
        """The plane of the triangle below or above a point."""
        dx, dy = self.spacing
        first = (m - 1) // 2
        x, y = at[0] - first * dx, at[1] - first * dy
        h = [[heights[first + a][first + b] for b in (0, 1)] for a in (0, 1)]
        if m % 2 == 0:  # the point is in one of four cells
            right, up = 1.0 - less(x, dx), 1.0 - less(y, dy)
            x, y = x - right * dx, y - up * dy
            along = [
                [choose(right, heights[first + a + 1][first + b], heights[first + a][first + b])
                 for b in (0, 1, 2)]
                for a in (0, 1)
            ]  # fmt: skip
            h = [[choose(up, row[b + 1], row[b]) for b in (0, 1)] for row in along]
        lower = less(y * (1.0 / dy), x * (1.0 / dx))
        slopes = self._slopes(h)
        gx, gy = (choose(lower, a, b) for a, b in zip(*slopes, strict=True))
        share = 1.0 / square_root(1.0 + gx * gx + gy * gy)
        height = at[2] - h[0][0] - gx * x - gy * y
        return _Plane(height, [-gx * share, -gy * share, share])

    def _slopes(self, h: Sequence[Scalars]) -> tuple[Scalars, Scalars]:
        """The slopes along x and y of the triangles of a cell: below its diagonal, above it."""
        dx, dy = (1.0 / step for step in self.spacing)
        (a, d), (b, c) = h
        return [(b - a) * dx, (c - b) * dy], [(c - d) * dx, (d - a) * dy]

    def _closest(self, at: Scalars, heights: Sequence[Scalars], m: int) -> Scalars:
        """The point of the block that is closest to `at`."""
        dx, dy = self.spacing
        best: Scalars = []
        least: Any = None
        nodes = [[[a * dx, b * dy, heights[a][b]] for b in range(m + 1)] for a in range(m + 1)]
        ends = [((0, 1), (m + 1, m)), ((1, 0), (m, m + 1)), ((1, 1), (m, m))]
        for (across, along), (rows, columns) in ends:
            for a in range(rows):
                for b in range(columns):
                    found = _on_edge(at, nodes[a][b], nodes[a + across][b + along])
                    away = subtract(at, found)
                    square = dot(away, away)
                    closer = 1.0 if least is None else less(square, least)
                    best = found if least is None else _pick(closer, found, best)
                    least = square if least is None else choose(closer, square, least)
        for a in range(m):
            for b in range(m):
                cell = [[heights[a + k][b + n] for n in (0, 1)] for k in (0, 1)]
                for lower, (gx, gy) in zip((1.0, 0.0), self._slopes(cell), strict=True):
                    x, y = at[0] - a * dx, at[1] - b * dy
                    height = at[2] - cell[0][0] - gx * x - gy * y
                    share = height / (1.0 + gx * gx + gy * gy)
                    # the foot of the perpendicular, in units of the cell
                    u, w = (x + share * gx) * (1.0 / dx), (y + share * gy) * (1.0 / dy)
                    small, large = (w, u) if lower else (u, w)
                    inside = (1.0 - less(small, 0.0)) * (1.0 - less(large, small))
                    inside = inside * (1.0 - less(1.0, large))
                    square = height * share
                    closer = inside * less(square, least)
                    foot = [at[0] + share * gx, at[1] + share * gy, at[2] - share]
                    best, least = _pick(closer, foot, best), choose(closer, square, least)
        return best


class _Plane(NamedTuple):
    """The height of a point above a plane, and its normal."""

    height: Any
    normal: Scalars


def _on_edge(point: Scalars, first: Scalars, second: Scalars) -> Scalars:
    """The point of an edge that is closest to `point`."""
    along = subtract(second, first)
    t = dot(subtract(point, first), along) / dot(along, along)
    t = minimum(maximum(t, 0.0), 1.0)
    return add(first, [t * x for x in along])


def _pick(mask: Any, x: Scalars, y: Scalars) -> Scalars:
    return [choose(mask, a, b) for a, b in zip(x, y, strict=True)]
