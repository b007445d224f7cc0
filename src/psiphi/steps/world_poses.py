"""Places, which no operator says: poses in the world, carried from the base to the tips."""

from __future__ import annotations

from psiphi.spatial import small
from psiphi.spatial.along import pose
from psiphi.spatial.screws import add
from psiphi.steps.local import EYE3, ZERO3, ZERO6
from psiphi.sweeps.program import Site


def world_pose(site: Site) -> None:
    """Base to tip: rotation R and origin p of the body's axes in the world."""
    R, p = pose(site.path, site.parent["R"], site.parent["p"])
    site.keep(R=R, p=p)


def world_origin(site: Site) -> None:
    """The world's own pose and rest."""
    site.keep(R=EYE3, p=ZERO3, V=ZERO6)


def frame_at(site: Site) -> tuple[list, list]:
    """Rotation and origin in the world of the marked frame on this body; `site.mark` is its (R, p) in body axes."""
    # (R_k, p_k)(R, r): the body's pose, then the frame's on it
    R, r = site.mark
    return small.product(site.kept["R"], R), add(site.kept["p"], small.apply(site.kept["R"], r))


def write_pose(site: Site) -> None:
    """At the marked body: the 4x4 pose."""
    world_pose(site)
    if site.mark:
        R, p = frame_at(site)
        for i in range(3):
            site.write("T", 4 * i, [*R[i], p[i]])
        site.write("T", 12, [0.0, 0.0, 0.0, 1.0])


def write_link_pose(site: Site) -> None:
    """At every body: R (3, 3) and p of its link frame, which `site.mark` is."""
    world_pose(site)
    R, p = frame_at(site)
    for i, row in enumerate(R):
        site.write("R", 9 * site.link.index + 3 * i, row)
    site.write("p", 3 * site.link.index, p)
