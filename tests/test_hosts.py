"""Windows and macOS, pretended: what those systems lack is taken away, and the branches for them
run. Not run there itself."""

from __future__ import annotations

import ctypes
import ntpath
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from psiphi.backends import kernel_cache
from psiphi.backends.llvm import jit
from psiphi.io.urdf import mesh_paths, ros_packages
from tests.children import python

TESTS = Path(__file__).parents[1]
LACKS = {  # what `os` does not have there
    "win32": "fork forkpty register_at_fork sched_getaffinity getuid geteuid getgid getegid "
    "O_NOFOLLOW O_NONBLOCK "
    "O_CLOEXEC WNOHANG killpg getpgid setsid chown fchmod statvfs uname",
    "darwin": "sched_getaffinity",
}
PRETEND = """
import asyncio, concurrent.futures, os, subprocess, sys, sysconfig, tempfile  # the standard library of this system
import numpy, llvmlite.binding  # as they are here: wheels for that system are theirs
sysconfig.get_config_vars()  # those of this Python
os.chdir({folder!r})
for name in {lacks!r}.split():
    if hasattr(os, name):
        delattr(os, name)
sys.platform = {system!r}
"""  # noqa: E501
ROAD = """
import psiphi as pp
robot = pp.load("ur5")
q = robot.random(seed=0, size=5000)
tau = robot.gravity(q)
assert abs(robot.forward_dynamics(q, q * 0, tau)).max() < 1e-6
assert robot.forward_dynamics(q[0], q[0] * 0, tau[0]).shape == (6,)
motion = pp.simulate(robot, q[0], duration=0.05)
motion.save("motion.npz"), motion.save("motion.csv"), motion.html("motion.html")
assert (pp.Trajectory.load("motion.csv", system=robot).q == motion.q).all()
assert pp.get_threads() >= 1
from psiphi.backends import kernel_cache as cache
print(cache.info()["entries"], cache.info()["directory"])
"""


@pytest.mark.parametrize("system", LACKS)
def test_the_whole_road_without_what_that_system_lacks(system, tmp_path):
    """Loads, compiles, caches, simulates, writes and reads; a second process takes its kernels from
    the cache."""
    script = PRETEND.format(folder=str(tmp_path), lacks=LACKS[system], system=system) + ROAD
    store = tmp_path / "kernels"
    first, second = (python("-c", script, PSIPHI_CACHE=str(store)) for _ in range(2))
    for done in (first, second):
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert first.stdout == second.stdout and int(first.stdout.split()[0]) > 0
    assert {"motion.npz", "motion.csv", "motion.csv.json", "motion.html"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.parametrize("system", LACKS)
def test_the_command_line(system, tmp_path):
    script = PRETEND.format(folder=str(tmp_path), lacks=LACKS[system], system=system)
    script += (
        "from psiphi.apps.cli.main import main\nsys.exit(main(['simulate', 'acrobot', "
        "'--duration', '0.05']))\n"
    )
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "acrobot.npz").is_file() and (tmp_path / "acrobot.html").is_file()


# -- the cache -------------------------------------------------------------------------------------


def test_where_the_cache_is_on_windows(monkeypatch):
    """os.path of Windows: a profile in USERPROFILE is a home, and its drive makes the path
    absolute."""
    monkeypatch.setenv("USERPROFILE", r"C:\Users\ada")
    home = ntpath.expanduser("~/.cache")
    assert ntpath.normpath(
        ntpath.join(home, "psiphi")
    ) == r"C:\Users\ada\.cache\psiphi" and ntpath.isabs(home)


def test_without_users_nobody_owns_a_file(monkeypatch, tmp_path):
    """Windows has no owners and modes to ask: kinds are still looked at."""
    monkeypatch.delattr(os, "geteuid")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o666)
    kernel_cache._check_trusted(path.stat(), lambda mode: True, 0o077)
    with pytest.raises(Exception, match="not a regular file"):
        kernel_cache._check_trusted(path.stat(), lambda mode: False, 0o077)


def test_a_cache_without_hard_links_is_left_aside(monkeypatch, tmp_path):
    """FAT and some network folders: a warning, and the code is compiled again."""

    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(os, "link", refuse)
    with pytest.warns(UserWarning, match="not permitted"):
        kernel_cache.store(kernel_cache.key("x"), b"code")
    assert kernel_cache.fetch(kernel_cache.key("x")) is None


# -- processors ------------------------------------------------------------------------------------

AVX2 = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from tests import conftest
if {forced}:
    conftest.avx2_host()
import psiphi as pp
from psiphi.backends.cpu import cpu_target as host
from psiphi.backends.llvm import jit
robot = pp.load("ur5")
q = robot.random(seed=0, size=13)
motion = pp.rollout(robot, q, q, steps=3)
found = [robot.forward_dynamics(q, q, q), robot.mass_matrix(q), motion.q, robot.gravity(q.astype("f"))]
np.savez({path!r}, *found)
text = robot.function("forward_dynamics").ir("d")
print(host.host_lanes("double"), host.host_lanes("float"), "<4 x double>" in text, "<8 x double>" in text)
"""  # noqa: E501


@pytest.mark.skipif(
    "+avx2" not in jit.host().features.split(","), reason="this processor has no AVX2"
)
def test_four_doubles_a_register(tmp_path):
    """Code for AVX2 alone runs, and agrees with what this processor does best. `PSIPHI_TESTS_AVX2=1
    make test`: all tests."""
    files = [tmp_path / "own.npz", tmp_path / "avx2.npz"]
    for forced, path in enumerate(files):
        done = python(
            "-c", AVX2.format(tests=str(TESTS), forced=forced, path=str(path)), PSIPHI_CACHE="off"
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "8", "True", "False"]
    with np.load(files[0]) as own, np.load(files[1]) as other:
        for name in own.files:
            np.testing.assert_allclose(
                other[name], own[name], rtol=1e-4 if own[name].dtype == "f" else 1e-12, atol=1e-9
            )


# -- ctypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["ucrtbase", "libSystem.B.dylib"])
def test_externals_come_from_the_systems_own_library(monkeypatch, library):
    """ctypes.CDLL(None) is a TypeError on Windows; sin and cos are then taken from the C library of
    the system."""
    real = ctypes.CDLL("libm.so.6")

    def opened(path):
        if path is None:
            raise TypeError("bad argument type for built-in operation")
        if path != library:
            raise OSError("not found")
        return real

    monkeypatch.setattr(jit.ctypes, "CDLL", opened)
    jit._open.cache_clear()
    jit._missing_externals.cache_clear()
    try:
        found = jit._missing_externals()
        there = {name for name in jit.EXTERNALS if hasattr(real, name)}
        assert there and set(found) == there and all(found.values())
    finally:
        jit._open.cache_clear()
        jit._missing_externals.cache_clear()


# -- paths -----------------------------------------------------------------------------------------

HOME = r"C:\ws\arm\urdf"


@pytest.fixture
def windows(monkeypatch):
    """os.path of Windows in the two files that look for meshes, with links that lead nowhere
    else."""
    path = SimpleNamespace(
        **{name: getattr(ntpath, name) for name in dir(ntpath) if not name.startswith("__")}
    )
    path.realpath, path.abspath = ntpath.normpath, ntpath.normpath
    path.isfile = lambda name: ntpath.normpath(name) == r"C:\ws\arm\package.xml"
    path.isdir = path.exists = lambda name: True
    system = SimpleNamespace(path=path, sep="\\", pathsep=";", environ={}, PathLike=os.PathLike)
    system.fsdecode, system.fsencode = os.fsdecode, os.fsencode
    for module in (mesh_paths, ros_packages):
        monkeypatch.setattr(module, "os", system)
    return mesh_paths.AllowedFolders(HOME + r"\arm.urdf")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hand.stl", r"C:\ws\arm\urdf\hand.stl"),
        ("../meshes/hand.stl", r"C:\ws\arm\meshes\hand.stl"),
        (r"..\meshes\hand.stl", r"C:\ws\arm\meshes\hand.stl"),
        ("package://arm/meshes/hand.stl", r"C:\ws\arm\meshes\hand.stl"),
    ],
)
def test_a_mesh_on_windows(windows, name, meant):
    assert windows.resolve(name) == meant


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../../secret.stl", "leaves the package"),
        (r"..\..\..\secret.stl", "leaves the package"),
        ("..%5c..%5c..%5csecret.stl", "leaves the package"),
        ("package://arm/../../secret.stl", "leaves the package"),
        (r"package://arm/..\..\secret.stl", "leaves the package"),
        ("package://arm/D:/secret.stl", "leaves the package"),
        (r"C:\secret.stl", "is not a file in the package"),
        ("D:secret.stl", "is not a file in the package"),
        ("file:///D:/secret.stl", "an absolute path"),
        (r"\\server\share\secret.stl", "an absolute path"),
        ("/secret.stl", "an absolute path"),
    ],
)
def test_a_mesh_elsewhere_on_windows_is_refused(windows, name, why):
    with pytest.raises(mesh_paths.PathOutsideError, match=re.escape(why)):
        windows.resolve(name)


def test_a_package_on_another_drive(windows):
    """relpath and commonpath refuse two drives with a ValueError: here it means outside, not a
    crash."""
    roots = mesh_paths.AllowedFolders(HOME + r"\arm.urdf", packages={"other": r"D:\other"})
    assert roots.resolve("package://other/hand.stl") == r"D:\other\hand.stl"
    with pytest.raises(mesh_paths.PathOutsideError, match="an absolute path"):
        roots.resolve("/hand.stl")


def test_a_link_to_another_drive(windows):
    mesh_paths.os.path.realpath = lambda name: (
        r"E:\elsewhere" if name.endswith("hand.stl") else ntpath.normpath(name)
    )
    with pytest.raises(mesh_paths.PathOutsideError, match="a link in it leaves the package"):
        windows.resolve("hand.stl")


def test_ros_paths_are_parted_as_the_system_parts_them(windows):
    ros_packages.os.environ["ROS_PACKAGE_PATH"] = r"C:\one;D:\two;relative"
    assert ros_packages._path_entries("ROS_PACKAGE_PATH") == [r"C:\one", r"D:\two"]
