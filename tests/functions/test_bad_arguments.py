"""Every function of a robot, called with bad arguments of all kinds: it gives a right answer or a
clear error."""

from __future__ import annotations

import array
import datetime
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests.functions.call_cases import (
    DOORS,
    KNOCKS,
    arguments,
    assert_same,
    gymnast,
    knock_name,
    parts,
)

NUMPY_SPEAKING = re.compile(
    r"ufunc|operand|broadcast|core dimension|signature|casting|inhomogeneous|setting an array"
    r"|could not convert|ambiguous|unhashable|must be|not understood|Cannot interpret|NoneType"
    r"|truth value|out of bounds|tuple index"
)


def refused(call, *words: str, kind: type[pp.Error] = pp.StateError) -> pp.Error:
    """The call ends in an error of ours that has these words, a remedy, and no line of NumPy's."""
    with pytest.raises(pp.Error) as caught:
        call()
    error = caught.value
    assert type(error) is kind, error
    assert error.cause and error.remedy, "what came and was expected; what to do"
    assert not NUMPY_SPEAKING.search(str(error)), str(error)
    for word in words:
        assert word in str(error), str(error)
    return error


# -- array arguments: refused ----------------------------------------------------------------------


class Sulking:
    """Looks like an array, and is not."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")


class NoUfuncs:
    __array_ufunc__ = None


def masked(x):
    return np.ma.masked_array(x, mask=np.arange(x.size) == 1)


BAD = {  # kind: (from the right argument to a wrong one, a word of the answer)
    "one number too few": (lambda x: x[:-1], "shape"),
    "one number too many": (lambda x: np.append(x, 0.0), "shape"),
    "another robot's": (lambda x: np.zeros(77), "(77,)"),
    "a number": (lambda x: 1.0, "the number 1.0"),
    "an array of no dimension": (lambda x: np.array(1.0), "expected shape"),
    "a column": (lambda x: x[:, None], "shape"),
    "a batch that stands last": (lambda x: np.zeros((x.size, 100)), ".T"),
    "an empty list": (lambda x: [], "shape (0,)"),
    "complex": (lambda x: x + 0j, "complex128"),
    "complex, in a list": (lambda x: [*x[:-1], 1j], "complex128"),
    "objects": (lambda x: x.astype(object), "dtype object"),
    "None": (lambda x: None, "None"),
    "None among numbers": (lambda x: [*x[:-1], None], "holds None"),
    "text": (lambda x: "home", "'home'"),
    "numbers as text": (lambda x: [str(n) for n in x], "holds '"),
    "an array of text": (lambda x: x.astype(str), "holds"),
    "bytes": (lambda x: b"home", "b'home'"),
    "a dict": (lambda x: dict(enumerate(x)), "{0: "),
    "a set": (lambda x: set(x.tolist()), "expected real numbers"),
    "a generator": (lambda x: (n for n in x), "generator"),
    "a range of rows": (lambda x: [[1.0] * n for n in range(1, x.size + 1)], "ragged"),
    "rows and numbers": (lambda x: [[1.0, 2.0], 3.0], "ragged"),
    "dates": (lambda x: np.zeros(x.size, "M8[s]"), "datetime64"),
    "times": (lambda x: np.zeros(x.size, "m8[s]"), "timedelta64"),
    "datetime objects": (lambda x: [datetime.datetime(2000, 1, 1)] * x.size, "holds datetime"),
    "records": (lambda x: np.zeros(x.size, [("angle", float)]), "angle"),
    "masked": (masked, "masked at [1]"),
    "whole numbers beyond floating point": (lambda x: [10**400] * x.size, "dtype object"),
    "an object that sulks": (lambda x: Sulking(), "not today"),
    "a list of objects that sulk": (lambda x: [Sulking()], "not today"),
    "an object without ufuncs": (lambda x: NoUfuncs(), "NoUfuncs"),
    "a function": (lambda x: len, "len"),
    "a type": (lambda x: float, "float"),
    "an ellipsis": (lambda x: ..., "Ellipsis"),
    "a robot": (lambda x: gymnast(), "Robot 'gymnast'"),
    "a namespace": (lambda x: SimpleNamespace(q=x), "namespace"),
}
if np.dtype(np.longdouble).itemsize > 8:
    BAD["long double"] = (lambda x: x.astype(np.longdouble), "float64 or float32")


@pytest.mark.parametrize(("door", "argument"), KNOCKS, ids=knock_name)
def test_bad_arrays_are_refused(door, argument):
    robot, given = gymnast(), arguments(gymnast())
    for kind, (spoil, word) in BAD.items():
        bad = given | {argument: spoil(given[argument])}
        for check in (False, True):
            error = refused(lambda b=bad, c=check: door(robot, b, check=c), word)
            assert str(error).startswith(f"{door.name}: {argument} "), (kind, str(error))


def test_a_mix_up_of_nq_and_nv_is_named():
    robot, given = gymnast(), arguments(gymnast())
    refused(lambda: robot.gravity(given["v"]), "11 is robot.nv", "robot.nq = 13")
    refused(lambda: robot.bias(given["q"], given["q"]), "13 is robot.nq", "robot.nv = 11")


@pytest.mark.parametrize("door", [door for door in DOORS if len(door.arrays) > 1], ids=knock_name)
def test_batches_that_do_not_fit(door):
    robot = gymnast()
    given = arguments(robot, (3,)) | {
        name: np.zeros((2, robot.nv)) for name in ("v", "tau", "a", "x")
    }
    refused(lambda: door(robot, given), door.name, "q (3,)", "(2,)", "equal")


# -- array arguments: understood -------------------------------------------------------------------


class Table:
    """Like tables of pandas and xarray: `__array__`, and ufuncs that do not support core axes."""

    ndim = 1

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values

    def to_numpy(self):
        return self.values

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [x.values[::-1] if isinstance(x, Table) else x for x in inputs]
        return Table(getattr(ufunc, method)(*plain, **options))


class Lazy:
    """An array that takes part in ufuncs on its own terms, as dask's do."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        result = getattr(ufunc, method)(
            *(x.values if isinstance(x, Lazy) else x for x in inputs), **options
        )
        return tuple(map(Lazy, result)) if isinstance(result, tuple) else Lazy(result)


class Subclass(np.ndarray):
    pass


def strided(x):
    wide = np.full((*x.shape[:-1], 3 * x.shape[-1]), np.nan)
    wide[..., ::3] = x
    return wide[..., ::3]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


GOOD = {  # kind: another way to say the same numbers
    "a list": lambda x: x.tolist(),
    "a tuple": lambda x: tuple(x.tolist()),
    "NumPy's numbers in a list": list,
    "big-endian": lambda x: x.astype(">f8"),
    "strided": strided,
    "backwards": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
    "masked nowhere": np.ma.masked_array,
    "a subclass": lambda x: x.view(Subclass),
    "a record array's field": lambda x: np.rec.fromarrays([x], names=["x"]).x,
    "an object with __array__": lambda x: SimpleNamespace(
        __array__=x.__array__, __array_interface__=x.__array_interface__
    ),
    "a table": Table,
    "Python's array": lambda x: array.array("d", x),
    "a memoryview": lambda x: memoryview(x),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(float),
}


@pytest.mark.parametrize(("door", "argument"), KNOCKS, ids=knock_name)
def test_the_same_numbers_in_other_words(door, argument):
    robot, given = gymnast(), arguments(gymnast())
    expected = door(robot, given)
    for kind, say in GOOD.items():
        for check in (False, True):
            result = door(robot, given | {argument: say(given[argument])}, check=check)
            for ours, theirs in zip(parts(result), parts(expected), strict=True):
                assert type(ours) in (np.ndarray, np.float64), kind
                np.testing.assert_array_equal(ours, theirs, err_msg=kind)


@pytest.mark.parametrize(("door", "argument"), KNOCKS, ids=knock_name)
def test_axes_in_front_are_a_batch(door, argument):
    robot, given = gymnast(), arguments(gymnast())
    expected = door(robot, given)
    for lead in ((1,), (1, 1), (2, 1, 3), (0,), (4, 0)):
        x = given[argument]
        result = door(robot, given | {argument: np.broadcast_to(x, (*lead, x.size))})
        assert_same(result, tuple(np.broadcast_to(e, lead + e.shape) for e in parts(expected)))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_a_batch_of_rows():
    q = gymnast().random(seed=1)
    assert gymnast().jacobian(np.matrix(q), "tool").shape == (1, 6, 11)


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_small_and_whole_numbers(door):
    """Half precision, bytes and bools are exact in double; double, single and half agree to their
    precision."""
    robot, given = gymnast(), arguments(gymnast())
    whole = {name: np.sign(x) for name, x in given.items()} | {"q": robot.neutral()}
    expected = door(robot, whole)
    for dtype in (np.int8, np.int64, np.float16):
        assert_same(door(robot, {name: x.astype(dtype) for name, x in whole.items()}), expected)
    assert_same(
        door(robot, whole | {"v": np.ones(robot.nv, bool)}),
        door(robot, whole | {"v": np.ones(robot.nv)}),
    )
    single = parts(door(robot, {name: x.astype(np.float32) for name, x in given.items()}))
    assert all(x.dtype == np.float32 for x in single)
    assert_same(single, door(robot, given), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_arrays_that_speak_for_themselves(door):
    robot, given = gymnast(), arguments(gymnast())
    lazy = parts(door(robot, given | {"q": Lazy(given["q"])}))
    assert all(type(x) is Lazy for x in lazy)
    assert_same(tuple(x.values for x in lazy), door(robot, given))


# -- odd numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("door", "argument"), KNOCKS, ids=knock_name)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_bad_number_stays_in_its_batch_element(door, argument, odd):
    """NaN and Inf affect their own batch element only; the others are equal to the last bit.
    `check` names the joint."""
    robot, given = gymnast(), arguments(gymnast(), (19,))
    expected = parts(door(robot, given))
    bad = given[argument].copy()
    bad[7, 1] = odd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = parts(door(robot, given | {argument: bad}))
    others = np.arange(19) != 7
    assert_same(tuple(x[others] for x in result), tuple(x[others] for x in expected))
    refused(
        lambda: door(robot, given | {argument: bad}, check=True),
        f"{argument}[7, 1]",
        "'float'",
        "element 7",
        str(odd),
    )
    refused(
        lambda: door(robot, given | {argument: bad.tolist()}, check=True),
        f"{argument}[7, 1]",
        "'float'",
    )


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_quaternions(door):
    """A quaternion of any length but zero is the rotation it points to; `check` requires length 1,
    up to rounding."""
    robot, given = gymnast(), arguments(gymnast(), (5,))
    expected = door(robot, given)

    def scaled(factor: float) -> dict:
        q = given["q"].copy()
        q[2, 7:11] *= factor
        return given | {"q": q}

    for factor in (2.0, -1.0, 1e-3, 1e100):
        assert_same(door(robot, scaled(factor)), expected, rtol=1e-11, atol=1e-11)
    assert_same(door(robot, scaled(1.0 + 1e-8), check=True), door(robot, scaled(1.0 + 1e-8)))
    assert_same(door(robot, scaled(-1.0), check=True), door(robot, scaled(-1.0)))
    for factor in (2.0, 0.0, 1.0 + 1e-5, 1e200):
        refused(
            lambda f=factor: door(robot, scaled(f), check=True),
            "'shoulder'",
            "element 2",
            "norm",
            "normalize",
        )
    for factor in (0.0, 1e200, 1e-200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            result = parts(door(robot, scaled(factor)))
        if door.name != "kinetic_energy":
            assert any(np.isnan(x[2]).any() for x in result), "not a wrong rotation"
        assert_same(
            tuple(x[[0, 1, 3, 4]] for x in result), tuple(x[[0, 1, 3, 4]] for x in parts(expected))
        )


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_signed_zeros_and_denormals(door):
    robot, given = gymnast(), arguments(gymnast())
    zero = {name: 0.0 * x for name, x in given.items()} | {"q": robot.neutral()}
    minus = {name: -x for name, x in zero.items()} | {
        "q": np.where(robot.neutral() == 0.0, -0.0, robot.neutral())
    }
    tiny = {name: x + 5e-324 for name, x in zero.items()}
    assert_same(door(robot, minus), door(robot, zero), rtol=0, atol=0)
    cancels = (
        4e-15 if door.name.startswith("centroidal") else 1e-320
    )  # n - c x F: what is left of equal numbers
    assert_same(door(robot, tiny), door(robot, zero), rtol=1e-15, atol=cancels)


@pytest.mark.parametrize("door", [door for door in DOORS if "v" in door.arrays], ids=knock_name)
def test_numbers_that_overflow(door):
    robot, given = gymnast(), arguments(gymnast(), (3,))
    v = given["v"].copy()
    v[1] *= 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result, expected = parts(door(robot, given | {"v": v})), parts(door(robot, given))
        assert_same(tuple(x[::2] for x in result), tuple(x[::2] for x in expected))
        if np.isfinite(result[0]).all():
            return
        assert door.name != "frame_velocity", "linear in v"
        refused(
            lambda: door(robot, given | {"v": v}, check=True),
            "element 1",
            "v is up to",
            kind=pp.SingularError,
        )


def test_an_angle_of_any_size_is_an_angle():
    robot = pp.robots.puma560()
    for angle in (1e5, 1e22, 1e300):
        near = np.arctan2(np.sin(angle), np.cos(angle))
        q, turned = np.full(6, angle), np.full(6, near)
        np.testing.assert_allclose(robot.gravity(q), robot.gravity(turned), rtol=0, atol=1e-12)


def test_a_configuration_that_nothing_resists_is_named():
    """Two collinear hinges with a massless link between them: D is zero at the inner one, which the
    error names."""
    b = pp.Builder("gimbal")
    for name, mass in (("ring", 0.0), ("fork", 0.0), ("head", 1.0)):
        b.body(name, mass, inertia=mass * np.eye(3))
    for name, parent, child, axis in (
        ("yaw", "world", "ring", 2),
        ("tilt", "ring", "fork", 1),
        ("roll", "fork", "head", 2),
    ):
        b.joint(name, "revolute", parent, child, axis=np.eye(3)[axis])
    robot = b.build()
    q, v = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert np.isfinite(robot.forward_dynamics(q, v, v)).all(-1).tolist() == [True, False]
        for call in (
            lambda q: robot.forward_dynamics(q, v, v, check=True),
            lambda q: robot.mass_solve(q, v, check=True),
            lambda q: robot.mass_matrix_inverse(q, check=True),
        ):
            refused(lambda c=call: c(q), "'yaw'", "element 1", "D is 0", kind=pp.SingularError)
            refused(lambda c=call: c(q[1]), "'yaw'", "finite state", kind=pp.SingularError)
            assert np.isfinite(call(q[0])).all()


# -- options ---------------------------------------------------------------------------------------


BAD_DTYPES = [
    "int",
    int,
    complex,
    object,
    "f2",
    np.longdouble,
    "M8[s]",
    "nonsense",
    5,
    [],
    "float64,float64",
]


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_dtype(door):
    robot, given = gymnast(), arguments(gymnast())
    for dtype in BAD_DTYPES:
        refused(
            lambda d=dtype: door(robot, given, dtype=d), door.name, "dtype", "float64 or float32"
        )
    for dtype in (float, "float64", np.float32, "f"):
        assert all(x.dtype == dtype for x in parts(door(robot, given, dtype=dtype)))


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_out(door):
    robot, given = gymnast(), arguments(gymnast(), (4,))
    expected = parts(door(robot, given))

    def whole(*arrays):
        return arrays if len(arrays) > 1 else arrays[0]

    kept = [np.full_like(x, np.nan) for x in expected]
    result = parts(door(robot, given, out=whole(*kept)))
    assert all(a is b for a, b in zip(result, kept, strict=True)), "out comes back"
    assert_same(result, expected)
    for make in (
        lambda x: np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan)[..., ::2],
        lambda x: np.asfortranarray(np.full_like(x, np.nan)),
        lambda x: np.full_like(x, np.nan, dtype=np.float32),
        lambda x: np.full_like(x, np.nan, dtype=complex),
        lambda x: np.full((3, *x.shape), np.nan),
    ):
        roomy = [make(x) for x in expected]
        door(robot, given, out=whole(*roomy))
        assert_same(
            tuple(roomy),
            tuple(np.broadcast_to(x, o.shape) for x, o in zip(expected, roomy, strict=True)),
            rtol=1e-6,
        )
    for spoil in (
        lambda x: x.tolist(),
        lambda x: 0.0,
        lambda x: "here",
        lambda x: read_only(x),
        lambda x: x.astype(int),
        lambda x: x.astype("U9"),
        lambda x: x[1:],
        lambda x: x[:, None],
        lambda x: np.empty((*x.shape, 2)),
        lambda x: np.empty(()),
        lambda x: (x, x, x),
        lambda x: (),
    ):
        bad = [spoil(x) for x in expected]
        refused(lambda b=bad: door(robot, given, out=whole(*b)), door.name, "out ")


@pytest.mark.parametrize(
    "door",
    [door for door in DOORS if "v" in door.arrays and door.shapes == (("nv",),)],
    ids=knock_name,
)
@pytest.mark.parametrize("batch", [(), (50,)])
def test_out_may_be_an_argument(door, batch):
    robot, given = gymnast(), arguments(gymnast(), batch)
    expected = door(robot, given)
    memory = np.empty((*batch, robot.nv + 1))
    for offset in (0, 1):
        v, out = memory[..., : robot.nv], memory[..., offset : robot.nv + offset]
        v[...] = given["v"]
        assert_same(door(robot, given | {"v": v}, out=out), expected)


BAD_FRAMES = ["", "tol", "Tool", 0, 3, None, ["tol"], ("tool", 3), {"tol": 1}, 1.5, ...]


@pytest.mark.parametrize("door", [door for door in DOORS if door.frame], ids=knock_name)
def test_frames_by_name(door):
    robot, given = gymnast(), arguments(gymnast())
    for frame in [*BAD_FRAMES, b"tool", robot.frames["tool"], ["tool", "tol"]]:
        refused(lambda f=frame: door(robot, given, frame=f), "no frame")
    refused(lambda: door(robot, given, frame="tol"), "did you mean 'tool'?", "gymnast")
    (
        door(robot, given, frame="floor"),
        door(robot, given, frame="world"),
        door(robot, given, frame="wrist"),
    )


@pytest.mark.parametrize("door", [door for door in DOORS if door.axes], ids=knock_name)
def test_axes(door):
    robot, given = gymnast(), arguments(gymnast())
    door(robot, given)
    for axes in ("local", "World", "", None, 0, [], b"world"):
        for batch in (given, arguments(robot, (2,))):
            refused(
                lambda a=axes, g=batch: door(robot, g, axes=a), "axes is", "one of world, frame"
            )
    door(robot, given, axes="frame")


WRENCH = np.arange(6.0)
BAD_WRENCHES = {
    "a list": ([], "dict"),
    "an array": (WRENCH, "dict"),
    "a name": ("tool", "dict"),
    "a number": (0, "dict"),
    "pairs": ([("tool", WRENCH)], "dict"),
    "a misspelt frame": ({"tol": WRENCH}, "did you mean 'tool'?"),
    "a frame by number": ({0: WRENCH}, "name"),
    "no frame": ({None: WRENCH}, "name"),
    "five numbers": ({"tool": WRENCH[:5]}, "six numbers"),
    "one number": ({"tool": 1.0}, "six numbers"),
    "a nested wrench": ({"tool": {"force": 1}}, "f_ext['tool']"),
    "no wrench": ({"tool": None}, "f_ext['tool']"),
    "text": ({"tool": "up"}, "f_ext['tool']"),
    "complex": ({"tool": WRENCH + 0j}, "complex128"),
    "a ragged wrench": ({"tool": [[1, 2, 3], [1, 2]]}, "ragged"),
    "batches that do not fit": (
        {"tool": np.zeros((2, 6)), "floor": np.zeros((3, 6))},
        "'floor' (3,)",
    ),
    "a batch that does not fit the state": ({"tool": np.zeros((3, 6))}, "f_ext (3,)"),
}


@pytest.mark.parametrize("door", [door for door in DOORS if door.wrenches], ids=knock_name)
def test_wrenches(door):
    robot, given = gymnast(), arguments(gymnast(), (4,))
    for f_ext, word in BAD_WRENCHES.values():
        refused(lambda f=f_ext: door(robot, given, f_ext=f), word)
    assert_same(door(robot, given, f_ext={}), door(robot, given))
    assert_same(door(robot, given, f_ext={"floor": WRENCH}), door(robot, given), rtol=1e-13)
    one = door(robot, given, f_ext={"tool": WRENCH})
    assert_same(door(robot, given, f_ext={"tool": WRENCH.tolist()}), one)
    assert_same(door(robot, given, f_ext={"tool": np.tile(WRENCH, (4, 1))}), one)
    bad = np.zeros((4, 6))
    bad[2, 5] = np.inf
    refused(
        lambda: door(robot, given, f_ext={"floor": WRENCH, "tool": bad}, check=True),
        "frame 'tool'",
        "element 2",
        "inf",
    )
    assert_same(door(robot, given, f_ext={"tool": WRENCH}, check=True), one)


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_check_is_yes_or_no_and_changes_nothing(door):
    robot = gymnast()
    for batch in ((), (3,), (2, 2), (0,)):
        given = arguments(robot, batch)
        assert_same(door(robot, given, check=True), door(robot, given))
        assert_same(door(robot, given, check=np.True_), door(robot, given))
        for check in ("no", "off", None, 2, []):
            refused(lambda c=check, g=given: door(robot, g, check=c), "check is", "True or False")


def test_functions_by_name():
    robot = gymnast()
    for name in ("forward_dynamic", "", None, 3, [], b"bias"):
        refused(lambda n=name: robot.flops(n), "no function")
    refused(lambda: robot.flops("forward_dynamic"), "did you mean 'forward_dynamics'")
    refused(lambda: robot.flops("jacobian"), "one frame", "frames=")
    refused(lambda: robot.flops("jacobian", frames=("tool", "floor")), "one frame")
    refused(lambda: robot.flops("jacobian", frames=3), "no frame 3")
    refused(lambda: robot.flops("gravity", frames=("tool",)), "does not depend on frames")
    refused(lambda: robot.flops("jacobian", frames="tool", axes="local"), "axes")
    assert robot.flops("jacobian", frames="tool") == robot.flops("jacobian", frames=["tool"]) > 0


def test_methods_by_name():
    robot, given = gymnast(), arguments(gymnast(), (2,))
    state = given["q"], given["v"], given["tau"]
    for method in ("FD5", "", 4, [], b"FD1"):
        refused(lambda m=method: robot.forward_dynamics(*state, method=m), "method is", "FD1")
        refused(lambda m=method: robot.forward_dynamics_details(*state, m), "method is", "FD1")
    expected, out = robot.forward_dynamics(*state), np.empty((2, robot.nv))
    assert robot.forward_dynamics(*state, method="FD1", out=out) is out
    assert_same(out, expected, rtol=1e-10)
    refused(
        lambda: robot.forward_dynamics(*state, method="FD1", out=out[:1]), "out has shape (1, 11)"
    )
    refused(
        lambda: robot.forward_dynamics(given["v"], *state[1:], method="FD4"),
        "q has shape",
        "robot.neutral()",
    )
    refused(lambda: robot.forward_dynamics(*state, method="FD2", axes="local"), "axes")


def test_threads_are_counted_in_whole_numbers():
    for n in (0, -1, 1.5, True, "2", [2], np.nan):
        refused(lambda n=n: pp.set_threads(n), "threads", kind=pp.Error)


def test_there_are_enough_kinds():
    kinds = len(BAD) + len(GOOD) + len(BAD_DTYPES) + len(BAD_FRAMES) + len(BAD_WRENCHES)
    assert len(BAD) >= 35 and kinds >= 80


def test_every_function_is_knocked_at():
    assert {name for name in CATALOGUE if hasattr(pp.Robot, name)} <= {door.name for door in DOORS}


def test_symbols_name_the_function_that_takes_them():
    """CasADi's and SymPy's expressions: whole arrays, and single entries of lists."""
    casadi, sympy = pytest.importorskip("casadi"), pytest.importorskip("sympy")
    robot = pp.load("pelican")
    x, zero = sympy.symbols("x"), np.zeros(2)
    for what, method, values in (
        ("CasADi", "to_casadi", (casadi.SX.sym("q", 2), casadi.MX.sym("q", 2))),
        ("CasADi", "to_casadi", ([casadi.SX.sym("q"), 0.0],)),
        ("SymPy", "symbolic", ([x, 0], [0.0, sympy.pi * x], sympy.Matrix([x, x]), (x, x))),
    ):
        for q in values:
            for call in (
                lambda q: robot.mass_matrix(q),
                lambda q: robot.forward_dynamics(zero, q, zero),
                lambda q: robot.function("gravity")(q),
                lambda q: pp.function(robot.operators.mass)(q),
                lambda q: robot.frame_pose(q, "tool"),
                lambda q: robot.integrate(q, zero),
                lambda q: robot.linearize(q, zero, zero),
                lambda q: pp.simulate(robot, q),
                lambda q: pp.rollout(robot, q, steps=2),
            ):
                with pytest.raises(pp.Error, match=rf"{what} expression.*robot\.{method}\(name\)"):
                    call(q)
