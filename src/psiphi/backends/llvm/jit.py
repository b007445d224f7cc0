"""LLVM's back end, and nothing of ours: IR text -> object code -> addresses in this process.

Object code comes from a TargetMachine for the host and is loaded by ORC's LLJIT with JITLink. Loading costs 0.2 ms and
needs no compiler, so an object from the disk cache is callable a few milliseconds after llvmlite is imported. LLJIT is
preferred to MCJIT because a missing symbol is an error there, not an abort, and because JITLink puts one object's sections
side by side, which keeps the small code model valid for objects of any size below 2 GB.

llvmlite is imported at first use: `import psiphi` stays light.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
import threading
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

from psiphi._util.errors import Error

# LLVM may turn an intrinsic or a pair of calls into any of these (sin and cos of one angle become sincos).
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
BAND = 32  # libraries that share a linker
EFFORT = 2  # of instruction selection and register allocation, 0 to 3; any gives the same bits
LONG = 1_000_000  # characters of IR, from which on less effort takes a third less time, and the code is as fast
_BUG = "report this as a bug of psiphi"

LOCK = threading.RLock()
_serial = itertools.count()


class Processor(NamedTuple):
    """What object code depends on besides its source: all four belong in a cache key."""

    cpu: str
    features: str
    triple: str
    llvm: str


class Address(int):
    """The address of a function, as an int that keeps the library it points into alive."""

    library: Library


class Library:
    """Loaded object code. It is unloaded when neither the library nor any of its addresses is referenced."""

    def __init__(self, tracker: Any, names: list[str]):
        self._tracker, self.names = tracker, tuple(names)

    def address(self, name: str) -> Address:
        """The address of an exported function."""
        if name not in self.names:
            raise Error(
                f"the loaded code exports {', '.join(self.names) or 'nothing'}, not {name!r}",
                "load it with that name",
            )
        address = Address(self._tracker[name])
        address.library = self
        return address


@lru_cache(maxsize=1)
def host() -> Processor:
    """The processor, its features, the target triple and the version of LLVM."""
    binding = bindings()
    with LOCK:
        try:
            features = binding.get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM cannot ask this processor: its name alone decides
            features = ""
        version = ".".join(str(part) for part in binding.llvm_version_info)
        return Processor(
            binding.get_host_cpu_name(), features, binding.get_process_triple(), version
        )


def compile_ir(text: str, opt: int | None = None, passes: bool = False) -> bytes:
    """LLVM IR text -> relocatable object code for this processor.

    `opt` (0 to 3) is the effort of instruction selection and register allocation: EFFORT, or 1 for long texts. `passes` runs
    LLVM's middle-end pipeline (without loop or SLP vectorisation: the lanes are already in the text), which straight-line code
    rarely needs.
    """
    opt = opt if opt is not None else min(EFFORT, 1) if len(text) > LONG else EFFORT
    binding = bindings()
    with LOCK:
        machine = _machine(opt)
        context = binding.create_context()  # LLVM never frees constants of its global context
        module = parse(binding, text, context)
        try:
            module.triple, module.data_layout = host().triple, str(machine.target_data)
            if passes:
                _optimise(binding, module, machine, opt)
            return machine.emit_object(module)
        finally:
            module.close()
            context.close()


def load_object(obj: bytes, names: list[str]) -> Library:
    """Object code from `compile_ir` -> a library whose `names` can be called."""
    binding = bindings()
    with LOCK:
        builder = binding.JITLibraryBuilder().add_object_img(obj).add_current_process()
        for name, address in _missing_externals().items():
            builder.import_symbol(name, address)
        for name in names:
            builder.export_symbol(name)
        serial = next(_serial)
        try:
            return Library(builder.link(_linker(serial // BAND), f"psiphi{serial}"), names)
        except RuntimeError as error:
            cause = f"LLVM cannot load {len(obj)} bytes of object code: {str(error).strip()}"
            raise Error(
                cause,
                f"check that it defines {', '.join(names)} and calls only {', '.join(EXTERNALS)}",
            ) from error


@lru_cache(maxsize=1)
def bindings() -> Any:
    """llvmlite.binding, its native target made ready."""
    with LOCK:
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        return binding


@lru_cache(maxsize=8)
def _machine(opt: int) -> Any:
    target, cpu = bindings().Target.from_triple(host().triple), host()
    return target.create_target_machine(
        cpu=cpu.cpu, features=cpu.features, opt=opt, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def _linker(_band: int) -> Any:
    """The linker of 32 libraries, then another.

    A linker keeps 10 kB of each library that is dropped; the last of its libraries takes it along, so that this goes, too.
    """
    return bindings().create_lljit_compiler(
        _machine(2), use_jit_link=sys.platform != "win32", suppress_errors=True
    )


def parse(binding: Any, text: str, context: Any) -> Any:
    """A verified module: broken IR must stop here, since LLVM's back end crashes on it."""
    try:
        module = binding.parse_assembly(text, context)
    except RuntimeError as error:
        raise _parse_error(str(error)) from error
    try:
        module.verify()
    except RuntimeError as error:
        raise Error(
            f"internal: LLVM refuses the emitted code: {str(error).strip()}", _BUG
        ) from error
    return module


def _parse_error(message: str) -> Error:
    """LLVM's '<string>:12:5: error: expected type' as an Error that names and shows line 12."""
    found = re.search(r"<string>:(\d+):\d+: error: (.*)\n(.*)", message)
    if found is None:
        return Error(f"internal: LLVM cannot read the emitted code: {message.strip()}", _BUG)
    cause = f"internal: LLVM cannot read the emitted code: {found[2]} in {found[3].strip()!r}"
    return Error(cause, _BUG, file="LLVM IR", line=int(found[1]))


def _optimise(binding: Any, module: Any, machine: Any, opt: int) -> None:
    tuning = binding.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


@lru_cache(maxsize=1)
def _missing_externals() -> dict[str, int]:
    """Addresses of the externals that the process does not show globally (an embedded interpreter, Windows)."""
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
def _open(path: str | None) -> Any:
    try:
        return ctypes.CDLL(path)
    except (OSError, TypeError):
        return None


def _before_fork() -> None:
    """A fork while another thread is inside LLVM would copy its held locks into the child: so it waits until none is.

    llvmlite's own lock is taken, too: code is unloaded whenever its last user goes, without ours.
    """
    LOCK.acquire()
    llvmlite = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(llvmlite, "lib", None), "_lock", None) or nullcontext()
    lock.__enter__()
    _entered.append(lock)


def _after_fork() -> None:
    _entered.pop().__exit__(None, None, None)
    LOCK.release()


_entered: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
