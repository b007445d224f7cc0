"""Elements of URDF: one row each, with attributes, children, and children that may occur only once.

Unknown elements and attributes are extensions (of Gazebo, ROS, MoveIt) or not needed (calibration,
safety_controller); they are ignored and listed once in the report. A misspelled one is an error,
because ignoring it would silently change the robot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from psiphi._util.errors import ModelError
from psiphi._util.text import misspelled, shown
from psiphi.io.urdf.xml_reader import Element
from psiphi.model.diagnostics import ReaderReport


@dataclass(frozen=True)
class XmlWord:
    """An element of URDF: its attributes, children that may repeat, children that may not."""

    attributes: frozenset[str]
    many: frozenset[str]
    once: frozenset[str]
    children: frozenset[str] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "children", self.many | self.once)


def xml_word(attributes: str = "", many: str = "", once: str = "") -> XmlWord:
    """A row from names separated by spaces."""
    return XmlWord(frozenset(attributes.split()), frozenset(many.split()), frozenset(once.split()))


VOCABULARY: dict[str, XmlWord] = {
    "robot": xml_word(
        "name version order",
        many="link joint material loop coupling constraint loop_constraint joint_constraint",
        once="gravity",
    ),
    "gravity": xml_word("xyz"),  # this and "order" are extensions of psiphi
    "link": xml_word("name type", many="visual collision", once="inertial"),
    "inertial": xml_word(once="origin mass inertia"),
    "mass": xml_word("value"),
    "inertia": xml_word("ixx ixy ixz iyy iyz izz"),
    "origin": xml_word("xyz rpy quat_xyzw"),
    "visual": xml_word("name", once="origin geometry material"),
    "collision": xml_word("name", once="origin geometry material"),
    "geometry": xml_word("name", once="box cylinder sphere capsule mesh"),
    "box": xml_word("size"),
    "cylinder": xml_word("radius length"),
    "capsule": xml_word("radius length"),
    "sphere": xml_word("radius"),
    "mesh": xml_word("filename scale"),
    "material": xml_word("name", once="color texture"),
    "color": xml_word("rgba"),
    "texture": xml_word("filename"),
    "joint": xml_word(
        "name type independent", once="origin parent child axis limit dynamics mimic"
    ),
    "parent": xml_word("link"),
    "child": xml_word("link"),
    "axis": xml_word("xyz"),
    "limit": xml_word("lower upper effort velocity"),
    # URDF has only damping and friction.
    "dynamics": xml_word("damping friction armature stiffness rest motor"),
    "mimic": xml_word("joint multiplier offset"),
    # URDF+ from here on, and "independent" of a joint.
    "loop": xml_word("name type", once="predecessor successor axis"),
    "constraint": xml_word("name type", once="predecessor successor axis"),
    "coupling": xml_word("name", once="predecessor successor ratio"),
    "loop_constraint": xml_word("name type", once="parent parent_origin child child_origin axis"),
    "joint_constraint": xml_word("name", once="parent child gear_ratio"),
    "predecessor": xml_word("link", once="origin"),
    "successor": xml_word("link", once="origin"),
    "parent_origin": xml_word("xyz rpy quat_xyzw"),
    "child_origin": xml_word("xyz rpy quat_xyzw"),
    "ratio": xml_word("value"),
    "gear_ratio": xml_word("value"),
}

XACRO_REMEDY = "run xacro first: xacro robot.urdf.xacro > robot.urdf"


class SchemaChecker:
    """Checks every known element against its row, and collects unknown elements and attributes."""

    def __init__(self, file: str, faults: ReaderReport):
        self.file, self.faults = file, faults
        self.faulty: set[str] = set()  # links and joints with faults
        # "<gazebo> in <robot>" -> (count, first line)
        self.unknown: dict[str, tuple[int, int]] = {}

    def check(self, root: Element) -> None:
        """Check all known elements, parents first, with an explicit stack."""
        stack = [(root, root.label)]
        while stack:
            element, owner = stack.pop()
            row = VOCABULARY[element.tag]
            if not element.attributes.keys() <= row.attributes:
                self._attributes(element, row, owner)
            if element.text:
                self._note_unknown(f"text in <{element.tag}>", element.line)
            if element.children:
                stack.extend(self._children(element, row, owner))

    def _children(
        self, element: Element, row: XmlWord, owner: str
    ) -> Iterator[tuple[Element, str]]:
        """The known children, each with its owner: the link or joint that messages name."""
        once: dict[str, Element] = {}
        for child in element.children:
            if child.tag not in row.children:
                self._unknown_element(child, element, row, owner)
                continue
            if child.tag in row.once:
                if child.tag in once:
                    self._fail(
                        child,
                        owner,
                        f"a second <{child.tag}> in <{element.tag}> "
                        f"(the first is on line {once[child.tag].line})",
                        "keep one of them",
                    )
                once[child.tag] = child
            yield child, child.label if child.tag in ("link", "joint") else owner

    def _unknown_element(self, child: Element, element: Element, row: XmlWord, owner: str) -> None:
        if child.tag.startswith("xacro:"):
            self._fail(
                child,
                owner,
                f"<{shown(child.tag)[1:-1]}> is a xacro instruction, expected plain URDF",
                XACRO_REMEDY,
            )
            return
        meant = misspelled(child.tag, row.children)
        if meant:
            self._fail(
                child,
                owner,
                f"unknown element <{child.tag}> in <{element.tag}>",
                f"did you mean <{meant}>?",
            )
            return
        self._note_unknown(f"<{child.tag[:60]}> in <{element.tag}>", child.line)

    def _attributes(self, element: Element, row: XmlWord, owner: str) -> None:
        for name in element.attributes:
            if name in row.attributes or name.startswith("xmlns"):
                continue
            meant = misspelled(name, row.attributes)
            if meant:
                self._fail(
                    element,
                    owner,
                    f"unknown attribute {shown(name)} of <{element.tag}>",
                    f"did you mean {meant!r}?",
                )
                continue
            self._note_unknown(f"attribute {shown(name)} of <{element.tag}>", element.line)

    def _note_unknown(self, what: str, line: int) -> None:
        if len(self.unknown) > 100:
            what = "more kinds of unknown elements and attributes"
        count, first = self.unknown.get(what, (0, line))
        self.unknown[what] = (count + 1, first)

    def _fail(self, element: Element, owner: str, cause: str, remedy: str) -> None:
        self.faulty.add(owner)
        error = ModelError(cause, remedy, file=self.file, line=element.line, element=owner)
        self.faults.add_fault(error)
