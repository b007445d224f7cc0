"""LLVM IR of a function with C's calling convention, which calls no library, for any machine.

    void NAME(const double *q, ..., double *a)
    void NAME_batch(size_t n, const double *q, ..., double *a)

Inputs are copied into the frame first and results out of it last, so that an output may be the
array of an input.
"""

from __future__ import annotations

from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.llvm.angle_reduction import sincos_any_angle
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import IRBuilder, sincos, sincos_loop
from psiphi.compiler.sweeps.tree_loop import StraightCode

FP = {"d": "double", "f": "float"}


def plain_module(
    straight: StraightCode,
    name: str,
    char: str = "d",
    has_i128: bool = True,
    abi: str = "",
    size: str = "i64",
) -> str:
    """The text of the module; `size` is the machine's size_t.

    Without 128-bit products (`has_i128`), angles beyond 1e4 give NaN.
    """
    w, kernel = Width(FP[char], 1), straight_kernel(straight)
    arguments, lines = kernel.inputs + kernel.outputs, []
    for i, (_, places) in enumerate(arguments):
        is_input = i < len(kernel.inputs)
        for j, place in enumerate(places):
            lines.append(f"%arg{i}.{j} = getelementptr {w.fp}, ptr %a{i}, i64 {j}")
            lines.append(f"%at{i}.{j} = getelementptr {w.fp}, ptr %frame, i64 {place}")
            source, target = (
                (f"%arg{i}.{j}", f"%at{i}.{j}") if is_input else (f"%at{i}.{j}", f"%arg{i}.{j}")
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
{sincos_any_angle(w) if has_i128 else sincos(w, _nan)}
{sincos_loop(w)}
{kernel.block(w)}
define void @{name}({", ".join(f"ptr %a{i}" for i in range(len(arguments)))}) nounwind {{
  %frame = alloca [{kernel.frame_size} x {w.fp}], align 16
  {newline.join(lines)}
  ret void
}}
{_batch_function(name, [arg.size for arg, _ in arguments], w, size)}
{flags}"""


def _batch_function(name: str, sizes: list[int], w: Width, size: str) -> str:
    """@<name>_batch: a loop over states."""
    lines, arguments = [], []
    for i, count in enumerate(sizes):
        lines.append(f"%jump{i} = mul {size} %i, {count}")
        lines.append(f"%at{i} = getelementptr {w.fp}, ptr %a{i}, {size} %jump{i}")
        arguments.append(f"ptr %at{i}")
    newline = "\n  "
    parameters = ", ".join([f"{size} %n", *(f"ptr %a{i}" for i in range(len(sizes)))])
    return f"""define void @{name}_batch({parameters}) nounwind {{
entry:
  br label %test
test:
  %i = phi {size} [ 0, %entry ], [ %next, %body ]
  %more = icmp ult {size} %i, %n
  br i1 %more, label %body, label %done
body:
  {newline.join(lines)}
  call void @{name}({", ".join(arguments)})
  %next = add {size} %i, 1
  br label %test
done:
  ret void
}}
"""


def _nan(t: IRBuilder) -> tuple[str, str]:
    """(NaN, NaN)."""
    zero = t.op("fsub", "%x", "%x")
    nan = t.op("fdiv", zero, zero)
    return nan, nan
