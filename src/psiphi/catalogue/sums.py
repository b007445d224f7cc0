"""What is not linear: places, energy and the centre of mass, as sums over the tree."""

from __future__ import annotations

from psiphi.lowering.local import EYE3, ZERO3, ZERO6, adjoint_map
from psiphi.lowering.newton import accelerate, world_at_rest
from psiphi.spatial import small
from psiphi.spatial.screws import add, dot, motion, pose, rotate
from psiphi.sweeps.program import Site


def world_pose(site: Site) -> None:
    """Base to tip: rotation R and origin p of the body's axes in the world."""
    R, p = pose(site.path, site.parent["R"], site.parent["p"])
    site.keep(R=R, p=p)


def world_origin(site: Site) -> None:
    """The world's own pose and rest."""
    site.keep(R=EYE3, p=ZERO3, V=ZERO6, motion=world_at_rest(ZERO3))


def write_acceleration(site: Site) -> None:
    """Base to tip; at the marked body: [w'; v' + U r] of its frame, in world axes."""
    world_pose(site)
    accelerate(site, site.of("a"), "motion")
    if site.mark:
        _, wd, vd, U = site.kept["motion"]
        linear = add(vd, small.apply(U, site.mark[1]))
        site.write("A", 0, small.apply(site.kept["R"], wd) + small.apply(site.kept["R"], linear))


def frame_at(site: Site) -> tuple[list, list]:
    """Rotation and origin in the world of the marked frame on this body; `site.mark` is its (R, p) in body axes."""
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


def spatial_velocity(site: Site) -> None:
    """Base to tip: V = phi* V(p) + H* v."""
    site.keep(V=add(motion(site.path, site.parent["V"]), adjoint_map(site.H, site.of("v"))))


def kinetic(site: Site) -> None:
    """Base to tip: V, and the body's kinetic energy V* M V / 2 (+ rotors)."""
    spatial_velocity(site)
    V = site.kept["V"]
    rotors = 0.0
    for J, rate in zip(site.link.armature, site.of("v"), strict=True):
        rotors = rotors + J * (rate * rate)
    site.keep(energy=[0.5 * (dot(V, site.link.inertia @ V) + rotors)])


def sum_energy(site: Site) -> None:
    """Tip to base: kinetic energies add up."""
    below = site.children.get("energy")
    site.send(energy=site.kept["energy"] if below is None else add(site.kept["energy"], below))


def sum_moments(site: Site) -> None:
    """Tip to base: mass and first moment of everything outboard, m and m p."""
    below = site.children
    mass, moment = site.link.mass, site.link.moment
    if "mass" in below:
        mass, moment = mass + below["mass"][0], add(moment, below["moment"])
    l = pose(site.path, EYE3, ZERO3)[1]
    moved = rotate(site.path, moment)
    site.send(mass=[mass], moment=[x + mass * y for x, y in zip(moved, l, strict=True)])


def both(*steps):
    """Several steps at one body, in one sweep."""

    def step(site: Site) -> None:
        for one in steps:
            one(site)

    return step
