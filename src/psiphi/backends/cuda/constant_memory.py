"""Numbers of a long kernel in the constant memory of a graphics card.

An instruction of a card has room for half of a float64: two more bring in any other number, which for a humanoid is a fifth of
all code, and its code is longer than the instruction caches. From constant memory one brings it. Short code stands in the
caches, and is left as it is: there the numbers would be what has to be fetched.
"""

from __future__ import annotations

import re

from psiphi.backends.llvm.llvm_emitter import Width

LONG = 4000  # lines of code: about 64 kB of a card's instructions
SPACE = "addrspace(4)"  # the constant memory
HALF = 0xFFFFFFFF  # what an instruction has no room for
NUMBER = re.compile(r"0x[0-9A-F]{16}")


def banked(text: str, w: Width) -> str:
    """The text of a module, numbers of float64 read from a table where it is long; the first line stays the first."""
    lines = text.split("\n")
    if w.fp != "double" or sum(" = " in line for line in lines) < LONG:
        return text
    table: dict[str, int] = {}
    found, count = list[str](), 0
    for line in lines:
        if _takes_numbers(line):
            for number in dict.fromkeys(x for x in NUMBER.findall(line) if int(x, 16) & HALF):
                place = f"getelementptr (double, ptr {SPACE} @bank, i64 {table.setdefault(number, len(table))})"
                found.append(f"  %bank{count} = load double, ptr {SPACE} {place}")
                line, count = line.replace(number, f"%bank{count}"), count + 1
        found.append(line)
    numbers = ", ".join(f"double {number}" for number in table)
    # initialised from outside, so that no compiler puts the numbers back
    bank = f"@bank = internal {SPACE} externally_initialized constant [{len(table)} x double] [{numbers}], align 8"
    return "\n".join([found[0], bank, *found[1:]])


def _takes_numbers(line: str) -> bool:
    """Whether it is an instruction on float64s before which others may stand."""
    return (
        " = " in line
        and " double" in line
        and "float" not in line
        and " phi " not in line
        and not line.startswith("@")
    )
