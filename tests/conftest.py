"""What every test shares: a kernel cache of the run's own, reproducible randomness, Hypothesis
profiles."""

import gc
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from psiphi._util.files import atomic_write
from psiphi.backends.llvm import jit
from psiphi.compiler import passes

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", max_examples=20, derandomize=True, database=None, **_COMMON)
settings.register_profile("nightly", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("PSIPHI_HYPOTHESIS", "ci"))


# a folder and a test that run code as users get it (the bits are the same: `test_jit.py`)
CODE = {"backends", "test_every_function_compiled"}
OWN_COMPILER = {"llvm", "hostile"}  # folders whose tests are about the compiler or the file system
GARBAGE = 20_000  # new objects after which the garbage collector looks at them
compile_ir = jit.compile_ir


def stored_object(text: str, opt: int | None = None, passes: bool = False) -> bytes:
    """`jit.compile_ir`, which compiles each text once in a run of the tests, for all workers."""
    key = repr((text, opt, jit.OPT_LEVEL, passes, jit.host()))
    path = Path(os.environ["PSIPHI_TESTS_OBJECTS"], hashlib.sha256(key.encode()).hexdigest())
    if path.exists():
        return path.read_bytes()
    code = compile_ir(text, opt, passes)
    with atomic_write(path) as part:
        part.write_bytes(code)
    return code


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """One empty cache a run, readable by its owner only; the workers of pytest-xdist inherit it and
    share kernels. What one pass of the compiler hands to the next is checked. The collection of
    tests leaves no garbage to look for.

    Bytecode of psiphi and of its tests is kept, so that the processes that tests start do not
    compile the sources, each 0.4 s, again."""
    passes.VERIFY_PASSES = True
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    gc.disable()
    if os.environ.get(
        "PSIPHI_TESTS_AVX2"
    ):  # a machine without AVX-512, whatever this one is: four doubles a register
        avx2_host()
    if not _is_worker(config):
        os.environ["PSIPHI_CACHE"] = tempfile.mkdtemp(prefix="psiphi-tests-")
        os.environ["PSIPHI_TESTS_OBJECTS"] = tempfile.mkdtemp(prefix="psiphi-objects-")


def pytest_collection_finish() -> None:
    """The garbage collector looks at what tests make, not at the tests and their modules, and not
    after every 700 objects: it took a tenth of the time of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)
    gc.enable()


def avx2_host() -> None:
    """Pretend that the processor is one of 2013 with AVX2 and FMA."""
    real = jit.host()
    late = ("+avx512", "+avx10", "+evex512", "+amx")
    features = ",".join(
        f"-{word[1:]}" if word.startswith(late) else word for word in real.features.split(",")
    )
    old = real._replace(cpu="haswell", features=features)
    jit.host = lambda: old


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shutil.rmtree(os.environ["PSIPHI_CACHE"], ignore_errors=True)
        shutil.rmtree(os.environ["PSIPHI_TESTS_OBJECTS"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of mathematics let LLVM take its quick way, which takes a third of the time and gives
    the same bits."""
    where = {*item.path.parts, getattr(item, "originalname", "")}
    jit.OPT_LEVEL = 2 if CODE & where else 0
    jit.compile_ir = compile_ir if OWN_COMPILER & set(item.path.parts) else stored_object


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers seeded by the test's name: the same in every run, different in every test."""
    return np.random.default_rng(list(request.node.name.encode()))
