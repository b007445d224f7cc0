"""Names that would command what they are written into: the same ones for every language."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

import numpy as np

import psiphi as pp

MARK = "psiphi_hijacked"  # what each of them would make appear
BODY = f'__attribute__((constructor)) void first(void){{puts("{MARK}");}}'

NAMES = {
    "a comment's end": f"x */ int {MARK}; /*",
    "a comment's end over a spliced line": f"x *\\\n/ \n#include <stdio.h>\n{BODY}\n/*",
    "a comment's end by trigraph": f"x *??/\n/ \n#include <stdio.h>\n{BODY}\n/*",
    "a trigraph alone": "??/",
    "trigraphs in a row": "?????/",
    "a backslash at the end": "x\\",
    "stars and slashes": "*/*/**//*/",
    "a comment within": "/* /* //",
    "a line and a directive": f"x\n#error {MARK}\n",
    "carriage returns": f"x\r\n*/ int {MARK};\r/*",
    "an LLVM line": f"x\n@{MARK} = global i32 0\n",
    "a script": f"<script>window.{MARK} = 1</script>",
    "the script's end": f"</script><script>window.{MARK} = 1</script>",
    "a script comment": f"<!--<script>{MARK}",
    "an image that fails": f"<img src=x onerror=window.{MARK}=1>",
    "out of an attribute": f'" onload="window.{MARK}=1" x=\'',
    "an entity": f"&lt;script&gt;{MARK}&#10;",
    "a template": "{{title}} {0} %s ${x}",
    "a markdown picture": f"![p](http://127.0.0.1:9/{MARK}.png)",
    "a markdown link": f"[{MARK}](javascript:alert(1)) <http://127.0.0.1:9/>",
    "an mdx expression": f"{{window.{MARK} = 1}}",
    "a formula": f'=HYPERLINK("http://127.0.0.1:9/{MARK}")',
    "a formula after a comma": f"a,=cmd|' /C {MARK}'!A0",
    "more formulas": f"+1+1 {MARK}",
    "a formula by at": "@SUM(1)",
    "a formula after a tab": "\t=1+1",
    "a minus": "-2+3",
    "quotes and commas": 'a","b\n",',
    "the terminal's title": f"\x1b]0;{MARK}\x07",
    "a cleared screen": "\x1b[2J\x1b[H",
    "eight-bit commands": "\x9b31m\x90q\x9d0;x\x9c",
    "a line drawn over": "x\rpsiphi: all is well",
    "a bell and a backspace": "a\x07\b\b\b",
    "text turned about": "arm\u202egnitset\u2066\u2069",
    "no width": "a\u200bb\ufeffc\u2060",
    "separators": "a\u2028b\u2029c\x85d",
    "half a character": "a\ud800b\udfff",
    "a nul": f"a\0{MARK}",
    "every letter": "ψφ 関節 🤖 é\u0301",
    "long": "long " * 2000,
    "a path": "../../../../etc/passwd",
    "a format": "%n%n%n%s",
    "toml": f'"""\n[{MARK}]\nx = 1',
}


def robot(name: str) -> pp.Robot:
    """A pendulum on a slide whose robot, links, joints and frames all bear the name, as far as
    names may be alike."""
    builder = pp.Builder(name)
    for k, part in enumerate(("", "'", "\u00a0")):
        builder.body(f"{name}{part}", 1.0 + k, com=(0.1, 0, 0.2), inertia=np.eye(3))
    builder.joint(name, "prismatic", "world", name, axis=(0, 0, 1))
    builder.joint(f"{name}'", "revolute", name, f"{name}'", axis=(0, 1, 0), xyz=(0, 0, 0.3))
    builder.joint(f"{name}\u00a0", "spherical", f"{name}'", f"{name}\u00a0", xyz=(0, 0, 0.3))
    builder.frame(f"{name} tip", f"{name}\u00a0", xyz=(0, 0, 0.2))
    return builder.build()


def urdf(name: str) -> str | None:
    """The same as a file; None where XML cannot hold the name."""
    if any(c in name for c in "\0\x07\b\x1b\ud800\udfff"):
        return None
    quoted = [
        quoteattr(name + tail, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
        for tail in ("", "'", " hinge")
    ]
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" '
        'izz="1"/></inertial>'
    )
    return (
        f"<robot name={quoted[0]}><link name={quoted[0]}/><link name={quoted[1]}>{inertial}</link>"
        f'<joint name={quoted[2]} type="continuous"><parent link={quoted[0]}/><child '
        f"link={quoted[1]}/></joint></robot>"
    )
