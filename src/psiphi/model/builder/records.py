"""What a builder remembers of each call until the model is built."""

from __future__ import annotations

from dataclasses import dataclass

from psiphi._util.text import shown
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.inertias import Six
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.model import Mimic
from psiphi.model.spatial.transforms import HERE, Place, Vector


@dataclass(slots=True, frozen=True)
class DocumentRecord:
    """The description as a whole, for messages that are about no single element."""

    label: str
    line: int | None = None


@dataclass(slots=True, frozen=True)
class LinkRecord:
    """A link: mass, centre of mass, and the inertia about it in link axes."""

    name: str
    mass: float
    com: Vector
    inertia: Six
    line: int | None

    @property
    def label(self) -> str:
        return f"link {shown(self.name)}"

    @property
    def has_mass(self) -> bool:
        return self.mass != 0.0 or any(self.inertia)


@dataclass(frozen=True, eq=False)
class FlexibleRecord:
    """One body that bends: by itself what its places have in common."""

    link: str
    places: int


@dataclass(slots=True, frozen=True)
class JointRecord:
    """A joint: `place` of the joint frame in the parent's link frame; per-coordinate numbers as tuples."""

    name: str
    kind: str
    parent: str
    child: str
    place: Place = HERE
    axis: tuple[float, ...] = (0.0, 0.0, 1.0)
    axis2: tuple[float, ...] | None = None
    pitch: float = 0.0
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()
    spring: Spring | None = None
    motor: bool = True
    mimic: Mimic | None = None
    modes: ModeShape | None = None  # of a place on a body that bends,
    group: FlexibleRecord | None = None  # and which body
    line: int | None = None

    @property
    def label(self) -> str:
        return f"joint {shown(self.name)}"

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"

    @property
    def nq(self) -> int:
        """How many coordinates it has of its own."""
        return 0 if not self.moves or (self.group is not None and not self.leads) else self.row.nq

    @property
    def leads(self) -> bool:
        """Whether it has the coordinates by which all places of a body that bends move."""
        return self.group is not None and bool(self.lower)

    @property
    def row(self):
        return row_of(self.kind, self.modes)


@dataclass(slots=True, frozen=True)
class FrameRecord:
    """A named place on a link."""

    name: str
    link: str
    place: Place
    line: int | None

    @property
    def label(self) -> str:
        return f"frame {shown(self.name)}"


@dataclass(slots=True, frozen=True)
class Description:
    """What a model was built from, base to tip: every link and joint by itself, welded ones too. Edits start here."""

    links: tuple[LinkRecord, ...]
    joints: tuple[JointRecord, ...]
    frames: tuple[FrameRecord, ...]
    file: str | None = None
