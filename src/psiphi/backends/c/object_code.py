"""Object code for other machines, and static libraries of it: LLVM has them all, so no compiler is needed here.

    x86-64      Linux, processors with FMA (x86-64-v3: Haswell, Zen and later)
    aarch64     Linux, ARMv8-A
    riscv64     Linux, RV64GC, lp64d
    cortex-m7   bare metal, Thumb-2 with a double-precision unit, hard float

The code calls nothing and keeps nothing: it needs the stack alone.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.backends.c.c_abi_kernel import plain_module
from psiphi.backends.c.c_source import check_function, known_code
from psiphi.backends.llvm import jit
from psiphi.compiler.sweeps.link_loops import LinkLoops

MAGIC, HEAD = b"!<arch>\n", 60  # of an archive, and the bytes before each member


class OtherMachine(NamedTuple):
    """What LLVM must know of it; `wide`: whether it multiplies 128 bits without help."""

    triple: str
    cpu: str
    features: str = ""
    abi: str = ""
    wide: bool = True
    size: str = "i64"  # size_t


MACHINES = {
    "x86-64": OtherMachine("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "aarch64": OtherMachine("aarch64-unknown-linux-gnu", "generic"),
    "riscv64": OtherMachine("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
    "cortex-m7": OtherMachine("thumbv7em-none-eabihf", "cortex-m7", wide=False, size="i32"),
}


def object_code(code: Any, name: str, machine: str, char: str = "d") -> bytes:
    """A relocatable ELF object that defines `name` and its batch."""
    check_function(name)
    if isinstance(code, LinkLoops):
        cause = f"the robot has {len(code.tree.links)} bodies, objects are written for up to 64"
        raise StateError(cause, "take C, which has loops for it: --target c")
    known_code(code)
    if machine not in MACHINES:
        raise StateError(f"there is no machine {shown(machine)}", nearest(machine, MACHINES))
    known = MACHINES[machine]
    text, binding = (
        plain_module(code, name, char, known.wide, known.abi, known.size),
        jit.bindings(),
    )
    with jit.LOCK:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(known.triple)
        options = {
            "cpu": known.cpu,
            "features": known.features,
            "opt": 2,
            "reloc": "pic",
            "codemodel": "default",
        }
        if known.abi:
            options["abiname"] = known.abi
        made = target.create_target_machine(**options)
        context = binding.create_context()
        module = jit.parse(binding, text, context)
        try:
            module.triple, module.data_layout = known.triple, str(made.target_data)
            return made.emit_object(module)
        finally:
            module.close()
            context.close()


def static_library(name: str, code: bytes) -> bytes:
    """An archive of that object, with the index that linkers read (System V's)."""
    names = [name, f"{name}_batch"]
    words = "".join(f"{word}\0" for word in names).encode()
    words += b"\0" * (len(words) % 2)
    start = len(MAGIC) + HEAD + 4 * (1 + len(names)) + len(words)
    index = struct.pack(f">{1 + len(names)}I", len(names), *[start] * len(names)) + words
    return (
        MAGIC
        + _head("/", len(index))
        + index
        + _head(f"{name[:12]}.o/", len(code))
        + code
        + b"\n" * (len(code) % 2)
    )


def _head(name: str, size: int) -> bytes:
    """A member's 60 bytes: no time, no owner, so that the same code is the same file."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
