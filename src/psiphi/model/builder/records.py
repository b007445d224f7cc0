"""The records of a builder's calls, from which it builds the model."""

from __future__ import annotations

from dataclasses import dataclass

from psiphi._util.text import shown
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.inertias import InertiaTuple
from psiphi.model.joint_types import JointKind
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.model import Mimic
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, Vector


@dataclass(slots=True, frozen=True)
class DocumentRecord:
    """The description as a whole, for messages that are not about one link, joint or frame."""

    label: str
    line: int | None = None


@dataclass(slots=True, frozen=True)
class LinkRecord:
    """A link: mass, centre of mass, and the inertia about it in link axes."""

    name: str
    mass: float
    com: Vector
    inertia: InertiaTuple
    line: int | None

    @property
    def label(self) -> str:
        return f"link {shown(self.name)}"

    @property
    def has_mass(self) -> bool:
        return self.mass != 0.0 or any(self.inertia)


@dataclass(frozen=True, eq=False)
class FlexibleRecord:
    """A flexible body. The joints of its nodes refer to the same record."""

    link: str
    places: int  # the number of nodes


@dataclass(slots=True, frozen=True)
class JointRecord:
    """A joint. `place` is the joint frame in the parent's link frame; limits etc. are tuples.

    The joint of a flexible body's node has `modes`, and its body as `group`.
    """

    name: str
    kind: str
    parent: str
    child: str
    place: Placement = IDENTITY_PLACEMENT
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
    modes: ModeShape | None = None
    group: FlexibleRecord | None = None
    line: int | None = None

    @property
    def label(self) -> str:
        return f"joint {shown(self.name)}"

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"

    @property
    def nq(self) -> int:
        """The number of coordinates; 0 for other nodes of a flexible body than the first."""
        if not self.moves or (self.group is not None and not self.is_first):
            return 0
        return self.row.nq

    @property
    def is_first(self) -> bool:
        """Whether it is the first node of a flexible body, which has the modal coordinates."""
        return self.group is not None and bool(self.lower)

    @property
    def row(self) -> JointKind:
        return row_of(self.kind, self.modes)


@dataclass(slots=True, frozen=True)
class FrameRecord:
    """A named frame on a link."""

    name: str
    link: str
    place: Placement
    line: int | None

    @property
    def label(self) -> str:
        return f"frame {shown(self.name)}"


@dataclass(slots=True, frozen=True)
class Description:
    """The records a model was built from, base to tip, with welded links and fixed joints.

    Edits start from these.
    """

    links: tuple[LinkRecord, ...]
    joints: tuple[JointRecord, ...]
    frames: tuple[FrameRecord, ...]
    file: str | None = None
