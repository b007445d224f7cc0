"""Constants of a long kernel in the constant memory of the GPU.

An instruction can encode the upper half of a float64. Any other constant takes two more
instructions; for a humanoid these are a fifth of its code, which exceeds the instruction caches.
Loading a constant from constant memory takes one instruction. Short code fits the caches and stays
as it is, because there the loads would be slower.
"""

from __future__ import annotations

import re

from psiphi.backends.llvm.llvm_emitter import Width

LONG_CODE = 4000  # lines of code: about 64 kB of instructions
ADDRESS_SPACE = "addrspace(4)"  # constant memory
LOW_WORD = 0xFFFFFFFF  # the half of a float64 that an instruction cannot encode
HEX_CONSTANT = re.compile(r"0x[0-9A-F]{16}")


def with_constant_memory(text: str, w: Width) -> str:
    """The text of a module; if it is long, float64 constants are loaded from a table.

    The first line remains the first.
    """
    lines = text.split("\n")
    if w.fp != "double" or sum(" = " in line for line in lines) < LONG_CODE:
        return text
    table: dict[str, int] = {}
    out, count = list[str](), 0
    for line in lines:
        if _may_load_constants(line):
            for number in dict.fromkeys(
                x for x in HEX_CONSTANT.findall(line) if int(x, 16) & LOW_WORD
            ):
                entry = f"i64 {table.setdefault(number, len(table))}"
                address = f"getelementptr (double, ptr {ADDRESS_SPACE} @bank, {entry})"
                out.append(f"  %bank{count} = load double, ptr {ADDRESS_SPACE} {address}")
                line, count = line.replace(number, f"%bank{count}"), count + 1
        out.append(line)
    numbers = ", ".join(f"double {number}" for number in table)
    # declared as initialised externally, so that the compiler does not inline the constants again
    declaration = (
        f"@bank = internal {ADDRESS_SPACE} externally_initialized constant "
        f"[{len(table)} x double] [{numbers}], align 8"
    )
    return "\n".join([out[0], declaration, *out[1:]])


def _may_load_constants(line: str) -> bool:
    """Whether a line is an instruction on float64 that loads may precede."""
    return (
        " = " in line
        and " double" in line
        and "float" not in line
        and " phi " not in line
        and not line.startswith("@")
    )
