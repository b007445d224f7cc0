"""Object code on disk, one file per entry, so that a second process starts without compiling.

Loading an entry means executing it, so an entry counts only when all of this holds: the directory and the file belong to
this user, are no symbolic links and are writable by nobody else; the header's magic, version, length and SHA-256 digest fit
the payload; and the header's HMAC, keyed by a random secret that only this user can read, fits all that and the entry's key.
A renamed, copied, truncated, flipped or planted file is deleted, announced once, and built again.

Entries appear by write, fsync and rename: a killed writer leaves at worst a temporary file, which is swept later. Where the
disk refuses (no home, read-only, full), the cache is bypassed with one warning and nothing else changes.

    PSIPHI_CACHE      the directory, or "off"; default $XDG_CACHE_HOME/psiphi, else ~/.cache/psiphi
    PSIPHI_CACHE_MB   size limit, 512 by default; the oldest entries go first
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import stat
import struct
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import CacheError

_MAGIC, _HEADER_SIZE = b"psiphi\0\1", 8 + 8 + 32 + 32  # the magic ends in the version
_ENTRY, _TEMPORARY = re.compile(r"[0-9a-f]{64}\.o"), re.compile(r"\.[0-9a-f]{32}\.tmp")
_BYPASSED = "is bypassed ({}); set PSIPHI_CACHE to a writable directory, or to off"
_ABANDONED = 3600.0  # seconds after which a temporary file has lost its writer
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_warned: set[object] = set()


class CacheWarning(UserWarning):
    """The cache of compiled code was bypassed, or an entry of it was refused and built again."""


class _Refused(Exception):
    """A file or directory that must not be trusted; the text says why."""


def key(*parts: str | bytes) -> str:
    """The name of an entry: SHA-256 over everything that its code depends on, each part with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)) + data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 of all of psiphi's sources: changed code never meets an old kernel.

    The whole package is hashed, once a process (12 ms for 3 MB). A list of the folders that make
    code would be shorter, and each folder missing from it a stale kernel.
    """
    return folder_digest(os.path.dirname(sys.modules[__name__.partition(".")[0]].__file__ or ""))


def folder_digest(root: str) -> str:
    """SHA-256 of every Python file below a folder, with its path relative to the folder."""
    paths = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name != "__pycache__"]
        paths += [os.path.join(folder, name) for name in names if name.endswith((".py", ".pyc"))]
    sha = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as file:
            data = file.read()
        sha.update(f"{os.path.relpath(path, root)}\0{len(data)}\0".encode() + data)
    return sha.hexdigest()


def kernel_key(*parts: str | bytes) -> str:
    """The name of the entry of a kernel: its parts, psiphi's own sources and NumPy's version."""
    return key(source_digest(), *parts, np.__version__)


def fetch(key: str) -> bytes | None:
    """The payload stored under `key`, or None when there is none that can be trusted."""
    name, home = _file_name(key), directory()
    if home is None:
        return None
    try:
        raw = _read(home / name, _limit())
        data = raw[_HEADER_SIZE:]
        if hmac.compare_digest(raw[:_HEADER_SIZE], _header(data, key, _secret(home))):
            return data
        raise _Refused("it is damaged, or was not written here under this key")
    except FileNotFoundError:
        pass
    except _Refused as reason:
        _remove(home / name)
        _warn(home / name, f"is refused ({reason}); it is built again")
    except OSError as error:
        _warn(home, _BYPASSED.format(error.strerror))
    return None


def store(key: str, data: bytes) -> None:
    """Keep `data` under `key`. Never fails: what cannot be written is announced once and forgotten."""
    name, limit = _file_name(key), _limit()
    home = directory(create=True) if len(data) + _HEADER_SIZE <= limit else None
    try:
        if home is not None:
            _write(home / name, _header(data, key, _secret(home)) + data)
            _evict(home, limit)
    except OSError as error:
        _warn(home, _BYPASSED.format(error.strerror))


def remember(key: str, build: Callable[[], bytes]) -> bytes:
    """The entry under `key`, built and stored when there is none."""
    data = fetch(key)
    if data is None:
        data = build()
        store(key, data)
    return data


def held(kept: dict[Any, Any], key: Any, most: int, make: Callable[[], Any]) -> Any:
    """What this process holds on to under `key`, made when it is first asked for; where there would be more than `most`, what
    came first goes."""
    if key not in kept:
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[key] = make()
    return kept[key]


def directory(create: bool = False) -> Path | None:
    """The cache's directory; None when it is switched off, absent or not safe to use."""
    path = _configured()
    if path is None:
        return None
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
        _trust(path.lstat(), stat.S_ISDIR, 0o022)
        return path
    except _Refused as reason:
        _warn(
            path,
            f"is not trusted ({reason}); run chmod 700 on it if it is yours, or choose another",
        )
    except OSError as error:
        if create or not isinstance(error, FileNotFoundError):
            _warn(path, _BYPASSED.format(error.strerror))
    return None


def clear() -> int:
    """Delete every entry; returns how many there were."""
    entries = _entries(directory())
    for _, _, path in entries:
        _remove(path)
    return len(entries)


def info() -> dict[str, object]:
    """Where the cache is, how many entries and bytes it holds, and its limit in bytes."""
    home = directory()
    entries = _entries(home)
    return {
        "directory": home,
        "entries": len(entries),
        "bytes": sum(size for _, size, _ in entries),
        "limit": _limit(),
    }


def _configured() -> Path | None:
    chosen, base = os.environ.get("PSIPHI_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if chosen:
        return None if chosen.lower() == "off" else Path(os.path.expanduser(chosen)).absolute()
    path = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "psiphi")
    return path if path.is_absolute() else None  # a user without a home


def _file_name(key: str) -> str:
    if not _ENTRY.fullmatch(f"{key}.o"):
        raise CacheError(f"{key!r} is no key", "make it with psiphi's cache.key()")
    return f"{key}.o"


def _limit() -> int:
    text = os.environ.get("PSIPHI_CACHE_MB", "512")
    if not re.fullmatch(r"\d{1,9}(\.\d*)?", text):
        _warn("PSIPHI_CACHE_MB", f"is {text!r}, expected a number of megabytes; 512 is used")
        text = "512"
    return int(float(text) * 1e6)


def _trust(status: os.stat_result, kind: Callable[[int], bool], others: int) -> None:
    """Refuse what is of another kind, belongs to another user or (not asked on Windows) grants `others` anything."""
    if not kind(status.st_mode):
        raise _Refused("it is not what it should be: a plain file in a plain directory")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise _Refused(f"it belongs to user {status.st_uid}")
    if hasattr(os, "geteuid") and status.st_mode & others:
        raise _Refused(f"its mode {stat.S_IMODE(status.st_mode):04o} is open to others")


def _read(path: Path, most: int) -> bytes:
    """The bytes of a trusted file, so many at most; checks and reading use one descriptor: nothing can be swapped between."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS
        )  # NONBLOCK: a planted FIFO
    except OSError as error:
        if path.is_symlink():
            raise _Refused("it is a symbolic link") from error
        raise
    try:
        status = os.fstat(descriptor)
        _trust(status, stat.S_ISREG, 0o077)
        if status.st_size > most:
            raise _Refused(f"it has {status.st_size} bytes, at most {most} are written here")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _header(data: bytes, key: str, secret: bytes) -> bytes:
    """Magic, length and digest of the payload, then a seal over these and the key that only this user can make."""
    plain = _MAGIC + struct.pack("<Q", len(data)) + hashlib.sha256(data).digest()
    return plain + hmac.digest(secret, plain + key.encode(), "sha256")


def _secret(home: Path) -> bytes:
    """This user's key for seals. Processes that start together agree on the one that was linked first."""
    path = home / "secret"
    for _ in range(8):
        try:
            secret = _read(path, 32)
            if len(secret) == 32:
                return secret
            raise _Refused(f"it has {len(secret)} bytes")
        except FileNotFoundError:
            _write(path, os.urandom(32), first_wins=True)
        except _Refused as reason:
            _remove(path)
            _warn(path, f"is replaced ({reason}); entries made with it are built again")
    raise OSError(errno.EIO, "its file named secret does not stay")


def _write(path: Path, data: bytes, first_wins: bool = False) -> None:
    """Make `path` appear whole or not at all; with `first_wins`, one that is there stays."""
    temporary = path.with_name(f".{os.urandom(16).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            (os.link if first_wins else os.replace)(temporary, path)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    with suppress(OSError):  # gone already, or not ours to delete
        path.unlink()


def _entries(home: Path | None) -> list[tuple[float, int, Path]]:
    """(time, size, path) of every entry, oldest first; temporary files of dead writers are swept on the way."""
    found = []
    for path in home.iterdir() if home else ():
        with suppress(OSError):  # another process may delete files meanwhile
            if _ENTRY.fullmatch(path.name):
                found.append((path.lstat().st_mtime, path.lstat().st_size, path))
            elif (
                _TEMPORARY.fullmatch(path.name) and time.time() - path.lstat().st_mtime > _ABANDONED
            ):
                _remove(path)
    return sorted(found)


def _evict(home: Path, limit: int) -> None:
    total = 0
    for _, size, path in reversed(_entries(home)):
        total += size
        if total > limit:
            _remove(path)


def _warn(subject: object, text: str) -> None:
    """One warning in this process about each file, directory or setting."""
    if subject not in _warned:
        _warned.add(subject)
        warnings.warn(
            f"psiphi's cache of compiled code: {subject} {text}", CacheWarning, stacklevel=3
        )
