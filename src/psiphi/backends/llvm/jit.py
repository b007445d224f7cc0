"""LLVM's compiler: IR text -> object code -> addresses in this process.

A TargetMachine for the host makes the object code; ORC's LLJIT with JITLink loads it. Loading takes
0.2 ms and needs no compiler, so that an object from the disk cache is callable a few milliseconds
after llvmlite is imported. LLJIT is preferred to MCJIT for two reasons: a missing symbol is an
error, not an abort; and JITLink places the sections of an object next to each other, which keeps
the small code model valid for objects of any size below 2 GB.

llvmlite is imported at first use, so that `import psiphi` is fast.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from psiphi._util.errors import Error

if TYPE_CHECKING:  # llvmlite is imported at first use
    from llvmlite.binding.context import ContextRef
    from llvmlite.binding.module import ModuleRef
    from llvmlite.binding.orcjit import ResourceTracker
    from llvmlite.binding.targets import TargetMachine

# LLVM may turn intrinsics or calls into any of these (sin and cos of one angle become sincos).
EXTERNALS = (
    "sin",
    "cos",
    "sinf",
    "cosf",
    "sincos",
    "sincosf",
    "sqrt",
    "sqrtf",
    "fma",
    "fmaf",
    "memset",
    "memcpy",
    "memmove",
)
LIBRARIES_PER_LINKER = 32
OPT_LEVEL = (
    2  # of instruction selection and register allocation, 0 to 3; the bits do not depend on it
)
LONG_TEXT = 1_000_000  # characters of IR; longer text compiles in 2/3 of the time at level 1
_BUG = "report this as a bug of psiphi"

LOCK = threading.RLock()
_serial = itertools.count()


class Processor(NamedTuple):
    """What object code depends on besides its source; all four fields belong in a cache key."""

    cpu: str
    features: str
    triple: str
    llvm: str


class Address(int):
    """The address of a function, as an int that keeps the library of the function alive."""

    library: Library


class Library:
    """Loaded object code; it is unloaded once neither it nor any of its addresses is referenced."""

    def __init__(self, tracker: ResourceTracker, names: list[str]):
        self._tracker, self.names = tracker, tuple(names)
        self._pointers: dict[str, int] = {}

    def address(self, name: str) -> Address:
        """The address of an exported function."""
        if name not in self.names:
            raise Error(
                f"the loaded code exports {', '.join(self.names) or 'nothing'}, not {name!r}",
                "pass that name to load_object",
            )
        address = Address(self._tracker[name])
        address.library = self
        return address

    def set_pointer(self, name: str, value: Address | int) -> None:
        """Set an exported pointer; the library of an address is kept alive."""
        ctypes.c_void_p.from_address(self.address(name)).value = value
        self._pointers[name] = value


@lru_cache(maxsize=1)
def host() -> Processor:
    """The processor, its features, the target triple and the version of LLVM."""
    binding = bindings()
    with LOCK:
        try:
            features = binding.get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM cannot query this processor; its name alone decides
            features = ""
        version = ".".join(str(part) for part in binding.llvm_version_info)
        return Processor(
            binding.get_host_cpu_name(), features, binding.get_process_triple(), version
        )


def compile_ir(text: str, opt: int | None = None, passes: bool = False) -> bytes:
    """LLVM IR text -> relocatable object code for this processor.

    `opt` (0 to 3) is the level of instruction selection and register allocation; the default is
    OPT_LEVEL, or 1 for long texts. `passes` runs LLVM's middle-end pipeline, which straight-line
    code rarely needs, without loop or SLP vectorisation: the text already has lanes.
    """
    opt = opt if opt is not None else min(OPT_LEVEL, 1) if len(text) > LONG_TEXT else OPT_LEVEL
    binding = bindings()
    with LOCK:
        machine = _machine(opt)
        context = binding.create_context()  # LLVM never frees the constants of its global context
        module = parse(binding, text, context)
        try:
            module.triple, module.data_layout = host().triple, str(machine.target_data)
            if passes:
                _optimise(binding, module, machine, opt)
            return machine.emit_object(module)
        finally:
            module.close()
            context.close()


def load_object(
    obj: bytes, names: list[str], imports: Mapping[str, int] | None = None, keep: bool = False
) -> Library:
    """Object code from `compile_ir` -> a library whose `names` can be called.

    `imports`: addresses of functions that the code calls, in libraries that the caller keeps;
    `keep`: the library is never unloaded.
    """
    binding = bindings()
    with LOCK:
        builder = binding.JITLibraryBuilder().add_object_img(obj).add_current_process()
        for name, address in (_missing_externals() | dict(imports or {})).items():
            builder.import_symbol(name, address)
        for name in names:
            builder.export_symbol(name)
        serial = next(_serial)
        linker = _linker_of_kept() if keep else _linker(serial // LIBRARIES_PER_LINKER)
        try:
            return Library(builder.link(linker, f"psiphi{serial}"), names)
        except RuntimeError as error:
            cause = f"LLVM cannot load {len(obj)} bytes of object code: {str(error).strip()}"
            raise Error(
                cause,
                f"check that it defines {', '.join(names)} and calls only {', '.join(EXTERNALS)}",
            ) from error


@lru_cache(maxsize=1)
def bindings() -> ModuleType:
    """llvmlite.binding, with its native target initialised."""
    with LOCK:
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        return binding


@lru_cache(maxsize=8)
def _machine(opt: int) -> TargetMachine:
    target, cpu = bindings().Target.from_triple(host().triple), host()
    return target.create_target_machine(
        cpu=cpu.cpu, features=cpu.features, opt=opt, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def _linker(_band: int) -> Any:
    """The linker of one band of 32 libraries.

    A linker keeps 10 kB of each library that is unloaded. With a new linker for every 32
    libraries this memory is freed when the last library of a linker is unloaded.
    """
    return _new_linker()


@lru_cache(maxsize=1)
def _linker_of_kept() -> Any:
    """The linker of libraries that are never unloaded, which would keep those of a band."""
    return _new_linker()


def _new_linker() -> Any:
    return bindings().create_lljit_compiler(
        _machine(2), use_jit_link=sys.platform != "win32", suppress_errors=True
    )


def parse(binding: ModuleType, text: str, context: ContextRef) -> ModuleRef:
    """A verified module; LLVM's back end would crash on invalid IR."""
    try:
        module = binding.parse_assembly(text, context)
    except RuntimeError as error:
        raise _parse_error(str(error)) from error
    try:
        module.verify()
    except RuntimeError as error:
        raise Error(
            f"internal error: LLVM rejects the emitted code: {str(error).strip()}", _BUG
        ) from error
    return module


def _parse_error(message: str) -> Error:
    """LLVM's '<string>:12:5: error: expected type' as an Error that gives line 12 and its text."""
    match = re.search(r"<string>:(\d+):\d+: error: (.*)\n(.*)", message)
    if match is None:
        cause = f"internal error: LLVM cannot parse the emitted code: {message.strip()}"
        return Error(cause, _BUG)
    cause = (
        f"internal error: LLVM cannot parse the emitted code: {match[2]} in {match[3].strip()!r}"
    )
    return Error(cause, _BUG, file="LLVM IR", line=int(match[1]))


def _optimise(binding: ModuleType, module: ModuleRef, machine: TargetMachine, opt: int) -> None:
    tuning = binding.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


@lru_cache(maxsize=1)
def _missing_externals() -> dict[str, int]:
    """Addresses of externals that the process does not export (embedded Python, Windows)."""
    process, addresses = _open(None), {}
    for name in EXTERNALS:
        if not hasattr(process, name):
            for path in ("libm.so.6", "libSystem.B.dylib", "ucrtbase"):
                function = getattr(_open(path), name, None)
                if function is not None:
                    addresses[name] = ctypes.cast(function, ctypes.c_void_p).value
                    break
    return addresses


@lru_cache(maxsize=4)
def _open(name: str | None) -> Any:
    try:
        return ctypes.CDLL(name)
    except (OSError, TypeError):
        return None


def _before_fork() -> None:
    """Take the locks of LLVM, so that a fork waits until no other thread is inside LLVM.

    Otherwise the child would inherit locks that nobody releases. llvmlite's own lock is taken as
    well, because unloading code takes that lock only.
    """
    LOCK.acquire()
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(llvmlite, "lib", None), "_lock", None) or nullcontext()
    lock.__enter__()
    _locks_before_fork.append(lock)


def _after_fork() -> None:
    _locks_before_fork.pop().__exit__(None, None, None)
    LOCK.release()


_locks_before_fork: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
