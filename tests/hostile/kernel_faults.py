"""What happens to kernels on disk: killed writers, disks that are full, read-only or emptied, many
that start at once.

Whatever it is, a process answers, and with the bits of a process that has no cache. Each attack
from a seed, as in `faults.py`; every twentieth seed is a robot, the others are kernels of a few
hundred operations, which compile in milliseconds. Entries that must not be believed are in
`planted.py`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import resource
import shutil
import struct
import time
from collections.abc import Callable
from functools import cache as once
from functools import partial
from pathlib import Path

from psiphi.backends import kernel_cache
from psiphi.backends.llvm import jit
from tests.hostile import faults
from tests.hostile.faults import answer, folder, fork, fresh, kill, status, told

NOBODY = 65534
STARTS = 32


Asked = Callable[[], bytes]


def some(rng: random.Random, seed: int) -> Asked:
    """What no cache knows, asked for its answer: a robot, or a polynomial."""
    return (
        partial(answer, fresh(rng))
        if seed % 20 == 0
        else partial(_polynomial, [rng.random() for _ in range(50)])
    )


def _polynomial(coefficients: list[float]) -> bytes:
    """Horner's rule, compiled and kept as every kernel is."""
    lines = ["define double @f(double %x) {", "  %y0 = fadd double %x, 0.0"]
    for k, c in enumerate(coefficients):
        lines += [f"  %t{k} = fmul double %y{k}, %x", f"  %y{k + 1} = fadd double %t{k}, {c!r}"]
    text = "\n".join([*lines, f"  ret double %y{len(coefficients)}", "}"])
    code = kernel_cache.fetch_or_build(
        kernel_cache.key(text, *jit.host()), lambda: jit.compile_ir(text)
    )
    address = jit.load_object(code, ["f"]).address("f")  # keeps the code
    return struct.pack("d", ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.5))


def _without_cache(asked: Asked) -> bytes:
    os.environ["PSIPHI_CACHE"] = "off"
    return asked()


def _without_compiler(asked: Asked) -> bytes:
    """The answer of a process that finds its kernel on disk, or none."""
    jit.compile_ir = None  # type: ignore[assignment]
    return asked()


def known(rng: random.Random, seed: int) -> tuple[Asked, bytes]:
    """Something new, and its answer."""
    asked = some(rng, seed)
    return asked, told(lambda: _without_cache(asked))


def entries(here: Path) -> list[Path]:
    return sorted((here / "cache").glob("*.o"))


def sound(asked: Asked, expected: bytes) -> None:
    """The next process answers, and what it leaves on disk serves the one after it."""
    assert told(asked) == expected, "other bits"
    assert told(lambda: _without_compiler(asked)) == expected, "the kernel was not kept"


# -- killed ----------------------------------------------------------------------------------------


def killed_compiler(seed: int) -> int:
    """kill -9 while a kernel is compiled or written: the next process answers."""
    rng = random.Random(seed)
    with folder() as here:
        asked, expected = known(rng, seed)
        for _ in range(faults.ROUND):
            start = time.monotonic()
            assert told(asked) == expected, "other bits after a kill"
            took = time.monotonic() - start
            for entry in entries(here):
                entry.unlink()
            child = fork(asked)
            time.sleep(rng.random() * took)
            kill(child)
        sound(asked, expected)
    return faults.ROUND


def killed_writer(seed: int) -> int:
    """kill -9 while entries are written, one over the other: what is there is whole, and debris is
    swept."""
    rng = random.Random(seed)
    with folder() as here:
        key, texts = (
            kernel_cache.key("entry"),
            [rng.randbytes(rng.randrange(1, 1 << 18)) for _ in range(2)],
        )
        for _ in range(faults.ROUND):
            child = fork(lambda: [kernel_cache.store(key, texts[k % 2]) for k in range(100_000)])
            time.sleep(rng.random() * 0.02)
            kill(child)
            there = bool(entries(here))
            assert kernel_cache.fetch(key) in (texts if there else [None]), "half an entry"
        for path in (here / "cache").glob(".*.tmp"):
            os.utime(path, (0, 0))
        kernel_cache.info()
        assert not list((here / "cache").glob(".*.tmp")), "debris"
    return faults.ROUND


# -- disks -----------------------------------------------------------------------------------------


@once
def _may_mount() -> bool:
    """Whether a child may have a disk of its own (root, on Linux, in no strict container)."""
    return status(fork(lambda: _mount("/tmp", "size=4k"))) == 0


def _mount(where: str, options: str, flags: int = 0) -> None:
    """A small disk at `where`, that this process alone sees, and that goes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    private = (
        libc.unshare(0x00020000) == 0
        and libc.mount(b"none", b"/", None, (1 << 14) | (1 << 18), None) == 0
    )
    if not private or libc.mount(b"tmpfs", where.encode(), b"tmpfs", flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "no disk for this process alone")


def full_disk(seed: int) -> int:
    """A disk of so many bytes, or one that refuses at some moment: kernels run without the
    cache."""
    rng = random.Random(seed)
    with folder() as here:
        asked, expected = known(rng, seed)
        sound(asked, expected)
        (entry,) = entries(here)
        size = entry.stat().st_size
        for k in range(faults.ROUND):
            entry.unlink(missing_ok=True)
            filled = _full if k % 2 and _may_mount() else _limited if k % 3 else _refusing
            amount = rng.randrange(2 * size)
            assert (
                told(lambda f=filled, n=amount: (f(here / "cache", n), asked())[1]) == expected
            ), "a full disk"
        sound(asked, expected)
    return faults.ROUND


def _full(path: Path, amount: int) -> None:
    _mount(str(path), f"size={4 * (1 + amount // 4096)}k,mode=700,nr_inodes={2 + amount % 5}")


def _limited(_path: Path, amount: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))


def _refusing(_path: Path, amount: int) -> None:
    """The system refuses the n-th of the calls that change a disk."""
    count = iter(range(amount % 4, -1000, -1))
    for name in ("fsync", "replace", "link", "mkdir"):
        real = getattr(os, name)
        setattr(
            os,
            name,
            lambda *a, real=real, **o: real(*a, **o) if next(count) > 0 else _refuse(amount),
        )


def _refuse(amount: int) -> None:
    code = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)[amount % 4]
    raise OSError(code, os.strerror(code))


def read_only(seed: int) -> int:
    """A cache that cannot be written, empty or with another's entries: mounted read-only, or by its
    mode and another user."""
    rng = random.Random(seed)
    with folder() as here:
        (asked, expected), path = known(rng, seed), here / "cache"
        path.mkdir(mode=0o700)
        for k in range(faults.ROUND):
            if k == faults.ROUND // 2:
                told(some(random.Random(seed), seed))
            closed = _mounted if rng.random() < 0.5 and _may_mount() else _unwritable
            assert told(lambda c=closed: (c(here), asked())[1]) == expected, (
                "a cache that is read-only"
            )
        path.chmod(0o700)
    return faults.ROUND


def _mounted(here: Path) -> None:
    """The folder bound over itself, read-only, entries and all."""
    _mount("/mnt", "size=4k")
    libc, path = ctypes.CDLL(None), str(here).encode()
    bound = (
        libc.mount(path, path, None, 1 << 12, None),
        libc.mount(b"none", path, None, (1 << 12) | (1 << 5) | 1, None),
    )
    assert bound == (0, 0)
    try:
        (here / "cache" / "x").touch()
    except OSError as error:
        assert error.errno == errno.EROFS
    else:
        raise AssertionError("the disk was to be read-only")


def _unwritable(here: Path) -> None:
    (here / "cache").chmod(0o500)
    if os.geteuid() == 0:
        kept = os.environ["PSIPHI_CACHE"]
        _without_cache(some(random.Random(0), 0))  # imports all: nobody may not read root's Python
        os.environ["PSIPHI_CACHE"] = kept
        here.chmod(0o755)
        for path in ((here / "cache"), *(here / "cache").iterdir()):
            os.chown(path, NOBODY, -1)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def deleted(seed: int) -> int:
    """The cache is deleted, again and again, while a process compiles, stores and fetches: it
    answers, and so does the next."""
    rng = random.Random(seed)
    with folder() as here:
        asked, expected = known(rng, seed)
        for _ in range(faults.ROUND):
            child = fork(lambda: [_equal(asked(), expected) for _ in range(2)])
            done, start = 0, time.monotonic()
            while not done:
                assert time.monotonic() - start < 60, "a process whose cache is deleted hangs"
                time.sleep(rng.random() * 0.02)
                shutil.rmtree(here / "cache", ignore_errors=True)
                done, code = os.waitpid(child, os.WNOHANG)
            assert os.waitstatus_to_exitcode(code) == 0, "a process whose cache is deleted failed"
        sound(asked, expected)
    return faults.ROUND


def _equal(found: bytes, expected: bytes) -> None:
    assert found == expected


def cold_starts(seed: int) -> int:
    """32 processes begin at once on an empty cache: the same bits, one secret, one entry, that
    serves the next."""
    with folder() as here:
        asked, expected = known(random.Random(seed), seed)
        children = [fork(lambda: _equal(asked(), expected)) for _ in range(STARTS)]
        ends = [status(child) for child in children]
        assert ends == [0] * STARTS, f"processes ended with {ends}"
        assert sorted(path.suffix for path in (here / "cache").iterdir()) == ["", ".o"], "debris"
        sound(asked, expected)
    return STARTS


ATTACKS = {
    "kill -9 while a kernel is compiled": killed_compiler,
    "kill -9 while an entry is written": killed_writer,
    "a full disk": full_disk,
    "a read-only disk": read_only,
    "a cache deleted while it is used": deleted,
    "32 cold starts at once": cold_starts,
}
