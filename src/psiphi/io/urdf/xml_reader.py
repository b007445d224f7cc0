"""Parser of untrusted XML: elements with line numbers, and limits on size, depth and count.

It uses expat and rejects DOCTYPE, so there are no entity declarations (no entity expansion
attacks) and no external files. It does not recurse.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import shown

TEXT = "<text>"  # the file name in messages about a description that is text
# Text is Unicode already, so the encoding in its XML declaration is ignored.
DECLARATION = re.compile(r"^\s*<\?xml\s[^>]*\?>")
UTF16 = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")


@dataclass(frozen=True)
class ReadLimits:
    """Limits of what is read; each is an option of the readers."""

    max_bytes: int = 64 * 2**20
    max_depth: int = 512
    max_elements: int = 2_000_000
    max_bodies: int = 1_000_000


DEFAULT_LIMITS = ReadLimits()
MAX_ATTRIBUTES = 1000  # of one element
MAX_LETTERS = 100_000  # of one attribute
MAX_PIECE = 1 << 20  # bytes between two '>'


@dataclass(slots=True)
class Element:
    """One XML element: its tag, attributes, children, stripped text, and first line."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def label(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f"{self.tag} {shown(name)}"

    def all(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        for child in self.children:
            if child.tag == tag:
                return child
        return None


def parse(
    source: str | bytes | os.PathLike, limits: ReadLimits = DEFAULT_LIMITS
) -> tuple[Element, str]:
    """The root element of a file, or of text that starts with '<', and the name for messages."""
    data, file, encoding = read(source, limits)
    _check_format(data, file)
    _check_pieces(data, file)
    return _TreeBuilder(file, limits).build(data, encoding), file


def read(source: str | bytes | os.PathLike, limits: ReadLimits) -> tuple[bytes, str, str | None]:
    """The bytes of a description, its name for messages, and its encoding if known."""
    if isinstance(source, (bytes, bytearray)):
        return _check_size(bytes(source), TEXT, limits), TEXT, None
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        source = DECLARATION.sub(
            lambda found: "\n" * found[0].count("\n"), source.lstrip("\ufeff"), count=1
        )
        try:
            return _check_size(source.encode(), TEXT, limits), TEXT, "utf-8"
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise ModelError(
                "the text has characters that cannot be encoded in UTF-8",
                "remove them",
                file=TEXT,
                line=line,
                element="text",
            ) from None
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(
            f"got {shown(source)}, expected a path or XML text",
            "give a path",
            file=TEXT,
            line=1,
            element="source",
        )
    file = os.fspath(source)
    return _read_file(file if isinstance(file, str) else os.fsdecode(file), limits), str(file), None


def _read_file(file: str, limits: ReadLimits) -> bytes:
    shown_file = file if len(file) < 500 else file[:500] + "..."
    try:
        kind = os.stat(file).st_mode
        if stat.S_ISDIR(kind):
            raise ModelError(
                "it is a directory, expected a file",
                "give the file in it",
                file=shown_file,
                line=1,
                element="file",
            )
        if not stat.S_ISREG(kind):
            raise ModelError(
                "it is a device or pipe, expected a file",
                "save it as a file first",
                file=shown_file,
                line=1,
                element="file",
            )
        with open(file, "rb") as stream:
            return _check_size(stream.read(limits.max_bytes + 1), shown_file, limits)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        remedy = "check the path (a description as text must start with '<')"
        raise ModelError(
            f"cannot be read: {cause}", remedy, file=shown_file, line=1, element="file"
        ) from None


def _check_size(data: bytes, file: str, limits: ReadLimits) -> bytes:
    if len(data) > limits.max_bytes:
        cause = f"it is larger than {limits.max_bytes} bytes"
        raise ModelError(
            cause, "raise max_bytes if you trust it", file=file, line=1, element="file"
        )
    return data


NOT_XML = (
    (b"PK", "a zip archive", "unpack it and give the file in it"),
    (b"\x1f\x8b", "a gzip archive", "unpack it first"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "run git lfs pull"),
    (b"solid", "an STL mesh", "give the robot description, not a mesh"),
    (b"{", "JSON", "give an XML description"),
)


def _check_format(data: bytes, file: str) -> None:
    """Raise a ModelError for data that are not XML, judged by the first bytes."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:64]
    if start.startswith((b"<", *UTF16)):
        return
    what, remedy = "not XML", "give an XML description, starting with '<'"
    if not start:
        what, remedy = "empty", "give a file that contains a description"
    for magic, name, advice in NOT_XML:
        if start.startswith(magic):
            what, remedy = name, advice
    raise ModelError(
        f"it is {what}; it begins with {shown(start[:24])}",
        remedy,
        file=file,
        line=1,
        element="file",
    )


def _check_pieces(data: bytes, file: str) -> None:
    """Raise a ModelError for a very long tag, text or comment before expat buffers it."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord(">"))
    if np.diff(ends, prepend=0, append=len(data)).max() > MAX_PIECE:
        raise ModelError(
            f"a tag, text or comment in it has more than {MAX_PIECE >> 20} MiB",
            "check that it is a robot description",
            file=file,
            line=1,
            element="file",
        )


class _TreeBuilder:
    """Builds the elements from the events of expat, with a stack."""

    def __init__(self, file: str, limits: ReadLimits):
        self.file, self.limits = file, limits
        self.stack: list[Element] = []
        self.root: Element | None = None
        self.count = 0

    def build(self, data: bytes, encoding: str | None) -> Element:
        """The root element of `data`."""
        self.parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            self._fail(
                f"not well-formed XML: {expat.ErrorString(error.code)}",
                "correct the XML here",
                error.lineno,
            )
        except (LookupError, UnicodeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            self._fail(
                f"the encoding cannot be read: {error}",
                'save the file as UTF-8 and declare encoding="utf-8"',
                1,
            )
        assert self.root is not None
        return self.root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        self.count += 1
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)
        if len(self.stack) > self.limits.max_depth:
            self._fail(
                f"elements are nested deeper than {self.limits.max_depth}",
                "raise max_depth if you trust the file",
            )
        if len(attributes) > MAX_ATTRIBUTES or any(
            len(value) > MAX_LETTERS for value in attributes.values()
        ):
            self._fail(
                f"an element has more than {MAX_ATTRIBUTES} attributes, "
                f"or an attribute with more than {MAX_LETTERS} characters",
                "shorten it",
            )
        if self.count > self.limits.max_elements:
            self._fail(
                f"there are more than {self.limits.max_elements} elements",
                "raise max_elements if you trust the file",
            )

    def _end(self, tag: str) -> None:
        self.stack.pop()

    def _text(self, text: str) -> None:
        if not text.isspace():
            self.stack[-1].text = (self.stack[-1].text + text.strip())[:200]

    def _doctype(self, *_) -> None:
        self._fail(
            "a DOCTYPE is not accepted: it can include files and expand without bound",
            "remove the <!DOCTYPE ...> line",
        )

    def _fail(self, cause: str, remedy: str, line: int | None = None) -> NoReturn:
        """Raise a ModelError that names the innermost element with a name."""
        owner = next(
            (e for e in reversed(self.stack) if "name" in e.attributes),
            self.stack[-1] if self.stack else None,
        )
        element = owner.label if owner else "document"
        raise ModelError(
            cause,
            remedy,
            file=self.file,
            line=line or self.parser.CurrentLineNumber,
            element=element,
        )
