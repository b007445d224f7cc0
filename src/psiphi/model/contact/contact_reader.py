"""`robot.with_contacts`: from names and shapes to contact points and pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from psiphi._util.errors import ModelError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import as_names, is_list, matching_names
from psiphi.model.contact.contact_pairs import ContactPair, ContactSolid
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.contact.contact_shapes import SOLIDS, ContactShape, Hull, solid
from psiphi.model.diagnostics import ReaderWarning, emit_warning
from psiphi.model.model import WORLD, Model
from psiphi.model.shapes import Shape, Surface

COLLISION = "collision"
SMALL_ERROR = 1e-4  # m: of points of a hull, that need no warning
REMEDY = (
    'give {name: shape}, such as {"*_foot": pp.Sphere(0.03)}, or "collision" for the shapes of the '
    "robot's file"
)
ContactShapes = Mapping[str, ContactShape | Sequence[ContactShape]]


class ReadContacts(NamedTuple):
    """What `robot.with_contacts` was given: contact points and pairs of solids."""

    points: tuple[ContactPoint, ...]
    pairs: tuple[ContactPair, ...]


class _Shapes(NamedTuple):
    """The shapes of a frame with their names, and the surfaces of those of a file."""

    frame: str
    shapes: list[tuple[str, ContactShape, Surface | None]]


def read_contacts(
    model: Model,
    shapes: Iterable[Shape],
    contacts: ContactShapes | str,
    links: str | Iterable[str] | None,
    pairs: Iterable[tuple[str, str]] = (),
    ground: str | Iterable[str] = "*",
    hull: Callable[[Shape], Hull | None] = lambda mesh: None,
) -> ReadContacts:
    """The contacts of a robot, from {pattern of frames: shape or shapes} or "collision"; `pairs`
    and `ground` select among their frames. `hull` reads the file of a mesh; None if it cannot."""
    if isinstance(contacts, str):
        given = _collision_shapes(model, shapes, contacts, links, hull)
    elif isinstance(contacts, Mapping):
        if links is not None:
            raise ModelError(
                f"links is {shown(links)}, but contacts has names already",
                'leave links out; it selects among the shapes of "collision"',
            )
        given = _named_shapes(model, contacts)
    else:
        raise ModelError(f"contacts is {shown(contacts)}", REMEDY)
    found = ReadContacts(_ground_points(model, given, ground), _pairs(model, given, pairs))
    _check_fixed_frames(model, given, found)
    if not found.points and not found.pairs:
        raise ModelError(f"{model.name} would have no contact points", REMEDY)
    return found


def _named_shapes(model: Model, contacts: ContactShapes) -> list[_Shapes]:
    found: list[_Shapes] = []
    taken: dict[str, int] = {}
    for pattern, given in contacts.items():
        each = [given] if isinstance(given, ContactShape) else given
        if not isinstance(each, Sequence) or not all(isinstance(x, ContactShape) for x in each):
            raise ModelError(
                f"the shape of {shown(pattern)} is {shown(given)}",
                "give a pp.Point, pp.Sphere, pp.Capsule, pp.Box, pp.Cylinder, pp.Points or "
                "pp.Hull, or a list of them",
            )
        for frame in matching_names("frames", pattern, model.frames, model.name):
            found.append(_Shapes(frame, [(_unique(frame, taken), x, None) for x in each]))
    return found


def _ground_points(
    model: Model, given: list[_Shapes], ground: str | Iterable[str]
) -> tuple[ContactPoint, ...]:
    """The contact points of the shapes that move, on the frames `ground`."""
    moving = [x for x in given if model.frame(x.frame).body != WORLD]
    names = list(dict.fromkeys(x.frame for x in moving))
    everything = isinstance(ground, str) and ground == "*"
    patterns = [] if everything else as_names("ground", ground, "names of frames")
    chosen = set(
        names if everything else matching_names("contact shapes on", patterns, names, model.name)
    )
    return tuple(
        _with_surface(point, surface)
        for frame, shapes in moving
        if frame in chosen
        for name, shape, surface in shapes
        for point in shape.contact_points(name, frame)
    )


def _pairs(
    model: Model, given: list[_Shapes], pairs: Iterable[tuple[str, str]]
) -> tuple[ContactPair, ...]:
    """The pairs of solids whose frames match the pairs of names."""
    remedy = 'give a list of two names each, such as [("left_hand", "right_hand")]'
    if not is_list(pairs):
        raise ModelError(f"pairs is {shown(pairs)}", remedy)
    shapes: dict[str, list[tuple[str, ContactShape]]] = {}
    for frame, each in given:
        shapes.setdefault(frame, []).extend((name, shape) for name, shape, _ in each)
    found: dict[frozenset[str], ContactPair] = {}
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ModelError(f"pairs has {shown(pair)}", remedy)
        firsts, seconds = (
            matching_names("contact shapes on", name, shapes, model.name) for name in pair
        )
        apart = [(a, b) for a, b in product(firsts, seconds) if _can_meet(model, a, b)]
        if not apart:
            raise ModelError(
                f"pairs has {shown(pair)}, which are on one body of {model.name}, or both fixed",
                "name frames of links that move relative to each other",
            )
        for a, b in apart:
            for (name, shape), (other_name, other) in product(shapes[a], shapes[b]):
                key = frozenset((name, other_name))
                label = f"{name}|{other_name}"
                if key not in found:
                    solids = ContactSolid.of(name, a, shape), ContactSolid.of(other_name, b, other)
                    found[key] = ContactPair.of(label, *solids)
    return tuple(found.values())


def _can_meet(model: Model, first: str, second: str) -> bool:
    return model.frame(first).body != model.frame(second).body


def _check_fixed_frames(model: Model, given: list[_Shapes], found: ReadContacts) -> None:
    """Raise an error for a shape that is fixed to the world and in no pair."""
    used = {solid.frame for pair in found.pairs for solid in pair.solids}
    for frame, _ in given:
        if model.frame(frame).body == WORLD and frame not in used:
            raise ModelError(
                f"the frame {shown(frame)} of {model.name} is fixed to the world",
                "name frames of links that move; they touch the ground of the simulation, and in "
                "pairs also what is fixed",
            )


def _collision_shapes(
    model: Model,
    shapes: Iterable[Shape],
    word: str,
    links: str | Iterable[str] | None,
    hull: Callable[[Shape], Hull | None],
) -> list[_Shapes]:
    """The collision shapes of the file. Of meshes these are points of their hulls; those that
    cannot be read are left out. A warning says both."""
    if word != COLLISION:
        raise ModelError(f"contacts is {shown(word)}", REMEDY)
    fixed = {frame.name for frame in model.frames.values() if frame.body == WORLD}
    known = [x for x in shapes if x.role == COLLISION and x.link not in fixed]
    if not known:
        raise ModelError(f"{model.name} has no collision shapes", REMEDY)
    names = list(dict.fromkeys(shape.link for shape in known))
    chosen = set(names if links is None else matching_names("links", links, names, model.name))
    found: list[_Shapes] = []
    taken: dict[str, int] = {}
    meshes: list[str] = []
    hulls: dict[str, float] = {}  # the errors of links
    left_out: list[str] = []
    for shape in (shape for shape in known if shape.link in chosen):
        made = solid(shape.kind, shape.size, shape.pose) if shape.kind in SOLIDS else hull(shape)
        if made is None:
            meshes.append(shape.link)
            continue
        if isinstance(made, Hull):
            hulls[shape.link] = max(made.error, hulls.get(shape.link, 0.0))
        found.append(_Shapes(shape.link, [(_unique(shape.link, taken), made, shape.surface)]))
        left_out += _left_out(shape)
    if meshes:
        which = ", ".join(dict.fromkeys(meshes))
        count = count_of(len(meshes), "collision mesh", "collision meshes")
        left_out.append(f"{count} left out, of {which}: give these links spheres, boxes or points")
    if hulls and (worst := max(hulls, key=lambda link: hulls[link])) and hulls[worst] > SMALL_ERROR:
        left_out.append(
            f"the meshes of {count_of(len(hulls), 'link')} touch with points of their convex hulls "
            f"that are up to {1e3 * hulls[worst]:.3g} mm off (of {worst}): mesh_points= sets their "
            "number"
        )
    emit_warning([ReaderWarning(line) for line in dict.fromkeys(left_out)])
    return found


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
