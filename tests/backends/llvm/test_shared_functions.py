"""Functions that kernels share are compiled and loaded once, and give the bits they gave inside."""

import ctypes

import numpy as np
import pytest

import psiphi as pp
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.backends.llvm import jit, shared_functions

STATES = (1, 3, 8, 21)  # one, idle lanes, a whole block, blocks and a rest
QUANTITIES = ("forward_dynamics", "mass_matrix", "gravity")  # of each kind of result


def results(robot, dtype) -> bytes:
    rng, bits = np.random.default_rng(0), b""
    for n in STATES:
        q = np.stack([robot.random(rng) for _ in range(n)]).astype(dtype)
        v = rng.standard_normal((n, robot.nv)).astype(dtype)
        for rows in ((q[0], v[0]), (q, v), (q[::-1].copy(order="F"), v)):
            bits += robot.forward_dynamics(*rows, rows[1]).tobytes()
            bits += robot.mass_matrix(rows[0]).tobytes() + robot.gravity(rows[0]).tobytes()
    return bits


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bits_are_those_of_a_kernel_of_its_own(dtype, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    shared = results(pp.load("pelican", base="free"), dtype)
    monkeypatch.setattr(shared_functions, "split", lambda text: (text, []))
    assert results(pp.load("pelican", base="free"), dtype) == shared


def test_each_is_compiled_and_loaded_once(monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    texts, objects, compile_ir, load_object = [], [], jit.compile_ir, jit.load_object
    monkeypatch.setattr(jit, "compile_ir", lambda *a: texts.append(a[0]) or compile_ir(*a))
    monkeypatch.setattr(
        jit, "load_object", lambda *a, **k: objects.append(a[0]) or load_object(*a, **k)
    )
    shared_functions._compiled.cache_clear()
    monkeypatch.setattr(shared_functions, "_libraries", {})
    robots = [pp.load("ur5"), pp.load("ur5").lock({"wrist_3_joint": 0.1})]
    for robot in robots:
        for name in QUANTITIES:
            robot.function(name).prepare()
    defined = [name for text in texts for name in shared_names(text)]
    assert "pack" in {name.partition(".")[0] for name in defined}
    assert len(set(defined)) == len(defined), "each function is compiled once"
    assert len(objects) == len(set(objects)), "and loaded once"


def shared_names(text: str) -> list[str]:
    return [
        line.partition("@")[2].partition("(")[0]
        for line in text.splitlines()
        if line.startswith("define") and any(f"@{x}" in line for x in ("pack", "psiphi", "deliver"))
    ]


def test_little_of_a_small_kernel_is_its_own():
    whole = pp.load("pelican").function("gravity").ir()
    rest, modules = shared_functions.split(whole)
    assert rest.count("\n") < whole.count("\n") / 4
    defined = [name for module in modules for name in module.names]
    assert sorted(set(defined)) == sorted(defined) == sorted(shared_names(whole))
    for name in defined:
        assert f"@{name}(" in next(
            x for x in rest.splitlines() if x.startswith("declare") and name in x
        )


OWN = """@table = internal constant [1 x double] [double 2.0]
declare double @sin(double)
define internal double @pack.f64(double %x) nounwind {
  %two = load double, ptr @table
  %y = fmul double %two, %x
  ret double %y
}
define internal double @psiphi.sincos.f64(double %x) nounwind {
  %y = call double @sin(double %x)
  ret double %y
}
define internal double @unpack.f64(double %x) nounwind {
  %y = call double @pack.f64(double %x)
  ret double %y
}
define double @loop(double %x) nounwind {
  %y = call double @psiphi.sincos.f64(double %x)
  %z = call double @unpack.f64(double %y)
  ret double %z
}
"""


def test_a_function_that_uses_the_kernels_own_stays():
    rest, modules = shared_functions.split(OWN)
    assert [module.names for module in modules] == [("psiphi.sincos.f64",)]
    assert "define internal double @pack.f64" in rest
    assert "define internal double @unpack.f64" in rest
    built = HOST.build(OWN, {"flops": 1})
    library, facts = HOST.load(built)
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("loop"))
    assert call(0.5) == 2.0 * np.sin(0.5) and facts == {"flops": 1}
