"""C99 from the tape: the text means what the robot computes, read as text and run by a compiler."""

import ctypes
import math
import re
import shutil
import subprocess

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends.c.c_source import c_source
from tests import zoo

CASES = [
    ("ur5", "forward_dynamics", ()),
    ("stanford_arm", "inverse_dynamics", ()),
    ("panda", "mass_matrix", ()),
    ("iiwa14", "jacobian", (-1,)),
    ("anymal_c", "energy", ()),
    ("free_flyer", "bias", ()),
    ("acrobot", "mass_matrix_factors", ()),
]


LONG = [
    ("long", "forward_dynamics", ()),
    ("long", "energy", ()),
    ("g1", "forward_dynamics", ()),
]  # loops; pieces


def case(name, quantity, frames):
    """The function's code, C text, random inputs and the robot's own answers."""
    robot = long_chain() if name == "long" else pp.load(name)
    frames = tuple(list(robot.frames)[i] for i in frames)
    function = robot.function(quantity, frames)
    rng = np.random.default_rng(5)
    inputs = [
        robot.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
        for arg in function.inputs
    ]
    answer = function.ufunc(*inputs)
    return function, inputs, answer if isinstance(answer, tuple) else (answer,)


def agrees(outputs, answers) -> None:
    for mine, right in zip(outputs, answers, strict=True):
        assert np.allclose(mine, right, rtol=1e-11, atol=1e-11 * max(1.0, np.abs(right).max()))


def read_as_python(text: str, inputs, shapes):
    """The lines of the body are assignments that Python understands, too."""
    head = re.search(r"^void \w+\((.*)\)$", text, re.MULTILINE)[1]
    names = [word.split("*")[1] for word in head.split(", ")]
    arrays = [np.ravel(x).tolist() for x in inputs] + [
        [math.nan] * math.prod(shape) for shape in shapes
    ]
    space = {
        "sin": math.sin,
        "cos": math.cos,
        "sqrt": math.sqrt,
        **dict(zip(names, arrays, strict=True)),
    }
    body = text[text.index("\n{\n") + 3 : text.index("\n}\n")]
    exec(
        "\n".join(
            line.strip().removeprefix("const double ").removesuffix(";")
            for line in body.splitlines()
        ),
        space,
    )
    return [
        np.reshape(space[name], shape)
        for name, shape in zip(names[len(inputs) :], shapes, strict=True)
    ]


@pytest.mark.parametrize(("name", "quantity", "frames"), CASES)
def test_the_text_means_the_function(name, quantity, frames):
    function, inputs, answers = case(name, quantity, frames)
    text = c_source(function.code, "f")
    agrees(read_as_python(text, inputs, [arg.shape for arg in function.outputs]), answers)
    assert f"{function.count.mul} *, {function.count.add} + or -" in text


def long_chain():
    """Of more than 64 bodies: loops. Four classes of links, and a branch."""
    return pp.Robot.of(
        zoo.chain("long", ["revolute", "prismatic", "spherical", "revolute"] * 18, seed=1)
    )


@pytest.mark.parametrize("case_", [*CASES, *LONG], ids=str)
def test_compiled_it_computes_the_function(case_, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) on this machine")
    function, inputs, answers = case(*case_)
    (tmp_path / "f.c").write_text(c_source(function.code, "f"), encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-shared", "-fPIC"]
    library = tmp_path / "f.so"
    words = [compiler, *flags, "-o", library, tmp_path / "f.c", "-lm"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    call = ctypes.CDLL(str(library)).f
    outputs = [np.full(arg.shape, np.nan) for arg in function.outputs]
    pointers = [
        np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p) for x in (*inputs, *outputs)
    ]
    call(*pointers)
    agrees(outputs, answers)


def test_a_large_robot_is_loops_not_lines(monkeypatch):
    """The text grows with the kinds of links, not with their number; what fits no loop is
    refused."""
    small, large = (
        pp.Robot.of(zoo.chain("c", ["revolute", "prismatic"] * n, seed=1)) for n in (40, 80)
    )
    texts = [c_source(robot.function("forward_dynamics").code, "f") for robot in (small, large)]
    lines = [sum(" = " in line for line in text.splitlines()) for text in texts]
    assert lines[0] == lines[1] < 6000 and len(texts[1]) < 2 * len(texts[0])
    for text, robot in zip(texts, (small, large), strict=True):
        stack = int(re.search(r"(\d+) bytes of stack for the frame", text)[1])
        assert (
            stack
            == 8 * int(re.search(r"double frame\[(\d+)\]", text)[1])
            > 8 * 20 * len(robot.bodies)
        )
    monkeypatch.setattr("psiphi.backends.c.c_source.MAX_SIZE", 100)
    with pytest.raises(StateError, match="lines of C"):
        c_source(pp.load("ur5").function("forward_dynamics").code, "f")


def test_an_output_may_lie_on_an_input():
    function, (q, v, tau), (a,) = case("ur5", "forward_dynamics", ())
    text = c_source(function.code, "f")
    stores = [i for i, line in enumerate(text.splitlines()) if re.match(r"    a\[\d+\] = ", line)]
    reads = [i for i, line in enumerate(text.splitlines()) if re.search(r"= .*\b(q|v|tau)\[", line)]
    assert max(reads) < min(stores)


def test_floats_and_names():
    code = pp.load("acrobot").function("gravity").code
    text = c_source(code, "g", char="f")
    assert "const float *q" in text and "sinf(" in text and re.search(r"\d\.\d+f\b", text)
    for name in ("not a name", "é", "double", "sin"):
        with pytest.raises(StateError, match="not a valid name in C"):
            c_source(code, name)
    with pytest.raises(
        StateError, match=r"'free' is a function of the C library.*such as robot_free"
    ):
        c_source(code, "free")
