"""From a request to a gufunc: compiled when needed, and cached under a key of everything it depends
on."""

from __future__ import annotations

import gc
import os
import shutil
import warnings
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from psiphi.backends import kernel_cache
from psiphi.backends.cpu import cpu_target
from psiphi.backends.cpu.gufunc import gufunc_memory
from psiphi.backends.llvm import jit
from psiphi.compiler import passes
from psiphi.functions import compiled_function as compiler
from psiphi.functions.compiled_function import QuantityRequest
from psiphi.model.model import Model
from psiphi.robot.catalogue.catalogue import CATALOGUE, quantity_function
from tests import zoo
from tests.children import SRC, python, same_code
from tests.compiler.sweeps.runs import ON_A_FRAME
from tests.oracles import reference

FORWARD = QuantityRequest("forward_dynamics")


def arm() -> Model:
    return zoo.chain("arm", ["revolute", "prismatic"], seed=4)


def state(model: Model, *size: int) -> list[np.ndarray]:
    q, v, _, tau = zoo.random_state(model, 1, size)
    return [q, v, tau]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache, no memory of warnings, and threads that do not matter here."""
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_warned", set())
    return tmp_path / "cache"


@pytest.fixture
def work(monkeypatch):
    """What was traced and compiled since: a list of events, one for all functions that are compared
    with each other. Functions that kernels share are compiled once per process, by any test."""
    done = []

    def doing(original, name):
        def work(*args):
            shared = name == "compile_ir" and "define void @loop(" not in args[0]
            if not shared and (name != "trace_tape" or done[-1:] != [name]):
                done.append(name)
            return original(*args)

        return work

    for owner, name in ((passes, "trace_tape"), (passes, "trace_loops"), (jit, "compile_ir")):
        monkeypatch.setattr(owner, name, doing(getattr(owner, name), name))
    return done


# -- a gufunc --------------------------------------------------------------------------------------


def test_it_is_a_gufunc():
    model = zoo.chain("arm", ["free", "revolute"], seed=1)
    ufunc = quantity_function(model, FORWARD).ufunc
    assert (
        isinstance(ufunc, np.ufunc)
        and ufunc.signature == "(8),(7),(7)->(7)"
        and ufunc.types == ["ddd->d", "fff->f"]
    )
    assert (
        ufunc.__name__ == "forward_dynamics" and "M^-1" in ufunc.__doc__ and "arm" in ufunc.__doc__
    )
    assert (
        quantity_function(model, QuantityRequest("mass_matrix_factors")).ufunc.signature
        == "(8)->(7,7),(7,7)"
    )
    assert quantity_function(model, QuantityRequest("energy")).ufunc.signature == "(8),(7)->()"
    assert (
        quantity_function(model, QuantityRequest("bias", ("tool", "elbow"))).ufunc.signature
        == "(8),(7),(2,6)->(7)"
    )
    assert (
        quantity_function(model, QuantityRequest("jacobian", ("tool",))).ufunc.signature
        == "(8)->(6,7)"
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_quantity_is_one(name):
    """The catalogue's signature is that of the program, for a fresh function of each quantity,
    without compiling."""
    frames = ("tool",) if name in ON_A_FRAME else ()
    function = quantity_function(arm(), QuantityRequest(name, frames))
    assert isinstance(function.ufunc, np.ufunc) and function.ufunc.__name__ == name
    assert function.ufunc.nin == len(function.program.inputs) and function.ufunc.nout == len(
        function.program.outputs
    )
    assert CATALOGUE[name].equation in function.ufunc.__doc__


def test_it_broadcasts_casts_and_fills():
    model = arm()
    ufunc, (q, v, tau) = quantity_function(model, FORWARD).ufunc, state(model, 4, 3)
    truth = ufunc(q, v, tau)
    for i, j in np.ndindex(4, 3):
        np.testing.assert_allclose(
            truth[i, j], reference.forward_dynamics(model, q[i, j], v[i, j], tau[i, j]), rtol=1e-11
        )
    assert np.array_equal(
        ufunc(q[:, None, 0], v[0], tau[0, 0])[2, 1], ufunc(q[2, 0], v[0, 1], tau[0, 0])
    )
    out = np.empty((4, 3, 2))
    assert ufunc(q, v, tau, out=out) is out and np.array_equal(out, truth)
    single = ufunc(q, v, tau, dtype=np.float32)
    assert single.dtype == np.float32 and np.allclose(single, truth, rtol=1e-3, atol=1e-3)
    assert ufunc(*(x.astype("f") for x in (q, v, tau))).dtype == np.float32
    assert ufunc([0, 1], [0, 0], [1, 0]).dtype == np.float64
    assert ufunc(q[:0], v[:0], tau[:0]).shape == (0, 3, 2)
    with pytest.raises(ValueError, match="core dimension"):
        ufunc(q[..., :1], v, tau)
    assert np.array_equal(
        ufunc(*(np.moveaxis(x, -1, 0) for x in (q, v, tau)), axes=[0, 0, 0, 0]),
        np.moveaxis(truth, -1, 0),
    )


class Labelled:
    """An array with a label, as units or named axes would be."""

    def __init__(self, values, label: str):
        self.values, self.label = values, label

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [x.values if isinstance(x, Labelled) else x for x in inputs]
        labels = [x.label for x in inputs if isinstance(x, Labelled)]
        return Labelled(getattr(ufunc, method)(*plain, **kwargs), "+".join(labels))


def test_other_arrays_may_take_over():
    model = arm()
    ufunc, (q, v, tau) = quantity_function(model, FORWARD).ufunc, state(model, 3)
    result = ufunc(Labelled(q, "q"), v, Labelled(tau, "tau"))
    assert (
        isinstance(result, Labelled)
        and result.label == "q+tau"
        and np.array_equal(result.values, ufunc(q, v, tau))
    )


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_lanes_can_be_forced(lanes):
    model = arm()
    function, (q, v, tau) = quantity_function(model, FORWARD, lanes), state(model, 11)
    assert function.target.lanes("d") == function.target.lanes("f") == lanes
    assert (f"<{lanes} x double>" in function.ir("d")) == (lanes > 1)
    assert np.array_equal(
        function.ufunc(q, v, tau), quantity_function(model, FORWARD).ufunc(q, v, tau)
    )


def test_lanes_follow_the_host(monkeypatch):
    cpu_target.host_lanes.cache_clear()
    try:
        for features, doubles in (
            ("+sse2", 2),
            ("+sse2,+avx,+fma", 4),
            ("+avx,+avx512f", 8),
            ("", 2),
        ):
            monkeypatch.setattr(
                jit,
                "host",
                lambda features=features: jit.Processor("cpu", features, "x86_64", "20"),
            )
            assert (cpu_target.host_lanes("double"), cpu_target.host_lanes("float")) == (
                doubles,
                2 * doubles,
            )
            cpu_target.host_lanes.cache_clear()
    finally:
        cpu_target.host_lanes.cache_clear()


# -- when it is compiled ---------------------------------------------------------------------------


def test_nothing_is_compiled_before_the_first_call(home, work):
    function = quantity_function(arm(), FORWARD)
    assert work == []
    function.run(state(arm()))
    assert work == ["trace_tape", "compile_ir"]
    function.run(state(arm(), 9))
    assert work == ["trace_tape", "compile_ir", "compile_ir"], "a batch shares the trace"
    for n in (1, 9):
        function.run(state(arm(), n))
    assert len(work) == 3
    function.run([x.astype("f") for x in state(arm())])
    assert work[3:] == ["compile_ir"], "the other dtype shares the trace"


def test_ufuncs_compile_both_parts_of_the_code(home, work):
    function = quantity_function(arm(), FORWARD)
    for n in (1, 9):
        function.ufunc(*state(arm(), n))
    assert work == ["trace_tape", "compile_ir", "compile_ir"]


@pytest.mark.parametrize("char", "df")
@pytest.mark.parametrize("single", [True, False])
def test_each_part_of_the_code_takes_any_number_of_states(home, single, char):
    """With the same bits: those of the whole code, before and after the other part is compiled."""
    function, whole = (quantity_function(arm(), FORWARD) for _ in range(2))
    function.prepare(char, single)
    ufunc = function.gufunc
    batches = [[x.astype(char) for x in state(arm(), n)] for n in (1, 2, 9, 16, 33)]
    batches += [[x[:0] for x in batches[-1]], [x[0] for x in batches[-1]]]
    for _ in range(2):
        for batch in batches:
            assert np.array_equal(ufunc(*batch), whole.ufunc(*batch))
        function.prepare(char)


def test_prepare_compiles_one_dtype(home, work):
    function = quantity_function(arm(), FORWARD)
    function.prepare("f")
    assert work == ["trace_tape", "compile_ir", "compile_ir"]
    function.ufunc(*(x.astype("f") for x in state(arm())))
    assert len(work) == 3


def test_counting_does_not_compile(home, work):
    function = quantity_function(arm(), FORWARD)
    before = function.count
    assert work == ["trace_tape"] and before.flops > 0
    function.prepare()
    assert function.count == before and function.cost == before.flops + 40 * before.trig


@pytest.mark.skipif(
    not hasattr(np.sin, "__dict__"), reason="before NumPy 2.2 ufuncs hold nothing of their own"
)
def test_a_function_can_be_forgotten(home):
    """NumPy's gufuncs hide from the garbage collector: nothing they hold may lead back to them."""
    function = quantity_function(arm(), FORWARD)
    function.prepare()
    source, code = (
        weakref.ref(function.source),
        weakref.ref(gufunc_memory(function.ufunc).loops[0].address.library),
    )
    assert code() is not None
    del function
    gc.collect()
    assert source() is None and code() is None


# -- the cache -------------------------------------------------------------------------------------


def test_equal_models_share_a_kernel(home, work):
    """A second robot with the same description is neither traced nor compiled, and knows its
    operation count."""
    first = quantity_function(arm(), FORWARD)
    truth = first.run(state(arm(), 5))
    work.clear()
    second = quantity_function(arm(), FORWARD)
    assert np.array_equal(second.run(state(arm(), 5)), truth)
    assert second.count == first.count
    assert work == [] and kernel_cache.info()["entries"] == 1


WARM = """
import numpy as np
from tests import zoo
from psiphi.backends.llvm import jit
from psiphi.robot.catalogue.catalogue import quantity_function
from psiphi.compiler import passes
from psiphi.functions import compiled_function as compiler

def never(*args, **kwargs):
    raise AssertionError("a warm process traces or compiles")

passes.trace_tape = passes.trace_loops = jit.compile_ir = never
model = zoo.chain("arm", ["revolute", "prismatic"], seed=4)
q, v, _, tau = zoo.random_state(model, 1, (5,))
function = quantity_function(model, compiler.QuantityRequest("forward_dynamics"))
print(function.run((q, v, tau)).tobytes().hex())
"""


@same_code
def test_a_second_process_starts_warm(home):
    truth = quantity_function(arm(), FORWARD).run(state(arm(), 5))
    done = python(
        "-c", WARM, PYTHONPATH=os.pathsep.join(map(str, (SRC, Path(zoo.__file__).parent)))
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == truth.tobytes().hex()


def heavier(model: Model, k: int, factor: float = 1.0 + 2**-50) -> Model:
    bodies = list(model.bodies)
    bodies[k] = replace(bodies[k], mass=bodies[k].mass * factor)
    return replace(model, bodies=tuple(bodies))


def source(model: Model, request: QuantityRequest, lanes: int | None = None) -> compiler.CompileJob:
    return quantity_function(model, request, lanes).source


def variants() -> dict[str, str]:
    """Requests that must not share an entry, by name, with their keys."""
    model, loaded = arm(), QuantityRequest("bias", ("tool",))
    sources = {
        "itself": source(model, loaded),
        "another quantity": source(model, QuantityRequest("inverse_dynamics", ("tool",))),
        "another frame": source(model, QuantityRequest("bias", ("elbow",))),
        "two frames": source(model, QuantityRequest("bias", ("tool", "elbow"))),
        "two frames, in the other order": source(model, QuantityRequest("bias", ("elbow", "tool"))),
        "no frame": source(model, QuantityRequest("bias")),
        "other axes": source(model, QuantityRequest("bias", ("tool",), "frame")),
        "two lanes": source(model, loaded, 2),
        "one lane": source(model, loaded, 1),
        "a mass, by one bit": source(heavier(model, 1), loaded),
        "gravity": source(replace(model, gravity_vector=np.array([0.0, 0.0, -9.8])), loaded),
    }
    keys = {name: source.key("d") for name, source in sources.items()}
    return keys | {
        "float32": sources["itself"].key("f"),
        "float32, two lanes": sources["two lanes"].key("f"),
    }


def test_keys_differ_where_code_differs():
    keys = variants()
    assert len(set(keys.values())) == len(keys)
    assert keys == variants(), "and are the same tomorrow"


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (jit, "host", lambda: jit.Processor("another cpu", "", "x86_64", "20")),
        (kernel_cache, "source_digest", lambda: "other sources"),
        (cpu_target, "has_fma", lambda: None),
        (passes, "UNROLL_LIMIT", 3),
        (np, "__version__", "another"),
    ],
    ids=["host", "sources", "fma", "threshold", "numpy"],
)
def test_keys_know_their_surroundings(owner, name, value, monkeypatch):
    before = source(arm(), FORWARD, 4).key("d")
    monkeypatch.setattr(owner, name, value)
    assert source(arm(), FORWARD, 4).key("d") != before


def test_every_source_file_is_in_the_key(tmp_path):
    """Editing any module of the package gives a new digest (the files here contain only their
    names)."""
    for path in (SRC / "psiphi").rglob("*.py"):
        place = tmp_path / path.relative_to(SRC)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(place), encoding="utf-8")
    seen = {kernel_cache.folder_digest(str(tmp_path))}
    edited = sorted(tmp_path.rglob("*.py"))
    for path in edited:
        path.write_text("edited", encoding="utf-8")
        seen.add(kernel_cache.folder_digest(str(tmp_path)))
    edited[0].rename(edited[0].with_name("renamed.py"))
    seen.add(kernel_cache.folder_digest(str(tmp_path)))
    assert len(edited) > 400 and len(seen) == len(edited) + 2


FORCE = """
import numpy as np, psiphi as pp
from psiphi.robot.identification.regressor_methods import link_force_function
robot = pp.load("puma560")
function = link_force_function(robot, "link3", 2)
print(function(*np.ones((3, 6)))[0])
"""


def test_an_edited_module_makes_its_kernels_anew(tmp_path):
    """A function outside the catalogue: after an edit of its module, a warm cache does not return
    the old numbers."""
    shutil.copytree(
        SRC / "psiphi", tmp_path / "psiphi", ignore=shutil.ignore_patterns("__pycache__")
    )
    where = dict(PYTHONPATH=str(tmp_path), PSIPHI_CACHE=str(tmp_path / "cache"))
    before = python("-c", FORCE, **where)
    module = tmp_path / "psiphi/robot/identification/regressor_methods.py"
    text = module.read_text(encoding="utf-8")
    line = "stores = tuple((0, i - start, node) for _, i, node in code.stores if start <= i"
    assert line in text
    module.write_text(
        text.replace(line, line.replace("i - start", "start + 5 - i")), encoding="utf-8"
    )
    after = python("-c", FORCE, **where)
    assert before.returncode == after.returncode == 0, before.stderr + after.stderr
    assert float(before.stdout) != float(after.stdout)


def test_robots_that_differ_in_one_mass_do_not_share(home, work):
    """A robot that differs from a cached one in one bit is compiled anew; a heavier one gives other
    results."""
    model = arm()
    answers = [
        quantity_function(m, FORWARD).run(state(model))
        for m in (model, heavier(model, 1), heavier(model, 1, 2.0))
    ]
    assert work.count("compile_ir") == 3 and kernel_cache.info()["entries"] == 3
    assert not np.allclose(answers[0], answers[2])
    np.testing.assert_allclose(
        answers[2], reference.forward_dynamics(heavier(model, 1, 2.0), *state(model)), rtol=1e-11
    )


def spoil(how: str, entry: Path) -> None:
    data = bytearray(entry.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "truncated":
        del data[-100:]
    else:
        data.clear()
    entry.write_bytes(bytes(data))


@pytest.mark.parametrize("how", ["flipped", "truncated", "empty"])
def test_a_damaged_entry_is_built_again(home, work, how):
    truth = quantity_function(arm(), FORWARD).run(state(arm(), 5))
    (entry,) = home.glob("*.o")
    good = entry.read_bytes()
    spoil(how, entry)
    work.clear()
    with pytest.warns(kernel_cache.CacheWarning, match="rebuilt"):
        again = quantity_function(arm(), FORWARD).run(state(arm(), 5))
    assert (
        np.array_equal(again, truth)
        and work == ["trace_tape", "compile_ir"]
        and entry.read_bytes() == good
    )


def test_without_a_cache_all_is_the_same(monkeypatch, work):
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    answers = [quantity_function(arm(), FORWARD).run(state(arm(), 5)) for _ in range(2)]
    assert np.array_equal(*answers) and work == ["trace_tape", "compile_ir"] * 2


# -- large robots ----------------------------------------------------------------------------------


LARGE = [
    FORWARD,
    QuantityRequest("bias", ("tool", "elbow")),
    QuantityRequest("frame_velocity", ("tool",)),
    QuantityRequest("energy"),
]


@pytest.mark.parametrize("request_", LARGE, ids=lambda r: r.name)
def test_loops_answer_as_straight_code(home, work, monkeypatch, request_):
    """The same robot above and below the threshold; neither uses the other's cached kernel."""
    model = zoo.random_tree(5, 7, branching=0.7, forest=True)
    straight = quantity_function(model, request_)
    rng = np.random.default_rng(0)
    arrays = [
        model.random(rng, 5) if a.name == "q" else rng.standard_normal((5, *a.shape))
        for a in straight.program.inputs
    ]
    truth = straight.run(arrays)
    monkeypatch.setattr(passes, "UNROLL_LIMIT", 0)
    for _ in range(2):  # compiled, then from the cache
        result = quantity_function(model, request_).run(arrays)
        np.testing.assert_allclose(result, truth, rtol=0, atol=1e-12 * np.abs(truth).max())
    assert work.count("trace_tape") == 1 and "trace_loops" in work and work.count("compile_ir") == 2
    assert kernel_cache.info()["entries"] == 2


def test_the_threshold_decides(monkeypatch, work):
    """Local programs of more than UNROLLED bodies are loops; matrices of such robots are computed
    by columns."""
    from psiphi.robot.bundled_robots import chain

    monkeypatch.setattr(passes, "UNROLL_LIMIT", 5)
    for n, lowering in ((5, "trace_tape"), (6, "trace_loops")):
        work.clear()
        assert quantity_function(chain(n), FORWARD).count.flops > 0 and work == [lowering]
        assert quantity_function(chain(n), QuantityRequest("mass_matrix")).written_out == (n == 5)


def test_warnings_do_not_come_from_compiling(home):
    """Whatever flags the compiler raised are not the caller's arithmetic."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="raise", under="ignore"):
            quantity_function(arm(), FORWARD).run(state(arm(), 9))
