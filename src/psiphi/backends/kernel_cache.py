"""Object code on disk, one file per entry, so that a second process starts without compiling.

Loading an entry executes it. An entry is therefore used only if all of this holds:

- the directory and the file belong to this user, are not symbolic links, and only this user may
  write to them;
- the magic, version, length and SHA-256 digest in the header match the payload;
- the HMAC in the header, keyed by a random secret that only this user can read, matches all of
  that and the key of the entry.

A file that was renamed, copied, truncated, altered or planted is deleted, reported once, and built
again.

An entry is written, synced and renamed into place: a writer that is killed leaves at most a
temporary file, which is deleted later. If the disk cannot be written to (no home directory,
read-only, full), psiphi bypasses the cache with one warning and works without it.

    PSIPHI_CACHE      the directory, or "off"; default $XDG_CACHE_HOME/psiphi, else ~/.cache/psiphi
    PSIPHI_CACHE_MB   size limit, 512 by default; the oldest entries are deleted first
"""

from __future__ import annotations

import errno
import gc
import hashlib
import hmac
import os
import re
import stat
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from psiphi._util.errors import CacheError
from psiphi.backends.compile_notice import notice

_MAGIC, _HEADER_SIZE = b"psiphi\0\1", 8 + 8 + 32 + 32  # the magic ends in the version
_ENTRY, _TEMPORARY = re.compile(r"[0-9a-f]{64}\.o"), re.compile(r"\.[0-9a-f]{32}\.tmp")
_BYPASSED = "is bypassed ({}); set PSIPHI_CACHE to a writable directory or to off"
_TEMPORARY_LIFETIME = 3600.0  # seconds; the writer of an older temporary file is dead
_OPEN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)

K = TypeVar("K")
V = TypeVar("V")
_warned: set[object] = set()
_space: dict[Path, tuple[int, int]] = {}  # (limit, bytes to write before entries are listed again)


class CacheWarning(UserWarning):
    """The cache of compiled code was bypassed, or one of its entries was rejected and rebuilt."""


class _Untrusted(Exception):
    """A file or directory is not trusted; the text is the reason."""


def key(*parts: str | bytes) -> str:
    """The name of an entry: SHA-256 of all that its code depends on, each part with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)) + data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 of all of psiphi's sources, so that a changed source never loads an old kernel.

    The whole package is hashed once per process (12 ms for 3 MB). A list of the folders that make
    code would be faster, but a folder missing from the list would load stale kernels.
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
    """The name of a kernel's entry: a digest of its parts, psiphi's sources and NumPy's version."""
    return key(source_digest(), *parts, np.__version__)


def fetch(key: str) -> bytes | None:
    """The payload stored under `key`, or None if there is no trusted entry."""
    name, folder = _file_name(key), directory()
    if folder is None:
        return None
    try:
        raw = _read(folder / name, _limit())
        data = raw[_HEADER_SIZE:]
        if hmac.compare_digest(raw[:_HEADER_SIZE], _header(data, key, _secret(folder))):
            return data
        raise _Untrusted("it is damaged, or was not written by this user under this key")
    except FileNotFoundError:
        pass
    except _Untrusted as reason:
        _remove(folder / name)
        _warn(folder / name, f"is rejected ({reason}) and will be rebuilt")
    except OSError as error:
        _warn(folder, _BYPASSED.format(error.strerror))
    return None


def store(key: str, data: bytes) -> None:
    """Store `data` under `key`. Never raises: a failure to write is a warning, once."""
    name, limit = _file_name(key), _limit()
    folder = directory(create=True) if len(data) + _HEADER_SIZE <= limit else None
    try:
        if folder is not None:
            _write(folder / name, _header(data, key, _secret(folder)) + data)
            _evict(folder, limit, len(data) + _HEADER_SIZE)
    except OSError as error:
        _warn(folder, _BYPASSED.format(error.strerror))


def fetch_or_build(key: str, build: Callable[[], bytes], what: str = "") -> bytes:
    """The entry under `key`; it is built and stored if there is none. `what` is its name for the
    user, who is told if that takes long."""
    data = fetch(key)
    if data is None:
        with notice(what), _no_collections():
            data = build()
        store(key, data)
    return data


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause the garbage collector, which would follow every node of a tape, a tenth of the time,
    and find no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def in_memory(cache: dict[K, V], key: K, capacity: int, build: Callable[[], V]) -> V:
    """`cache[key]`, built at the first use; a full cache drops its oldest entry."""
    if key not in cache:
        while len(cache) >= capacity:
            del cache[next(iter(cache))]
        cache[key] = build()
    return cache[key]


def directory(create: bool = False) -> Path | None:
    """The cache's directory; None if it is switched off, missing or not safe to use."""
    path = _configured()
    if path is None:
        return None
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
        _check_trusted(path.lstat(), stat.S_ISDIR, 0o022)
        return path
    except _Untrusted as reason:
        _warn(
            path,
            f"is not trusted ({reason}); run chmod 700 on it if it is yours, or set PSIPHI_CACHE",
        )
    except OSError as error:
        if create or not isinstance(error, FileNotFoundError):
            _warn(path, _BYPASSED.format(error.strerror))
    return None


def clear() -> int:
    """Delete all entries; returns their number."""
    entries = _entries(directory())
    for _, _, path in entries:
        _remove(path)
    return len(entries)


def info() -> dict[str, object]:
    """The cache's directory, number of entries, size in bytes, and limit in bytes."""
    folder = directory()
    entries = _entries(folder)
    return {
        "directory": folder,
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
        raise CacheError(f"{key!r} is not a cache key", "make one with kernel_cache.key()")
    return f"{key}.o"


def _limit() -> int:
    text = os.environ.get("PSIPHI_CACHE_MB", "512")
    if not re.fullmatch(r"\d{1,9}(\.\d*)?", text):
        _warn("PSIPHI_CACHE_MB", f"is {text!r}, expected a number of megabytes; 512 is used")
        text = "512"
    return int(float(text) * 1e6)


def _check_trusted(status: os.stat_result, is_kind: Callable[[int], bool], others: int) -> None:
    """Reject a wrong file type, another owner, or permissions in the mask `others`.

    Owner and permissions are not checked on Windows.
    """
    if not is_kind(status.st_mode):
        raise _Untrusted("it is not a regular file in a regular directory")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise _Untrusted(f"it belongs to user {status.st_uid}")
    if hasattr(os, "geteuid") and status.st_mode & others:
        mode = stat.S_IMODE(status.st_mode)
        raise _Untrusted(f"its mode {mode:04o} gives access to other users")


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a trusted file of at most `limit` bytes.

    The checks and the read use one descriptor, so that the file cannot be exchanged in between.
    """
    try:
        # NONBLOCK: a planted FIFO must not block
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _OPEN_FLAGS)
    except OSError as error:
        if path.is_symlink():
            raise _Untrusted("it is a symbolic link") from error
        raise
    try:
        status = os.fstat(descriptor)
        _check_trusted(status, stat.S_ISREG, 0o077)
        if status.st_size > limit:
            raise _Untrusted(f"it has {status.st_size} bytes, more than the limit of {limit}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _header(data: bytes, key: str, secret: bytes) -> bytes:
    """Magic, length and digest of the payload, then an HMAC of these and the key."""
    plain = _MAGIC + struct.pack("<Q", len(data)) + hashlib.sha256(data).digest()
    return plain + hmac.digest(secret, plain + key.encode(), "sha256")


def _secret(folder: Path) -> bytes:
    """This user's HMAC key. Processes that start together use the one that was linked first."""
    path = folder / "secret"
    for _ in range(8):
        try:
            secret = _read(path, 32)
            if len(secret) == 32:
                return secret
            raise _Untrusted(f"it has {len(secret)} bytes")
        except FileNotFoundError:
            _write(path, os.urandom(32), first_wins=True)
        except _Untrusted as reason:
            _remove(path)
            _warn(path, f"is replaced ({reason}); entries made with it will be rebuilt")
    raise OSError(errno.EIO, "its file named secret disappears after it is written")


def _write(path: Path, data: bytes, first_wins: bool = False) -> None:
    """Write `path` atomically; with `first_wins`, an existing file is left as it is."""
    temporary = path.with_name(f".{os.urandom(16).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600)
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
    with suppress(OSError):  # already deleted, or not permitted
        path.unlink()


def _entries(folder: Path | None) -> list[tuple[float, int, Path]]:
    """(time, size, path) of every entry, oldest first; also deletes old temporary files."""
    found = []
    for path in folder.iterdir() if folder else ():
        with suppress(OSError):  # another process may delete files at the same time
            if _ENTRY.fullmatch(path.name):
                found.append((path.lstat().st_mtime, path.lstat().st_size, path))
            elif (
                _TEMPORARY.fullmatch(path.name)
                and time.time() - path.lstat().st_mtime > _TEMPORARY_LIFETIME
            ):
                _remove(path)
    return sorted(found)


def _evict(folder: Path, limit: int, written: int) -> None:
    """Delete the oldest entries beyond the limit.

    The entries are listed again only after this process has written a quarter of the space that was
    left when it listed them last (other processes write, too).
    """
    before, space = _space.get(folder, (limit, 0))
    if before == limit and written <= space:
        _space[folder] = limit, space - written
        return
    total = 0
    for _, size, path in reversed(_entries(folder)):
        total += size
        if total > limit:
            _remove(path)
    _space[folder] = limit, max(0, limit - total) // 4


def _warn(subject: object, text: str) -> None:
    """Warn once per process about each file, directory or setting."""
    if subject not in _warned:
        _warned.add(subject)
        warnings.warn(
            f"psiphi's cache of compiled code: {subject} {text}", CacheWarning, stacklevel=3
        )
