"""Kernels of graphics cards: the same bits as the host's, run lane by lane on this processor; and
PTX that assembles."""

import json
import re

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends.cpu.cpu_target import has_fma
from psiphi.backends.cuda import constant_memory, cuda_kernel, nvptx
from psiphi.backends.cuda.cuda_target import CUDA
from psiphi.backends.cuda.shared_memory import MAX_WARPS, Block, SharedRows
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import SpillEmitter
from psiphi.compiler.ir.tape_fusion import FusedTape
from psiphi.compiler.sweeps.sweep_program import Argument
from tests import zoo
from tests.backends.cuda import ptx_assembler
from tests.backends.cuda.emulated_gpu import Emulated, run
from tests.backends.kernels import batch, known, little, lowered, most_alive, same_bits
from tests.backends.llvm.exact_trig import sine_and_cosine, ulps
from tests.pages import ROOT

KEPT = ROOT / "tests" / "backends" / "golden" / "registers.json"
EPS = {"d": 2.0**-52, "f": 2.0**-23}
BUNDLED = [("ur5", "fixed"), ("panda", "fixed"), ("iiwa14", "fixed"), ("g1", "free")]


def alike(found: np.ndarray, host: np.ndarray) -> bool:
    """Bit for bit; on a processor without FMA, nearly."""
    return (
        same_bits(found, host)
        if has_fma()
        else np.allclose(found, host, rtol=1e-4 if host.dtype == np.float32 else 1e-11)
    )


@pytest.mark.parametrize("char", "df")
@pytest.mark.parametrize("model", [name for name, _ in zoo.ZOO])
def test_the_same_bits_as_the_host(model, char):
    code, given = lowered(model, "forward_dynamics"), batch(model, 33, char)
    (found,) = run(code, char, given)
    assert alike(found, known(model, "forward_dynamics", 1, char)(*given))


@pytest.mark.parametrize("n", [1, 32, 33, 70])
@pytest.mark.parametrize(
    ("few", "many", "dense"),
    [(1, 9, "11"), (8, 16, "00"), (2, 12, "10"), (6, 38, "11"), (4, 7, "01")],
)
def test_rows_of_every_width_and_batches_of_every_size(n, few, many, dense, rng):
    """Two inputs and two results; rows that stand as in their array, and others, a number farther
    apart."""

    def mixed(x, y):
        return [[a + y[0] for a in x], [b * x[0] for b in y]]

    code = little([(few,), (many,)], mixed)
    staging = SharedRows.of(code.program.inputs, code.program.outputs, Width("double", 1))
    for rows in (staging.inputs, staging.outputs):
        assert [row.offset is not None for row in rows] == [True, True]
        assert [row.is_dense(Width("double", 1)) for row in rows] == [bool(int(x)) for x in dense]
    for char in "df":
        x, y = (
            rng.standard_normal((n, few)).astype(char),
            rng.standard_normal((n, many)).astype(char),
        )
        first, second = run(code, char, [x, y])
        assert same_bits(first, x + y[:, :1]) and same_bits(second, y * x[:, :1])
        first, second = run(code, char, [x[0], y], n)  # one row for all
        assert same_bits(first, x[0] + y[:, :1]) and same_bits(second, y * x[0, :1])
        first, second = run(code, char, [x, y[0]], n)
        assert same_bits(first, x + y[0, :1]) and same_bits(second, y[0] * x[:, :1])
        memory = np.zeros(
            y.size + 8, char
        )  # beginning between the places where vectors of 16 bytes begin
        start = 1 + (-memory.ctypes.data % 16) // y.itemsize
        shifted = memory[start : start + y.size].reshape(y.shape)
        shifted[:] = y
        assert shifted.ctypes.data % 16 and same_bits(
            run(code, char, [x, shifted])[1], y * x[:, :1]
        )


@pytest.mark.parametrize("model", ["arm", "tree"])
def test_numbers_of_long_code_stand_in_constant_memory(model, monkeypatch):
    """The same bits; each number once; only those of which an instruction has no room for half."""
    code, given = lowered(model, "forward_dynamics"), batch(model, 33, "d")
    monkeypatch.setattr(constant_memory, "LONG_CODE", 1 << 30)
    assert "ld.const" not in CUDA.emit(code, "d")
    monkeypatch.setattr(constant_memory, "LONG_CODE", 10)
    text = CUDA.ir(code, "d")
    (table,) = re.findall(r"^@bank = .*", text, re.M)
    numbers = constant_memory.HEX_CONSTANT.findall(table)
    assert (
        numbers
        and len(numbers) == len(set(numbers))
        and all(int(x, 16) & constant_memory.LOW_WORD for x in numbers)
    )
    assert not any(
        x in line
        for line in text.replace(table, "").split("\n")
        if " phi " not in line
        for x in numbers
    )
    assert "ld.const" in CUDA.emit(code, "d") and "ld.const" not in CUDA.emit(code, "f")
    (found,) = run(code, "d", given)
    assert alike(found, known(model, "forward_dynamics", 1, "d")(*given))


def test_memory_is_asked_for_before_its_turn(rng):
    """Of states that are there, of arrays that have a row for each."""
    code, n = little([(5,), (40,)], lambda x, y: [[a * y[0] for a in x]]), 32 * 20
    text = cuda_kernel.kernel_module(code, "double", Emulated())
    assert text.count(".seen = load volatile i8") == 1 + -(
        -32 * 40 * 8 // 128 // 32
    )  # lines of 128 bytes, 32 at a time
    busy = Block(MAX_WARPS, 0).with_registers(0).min_blocks * MAX_WARPS // 2
    assert f"%turn = mul i64 %processors, {busy}" in text and 32 * busy < n
    x, y = rng.standard_normal((n, 5)), rng.standard_normal((n, 40))
    assert same_bits(run(code, "d", [x, y])[0], x * y[:, :1])
    assert same_bits(run(code, "d", [x, y[0]], n)[0], x * y[0, 0])


def test_rows_are_staged_while_they_fit():
    """A result of a thousand numbers is kept; the square through which it goes takes its place
    among the staged rows."""
    rows = Argument("q", (36,)), Argument("a", (35,)), Argument("M", (35, 35))
    staging = SharedRows.of(rows[:1], rows[1:], Width("double", 1))
    assert [row.offset is None for row in (*staging.outputs, *staging.inputs)] == [
        False,
        True,
        True,
    ]
    assert [row.is_local for row in staging.outputs] == [False, True]  # q stays where it is, then
    assert staging.stage_bytes == 32 * 8 * (35 + 33) and staging.block.warps == 2
    assert SharedRows.of((Argument("q", (6,)),), (), Width("float", 1)).stage_bytes == 32 * 4 * 7


@pytest.mark.parametrize("n", [1, 31, 33, 70])
@pytest.mark.parametrize(("wide", "char"), [(32, "d"), (63, "f"), (101, "d")])
def test_results_too_wide_to_be_staged(wide, char, n, rng, monkeypatch):
    """They are kept, and brought out by squares of 32; the last one overlaps the one before it."""
    monkeypatch.setattr(cuda_kernel, "STAGE_BYTES", 4000)
    code = little([(3,)], lambda x: [[x[i % 3] + float(i) for i in range(wide)], [x[0]]])
    staging = SharedRows.of(code.program.inputs, code.program.outputs, Width("double", 1), 4000)
    assert [row.is_local for row in staging.outputs] == [True, False]
    x = rng.standard_normal((n, 3)).astype(char)
    first, second = run(code, char, [x])
    assert same_bits(first, x[:, np.arange(wide) % 3] + np.arange(wide, dtype=char)) and same_bits(
        second, x[:, :1]
    )


@pytest.mark.parametrize("registers", [3, 10, 25])
def test_more_numbers_than_registers(registers, monkeypatch):
    """However few are held, the bits are the same; and no more than that are: counted at every
    line."""
    code, given = lowered("arm", "forward_dynamics"), batch("arm", 33, "d")
    for table in (cuda_kernel.CAPACITY, cuda_kernel.SPILL_CAPACITY):
        monkeypatch.setitem(table, "double", registers)
    (found,) = run(code, "d", given)
    assert alike(found, known("arm", "forward_dynamics", 1, "d")(*given))
    parking = _parked(code, registers)
    lines = parking.body()
    assert (
        parking.slot_count > 0 and most_alive(lines) <= registers + 6
    )  # what one instruction reads, and its address
    places = [int(x) for x in re.findall(r"ptr %park, i64 (\d+)", "\n".join(lines))]
    assert max(places) == 8 * (parking.slot_count - 1)


def _parked(code, registers: int) -> SpillEmitter:
    tape = cuda_kernel._CutTape.of(code)
    return SpillEmitter(
        tape.rest,
        Width("double", 1),
        registers,
        known={leaf: f"%t{10**6 + leaf}" for leaf in tape.angles},
    )


def test_where_registers_suffice_nothing_is_parked():
    code = lowered("arm", "forward_dynamics")
    parking = _parked(code, cuda_kernel.CAPACITY["double"])
    assert not [line for line in parking.body() if "%park" in line] and not parking.slot_count


@pytest.mark.parametrize(("char", "largest"), [("d", 1.7e308), ("f", 3e38)])
def test_huge_angles_without_a_library(char, largest, rng):
    """Right also at the number that is nearest to a multiple of pi/2, and where numbers end; tame
    angles beside them keep their bits. Angles of inputs are turned back first: two ulp of one.
    Angles that follow from others: two ulp of each."""
    x = 10.0 ** rng.uniform(4, np.log10(largest), 200) * rng.choice([-1.0, 1.0], 200)
    hard = [6381956970095103.0 * 2.0**797] if char == "d" else [16367173.0 * 2.0**72]
    x = np.array([*x, *hard, 1e22, 1e4 + 1, -largest]).astype(char)
    code = little([(2,)], lambda x: [[x[0].sin(), x[0].cos(), x[1].sin()]])
    angles = np.stack([x, np.full_like(x, 0.7)], axis=-1)
    exact = [sine_and_cosine(float(value)) for value in x]
    (found,) = run(code, char, [angles])
    assert (
        max(
            abs(float(y) - float(z))
            for row, pair in zip(found, exact, strict=True)
            for y, z in zip(row[:2], pair, strict=True)
        )
        <= 2 * EPS[char]
    )
    (joined,) = run(FusedTape(code.program, code.tape, code.stores, frozenset()), char, [angles])
    assert max(ulps(joined[:, i], [pair[i] for pair in exact]) for i in range(2)) <= 2.0
    assert same_bits(found[:, 2], joined[:, 2]) and same_bits(
        found[:, 2], np.full_like(x, found[0, 2])
    )
    assert found[0, 2] == pytest.approx(np.sin(np.array(0.7, char)), abs=EPS[char])
    none = np.array([[np.inf, 1.0], [-np.inf, 1.0], [np.nan, 1.0]], char)
    for form in (code, FusedTape(code.program, code.tape, code.stores, frozenset())):
        (lost,) = run(form, char, [none])
        assert np.isnan(lost[:, :2]).all() and np.isfinite(lost[:, 2]).all()


@pytest.mark.parametrize("char", "df")
def test_every_operation_is_rounded_once(char):
    """.rn everywhere: no approximate division or root, nothing flushed to zero, no fusing but
    ours."""
    text = CUDA.emit(lowered("arm", "forward_dynamics"), char)
    numbers = re.findall(
        rf"^\s+((?:add|sub|mul|div|fma|sqrt|rcp)\.[\w.]*f{8 * np.dtype(char).itemsize})\b",
        text,
        re.MULTILINE,
    )
    assert {"rcp", "fma", "add"} <= {name.partition(".")[0] for name in numbers}
    assert all(re.fullmatch(r"\w+\.rn\.f\d\d", name) for name in numbers), set(numbers)
    root = CUDA.emit(little([(1,)], lambda x: [[x[0].sqrt()]]), char)
    assert "sqrt.rn.f" in root and "approx" not in root + text and "ftz" not in root + text


def test_loops_over_links_are_refused():
    with pytest.raises(StateError, match="more than 64 bodies"):
        CUDA.emit(lowered("arm", "forward_dynamics", rolls=True), "d")


def test_without_the_target(monkeypatch):
    """An llvmlite that was built without NVPTX says so."""

    def none(triple):
        raise RuntimeError("No available targets are compatible with triple")

    import llvmlite.binding as binding

    nvptx._machine.cache_clear()
    monkeypatch.setattr(binding.Target, "from_triple", none)
    try:
        with pytest.raises(pp.Error, match=r"no NVPTX target.*pip install"):
            CUDA.emit(lowered("arm", "gravity"), "d")
    finally:
        nvptx._machine.cache_clear()


@pytest.mark.skipif(not ptx_assembler.found(), reason="needs nvidia-nvjitlink")
def test_registers_and_spills_are_those_of_the_table():
    """PTX assembled for four generations of cards; `python tests/backends/cuda/ptx_assembler.py`
    writes the table anew."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert kept["nvjitlink"] and set(kept["kernels"]) == {
        ptx_assembler.label(*case) for case in ptx_assembler.CASES
    }
    same = kept["nvjitlink"] == ptx_assembler.version() and kept["llvm"] == nvptx.llvm_version()
    for case in (
        ptx_assembler.CASES if same else ptx_assembler.CASES[:2]
    ):  # another assembler: that it takes the text is enough
        found = ptx_assembler.measured(*case)
        assert not same or found == kept["kernels"][ptx_assembler.label(*case)], case
