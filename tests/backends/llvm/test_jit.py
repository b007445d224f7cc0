"""IR text becomes object code, object code becomes callable addresses, in this process and in the
next."""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import threading
from functools import partial

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.backends.llvm import jit
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import rollout_runner
from tests import zoo
from tests.children import exit_code, in_threads, python

F64 = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
SQUARE = (
    "define double @square(double %x) nounwind {\n  %y = fmul double %x, %x\n  ret double %y\n}\n"
)


def load(text: str, name: str, prototype=F64, **options):
    address = jit.load_object(jit.compile_ir(text, **options), [name]).address(name)
    function = prototype(address)
    function.address = address  # which keeps the code
    return function


def test_a_function_runs():
    assert load(SQUARE, "square")(3.0) == 9.0
    assert (
        load(SQUARE, "square", opt=0)(3.0) == load(SQUARE, "square", opt=3, passes=True)(3.0) == 9.0
    )


def test_the_host_names_all_that_code_depends_on():
    host = jit.host()
    assert host is jit.host()
    assert all(isinstance(part, str) for part in host) and host.cpu and host.triple
    assert host.llvm.split(".")[0].isdecimal()


def test_equal_text_gives_equal_objects():
    assert jit.compile_ir(SQUARE) == jit.compile_ir(SQUARE)


CALLS = [
    ("sin", "double", 0.3, math.sin(0.3)),
    ("cos", "double", 0.3, math.cos(0.3)),
    ("sqrt", "double", 2.0, math.sqrt(2.0)),
    ("sinf", "float", 0.3, math.sin(0.3)),
    ("cosf", "float", 0.3, math.cos(0.3)),
    ("llvm.sin.f64", "double", 0.3, math.sin(0.3)),
    ("llvm.cos.f32", "float", 0.3, math.cos(0.3)),
]


@pytest.mark.parametrize(("callee", "real", "argument", "expected"), CALLS)
def test_functions_of_libm_resolve(callee, real, argument, expected):
    body = f"{{\n  %y = call {real} @{callee}({real} %x)\n  ret {real} %y\n}}"
    text = f"declare {real} @{callee}({real})\ndefine {real} @f({real} %x) {body}"
    scalar = ctypes.c_double if real == "double" else ctypes.c_float
    assert load(text, "f", ctypes.CFUNCTYPE(scalar, scalar))(argument) == pytest.approx(
        expected, rel=1e-6
    )


def test_sine_and_cosine_of_one_angle_resolve():
    text = """
declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
define double @f(double %x) {
  %s = call double @llvm.sin.f64(double %x)
  %c = call double @llvm.cos.f64(double %x)
  %y = fsub double %s, %c
  ret double %y
}"""
    assert load(text, "f")(0.3) == pytest.approx(math.sin(0.3) - math.cos(0.3))


@pytest.mark.parametrize("size", [64, 100_000])
def test_memory_functions_resolve(size):
    text = f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define double @f(double %x) {{
  %a = alloca [{size} x double]
  %b = alloca [{size} x double]
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 {8 * size}, i1 false)
  store double %x, ptr %a
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 {8 * size}, i1 false)
  %y = load volatile double, ptr %b
  ret double %y
}}"""
    assert load(text, "f")(5.0) == 5.0


def test_wide_lanes_run():
    text = """
define void @f(ptr %x) {
  %v = load <16 x double>, ptr %x, align 8
  %w = fadd <16 x double> %v, %v
  store <16 x double> %w, ptr %x, align 8
  ret void
}"""
    data = (ctypes.c_double * 16)(*range(16))
    load(text, "f", ctypes.CFUNCTYPE(None, ctypes.c_void_p))(ctypes.addressof(data))
    assert list(data) == [2.0 * i for i in range(16)]


def test_megabytes_of_code_load():
    """Functions of 5000 operations and 12 MB of data between them: calls and loads reach far."""
    lines = [f'@data = internal constant [12000000 x i8] c"{"a" * 12_000_000}"']
    for k in range(4):
        lines += [
            f"define double @f{k}(double %x) noinline nounwind {{",
            "  %v0 = fadd double %x, 1.0",
        ]
        lines += [f"  %v{i} = fadd double %v{i - 1}, {k * 5000 + i}.0" for i in range(1, 5000)]
        lines += [
            "  %p = getelementptr i8, ptr @data, i64 11999999",
            "  %b = load volatile i8, ptr %p",
        ]
        lines += ["  %d = uitofp i8 %b to double", "  %r = fadd double %v4999, %d"]
        lines += [
            f"  %call = call double @f{k - 1}(double %r)\n  ret double %call\n}}"
            if k
            else "  ret double %r\n}"
        ]
    code = jit.compile_ir("\n".join(lines), opt=0)
    assert len(code) > 12_000_000
    library = jit.load_object(code, ["f0", "f3"])
    assert F64(library.address("f0"))(0.0) == 1.0 + 4999 * 5000 / 2 + ord("a")
    assert F64(library.address("f3"))(0.0) == sum(
        1.0 + ord("a") + sum(range(5000 * k + 1, 5000 * k + 5000)) for k in range(4)
    )


# -- errors are psiphi's own, never an abort -------------------------------------------------------


def test_a_parse_error_shows_the_line():
    with pytest.raises(
        Error, match=r"LLVM IR:2: internal error: .*expected type in 'ret doubel %x'"
    ) as caught:
        jit.compile_ir("define double @f(double %x) {\n  ret doubel %x\n}")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "text", ["define", "}", "define double @f() {\n", "define double @f(double %x) {\nret i1 0\n}"]
)
def test_broken_text_is_refused(text):
    with pytest.raises(Error, match="internal"):
        jit.compile_ir(text)


def test_a_value_used_before_it_exists_is_refused():
    with pytest.raises(Error, match="dominate"):
        jit.compile_ir(
            "define double @f(double %x) {\n %a = fadd double %b, %x\n %b = fadd double %x, "
            "%x\n ret double %a\n}"
        )


def test_an_unknown_callee_is_refused():
    text = "declare double @no_such_thing(double)\n" + SQUARE.replace(
        "fmul double %x, %x", "call double @no_such_thing(double %x)"
    )
    with pytest.raises(Error, match="cannot load"):
        load(text, "square")


@pytest.mark.parametrize("cut", [0, 7, 100, -300])
def test_cut_object_code_is_refused(cut):
    with pytest.raises(Error, match="cannot load"):
        jit.load_object(jit.compile_ir(SQUARE)[:cut], ["square"])


def test_a_missing_name_is_refused():
    with pytest.raises(Error, match="cube"):
        jit.load_object(jit.compile_ir(SQUARE), ["cube"])
    with pytest.raises(Error, match="exports square, not"):
        jit.load_object(jit.compile_ir(SQUARE), ["square"]).address("cube")


# -- lives: code, threads, processes ---------------------------------------------------------------


def test_an_address_keeps_its_code_alive():
    address = jit.load_object(jit.compile_ir(SQUARE), ["square"]).address("square")
    gc.collect()
    assert F64(address)(4.0) == 16.0
    assert address.library.address("square") == address


def test_many_libraries_come_and_go():
    code = jit.compile_ir(SQUARE)
    addresses = [jit.load_object(code, ["square"]).address("square") for _ in range(200)]
    assert len(set(addresses)) == 200  # equal names do not clash
    del addresses[::2]
    assert all(F64(address)(2.0) == 4.0 for address in addresses)


MEMORY = """
import gc, os, weakref
import psiphi as pp
from psiphi.backends.llvm import jit

def kilobytes():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024

code = jit.compile_ir("define double @f(double %x) { ret double %x }")
sizes = []
for k in range(1600):
    library = jit.load_object(code, ["f"])
    if k % 400 == 0:
        sizes.append(kilobytes())
robot = pp.load("acrobot")
robot.gravity(robot.neutral())
loop = robot.function("gravity").ufunc.__dict__["_psiphi"].loops[0]
gone = [weakref.ref(robot), weakref.ref(loop), weakref.ref(loop.address.library)]
del robot, loop
gc.collect()
print(sizes[-1] - sizes[1], sum(what() is not None for what in gone))
"""


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"),
    reason="this system does not say how much memory a process has",
)
def test_what_is_dropped_is_gone():
    """LLVM keeps 10 kB of each library that a linker has dropped: 8 MB after these, and none since
    linkers go, too. (2000 robots and 500 functions: docs/reliability.md.)"""
    done = python("-c", MEMORY, PSIPHI_CACHE="off")
    assert done.returncode == 0, done.stderr
    grown, alive = map(int, done.stdout.split())
    assert grown < 1500 and not alive


def test_a_library_outlives_its_linker():
    """The next libraries have another linker; ours keeps its own."""
    function, code = load(SQUARE, "square"), jit.compile_ir(SQUARE)
    for _ in range(3 * jit.LIBRARIES_PER_LINKER):
        jit.load_object(code, ["square"])
    gc.collect()
    assert function(3.0) == 9.0


def test_threads_compile_together():
    results = {}

    def work(k):
        for i in range(5):
            text = (
                f"define double @f(double %x) {{\n  %y = fadd double %x, {k}{i}.0\n  ret double "
                f"%y\n}}"
            )
            results[k, i] = load(text, "f")(0.5)

    in_threads(partial(work, k) for k in range(1, 9))
    assert results == {(k, i): 10.0 * k + i + 0.5 for k in range(1, 9) for i in range(5)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_compiles_while_its_parent_does():
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            jit.compile_ir(SQUARE)

    thread = threading.Thread(target=busy, daemon=True)
    thread.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if load(SQUARE, "square")(3.0) == 9.0 else 1)
            assert exit_code(pid) == 0
    finally:
        stop.set()
        thread.join(timeout=60)


def test_object_code_loads_in_another_process(tmp_path):
    (tmp_path / "square.o").write_bytes(jit.compile_ir(SQUARE))
    code = """
import ctypes, json, sys
from psiphi.backends.llvm import jit
light = "llvmlite" not in sys.modules
library = jit.load_object(open(sys.argv[1], "rb").read(), ["square"])
value = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("square"))(3.0)
print(json.dumps([light, value]))
"""
    for _ in range(3):
        done = python("-c", code, str(tmp_path / "square.o"))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [True, 9.0]


def panda_gradients() -> list[np.ndarray]:
    robot = pp.load("panda", base="free")
    q, v, tau = robot.random(seed=0, size=9), np.ones((9, robot.nv)), np.zeros((9, robot.nv))
    f = robot.function("forward_dynamics").vjp("q", "v")
    return [x for part in (f(q, v, tau, v), f(q[0], v[0], tau[0], v[0])) for x in part]


def tree_dynamics() -> list[np.ndarray]:
    """Every kind of joint, in double and single precision."""
    robot, found = Robot.of(dict(zoo.ZOO)["every_kind"]()), []
    for kind in ("f8", "f4"):
        q, v, a, tau = (x.astype(kind) for x in zoo.random_state(robot, 0, (9,)))
        for rows in (slice(None), 0):
            found += [
                robot.forward_dynamics(q[rows], v[rows], tau[rows]),
                robot.inverse_dynamics(q[rows], v[rows], a[rows]),
                robot.mass_matrix_inverse(q[rows]),
            ]
    return found


def loops_over_links() -> list[np.ndarray]:
    robot = pp.robots.chain(70)
    q, v = robot.random(seed=0, size=9), np.ones((9, robot.nv))
    return [robot.forward_dynamics(q, v, v), robot.forward_dynamics(q[0], v[0], v[0])]


def steps_on_a_ground() -> list[np.ndarray]:
    robot = pp.load("pelican", base="free").with_contacts({"tool": pp.Sphere(0.1)})
    q, v = np.tile(robot.neutral(), (9, 1)), np.zeros((9, robot.nv))
    q[:, 2], v[:, 5] = np.linspace(0.63, 0.7, 9), -2.0  # most fall onto it
    run = pp.rollout(robot, q, v, dt=1e-3, steps=20, contacts=pp.Ground())
    return [run.q, run.v]


@pytest.mark.parametrize(
    "answers", [panda_gradients, tree_dynamics, loops_over_links, steps_on_a_ground]
)
def test_effort_changes_no_bit(answers, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    found = []
    for effort in (0, 1, 2, 3) if answers is panda_gradients else (0, 2):
        monkeypatch.setattr(jit, "OPT_LEVEL", effort)
        monkeypatch.setattr(rollout_runner, "_cache", {})
        found.append(b"".join(x.tobytes() for x in answers()))
    assert len(set(found)) == 1 and found[0]
