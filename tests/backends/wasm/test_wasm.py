"""WebAssembly in Chromium, beside the compiled functions; and what is refused."""

import base64

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends.target import TARGETS
from psiphi.backends.wasm.wasm_module import binary, leb128
from psiphi.compiler.ir.segments import split_segments
from psiphi.model.spatial.branch_free import choose, less
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi.simulation.compiled_rollout.step_blocks import trace
from tests import zoo
from tests.apps.viewer.browser import page

WASM = TARGETS["wasm"]
ASK = """async ([text, name, given]) => {
  const module = await import("data:text/javascript;base64," + text);
  const f = await module[name].load();
  const answer = f.call(...given);
  return Object.keys(module[name].outputs).length > 1 ? Object.values(answer).map((x) => Array.from(x)) : [Array.from(answer)];
}"""  # noqa: E501


@pytest.fixture(scope="module")
def browser():
    with page() as opened:
        opened.goto("about:blank")
        yield opened
        assert not opened.complaints


def ask(browser, code, given, char="d", name="f"):
    """What the page computes, flat."""
    text = base64.b64encode(WASM.emit(code, char, name, "a trial").encode()).decode()
    return [
        np.array(x)
        for x in browser.evaluate(ASK, [text, name, [np.ravel(x).tolist() for x in given]])
    ]


def state(robot, code, seed=0):
    rng = np.random.default_rng(seed)
    return [
        robot.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
        for arg in code.program.inputs
    ]


def check(browser, function, given, char="d", tolerance=1e-12):
    answers = function.ufunc(*given)
    answers = answers if isinstance(answers, tuple) else (answers,)
    for mine, theirs in zip(ask(browser, function.code, given, char), answers, strict=True):
        assert np.abs(mine - np.ravel(theirs)).max() <= tolerance * (1.0 + np.abs(theirs).max())


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_function(browser, name):
    robot = pp.load("pelican")
    frames = ("tool",) if any(word in name for word in ("frame", "jacobian", "compliance")) else ()
    function = robot.function(name, frames)
    check(browser, function, state(robot, function.code))


@pytest.mark.parametrize(
    ("name", "char", "tolerance"), [("ur5", "d", 1e-12), ("ur5", "f", 1e-3), ("g1", "d", 1e-11)]
)
def test_robots(browser, name, char, tolerance):
    """G1's is more than one piece."""
    robot = pp.load(name)
    function = robot.function("forward_dynamics")
    assert (len(split_segments(function.code).segments) > 1) == (name == "g1")
    check(browser, function, state(robot, function.code), char, tolerance)


@pytest.mark.parametrize("char", ["d", "f"])
def test_every_operation(browser, char):
    """Roots, signs, comparisons, constants and inputs that go out as they are."""

    def rule(x, y):
        bigger = choose(less(x[0], y[0]), y[0], x[0])
        return {
            "x_out": [
                bigger,
                -x[1],
                (x[1] * x[1] + 2.0).sqrt(),
                3.0,
                y[1],
                x[0] / y[1] - x[0].sin() * y[1].cos(),
            ]
        }

    code = trace("rule", {"x": 2, "y": 2}, rule)
    x, y = np.array([0.5, -1.25]), np.array([2.0, 0.75])
    want = [2.0, 1.25, np.sqrt(x[1] ** 2 + 2), 3.0, 0.75, x[0] / y[1] - np.sin(x[0]) * np.cos(y[1])]
    assert np.abs(ask(browser, code, [x, y], char)[0] - want).max() < {"d": 1e-15, "f": 1e-6}[char]


def test_wrong_sizes_are_refused_in_the_page(browser):
    code = pp.load("pelican").function("gravity").code
    for given in ([0.1], [0.1, 0.2, 0.3]):
        with pytest.raises(Exception, match=f"q has {len(given)} numbers, expected 2"):
            ask(browser, code, [given])


def test_what_is_refused_here():
    code = pp.load("pelican").function("gravity").code
    for name in ("2x", "class", "run", "a-b", "", None):
        with pytest.raises(StateError, match="not a valid name"):
            WASM.emit(code, "d", name)
    large = pp.Robot.of(zoo.chain("chain", ["revolute"] * 70, seed=1)).function("gravity").code
    with pytest.raises(StateError, match="70 bodies"):
        WASM.emit(large, "d", "gravity")


def test_the_binary_is_small():
    assert (
        leb128(0) == b"\0"
        and leb128(127) == b"\x7f"
        and leb128(128) == b"\x80\x01"
        and leb128(624485) == b"\xe5\x8e\x26"
    )
    assert len(binary(split_segments(pp.load("ur5").function("forward_dynamics").code))) < 7000
