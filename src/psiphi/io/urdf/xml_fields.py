"""Attributes of XML elements as numbers, names and places: strictly read, and refused with the line and the remedy."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from math import isfinite
from typing import Any, NoReturn

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
    from_rpy,
)

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch


@lru_cache(maxsize=4096)
def parse_numbers(text: str) -> tuple[float, ...] | None:
    """The finite decimal numbers in `text`, separated by white space; None when anything else is in it."""
    words = text.split()
    if not all(NUMBER(word) for word in words):
        return None
    numbers = tuple(map(float, words))
    return numbers if all(map(isfinite, numbers)) else None


class Fields:
    """Reads attributes of the elements of one file; `owner` is the link or joint that messages name."""

    def __init__(self, file: str):
        self.file = file
        self.owner: Any = "robot"  # an element, or the words for what is read

    def fail(self, at: Element, cause: str, remedy: str) -> NoReturn:
        raise ModelError(
            cause,
            remedy,
            file=self.file,
            line=at.line,
            element=getattr(self.owner, "label", self.owner),
        )

    def text(self, element: Element, name: str) -> str:
        """An attribute that must be there and not be empty."""
        value = element.attributes.get(name)
        if value is None or not value.strip():
            there = (
                f"; it has {', '.join(map(shown, element.attributes))}"
                if element.attributes and value is None
                else ""
            )
            text = f"; its text is {shown(element.text)}" if element.text else ""
            cause = f"<{element.tag}> has {'no' if value is None else 'an empty'} attribute {name!r}{there}{text}"
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
        """Exactly `count` finite numbers, or the default when the attribute is absent."""
        if default is not None and name not in element.attributes:
            return default
        text = self.text(element, name)
        numbers = parse_numbers(text)
        if numbers is None or len(numbers) != count:
            expected = "a number" if count == 1 else f"{count} numbers with spaces between"
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
        """One finite number, or the default when the attribute is absent."""
        return self.numbers(element, name, 1, None if default is None else (default,))[0]

    def flag(self, element: Element, name: str) -> bool:
        """true or false."""
        text = self.text(element, name)
        if text not in ("true", "false"):
            self.fail(
                element,
                f"{name} of <{element.tag}> is {shown(text)}, expected true or false",
                f'write {name}="false"',
            )
        return text == "true"

    def origin(self, element: Element) -> Placement:
        """The place that the <origin> child gives; absent parts are zero."""
        origin = element.first("origin")
        if origin is None:
            return IDENTITY_PLACEMENT
        x, y, z = self.numbers(origin, "xyz", 3, (0.0, 0.0, 0.0))
        rotation = from_rpy(*self.numbers(origin, "rpy", 3, (0.0, 0.0, 0.0)))
        if "quat_xyzw" in origin.attributes:
            rotation = self._quaternion(origin)
        return (
            IDENTITY_PLACEMENT
            if rotation is IDENTITY_ROTATION and x == y == z == 0.0
            else (rotation, (x, y, z))
        )

    def _quaternion(self, origin: Element):
        q = self.numbers(origin, "quat_xyzw", 4)
        if "rpy" in origin.attributes:
            self.fail(origin, "<origin> has both rpy and quat_xyzw", "keep one of them")
        return builder_values.rotation(None, q, partial(self.fail, origin))


def _advice(text: str, count: int) -> str:
    """What to do about a number that is none."""
    if "," in text:
        return "write a point for the decimal mark and spaces between numbers, no commas"
    if re.search(r"nan|inf", text, re.IGNORECASE) or re.search(r"[0-9]{3}$", text):
        return "give finite decimal numbers; an absent limit means none"
    return f"give {'one plain decimal number' if count == 1 else f'{count} plain decimal numbers'}, like 0.5 or 1e-3"
