"""The tests in unusual environments: python tools/surroundings.py [RUN ...] [-- PYTEST ARGUMENTS]

    python tools/surroundings.py                        all surroundings at once, in one run
    python tools/surroundings.py locale umask           each alone: two runs
    python tools/surroundings.py user+locale            these two in one run
    python tools/surroundings.py together --python all  once with each Python 3.11 to 3.13 on PATH
    python tools/surroundings.py home -- tests/apps/cli/test_cli.py -x

Each run has a copy of the checkout with its own virtual environment in a temporary folder. The
folder and remaining processes are removed at the end. Packages are those of the Python that runs
this script; for other versions pip installs them. Only root can switch to another user. Runs that
are impossible on this machine are reported.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
SURROUNDINGS = {  # description, and a Python expression that is true there
    "user": ("another user, without an account", "os.geteuid() != 0"),
    "readonly": ("a read-only checkout", "not os.access('.', os.W_OK)"),
    "locale": (
        "the C locale: the default encoding is ASCII",
        "locale.setlocale(locale.LC_CTYPE) == 'C'",
    ),
    "path": (
        "a checkout and temporary files on a path with a space and an accent",
        "' ' in os.getcwd() and not os.getcwd().isascii()",
    ),
    "background": (
        "a background job: SIGINT and SIGQUIT are ignored",
        "signal.getsignal(signal.SIGINT) is signal.SIG_IGN",
    ),
    "umask": ("umask 077", "os.umask(0o077) == 0o077"),
    "home": ("no HOME", "'HOME' not in os.environ"),
    "timezone": ("another time zone", "time.timezone == -(12 * 60 + 45) * 60"),
}
TOGETHER = "together"
VERSIONS = ("3.11", "3.12", "3.13")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "__pycache__", ".hypothesis", ".*_cache"
)
ACCENT = os.fsdecode("café au lait".encode())  # in any locale
SUBREAPER = 36  # Linux, prctl: orphaned descendants become our children, so that we can end them
UNIX_ROOT = os.geteuid() == 0


class NotPossible(Exception):
    """A run is not possible on this machine."""


@dataclass
class Row:
    """One run: a line of the table, and its notes."""

    run: str
    python: str
    passed: int | str = "-"
    failed: int | str = "-"
    skipped: int | str = "-"
    seconds: int | str = "-"
    good: bool = False
    notes: list[str] = field(default_factory=list)


def main() -> int:
    """Run the surroundings and print the table; 0 if every run passed."""
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, extra = parser().parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    signal.signal(signal.SIGTERM, _terminated)
    os.umask(0o022)  # other users can read the files of a run
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    versions = [
        version
        for word in args.python or [HERE]
        for version in (VERSIONS if word == "all" else (word,))
    ]
    with folder() as shelf:
        rows = [
            one(name, version, args, extra, shelf) for version in versions for name in args.runs
        ]
    print(*table(rows), sep="\n")
    return 0 if all(row.good for row in rows) else 1


def parser() -> argparse.ArgumentParser:
    """The command-line parser."""
    names = "\n".join(
        f"  {name:<11} {what}"
        for name, (what, _) in {**SURROUNDINGS, TOGETHER: ("all of these", "")}.items()
    )
    out = argparse.ArgumentParser(
        usage="%(prog)s [RUN ...] [--python VERSION] [--jobs N] [--minutes N] "
        "[-- PYTEST ARGUMENTS]",
        description=(__doc__ or "").partition("\n")[2],
        epilog=f"surroundings:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    out.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        default=[TOGETHER],
        type=_run,
        help="surroundings, joined by + (below)",
    )
    out.add_argument(
        "--python",
        metavar="VERSION",
        action="append",
        choices=(*VERSIONS, "all"),
        help=f"default: {HERE}",
    )
    out.add_argument("--jobs", type=int, default=2, help="test processes (default: 2)")
    out.add_argument(
        "--minutes", type=float, default=90.0, help="a run that takes longer is ended (default: 90)"
    )
    return out


def _run(word: str) -> str:
    for name in word.split("+"):
        if name not in (*SURROUNDINGS, TOGETHER):
            known = ", ".join((*SURROUNDINGS, TOGETHER))
            raise argparse.ArgumentTypeError(
                f"no surrounding is called {name!r}; there are {known}"
            )
    return word


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)  # executes every `finally`


# -- one run ---------------------------------------------------------------------------------------


def one(run: str, version: str, args: argparse.Namespace, extra: list[str], shelf: Path) -> Row:
    """Prepare the surroundings, run pytest and count. Installed packages stay in `shelf`."""
    names = set(SURROUNDINGS) if TOGETHER in run.split("+") else set(run.split("+"))
    row = Row(run, version)
    try:
        with folder() as base:
            place = Place(base, names, version, row, args.jobs)
            place.prepare(shelf)
            options = ["-n", str(args.jobs), "--dist", "worksteal"] if args.jobs > 1 else []
            place.pytest([*options, *extra], args.minutes)
    except NotPossible as why:
        row.notes.append(f"not run: {why}")
    return row


class Place:
    """The folder, user and environment of one run."""

    def __init__(self, base: Path, names: set[str], version: str, row: Row, jobs: int):
        self.names, self.version, self.row = names, version, row
        self.ascii = jobs < 2 or "path" not in names
        if "locale" in names and not self.ascii:
            row.notes.append(
                "locale is C with Python's UTF-8 mode: pytest-xdist fails with accents in ASCII "
                "(use --jobs 1 for ASCII)"
            )
        parent = base / (ACCENT if "path" in names else "plain")
        self.checkout, self.tmp, self.home = parent / "psiphi", parent / "tmp", base / "home"
        self.report = self.tmp / "report.xml"
        self.user = self._user()
        self.python = self._interpreter()

    def _user(self) -> int | None:
        """An unused user id, or None if we are not root. For root, nothing is read-only."""
        if not UNIX_ROOT or not {"user", "readonly"} & self.names:
            return None
        taken = {entry.pw_uid for entry in pwd.getpwall()}
        return next(uid for uid in range(61_000, 65_000) if uid not in taken)

    def _interpreter(self) -> str:
        """A Python of this version that the user can execute; else we keep our own user."""
        found = list(interpreters(self.version))
        if not found:
            raise NotPossible(f"no python{self.version} on the PATH")
        if usable := [python for python in found if not self.refusal([python, "-c", ""], cwd="/")]:
            return usable[0]
        self.names -= {"user", "readonly"}
        why = f"another user cannot execute {', '.join(found)}"
        if not self.names:
            raise NotPossible(why)
        self.row.notes.append(f"without user and readonly: {why}")
        self.user = None
        return found[0]

    def prepare(self, shelf: Path) -> None:
        """Copy the checkout, make its environment, set owners, and check the surroundings."""
        shutil.copytree(ROOT, self.checkout, ignore=NOT_COPIED)
        self.checkout.chmod(0o755)  # also where the original is read-only
        for path in (self.tmp, self.home):
            path.mkdir(mode=0o700)
        self.python = self._make_environment(self._packages(shelf))
        everything = [self.checkout, *self.checkout.rglob("*")]
        if "readonly" in self.names:
            for path in everything:
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~0o222 | 0o444)
        if self.user is not None:
            for path in [self.tmp, self.home, *([] if "readonly" in self.names else everything)]:
                os.chown(path, self.user, self.user, follow_symlinks=False)
        proofs = [f"assert {SURROUNDINGS[name][1]}, {name!r}" for name in self.names]
        code = "\n".join(["import locale, os, signal, time, llvmlite, psiphi, pytest", *proofs])
        if why := self.refusal([self.python, "-c", code]):
            raise NotPossible(f"Python does not start correctly: {why}")

    def _make_environment(self, packages: Path) -> str:
        """The Python of a new virtual environment with the sources and the test packages."""
        venv = self.checkout / ".venv"
        call([self.python, "-m", "venv", "--without-pip", venv])
        src, site = (
            f"os.fsdecode({os.fsencode(place)!r})" for place in (self.checkout / "src", packages)
        )  # in any locale
        line = f"import os, site, sys; sys.path.insert(0, {src}); site.addsitedir({site})\n"
        next(venv.glob("lib/python*/site-packages")).joinpath("surroundings.pth").write_text(
            line, encoding="ascii"
        )
        return str(venv / "bin" / "python")

    def _packages(self, shelf: Path) -> Path:
        """The folder with pytest and the other packages: ours, or a new installation."""
        spec = importlib.util.find_spec("pytest")
        if self.version == HERE and spec and spec.origin:
            ours = Path(spec.origin).parents[1]
            if not self.refusal(
                [self.python, "-c", f"import os; os.listdir({os.fsencode(ours)!r})"], cwd="/"
            ):
                return ours
        venv = shelf / self.version
        if not venv.exists():
            print(f"Installing the packages of the tests for Python {self.version}", flush=True)
            call([self.python, "-m", "venv", venv])
            call(
                [
                    venv / "bin" / "python",
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    f"{self.checkout}[test]",
                ]
            )
        return next(venv.glob("lib/python*/site-packages"))

    def environment(self) -> dict[str, str]:
        """The environment variables of a run."""
        names = self.names
        removed = {
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONIOENCODING",
            "VIRTUAL_ENV",
            "PSIPHI_CACHE",
            "PYTEST_ADDOPTS",
        }
        removed |= {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}
        removed |= {"USER", "LOGNAME", "USERNAME"} if self.user is not None else set()
        out = {name: value for name, value in os.environ.items() if name not in removed}
        out |= {"HOME": str(self.home), "TMPDIR": str(self.tmp)}
        if "home" in names:
            del out["HOME"]
        if "locale" in names:
            out = {
                name: value for name, value in out.items() if not name.startswith(("LC_", "LANG"))
            }
            out |= {"LC_ALL": "C", "PYTHONUTF8": "0"} if self.ascii else {"LC_ALL": "C"}
        if "timezone" in names:
            out["TZ"] = "CHAST-12:45"  # a POSIX rule: needs no time zone database
        return out

    def options(self) -> dict[str, Any]:
        """Options of subprocess: user, folder, environment and signals."""
        ignored = signal.SIG_IGN if "background" in self.names else signal.SIG_DFL
        out: dict[str, Any] = {
            "env": self.environment(),
            "cwd": self.checkout,
            "stdin": subprocess.DEVNULL,
        }
        out |= {"start_new_session": True, "umask": 0o077 if "umask" in self.names else 0o022}
        out["preexec_fn"] = lambda: [
            signal.signal(number, ignored) for number in (signal.SIGINT, signal.SIGQUIT)
        ]
        if self.user is not None:
            out |= {"user": self.user, "group": self.user, "extra_groups": []}
        return out

    def refusal(self, words: list[str], **changes: Any) -> str:
        """The error of a command, or "" if it succeeds."""
        options = self.options() | changes
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", timeout=120, **options
            )
        except OSError as error:
            return str(error)
        return (done.stderr.strip() or "no message").splitlines()[-1] if done.returncode else ""

    def pytest(self, words: list[str], minutes: float) -> None:
        """Run pytest, count the results, and end remaining processes."""
        words = [self.python, "-m", "pytest", f"--junitxml={self.report}", *words]
        print(f"\n== {self.row.run}, Python {self.version} ==", flush=True)
        start = time.monotonic()
        process = subprocess.Popen(words, **self.options())
        try:
            code = process.wait(timeout=60.0 * minutes)
        except subprocess.TimeoutExpired:
            self.row.notes.append(f"ended after {minutes:g} minutes")
            code = -1
        finally:
            left = end_processes(process)
        self.row.seconds = round(time.monotonic() - start)
        self.row.notes += [f"process left: {name}" for name in left if code >= 0]
        self.row.good = code == 0 and not left
        if self.report.is_file():
            self._count()
        elif code >= 0:
            self.row.notes.append(f"pytest ended with {code} and without a report")

    def _count(self) -> None:
        suites = list(ElementTree.parse(self.report).iter("testsuite"))
        total = {
            name: sum(int(suite.get(name, 0)) for suite in suites)
            for name in ("tests", "failures", "errors", "skipped")
        }
        self.row.failed, self.row.skipped = total["failures"] + total["errors"], total["skipped"]
        self.row.passed = total["tests"] - self.row.failed - self.row.skipped
        for case in (case for suite in suites for case in suite.iter("testcase")):
            if any(case.find(kind) is not None for kind in ("failure", "error")):
                self.row.notes.append(f"failed: {case.get('classname')}::{case.get('name')}")


# -- interpreters, folders, processes --------------------------------------------------------------


def interpreters(version: str) -> Iterator[str]:
    """Pythons of this version: ours, then those on the PATH, each once, with shims resolved."""
    seen = set()
    places = [os.path.join(place, f"python{version}") for place in os.get_exec_path()]
    for candidate in [sys.executable] * (version == HERE) + places:
        code = "import sys; print(getattr(sys, '_base_executable', sys.executable)); "
        code += "print(*sys.version_info[:2], sep='.')"
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                [candidate, "-c", code],
                capture_output=True,
                text=True,
                errors="surrogateescape",
                timeout=60,
            )
            path, _, found = done.stdout.strip().partition("\n")
            real = os.path.realpath(path)
            if done.returncode == 0 and found == version and real not in seen:
                seen.add(real)
                yield path


def call(words: list[Any]) -> None:
    """Run a command. Raises `NotPossible` if it fails."""
    utf8 = {**os.environ, "PYTHONUTF8": "1"}  # venv writes its path to files
    done = subprocess.run(
        words, env=utf8, capture_output=True, text=True, errors="replace", timeout=1800
    )
    if done.returncode:
        output = (done.stderr or done.stdout).strip()[-300:]
        raise NotPossible(f"{' '.join(map(str, words[:4]))} ... failed: {output}")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder that other users can enter; removed with its read-only parts."""
    base = Path(tempfile.mkdtemp(prefix="psiphi-surroundings-"))
    base.chmod(0o755)
    try:
        yield base
    finally:
        for top, folders, _ in os.walk(base):
            for path in (os.path.join(top, name) for name in folders):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(base, ignore_errors=True)
        if base.exists():
            print(f"{base} could not be removed", file=sys.stderr)


def end_processes(process: subprocess.Popen) -> list[str]:
    """End the process and, on Linux, its orphaned descendants; return their names."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline, left = time.monotonic() + 5.0, {}
    while orphans := children():
        if time.monotonic() > deadline:  # they had time to end
            left |= orphans
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    return list(left.values())


def children() -> dict[int, str]:
    """Our running child processes by id; finished ones are reaped."""
    out = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
            pid = int(stat.parent.name)
            if int(parent) == os.getpid():
                if state == "Z":
                    os.waitpid(pid, os.WNOHANG)
                else:
                    out[pid] = name.partition("(")[2]
    return out


def table(rows: list[Row]) -> Iterator[str]:
    """The table: one line per run with the numbers of passed, failed and skipped tests."""
    head = ("run", "python", "passed", "failed", "skipped", "seconds", "")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        cells = (
            row.run,
            row.python,
            row.passed,
            row.failed,
            row.skipped,
            row.seconds,
            "good" if row.good else "NOT GOOD",
        )
        lines.append(tuple(map(str, cells)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    yield ""
    for i, line in enumerate(lines):
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        yield from (f"    {note}" for note in rows[i - 1].notes) if i else ()


if __name__ == "__main__":
    sys.exit(main())
