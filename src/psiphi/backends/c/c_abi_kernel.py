"""One function of C's calling convention as LLVM IR, for object code of any machine: nothing is called, not even a C library.

    void NAME(const double *q, ..., double *a)
    void NAME_batch(size_t n, const double *q, ..., double *a)

Inputs are copied into the frame before anything else, results from it at the end: an output may be one of the inputs' arrays.
"""

from __future__ import annotations

from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.llvm.angle_reduction import sincos_of_any
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import Text, sincos, sincos_loop
from psiphi.compiler.sweeps.tree_loop import StraightCode

FP = {"d": "double", "f": "float"}


def plain_module(
    straight: StraightCode,
    name: str,
    char: str = "d",
    wide: bool = True,
    abi: str = "",
    size: str = "i64",
) -> str:
    """The text of the module, for a machine whose size_t is `size`; where products of 128 bits are not `wide`ly known, angles
    beyond 1e4 are answered by NaN."""
    w, kernel = Width(FP[char], 1), straight_kernel(straight)
    arguments, lines = kernel.inputs + kernel.outputs, []
    for i, (_, places) in enumerate(arguments):
        inward = i < len(kernel.inputs)
        for j, place in enumerate(places):
            lines.append(f"%own{i}.{j} = getelementptr {w.fp}, ptr %a{i}, i64 {j}")
            lines.append(f"%at{i}.{j} = getelementptr {w.fp}, ptr %frame, i64 {place}")
            source, target = (
                (f"%own{i}.{j}", f"%at{i}.{j}") if inward else (f"%at{i}.{j}", f"%own{i}.{j}")
            )
            lines.append(f"%x{i}.{j} = load {w.fp}, ptr {source}")
            lines.append(f"store {w.fp} %x{i}.{j}, ptr {target}")
        if i == len(kernel.inputs) - 1:
            lines.append(f"call void @block.{w.suffix}(ptr %frame, ptr null)")
    flags = (
        f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !"target-abi", !"{abi}"}}\n' if abi else ""
    )
    newline = "\n  "
    return f"""declare {w.fp} @llvm.fma.{w.suffix}({w.fp}, {w.fp}, {w.fp})
declare {w.fp} @llvm.sqrt.{w.suffix}({w.fp})
{sincos_of_any(w) if wide else sincos(w, _unknown)}
{sincos_loop(w)}
{kernel.block(w)}
define void @{name}({", ".join(f"ptr %a{i}" for i in range(len(arguments)))}) nounwind {{
  %frame = alloca [{kernel.frame} x {w.fp}], align 16
  {newline.join(lines)}
  ret void
}}
{_batch(name, [arg.size for arg, _ in arguments], w, size)}
{flags}"""


def _batch(name: str, sizes: list[int], w: Width, size: str) -> str:
    """One state after the other."""
    lines, given = [], []
    for i, count in enumerate(sizes):
        lines.append(f"%jump{i} = mul {size} %i, {count}")
        lines.append(f"%at{i} = getelementptr {w.fp}, ptr %a{i}, {size} %jump{i}")
        given.append(f"ptr %at{i}")
    newline = "\n  "
    return f"""define void @{name}_batch({size} %n, {", ".join(f"ptr %a{i}" for i in range(len(sizes)))}) nounwind {{
entry:
  br label %test
test:
  %i = phi {size} [ 0, %entry ], [ %next, %body ]
  %more = icmp ult {size} %i, %n
  br i1 %more, label %body, label %done
body:
  {newline.join(lines)}
  call void @{name}({", ".join(given)})
  %next = add {size} %i, 1
  br label %test
done:
  ret void
}}
"""


def _unknown(t: Text) -> tuple[str, str]:
    """Neither number nor guess."""
    nothing = t.op("fsub", "%x", "%x")
    none = t.op("fdiv", nothing, nothing)
    return none, none
