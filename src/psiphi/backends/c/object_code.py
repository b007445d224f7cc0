"""Object code for other machines, and static libraries; LLVM compiles for all of them.

    x86-64      Linux, CPUs with FMA (x86-64-v3: Haswell, Zen and later)
    aarch64     Linux, ARMv8-A
    riscv64     Linux, RV64GC, lp64d
    cortex-m7   bare metal, Thumb-2 with a double-precision unit, hard float

The code calls no other function and has no state; it uses the stack only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.backends.c.c_abi_kernel import plain_module
from psiphi.backends.c.c_columns import Columns
from psiphi.backends.c.c_source import check_code, check_function
from psiphi.backends.llvm import jit
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.tree_loop import StraightCode

if TYPE_CHECKING:
    from psiphi.backends.target import Code

MAGIC, HEADER_BYTES = b"!<arch>\n", 60  # of an archive, and of the header of each member


class OtherMachine(NamedTuple):
    """What LLVM needs to know; `wide`: whether 128-bit products need no library function."""

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


def object_code(code: Code, name: str, machine: str, char: str = "d") -> bytes:
    """A relocatable ELF object that defines `name` and its batch."""
    check_function(name)
    if isinstance(code, LinkLoops | Columns):
        loops = code.operator if isinstance(code, Columns) else code
        cause = f"the robot has {len(loops.tree.links)} bodies, object code is limited to 64"
        raise StateError(cause, "use C, which supports larger robots: --target c")
    straight = check_code(code)
    assert isinstance(straight, StraightCode)
    if machine not in MACHINES:
        raise StateError(f"unknown machine {shown(machine)}", nearest(machine, MACHINES))
    spec = MACHINES[machine]
    text, binding = (
        plain_module(straight, name, char, spec.wide, spec.abi, spec.size),
        jit.bindings(),
    )
    with jit.LOCK:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(spec.triple)
        options = {
            "cpu": spec.cpu,
            "features": spec.features,
            "opt": 2,
            "reloc": "pic",
            "codemodel": "default",
        }
        if spec.abi:
            options["abiname"] = spec.abi
        target_machine = target.create_target_machine(**options)
        context = binding.create_context()
        module = jit.parse(binding, text, context)
        try:
            module.triple, module.data_layout = (
                spec.triple,
                str(target_machine.target_data),
            )
            return target_machine.emit_object(module)
        finally:
            module.close()
            context.close()


def static_library(name: str, code: bytes) -> bytes:
    """An archive of one object, with the symbol index of System V, which linkers read."""
    names = [name, f"{name}_batch"]
    strings = "".join(f"{symbol}\0" for symbol in names).encode()
    strings += b"\0" * (len(strings) % 2)
    start = len(MAGIC) + HEADER_BYTES + 4 * (1 + len(names)) + len(strings)
    index = struct.pack(f">{1 + len(names)}I", len(names), *[start] * len(names)) + strings
    return (
        MAGIC
        + _member_header("/", len(index))
        + index
        + _member_header(f"{name[:12]}.o/", len(code))
        + code
        + b"\n" * (len(code) % 2)
    )


def _member_header(name: str, size: int) -> bytes:
    """The header of a member, without time and owner, so that equal code gives equal files."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
