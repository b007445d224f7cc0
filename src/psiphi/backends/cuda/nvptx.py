"""LLVM's NVPTX back end: IR text -> PTX, which the driver assembles for any GPU since Turing."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from psiphi._util.errors import Error
from psiphi.backends.cuda.cuda_kernel import NAME
from psiphi.backends.cuda.shared_memory import Block
from psiphi.backends.llvm import jit

if TYPE_CHECKING:  # llvmlite is imported at first use
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.targets import TargetMachine

TRIPLE = "nvptx64-nvidia-cuda"
CPU, FEATURES = "sm_75", "+ptx70"  # Turing, the oldest supported architecture

INTRINSICS = """\
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier0()
"""


class CudaWrapper:
    """The code around a kernel on a GPU."""

    sync = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
    sync_all = "call void @llvm.nvvm.barrier0()"
    processors = (
        '%processors.few = call i32 asm "mov.u32 $0, %nsmid;", "=r"()\n'
        "  %processors = zext i32 %processors.few to i64"
    )

    def prefetch(self, pointer: str) -> str:
        return f'call void asm sideeffect "prefetch.L2 [$0];", "l"(ptr {pointer})'

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], block: Block) -> str:
        parameters = [
            f"ptr addrspace(1) noalias {'readonly ' * x.startswith('in')}%{x}.global"
            for x in pointers
        ]
        arguments = ", ".join([*parameters, *(f"i64 %{x}" for x in numbers)])
        shared = block.groups * block.stage_bytes
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
            # a different scheduler runs the trunk in each block
            "%turn.own = add i32 %warp.own, %block",
            f"%role = urem i32 %turn.own, {block.team_size}",
            f"%group = udiv i32 %warp.own, {block.team_size}",
            "%group.long = zext i32 %group to i64",
            "%block.long = zext i32 %block to i64",
            f"%warp.first = mul i64 %block.long, {block.groups}",
            "%warp = add i64 %warp.first, %group.long",
        ]
        if shared:
            start += [
                "%stage.all = addrspacecast ptr addrspace(3) @stage to ptr",
                f"%stage.at = mul i64 %group.long, {block.stage_bytes}",
                "%stage = getelementptr i8, ptr %stage.all, i64 %stage.at",
            ]
        lines = "\n  ".join([*start, *body])
        head = f"define ptx_kernel void @{NAME}({arguments}) nounwind"
        limits = (
            f'"nvvm.maxntid"="{32 * block.warps}"'
            + f' "nvvm.minctasm"="{block.min_blocks}"' * (block.min_blocks > 1)
        )
        return f"{INTRINSICS}{memory}\n{head} {limits} {{\nentry:\n  {lines}\n  ret void\n}}\n"


def to_ptx(text: str) -> str:
    """The PTX of a module."""
    binding, machine = jit.bindings(), _machine()
    with jit.LOCK:
        context = binding.create_context()
        module = jit.parse(binding, text, context)
        try:
            module.triple, module.data_layout = TRIPLE, str(machine.target_data)
            inline_functions(binding, module, machine)
            return machine.emit_assembly(module)
        finally:
            module.close()
            context.close()


def inline_functions(binding: ModuleType, module: ModuleRef, machine: TargetMachine) -> None:
    """Inline the functions that are marked alwaysinline."""
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(
        module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    )


def llvm_version() -> str:
    """The version of LLVM."""
    return jit.host().llvm


def check_available() -> str:
    """The version of LLVM; an error if it has no NVPTX target."""
    return llvm_version() if _machine() else ""


@lru_cache(maxsize=1)
def _machine() -> TargetMachine:
    binding = jit.bindings()
    with jit.LOCK:
        try:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
            target = binding.Target.from_triple(TRIPLE)
        except (RuntimeError, AttributeError) as error:
            cause = f"this llvmlite has no NVPTX target, which GPU code needs: {str(error).strip()}"
            remedy = "run pip install --upgrade llvmlite, or pass arrays on the host"
            raise Error(cause, remedy) from error
        return target.create_target_machine(cpu=CPU, features=FEATURES, opt=3)
