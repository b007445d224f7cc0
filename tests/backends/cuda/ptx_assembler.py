"""NVIDIA's assembler from the wheel nvidia-nvjitlink: PTX as machine code of a card that is not
here, registers, spills.

python tests/backends/cuda/ptx_assembler.py     writes golden/registers.json
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import re
from functools import lru_cache
from pathlib import Path

import psiphi as pp
from psiphi.backends.cuda import nvptx
from psiphi.backends.cuda.cuda_target import CUDA

PACKAGE = "nvidia-nvjitlink"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
PTX = 2  # NVJITLINK_INPUT_PTX
CASES = [
    ("ur5", "fixed", "forward_dynamics", "f"),
    ("ur5", "fixed", "forward_dynamics", "d"),
    ("iiwa14", "fixed", "mass_matrix_inverse", "f"),
    ("panda", "fixed", "forward_dynamics", "f"),
    ("g1", "free", "forward_dynamics", "d"),
]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    try:
        files = importlib.metadata.files(PACKAGE) or ()
        path = next(
            file.locate()
            for file in files
            if re.search(r"libnvJitLink\.so|nvJitLink_\d+_\d\.dll", file.name)
        )
        return ctypes.CDLL(str(path))
    except (importlib.metadata.PackageNotFoundError, StopIteration, OSError):
        return None


def found() -> bool:
    return _library() is not None


def version() -> str:
    return importlib.metadata.version(PACKAGE)


def assemble(text: str, architecture: str) -> str:
    """What the assembler says of a kernel."""
    library, handle = _library(), ctypes.c_void_p()
    assert library is not None
    options = [f"-arch={architecture}".encode(), b"-verbose"]
    assert (
        library.nvJitLinkCreate(
            ctypes.byref(handle), len(options), (ctypes.c_char_p * len(options))(*options)
        )
        == 0
    )
    try:
        data = text.encode() + b"\0"
        status = library.nvJitLinkAddData(handle, PTX, data, ctypes.c_size_t(len(data)), b"kernel")
        status = status or library.nvJitLinkComplete(handle)
        assert status == 0, _log(library, handle, "Error")
        return _log(library, handle, "Info")
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def _log(library: ctypes.CDLL, handle: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    getattr(library, f"nvJitLinkGet{kind}LogSize")(handle, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value + 1)
    getattr(library, f"nvJitLinkGet{kind}Log")(handle, text)
    return text.value.decode()


def label(robot: str, base: str, function: str, char: str) -> str:
    return f"{robot} {function} {char}"


def measured(robot: str, base: str, function: str, char: str) -> dict[str, list[int]]:
    """{architecture: [registers, bytes that a thread writes to memory of its own]}: those we park,
    and those spilled."""
    text = CUDA.emit(pp.load(robot, base=base).function(function).source.code, char)
    table = {}
    for architecture in ARCHITECTURES:
        said = assemble(text, architecture)
        stored = [int(x) for x in re.findall(r"(\d+) bytes spill stores", said)]
        registers = max(int(x) for x in re.findall(r"Used (\d+) registers", said))
        table[architecture] = [
            registers,
            max(stored) + {"d": 8, "f": 4}[char] * text.count("st.local"),
        ]
    return table


if __name__ == "__main__":
    kernels = {label(*case): measured(*case) for case in CASES}
    table = {"nvjitlink": version(), "llvm": nvptx.llvm_version(), "kernels": kernels}
    rows = (
        json.dumps(table, indent=1)
        .replace("[\n    ", "[")
        .replace(",\n    ", ", ")
        .replace("\n   ]", "]")
    )
    Path(__file__).parents[1].joinpath("golden").joinpath("registers.json").write_text(
        rows + "\n", encoding="utf-8"
    )
    print(rows)
