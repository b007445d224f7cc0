"""Escapes names for other languages, one function for each language.

The name of a robot, link or joint is arbitrary text from a file. Before it is written to C, HTML,
XML, JSON inside HTML, CSV, LaTeX or a terminal, it passes through the function for that language,
so that it cannot run code, fetch anything or move the cursor. No other language needs one: LLVM IR
contains numbers instead of names, TOML is only read, and the live viewer receives HTML.
"""

from __future__ import annotations

import html as _html
import json
import re
import sys

# Characters that reorder or break a line, or are invisible: bidirectional controls, separators,
# zero-width characters.
_HIDDEN = re.compile(
    "[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# C0, DEL, C1 (0x9b starts a command, as ESC [ does), lone surrogates.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
# The start of a cell that a spreadsheet evaluates as a formula.
_FORMULA = re.compile(r"\s*[=+\-@|%\uff0b\uff0d\uff1d\uff20]")


def line(text: object) -> str:
    r"""One line for a terminal or message, without control, bidirectional and invisible characters.

    >>> line("arm\n\x1b[2Jleft")
    'arm\\x0a\\x1b[2Jleft'
    """
    return _HIDDEN.sub(_code, _CONTROL.sub(_code, str(text)))


def terminal(text: object) -> str:
    r"""Text of several lines for a terminal: as `line`, but line ends and tabs are kept.

    >>> terminal("two\n\x9b31mlines")
    'two\n\\x9b31mlines'
    """
    return "".join(
        part if part in "\n\t" else line(part) for part in re.split(r"([\n\t])", str(text))
    )


def c_comment(text: object) -> str:
    r"""One line inside /* ... */ that cannot end or nest the comment, continue it or be a trigraph.

    >>> c_comment("x *\\\n/ #include <evil.h> /* ??/")
    'x *<U+5C><U+0A>/ #include <evil.h> / * ? ?/'
    """
    safe = _HIDDEN.sub(_number, _CONTROL.sub(_number, str(text).replace("\\", "<U+5C>")))
    return re.sub(r"\?(?=\?)|\*(?=/)|/(?=\*)", r"\g<0> ", safe)


def c_string(text: object) -> bytes:
    r"""UTF-8 for C's `char *`: NUL, which would end it, and lone surrogates are escaped.

    >>> c_string("a\0\ud800b")
    b'a\\x00\\ud800b'
    """
    return re.sub("[\0\ud800-\udfff]", _code, str(text)).encode()


def html(text: object) -> str:
    """Text in an element or in a quoted attribute.

    >>> html('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return _html.escape(_CONTROL.sub(_printable, str(text)), quote=True)


def xml(text: object) -> str:
    r"""Text in a quoted XML attribute that reads back unchanged; invalid characters become codes.

    >>> xml('a<b "c"\n\0')
    'a&lt;b &quot;c&quot;&#10;\\x00'
    """
    valid = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", _code, str(text))
    return re.sub('[&<>"\t\n\r]', lambda m: _ENTITIES.get(m[0], f"&#{ord(m[0])};"), valid)


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def script_json(value: object) -> str:
    r"""ASCII JSON for the inside of <script>: no tag, comment or entity can begin in it.

    >>> script_json("</script><!--&")
    '"\\u003c/script\\u003e\\u003c!--\\u0026"'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&]", _code16, text)


def csv_cell(text: object) -> str:
    r"""One line for a cell of a CSV table; a spreadsheet does not evaluate it as a formula.

    >>> csv_cell("=1+1"), csv_cell("elbow"), csv_cell("a\n=1")
    ("'=1+1", 'elbow', 'a\\x0a=1')
    """
    cell = line(text)
    return f"'{cell}" if _FORMULA.match(cell) else cell


def latex(text: object) -> str:
    r"""Text inside \text{} of LaTeX: no command, group or formula begins or ends in it.

    >>> print(latex("left_hand {50 %}"))
    left\_hand \{50 \%\}
    """
    return "".join(_LATEX.get(letter, letter) for letter in line(text))


_LATEX = {letter: f"\\{letter}" for letter in "_{}$&#%"}
_LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def _code(match: re.Match[str]) -> str:
    n = ord(match[0])
    return f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}"


def _code16(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _number(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):02X}>"


def _printable(match: re.Match[str]) -> str:
    """A space for line ends and tabs, the replacement character for the rest."""
    return " " if match[0] in "\t\n\r" else "\ufffd"


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code: it shows stderr and obeys a carriage return."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
