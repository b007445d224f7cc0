"""The disk cache under faults: whatever happens to its files, a payload comes back whole or not at
all."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import signal
import stat
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from psiphi._util.errors import CacheError
from psiphi.backends import kernel_cache
from tests.children import child

POSIX = hasattr(os, "geteuid")
PAYLOAD = bytes(range(256)) * 64
KEY = kernel_cache.key("a kernel")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache of our own, and no memory of earlier warnings."""
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PSIPHI_CACHE_MB", raising=False)
    monkeypatch.setattr(kernel_cache, "_warned", set())
    return tmp_path / "cache"


@pytest.fixture
def entry(home):
    kernel_cache.store(KEY, PAYLOAD)
    return home / f"{KEY}.o"


def another(code: str, home: Path, *args: str):
    """Another process that has imported the cache and runs `code`."""
    return child(
        "-c",
        f"import sys\nfrom psiphi.backends import kernel_cache as cache\n{code}",
        *args,
        PSIPHI_CACHE=str(home),
    )


def caught(action):
    """The action's result and the messages of its CacheWarnings."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        result = action()
    assert all(issubclass(w.category, kernel_cache.CacheWarning) for w in log)
    return result, [str(w.message) for w in log]


# -- the ordinary day ------------------------------------------------------------------------------


def test_what_is_stored_is_fetched(home):
    assert kernel_cache.fetch(KEY) is None
    assert not home.exists()  # looking does not create
    kernel_cache.store(KEY, PAYLOAD)
    kernel_cache.store(kernel_cache.key("empty"), b"")
    assert kernel_cache.fetch(KEY) == PAYLOAD
    assert kernel_cache.fetch(kernel_cache.key("empty")) == b""
    assert kernel_cache.info() == {
        "directory": home,
        "entries": 2,
        "bytes": len(PAYLOAD) + 160,
        "limit": 512_000_000,
    }
    assert kernel_cache.clear() == 2
    assert kernel_cache.fetch(KEY) is None


def test_remember_builds_once(home):
    built = []
    for _ in range(2):
        assert kernel_cache.fetch_or_build(KEY, lambda: built.append(1) or PAYLOAD) == PAYLOAD
    assert built == [1]


def test_keys_keep_their_parts_apart():
    assert kernel_cache.key("ab", "c") != kernel_cache.key("a", "bc") != kernel_cache.key("abc")
    assert kernel_cache.key("x") == kernel_cache.key(b"x")
    for wrong in ("", "../../etc/passwd", "A" * 64, KEY + "0"):
        with pytest.raises(CacheError):
            kernel_cache.fetch(wrong)
        with pytest.raises(CacheError):
            kernel_cache.store(wrong, b"")


@pytest.mark.skipif(not POSIX, reason="modes are POSIX")
def test_only_the_user_may_look(entry):
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in entry.parent.iterdir()} == {0o600}


def test_the_directory_is_chosen_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    assert kernel_cache.directory(create=True) is None
    assert caught(lambda: kernel_cache.store(KEY, PAYLOAD)) == (None, [])
    monkeypatch.delenv("PSIPHI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert kernel_cache.directory(create=True) == tmp_path / "xdg" / "psiphi"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert not POSIX or kernel_cache.directory(create=True) == tmp_path / "me" / ".cache" / "psiphi"


def test_the_oldest_entries_go_first(home, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE_MB", "0.05")  # three entries of 16 kB
    keys = [kernel_cache.key(str(i)) for i in range(5)]
    for age, key in enumerate(keys):
        kernel_cache.store(key, PAYLOAD)
        os.utime(home / f"{key}.o", (1e9 + age, 1e9 + age))
    kernel_cache.store(KEY, PAYLOAD)
    assert [kernel_cache.fetch(key) is not None for key in [*keys, KEY]] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]
    kernel_cache.store(
        kernel_cache.key("huge"), bytes(60_000)
    )  # larger than the limit: not even tried
    assert kernel_cache.info()["entries"] == 3


def test_the_limit_holds_without_a_list_of_all_entries_at_every_store(home, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE_MB", "0.4")
    lists, entries = [], kernel_cache._entries
    monkeypatch.setattr(kernel_cache, "_entries", lambda f: lists.append(f) or entries(f))
    for i in range(60):
        kernel_cache.store(kernel_cache.key(str(i)), bytes(2_000))
        assert sum(size for _, size, _ in entries(home)) <= 400_000
    assert len(lists) < 10
    for i in range(60):
        kernel_cache.store(kernel_cache.key("large", str(i)), PAYLOAD)
        assert sum(size for _, size, _ in entries(home)) <= 400_000


def test_the_garbage_collector_pauses_while_code_is_made(home):
    seen = []

    def build() -> bytes:
        seen.append(gc.isenabled())
        if len(seen) == 2:
            raise MemoryError
        kernel_cache.fetch_or_build(kernel_cache.key("inner"), lambda: b"inner")
        seen.append(gc.isenabled())
        return b"outer"

    try:
        gc.enable()
        kernel_cache.fetch_or_build(kernel_cache.key("outer"), build)
        assert gc.isenabled() and seen == [False, False]
        seen.pop()
        with pytest.raises(MemoryError):
            kernel_cache.fetch_or_build(kernel_cache.key("broken"), build)
        assert gc.isenabled()
        gc.disable()
        kernel_cache.fetch_or_build(kernel_cache.key("off"), lambda: b"off")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_wrong_limit_is_announced(home, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE_MB", "lots")
    info, messages = caught(kernel_cache.info)
    assert info["limit"] == 512_000_000 and "PSIPHI_CACHE_MB" in messages[0]


# -- bad entries: refused, deleted, announced once, built again ------------------------------------


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path):
    path.write_bytes(b"")


def only_a_header(path):
    path.write_bytes(path.read_bytes()[:40])


def longer(path):
    path.write_bytes(path.read_bytes() + b"\0")


def flip_payload(path):
    flip(path, 1000)


def flip_digest(path):
    flip(path, 20)


def flip_seal(path):
    flip(path, 60)


def flip_magic(path):
    flip(path, 0)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def renamed(path):
    other = kernel_cache.key("another kernel")
    kernel_cache.store(other, b"its code")
    os.replace(path.with_name(f"{other}.o"), path)


def plain_object_code(path):
    path.write_bytes(b"\x7fELF" + PAYLOAD)


def planted(path):
    """All that an attacker can know: the format, the key and the digest, but not the secret."""
    path.write_bytes(kernel_cache._header(b"evil", KEY, b"guess" * 8) + b"evil")


def from_another_home(path):
    os.environ["PSIPHI_CACHE"] = str(path.parent.parent / "other")
    kernel_cache.store(KEY, b"evil")
    os.environ["PSIPHI_CACHE"] = str(path.parent)
    shutil.copyfile(path.parent.parent / "other" / path.name, path)


def symlink(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def dangling_symlink(path):
    path.unlink()
    path.symlink_to("nowhere")


def writable_by_all(path):
    path.chmod(0o777)


def readable_by_group(path):
    path.chmod(0o640)


def fifo(path):
    path.unlink()
    os.mkfifo(path)


BAD = [
    truncate,
    empty,
    only_a_header,
    longer,
    flip_payload,
    flip_digest,
    flip_seal,
    flip_magic,
    renamed,
    plain_object_code,
    planted,
    from_another_home,
]
BAD_POSIX = [symlink, dangling_symlink, writable_by_all, readable_by_group, fifo]


@pytest.mark.parametrize("damage", BAD + BAD_POSIX * POSIX, ids=lambda damage: damage.__name__)
def test_a_bad_entry_is_dropped_and_built_again(entry, damage, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", str(entry.parent))
    damage(entry)
    data, messages = caught(lambda: kernel_cache.fetch(KEY))
    assert data is None
    assert len(messages) == 1 and "is rejected" in messages[0]
    assert not os.path.lexists(entry)
    assert caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: PAYLOAD)) == (PAYLOAD, [])
    assert kernel_cache.fetch(KEY) == PAYLOAD
    damage(entry)
    assert caught(lambda: kernel_cache.fetch(KEY)) == (None, [])  # announced once


@pytest.mark.skipif(not POSIX, reason="owners are POSIX")
def test_entries_and_directories_of_other_users_are_refused(entry, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    data, messages = caught(lambda: kernel_cache.fetch(KEY))
    assert data is None and "belongs to user" in messages[0]
    assert entry.exists()  # not ours to delete


@pytest.mark.skipif(not POSIX, reason="owners are POSIX")
def test_a_directory_open_to_others_is_bypassed(entry):
    for mode in (0o777, 0o770, 0o702):
        entry.parent.chmod(mode)
        kernel_cache._warned.clear()
        data, messages = caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: b"fresh"))
        assert data == b"fresh" and len(messages) == 1 and "chmod 700" in messages[0]
    entry.parent.chmod(0o755)  # readable is harmless
    assert kernel_cache.fetch(KEY) == PAYLOAD


@pytest.mark.skipif(not POSIX, reason="symbolic links")
def test_a_symlink_in_place_of_the_directory_is_bypassed(entry, home):
    home.rename(home.with_name("real"))
    home.symlink_to("real")
    data, messages = caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: b"fresh"))
    assert data == b"fresh" and len(messages) == 1


@pytest.mark.parametrize(
    "damage", [truncate, empty, *[writable_by_all, readable_by_group, dangling_symlink] * POSIX]
)
def test_a_bad_secret_is_replaced_and_its_entries_are_not_trusted(entry, damage):
    secret = entry.with_name("secret")
    old = secret.read_bytes()
    damage(secret)
    data, messages = caught(lambda: kernel_cache.fetch(KEY))
    assert data is None and "secret is replaced" in messages[0]
    assert len(secret.read_bytes()) == 32 and secret.read_bytes() != old
    kernel_cache.store(KEY, PAYLOAD)
    assert kernel_cache.fetch(KEY) == PAYLOAD


# -- a disk that refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["open", "replace", "link", "fsync"])
def test_a_failing_disk_costs_one_warning(home, monkeypatch, call, code):
    def fail(*args, **options):
        raise OSError(code, os.strerror(code), "somewhere")

    monkeypatch.setattr(os, call, fail)
    for attempt in range(3):
        data, messages = caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: PAYLOAD))
        assert data == PAYLOAD
        assert len(messages) == (attempt == 0)
    monkeypatch.undo()
    assert [path.name for path in home.iterdir() if path.name != "secret"] == []  # no debris


def test_no_place_for_a_directory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setattr(kernel_cache, "_warned", set())
        monkeypatch.setenv("PSIPHI_CACHE", str(place))
        data, messages = caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: PAYLOAD))
        assert data == PAYLOAD and len(messages) == 1
    monkeypatch.delenv("PSIPHI_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no home at all
    assert caught(lambda: kernel_cache.fetch_or_build(KEY, lambda: PAYLOAD)) == (PAYLOAD, [])


# -- other processes -------------------------------------------------------------------------------


@pytest.mark.skipif(not POSIX, reason="kill -9")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_writers_leave_no_bad_entry(home):
    writer = (
        "data = sys.argv[1].encode() * 400_000\nprint(flush=True)\nwhile True: "
        "cache.store(cache.key('x'), data)"
    )
    for i in range(50):
        letter, delay = chr(97 + i % 26), 0.0005 * i
        if i % 10:
            fork_then_kill(letter, delay)
        else:
            with another(writer, home, letter) as process:
                process.stdout.readline()
                time.sleep(delay)
        data, messages = caught(lambda: kernel_cache.fetch(kernel_cache.key("x")))
        assert messages == []
        assert data is None or (len(set(data)) == 1 and len(data) == 400_000)
    for path in home.glob(".*.tmp"):
        os.utime(path, (1e9, 1e9))
    kernel_cache.store(KEY, PAYLOAD)
    assert not list(home.glob(".*.tmp"))  # abandoned temporary files are swept


def fork_then_kill(letter: str, delay: float) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                kernel_cache.store(kernel_cache.key("x"), letter.encode() * 400_000)
        finally:
            os._exit(1)
    try:
        time.sleep(delay)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_many_processes_start_cold_together(home, tmp_path):
    code = """
import os, time, warnings
warnings.simplefilter("error")
while not os.path.exists(sys.argv[1]): time.sleep(0.001)
for i in range(20):
    name = str(i % 5)
    data = cache.fetch_or_build(cache.key(name), lambda: name.encode() * 10_000)
    assert data == name.encode() * 10_000
print("good")
"""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(another(code, home, str(tmp_path / "go"))) for _ in range(32)
        ]
        (tmp_path / "go").touch()
        assert [process.communicate(timeout=120) for process in processes] == [("good\n", "")] * 32
    assert kernel_cache.info()["entries"] == 5
    assert caught(lambda: [kernel_cache.fetch(kernel_cache.key(str(i)))[:1] for i in range(5)]) == (
        [b"0", b"1", b"2", b"3", b"4"],
        [],
    )
