"""LLVM's NVPTX back end: IR text -> PTX, which the driver of any card from Turing on assembles for itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from psiphi._util.errors import Error
from psiphi.backends.cuda.cuda_kernel import NAME
from psiphi.backends.cuda.shared_memory import Block
from psiphi.backends.llvm import jit

TRIPLE = "nvptx64-nvidia-cuda"
CPU, FEATURES = "sm_75", "+ptx70"  # the oldest card; nothing newer is asked for

INTRINSICS = """\
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier0()
"""


class CudaWrapper:
    """The shell of a kernel on a card."""

    sync = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
    sync_all = "call void @llvm.nvvm.barrier0()"
    processors = '%processors.few = call i32 asm "mov.u32 $0, %nsmid;", "=r"()\n  %processors = zext i32 %processors.few to i64'

    def fetch(self, pointer: str) -> str:
        return f'call void asm sideeffect "prefetch.L2 [$0];", "l"(ptr {pointer})'

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], block: Block) -> str:
        given = [
            f"ptr addrspace(1) noalias {'readonly ' * x.startswith('in')}%{x}.global"
            for x in pointers
        ]
        arguments = ", ".join([*given, *(f"i64 %{x}" for x in numbers)])
        shared = block.groups * block.stage
        memory = (
            f"@stage = internal addrspace(3) global [{shared} x i8] undef, align 16"
            if shared
            else ""
        )
        start = [
            *(f"%{x}.array = addrspacecast ptr addrspace(1) %{x}.global to ptr" for x in pointers),
            "%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "%block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "%lane = and i32 %thread, 31",
            "%warp.own = lshr i32 %thread, 5",
            "%turn.own = add i32 %warp.own, %block",  # in each block another scheduler has the trunk
            f"%role = urem i32 %turn.own, {block.roles}",
            f"%group = udiv i32 %warp.own, {block.roles}",
            "%group.long = zext i32 %group to i64",
            "%block.long = zext i32 %block to i64",
            f"%warp.first = mul i64 %block.long, {block.groups}",
            "%warp = add i64 %warp.first, %group.long",
        ]
        if shared:
            start += [
                "%stage.all = addrspacecast ptr addrspace(3) @stage to ptr",
                f"%stage.at = mul i64 %group.long, {block.stage}",
                "%stage = getelementptr i8, ptr %stage.all, i64 %stage.at",
            ]
        lines = "\n  ".join([*start, *body])
        head = f"define ptx_kernel void @{NAME}({arguments}) nounwind"
        limits = f'"nvvm.maxntid"="{32 * block.warps}"' + f' "nvvm.minctasm"="{block.least}"' * (
            block.least > 1
        )
        return f"{INTRINSICS}{memory}\n{head} {limits} {{\nentry:\n  {lines}\n  ret void\n}}\n"


def ptx(text: str) -> str:
    """PTX of a module."""
    binding, machine = jit.bindings(), _machine()
    with jit.LOCK:
        context = binding.create_context()
        module = jit.parse(binding, text, context)
        try:
            module.triple, module.data_layout = TRIPLE, str(machine.target_data)
            inline(binding, module, machine)
            return machine.emit_assembly(module)
        finally:
            module.close()
            context.close()


def inline(binding: Any, module: Any, machine: Any) -> None:
    """Put the functions that ask for it where they are called."""
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(
        module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    )


def llvm() -> str:
    """The version of LLVM."""
    return jit.host().llvm


def ready() -> str:
    """The version of LLVM, once it is known that it makes PTX."""
    return llvm() if _machine() else ""


@lru_cache(maxsize=1)
def _machine() -> Any:
    binding = jit.bindings()
    with jit.LOCK:
        try:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
            target = binding.Target.from_triple(TRIPLE)
        except (RuntimeError, AttributeError) as error:
            cause = f"this llvmlite has no NVPTX target, which makes the code of graphics cards ({str(error).strip()})"
            raise Error(
                cause, "pip install --upgrade llvmlite, or pass arrays of the host"
            ) from error
        return target.create_target_machine(cpu=CPU, features=FEATURES, opt=3)
