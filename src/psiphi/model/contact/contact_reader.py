"""`robot.with_contacts`: from names and shapes to contact points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from psiphi._util.errors import ModelError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import matching_names
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.contact.contact_shapes import SOLIDS, ContactShape, solid
from psiphi.model.diagnostics import ReaderWarning, emit_warning
from psiphi.model.model import Model
from psiphi.model.shapes import Shape

COLLISION = "collision"
REMEDY = (
    'give {name: shape}, such as {"*_foot": pp.Sphere(0.03)}, or "collision" for the shapes of the '
    "robot's file"
)
ContactShapes = Mapping[str, ContactShape | Sequence[ContactShape]]


def read_contact_points(
    model: Model,
    shapes: Iterable[Shape],
    contacts: ContactShapes | str,
    links: str | Iterable[str] | None,
) -> tuple[ContactPoint, ...]:
    """The contact points of a robot, from {pattern of frames: shape or shapes} or "collision"."""
    if isinstance(contacts, str):
        points = _collision_points(model, shapes, contacts, links)
    elif isinstance(contacts, Mapping):
        if links is not None:
            raise ModelError(
                f"links is {shown(links)}, but contacts has names already",
                'leave links out; it selects among the shapes of "collision"',
            )
        points = _named_points(model, contacts)
    else:
        raise ModelError(f"contacts is {shown(contacts)}", REMEDY)
    if not points:
        raise ModelError(f"{model.name} would have no contact points", REMEDY)
    return tuple(points)


def _named_points(model: Model, contacts: ContactShapes) -> list[ContactPoint]:
    points: list[ContactPoint] = []
    taken: dict[str, int] = {}
    for pattern, given in contacts.items():
        each = [given] if isinstance(given, ContactShape) else given
        if not isinstance(each, Sequence) or not all(isinstance(x, ContactShape) for x in each):
            raise ModelError(
                f"the shape of {shown(pattern)} is {shown(given)}",
                "give a pp.Point, pp.Sphere, pp.Capsule, pp.Box, pp.Cylinder or pp.Points, or a "
                "list of them",
            )
        for frame in matching_names("frames", pattern, model.frames, model.name):
            for shape in each:
                points += shape.contact_points(_unique(frame, taken), frame)
    return points


def _collision_points(
    model: Model, shapes: Iterable[Shape], word: str, links: str | Iterable[str] | None
) -> list[ContactPoint]:
    """The contact points of the collision shapes; meshes are left out, with a warning."""
    if word != COLLISION:
        raise ModelError(f"contacts is {shown(word)}", REMEDY)
    known = [shape for shape in shapes if shape.role == COLLISION]
    if not known:
        raise ModelError(f"{model.name} has no collision shapes", REMEDY)
    names = list(dict.fromkeys(shape.link for shape in known))
    chosen = set(names if links is None else matching_names("links", links, names, model.name))
    points: list[ContactPoint] = []
    taken: dict[str, int] = {}
    meshes: list[str] = []
    for shape in (shape for shape in known if shape.link in chosen):
        if shape.kind not in SOLIDS:
            meshes.append(shape.link)
            continue
        made = solid(shape.kind, shape.size, shape.pose)
        points += made.contact_points(_unique(shape.link, taken), shape.link)
    if meshes:
        which = ", ".join(dict.fromkeys(meshes))
        emit_warning(
            [
                ReaderWarning(
                    f"{count_of(len(meshes), 'collision mesh', 'collision meshes')} left out, of "
                    f"{which}: give these links spheres, boxes or points"
                )
            ]
        )
    return points


def _unique(name: str, taken: dict[str, int]) -> str:
    """`name`, or "name#2" for the second shape of a frame."""
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}#{taken[name]}"
