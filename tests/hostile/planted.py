"""Kernels on disk that must not be believed: damaged, planted, another user's. Each attack from a
seed, as in `faults.py`."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from psiphi.backends import kernel_cache
from tests.hostile import faults
from tests.hostile.faults import folder, told
from tests.hostile.kernel_faults import NOBODY, Asked, entries, known, some, sound


def _reply(asked: Asked, seed: int) -> bytes:
    """The answer of a new process for a robot, which keeps its functions; a polynomial is fetched
    and loaded every time."""
    return told(asked) if seed % 20 == 0 else asked()


def damaged(seed: int) -> int:
    """Entries and the secret cut, flipped, lengthened, emptied or exchanged: built again."""
    rng = random.Random(seed)
    with folder() as here:
        asked, expected = known(rng, seed)
        sound(asked, expected)
        for _ in range(faults.ROUND):
            (entry,) = entries(here)
            _damage(entry if rng.random() < 0.8 else entry.with_name("secret"), rng)
            assert _reply(asked, seed) == expected, "a damaged entry was believed"
        sound(asked, expected)
    return faults.ROUND


def _damage(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    how = rng.randrange(5)
    if how == 0:
        data = data[: rng.randrange(len(data))]
    elif how == 1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 2:
        data += rng.randbytes(rng.randrange(1, 100))
    elif how == 3:
        a, b = sorted(rng.sample(range(len(data) + 1), 2))
        data[a:b] = bytes(b - a)
    else:
        data = bytearray(rng.randbytes(len(data)))
    path.write_bytes(data)


def planted(seed: int) -> int:
    """Another's code in the place of an entry, or something that is no file: never loaded, never
    waited for."""
    rng = random.Random(seed)
    with folder() as here:
        (asked, expected), code = known(rng, seed), _strange(here, rng, seed)
        sound(asked, expected)
        (entry,) = entries(here)
        for k in range(faults.ROUND):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(
                missing_ok=True
            )
            _PLANTS[(seed * faults.ROUND + k) % len(_PLANTS)](entry, code)
            assert _reply(asked, seed) == expected, "a planted entry was believed"
    return faults.ROUND


def _strange(here: Path, rng: random.Random, seed: int) -> bytes:
    """The entry of another, which is then gone."""
    told(some(rng, seed))
    (stranger,) = entries(here)
    code = stranger.read_bytes()
    stranger.unlink()
    return code


def _sealed(path: Path, code: bytes, secret: bytes) -> None:
    """Another's code with a header that fits it, under this name."""
    data = code[kernel_cache._HEADER_SIZE :]
    path.write_bytes(kernel_cache._header(data, path.stem, secret) + data)
    path.chmod(0o600)


def _linked(path: Path, code: bytes) -> None:
    _sealed(away := path.with_suffix(".away"), code, path.with_name("secret").read_bytes())
    path.symlink_to(away)


def _open_to_all(path: Path, code: bytes) -> None:
    _sealed(path, code, path.with_name("secret").read_bytes())
    path.chmod(0o666)


def _huge(path: Path, _code: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    path.chmod(0o600)


_PLANTS: list[Callable[[Path, bytes], object]] = [
    lambda path, code: path.write_bytes(code),  # sealed under another key
    lambda path, code: _sealed(path, code, os.urandom(32)),  # sealed with another secret
    _linked,
    _open_to_all,
    lambda path, code: os.mkfifo(path, 0o600),
    lambda path, code: path.mkdir(mode=0o700),
    lambda path, code: path.symlink_to("/dev/zero"),
    lambda path, code: path.symlink_to(path),
    _huge,
]


def foreign(seed: int) -> int:
    """An entry that would be believed but for its owner: another user's file, secret or directory.
    Without the right to give files away, the process takes itself for another user instead."""
    rng = random.Random(seed)
    with folder() as here:
        (asked, expected), code = known(rng, seed), _strange(here, rng, seed)
        sound(asked, expected)
        (entry,) = entries(here)
        for _ in range(faults.ROUND):
            (here / "cache").mkdir(mode=0o700, exist_ok=True)
            secret = entry.with_name("secret")
            if not secret.exists():
                _reply(asked, seed)
            entry.unlink(missing_ok=True)
            whose = rng.choice([entry, entry, entry.parent])
            _sealed(entry, code, secret.read_bytes())
            if os.geteuid() == 0:
                os.chown(whose, NOBODY, -1)
                assert _reply(asked, seed) == expected, f"another user's {whose.name} was believed"
                shutil.rmtree(here / "cache")
            else:
                assert told(lambda: _as_another(asked)) == expected, (
                    "another user's entry was believed"
                )
    return faults.ROUND


def _as_another(asked: Asked) -> bytes:
    os.geteuid = lambda: NOBODY
    return asked()


ATTACKS = {
    "damaged entries": damaged,
    "planted entries": planted,
    "foreign-owned entries": foreign,
}
