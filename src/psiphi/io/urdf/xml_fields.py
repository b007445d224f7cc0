"""Attributes of XML elements as numbers, names and placements; errors name the line."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from math import isfinite
from typing import NoReturn, Protocol

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.io.urdf.urdf_schema import XACRO_REMEDY
from psiphi.io.urdf.xml_reader import Element
from psiphi.model.builder import builder_values
from psiphi.model.builder.builder_values import LARGEST
from psiphi.model.spatial.transforms import (
    IDENTITY_PLACEMENT,
    IDENTITY_ROTATION,
    Placement,
    Rotation,
    from_rpy,
)

TURN = 6.3  # rad; larger angles of an <origin> look like degrees
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch


@lru_cache(maxsize=4096)
def parse_numbers(text: str) -> tuple[float, ...] | None:
    """The finite decimal numbers in `text`, separated by white space; None if it has other text."""
    words = text.split()
    if not all(NUMBER(word) for word in words):
        return None
    numbers = tuple(map(float, words))
    return numbers if all(map(isfinite, numbers)) else None


class HasOrigin(Protocol):
    """An element, or another object with an <origin>."""

    def first(self, tag: str) -> Element | None: ...


class Fields:
    """Reads attributes of elements of one file.

    `owner` is what messages name: an element (link, joint, ...) or text.
    """

    def __init__(self, file: str):
        self.file = file
        # origins with angles of more than a turn, and whose they are
        self.turned: list[tuple[str, Element]] = []
        self.owner: Element | str = "robot"

    @property
    def owner_label(self) -> str:
        return self.owner if isinstance(self.owner, str) else self.owner.label

    def fail(self, element: Element, cause: str, remedy: str) -> NoReturn:
        """Raise a ModelError at the line of `element`."""
        raise ModelError(
            cause,
            remedy,
            file=self.file,
            line=element.line,
            element=self.owner_label,
        )

    def text(self, element: Element, name: str) -> str:
        """A required attribute, not empty."""
        value = element.attributes.get(name)
        if value is None or not value.strip():
            others = (
                f"; it has {', '.join(map(shown, element.attributes))}"
                if element.attributes and value is None
                else ""
            )
            text = f"; its text is {shown(element.text)}" if element.text else ""
            missing = "no" if value is None else "an empty"
            cause = f"<{element.tag}> has {missing} attribute {name!r}{others}{text}"
            self.fail(element, cause, f'write <{element.tag} {name}="...">')
        if "${" in value or "$(" in value:
            self.fail(
                element,
                f"{name} of <{element.tag}> is the xacro expression {shown(value)}",
                XACRO_REMEDY,
            )
        return value

    def numbers(
        self, element: Element, name: str, count: int, default: tuple[float, ...] | None = None
    ) -> tuple[float, ...]:
        """Exactly `count` finite numbers, or the default if the attribute is absent."""
        if default is not None and name not in element.attributes:
            return default
        text = self.text(element, name)
        numbers = parse_numbers(text)
        if numbers is None or len(numbers) != count:
            expected = "a number" if count == 1 else f"{count} numbers separated by spaces"
            self.fail(
                element,
                f"{name} of <{element.tag}> is {shown(text)}, expected {expected}",
                _advice(text, count),
            )
        if max(map(abs, numbers)) > LARGEST and element.tag != "limit":
            self.fail(
                element,
                f"{name} of <{element.tag}> is {shown(text)}, beyond {LARGEST:g}",
                "correct the number",
            )
        return numbers

    def number(self, element: Element, name: str, default: float | None = None) -> float:
        """One finite number, or the default if the attribute is absent."""
        return self.numbers(element, name, 1, None if default is None else (default,))[0]

    def flag(self, element: Element, name: str) -> bool:
        """An attribute that is true or false."""
        text = self.text(element, name)
        if text not in ("true", "false"):
            self.fail(
                element,
                f"{name} of <{element.tag}> is {shown(text)}, expected true or false",
                f'write {name}="false"',
            )
        return text == "true"

    def origin(self, element: HasOrigin) -> Placement:
        """The placement of the <origin> child; absent parts are zero."""
        origin = element.first("origin")
        if origin is None:
            return IDENTITY_PLACEMENT
        x, y, z = self.numbers(origin, "xyz", 3, (0.0, 0.0, 0.0))
        rpy = self.numbers(origin, "rpy", 3, (0.0, 0.0, 0.0))
        if max(map(abs, rpy)) > TURN:
            self.turned.append((self.owner_label, origin))
        rotation = from_rpy(*rpy)
        if "quat_xyzw" in origin.attributes:
            rotation = self._quaternion(origin)
        return (
            IDENTITY_PLACEMENT
            if rotation is IDENTITY_ROTATION and x == y == z == 0.0
            else (rotation, (x, y, z))
        )

    def _quaternion(self, origin: Element) -> Rotation:
        q = self.numbers(origin, "quat_xyzw", 4)
        if "rpy" in origin.attributes:
            self.fail(origin, "<origin> has both rpy and quat_xyzw", "keep one of them")
        return builder_values.rotation(None, q, partial(self.fail, origin))


def _advice(text: str, count: int) -> str:
    """The remedy for text that is not a number."""
    if "," in text:
        return "use a decimal point, and spaces between numbers instead of commas"
    if re.search(r"nan|inf", text, re.IGNORECASE) or re.search(r"[0-9]{3}$", text):
        return "give finite decimal numbers; omit a limit if there is none"
    numbers = "one plain decimal number" if count == 1 else f"{count} plain decimal numbers"
    return f"give {numbers}, like 0.5 or 1e-3"
