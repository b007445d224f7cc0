"""Numbers of a URDF file that look like other units, or forgotten; each is a warning.

| suspicion | sign |
|---|---|
| lengths in millimetres | half of the distances within links are above 10 m |
| masses in grams | more than 500 kg, twice the density of lead in a cube of the longest distance |
| inertias in other units | a radius of gyration above 10 m, ten times the longest distance |
| <inertial> forgotten | a link that moves and has shapes, but neither mass nor inertia |

Limits in degrees are found by `model/builder/model_checks.py`, angles of <origin> by `urdf.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import hypot
from statistics import median

import numpy as np

from psiphi._util.text import first_names
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import DocumentRecord
from psiphi.model.inertias import inertia_matrices
from psiphi.model.shapes import Shape

LONG = 10.0  # m
HEAVY, DENSE = 500.0, 2e4  # kg, kg/m^3


def warn_of_units(builder: Builder, shapes: Iterable[Shape], line: int | None) -> None:
    """Add a warning to the builder for each suspicion."""
    for text in (*_suspicious_numbers(builder), *_forgotten(builder, shapes)):
        builder.notes.warn(DocumentRecord("robot", line), text)


def _suspicious_numbers(builder: Builder) -> Iterator[str]:
    places = [joint.place[1] for joint in builder.joints.values()]
    offsets = (hypot(*p) for p in (*places, *(link.com for link in builder.links.values())))
    lengths = [x for x in offsets if x > 0.0]
    longest = max(lengths, default=0.0)
    if lengths and median(lengths) > LONG:
        yield f"distances within links are up to {longest:.4g} m: are they in millimetres?"
    mass = sum(link.mass for link in builder.links.values())
    if longest and mass > max(HEAVY, DENSE * longest**3):
        yield (
            f"the links weigh {mass:.4g} kg, and the longest distance is {longest:.3g} m: are the "
            "masses in grams?"
        )
    wide = [name for name, k in _gyrations(builder) if k > LONG * max(1.0, longest)]
    if wide:
        yield (
            f"inertias of {first_names(wide)} are those of bodies of tens of metres: are they in "
            "kg m^2?"
        )


def _gyrations(builder: Builder) -> Iterator[tuple[str, float]]:
    """The largest radius of gyration of each link with mass."""
    links = [link for link in builder.links.values() if link.mass > 0.0]
    if links:
        J = np.linalg.eigvalsh(inertia_matrices([link.inertia for link in links]))[:, 2]
        k = np.sqrt(np.maximum(J, 0.0) / [link.mass for link in links])
        yield from zip((link.name for link in links), k.tolist(), strict=True)


def _forgotten(builder: Builder, shapes: Iterable[Shape]) -> Iterator[str]:
    drawn = {shape.link for shape in shapes}
    moved = {joint.child for joint in builder.joints.values() if joint.moves}
    names = [
        link.name
        for link in builder.links.values()
        if link.name in drawn & moved and not link.has_mass
    ]
    if names:
        yield f"{first_names(names)}: moving links with shapes, without mass: forgotten <inertial>?"
