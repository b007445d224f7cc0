"""Kernels straight from tapes and programs, called through NumPy or, past NumPy, by their
address."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from psiphi.backends.cpu.cpu_target import HOST
from psiphi.backends.cpu.gufunc import gufunc
from psiphi.backends.cpu.gufunc_kernel import Kernel, gufunc_module
from psiphi.backends.cpu.loop_kernel import loop_kernel
from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.llvm import jit
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.ir.loop_tables import LoopTables
from psiphi.compiler.sweeps.link_loops import LinkLoops, trace_loops
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode, trace_tape
from psiphi.compiler.tape.tape import Tape
from psiphi.model.builder.builder import Builder
from psiphi.robot.catalogue.catalogue import CATALOGUE, quantity_program
from tests import zoo

FP = {"d": "double", "f": "float"}
WIDTHS = [("d", 1), ("d", 2), ("d", 4), ("d", 8), ("f", 1), ("f", 2), ("f", 4), ("f", 8), ("f", 16)]
MODELS = {
    "small": lambda: zoo.chain("small", ["helical", "universal", "spherical"], seed=2),
    "arm": lambda: zoo.chain("arm", ["revolute"] * 3, seed=4),
    "limbs": lambda: limbed(seed=5),
    "crab": lambda: limbed(seed=6, limbs=6, kinds=("spherical", "prismatic"), base="revolute"),
    **dict(zoo.ZOO),
}


def limbed(seed: int, limbs: int = 4, kinds: Sequence[str] = ("revolute",) * 5, base: str = "free"):
    """A trunk of two bodies, and limbs on each of them in turn."""
    rng, builder = np.random.default_rng(seed), Builder("limbed")
    where = [("world", "pelvis", base), ("pelvis", "torso", "revolute")]
    for limb in range(limbs):
        at = "torso" if limb % 2 else "pelvis"
        for i, kind in enumerate(kinds):
            where.append((at, f"limb{limb}_{i}", kind))
            at = f"limb{limb}_{i}"
    for parent, name, kind in where:
        zoo.random_body(builder, rng, name)
        zoo.random_joint(builder, rng, kind, parent, name)
    return builder.build()


@lru_cache(maxsize=16)
def model_of(name: str):
    return MODELS[name]()


@lru_cache(maxsize=32)
def lowered(
    model: str,
    quantity: str,
    frames: tuple[str, ...] = (),
    axes: str = "world",
    rolls: bool = False,
):
    """A program of the catalogue, unrolled or rolled."""
    tree = frame_tree(model_of(model), CATALOGUE[quantity].movable_inertia)
    program = quantity_program(quantity, tree, frames, axes)
    return (trace_loops if rolls else trace_tape)(program, tree)


def loop_of(
    kernel: Kernel,
    lanes: int,
    char: str = "d",
    tables: LoopTables | None = None,
    streams: bool = False,
    registers: int = 0,
) -> jit.Address:
    """The address of the kernel's loop."""
    text = gufunc_module(kernel, "loop", FP[char], sorted({1, lanes}), streams, registers)
    library, _ = HOST.load(HOST.build(text, {}))
    address = library.address("loop")
    if tables is not None:
        address.tables = tables  # type: ignore[attr-defined]  # kept alive with the code
        ctypes.c_void_p.from_address(library.address("tables")).value = tables.address
    return address


def loop(
    code: StraightCode | LinkLoops,
    lanes: int,
    char: str = "d",
    fma: bool = True,
    size: int = 0,
    registers: int = 0,
) -> jit.Address:
    if isinstance(code, LinkLoops):
        return loop_of(
            loop_kernel(code, fma), lanes, char, LoopTables(code, char), registers=registers
        )
    return loop_of(straight_kernel(code, fma, size), lanes, char, registers=registers)


def ufunc(code: StraightCode | LinkLoops, lanes: int, char: str = "d", **options) -> np.ufunc:
    """The kernel as a gufunc with one loop."""
    inputs, outputs = code.program.inputs, code.program.outputs
    core = [f"({','.join(map(str, arg.shape))})" for arg in (*inputs, *outputs)]
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    return gufunc(
        code.program.name,
        signature,
        {char: loop(code, lanes, char, **options)},
        b"",
        len(inputs),
        len(outputs),
    )


@lru_cache(maxsize=64)
def known(model: str, quantity: str, lanes: int, char: str = "d", rolls: bool = False) -> np.ufunc:
    """`ufunc` of a robot's quantity, compiled once a test process."""
    return ufunc(lowered(model, quantity, rolls=rolls), lanes, char)


def little(inputs: Sequence[tuple[int, ...]], make, name: str = "little") -> StraightCode:
    """A tape by hand: `make(*lists of leaves)` returns lists of scalars, one list an output."""
    tape = Tape()
    given = [Argument(f"x{i}", tuple(shape)) for i, shape in enumerate(inputs)]
    results = make(
        *([tape.leaf(str(i), j) for j in range(arg.size)] for i, arg in enumerate(given))
    )
    outputs = tuple(Argument(f"y{i}", (len(values),)) for i, values in enumerate(results))
    stores = [
        (n, i, tape.operand(value))
        for n, values in enumerate(results)
        for i, value in enumerate(values)
    ]
    return StraightCode(Program(name, tuple(given), outputs, ()), tape, tuple(stores))


def call(address: int, arrays: Sequence[np.ndarray]) -> None:
    """The loop on arrays (n, *core), inputs then outputs, wherever they lie: no copy, no alignment,
    no check by NumPy."""
    n = {a.shape[0] for a in arrays}
    assert len(n) == 1
    pointers = (ctypes.c_void_p * len(arrays))(*(a.__array_interface__["data"][0] for a in arrays))
    core = [step for a in arrays for step in a.strides[1:]]
    steps = (ctypes.c_ssize_t * (len(arrays) + len(core)))(*(a.strides[0] for a in arrays), *core)
    sizes = (ctypes.c_ssize_t * 1)(n.pop())
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(int(address))(pointers, sizes, steps, None)


def batch(model: str, size: int, char: str = "d", seed: int = 0) -> list[np.ndarray]:
    """q, v, tau of a robot."""
    rng, robot = np.random.default_rng(seed), model_of(model)
    return [
        x.astype(char) for x in (robot.random(rng, size), *rng.standard_normal((2, size, robot.nv)))
    ]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, NaN and the sign of zero included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def most_alive(lines: list[str]) -> int:
    """How many registers of numbers are alive at once; pairs of sine and cosine, addresses and
    strides are none."""
    last = {name: i for i, line in enumerate(lines) for name in re.findall(r"%t\d+", line)}
    alive, most = set(), 0
    for i, line in enumerate(lines):
        alive |= set(
            re.findall(r"^(%t\d+) = (?!getelementptr|call \{|load (?:ptr|i64)|mul i64)", line)
        )
        most = max(most, len(alive))
        alive -= {name for name in alive if last[name] <= i}
    return most
