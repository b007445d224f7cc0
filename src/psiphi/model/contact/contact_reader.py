"""`robot.with_contacts`: from names and shapes to contact points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from psiphi._util.errors import ModelError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import matching_names
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.contact.contact_shapes import SOLIDS, ContactShape, solid
from psiphi.model.diagnostics import ReaderWarning, emit_warning
from psiphi.model.model import WORLD, Model
from psiphi.model.shapes import Shape, Surface

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
            if model.frame(frame).body == WORLD:
                raise ModelError(
                    f"the frame {shown(frame)} of {model.name} is fixed to the world",
                    "name frames of links that move; they touch the ground of the simulation",
                )
            for shape in each:
                points += shape.contact_points(_unique(frame, taken), frame)
    return points


def _collision_points(
    model: Model, shapes: Iterable[Shape], word: str, links: str | Iterable[str] | None
) -> list[ContactPoint]:
    """The contact points of the collision shapes; meshes are left out, with a warning."""
    if word != COLLISION:
        raise ModelError(f"contacts is {shown(word)}", REMEDY)
    fixed = {frame.name for frame in model.frames.values() if frame.body == WORLD}
    known = [x for x in shapes if x.role == COLLISION and x.link not in fixed]
    if not known:
        raise ModelError(f"{model.name} has no collision shapes", REMEDY)
    names = list(dict.fromkeys(shape.link for shape in known))
    chosen = set(names if links is None else matching_names("links", links, names, model.name))
    points: list[ContactPoint] = []
    taken: dict[str, int] = {}
    meshes: list[str] = []
    left_out: list[str] = []
    for shape in (shape for shape in known if shape.link in chosen):
        if shape.kind not in SOLIDS:
            meshes.append(shape.link)
            continue
        made = solid(shape.kind, shape.size, shape.pose)
        corners = made.contact_points(_unique(shape.link, taken), shape.link)
        points += [_with_surface(point, shape.surface) for point in corners]
        left_out += _left_out(shape)
    if meshes:
        which = ", ".join(dict.fromkeys(meshes))
        count = count_of(len(meshes), "collision mesh", "collision meshes")
        left_out.append(f"{count} left out, of {which}: give these links spheres, boxes or points")
    emit_warning([ReaderWarning(line) for line in dict.fromkeys(left_out)])
    return points


def _with_surface(point: ContactPoint, surface: Surface | None) -> ContactPoint:
    """The point with the friction of the surface, and with its margin: a sphere about it."""
    if surface is None:
        return point
    friction = surface.friction if surface.condim > 1 else 0.0
    grown = point.radius + surface.margin if point.axis is None else point.radius
    return replace(point, friction=friction, radius=grown)


def _left_out(shape: Shape) -> list[str]:
    """What the contact points of a shape do not include."""
    surface = shape.surface
    if surface is None:
        return []
    condim = f"condim={surface.condim} of {shape.link}: torsional and rolling friction left out"
    margin = f"margin of the cylinder on {shape.link} left out"
    has_margin = shape.kind == "cylinder" and surface.margin > 0.0
    return [condim] * (surface.condim > 3) + [margin] * has_margin


def _unique(name: str, taken: dict[str, int]) -> str:
    """`name`, or "name#2" for the second shape of a frame."""
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}#{taken[name]}"
