"""Names on their way into other languages: one function for each language, all of them here.

A robot's, a link's or a joint's name is whatever its file says. Where it enters C, HTML, JSON within HTML, CSV, LaTeX, a C
string or a terminal, it goes through the function of that language below, and then neither runs, fetches, nor moves a cursor.
Elsewhere names do not go: LLVM IR numbers everything, TOML is only ever read, the live viewer is given HTML, not Markdown.
"""

from __future__ import annotations

import html as _html
import json
import re
from typing import Any

# Reorders the line it stands in, breaks it, or shows nothing: bidirectional controls, separators, marks without width.
_HIDDEN = re.compile(
    "[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\udfff]"
)  # C0, DEL, C1 (0x9b starts a command as ESC [ does), half characters
_FORMULA = re.compile(
    r"\s*[=+\-@|%\uff0b\uff0d\uff1d\uff20]"
)  # how a cell begins that a spreadsheet computes


def line(text: object) -> str:
    r"""One line for a terminal or a message: nothing in it moves a cursor, colours, hides or turns the text about.

    >>> line("arm\n\x1b[2Jleft")
    'arm\\x0a\\x1b[2Jleft'
    """
    return _HIDDEN.sub(_code, _CONTROL.sub(_code, str(text)))


def terminal(text: object) -> str:
    r"""Text of several lines for a terminal: as `line`, but its own line ends and tabs stay.

    >>> terminal("two\n\x9b31mlines")
    'two\n\\x9b31mlines'
    """
    return "".join(
        part if part in "\n\t" else line(part) for part in re.split(r"([\n\t])", str(text))
    )


def c_comment(text: object) -> str:
    r"""Text inside /* ... */: on one line, it cannot end the comment, begin another, continue a line or be a trigraph.

    >>> c_comment("x *\\\n/ #include <evil.h> /* ??/")
    'x *<U+5C><U+0A>/ #include <evil.h> / * ? ?/'
    """
    words = _HIDDEN.sub(_number, _CONTROL.sub(_number, str(text).replace("\\", "<U+5C>")))
    return re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)", r"\g<0> ", words)


def c_string(text: object) -> bytes:
    r"""UTF-8 for C's `char *`: without NUL, which would end it, and without half characters, which UTF-8 cannot hold.

    >>> c_string("a\0\ud800b")
    b'a\\x00\\ud800b'
    """
    return re.sub("[\0\ud800-\udfff]", _code, str(text)).encode()


def html(text: object) -> str:
    """Text in an element or in a quoted attribute.

    >>> html('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return _html.escape(_CONTROL.sub(_shown, str(text)), quote=True)


def xml(text: object) -> str:
    r"""Text in a quoted attribute of XML, to be read again as it was; what XML cannot hold stands there as its code.

    >>> xml('a<b "c"\n\0')
    'a&lt;b &quot;c&quot;&#10;\\x00'
    """
    held = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", _code, str(text))
    return re.sub('[&<>"\t\n\r]', lambda m: _ENTITIES.get(m[0], f"&#{ord(m[0])};"), held)


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def script_json(value: Any) -> str:
    r"""JSON that may stand inside <script>: no tag, comment or entity can begin in it, and it is ASCII.

    >>> script_json("</script><!--&")
    '"\\u003c/script\\u003e\\u003c!--\\u0026"'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&]", _code16, text)


def csv_cell(text: object) -> str:
    r"""A name in a table that a spreadsheet may open: never a formula, on one line.

    >>> csv_cell("=1+1"), csv_cell("elbow"), csv_cell("a\n=1")
    ("'=1+1", 'elbow', 'a\\x0a=1')
    """
    words = line(text)
    return f"'{words}" if _FORMULA.match(words) else words


def latex(text: object) -> str:
    r"""Text in LaTeX, within \text: no command, group or formula begins or ends in it.

    >>> print(latex("left_hand {50 %}"))
    left\_hand \{50 \%\}
    """
    return "".join(_LATEX.get(letter, letter) for letter in line(text))


_LATEX = {letter: f"\\{letter}" for letter in "_{}$&#%"}
_LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def _code(found: re.Match[str]) -> str:
    n = ord(found[0])
    return f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}"


def _code16(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _number(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):02X}>"


def _shown(found: re.Match[str]) -> str:
    """Line ends and tabs as spaces, the rest as the sign for "no character"."""
    return " " if found[0] in "\t\n\r" else "\ufffd"
