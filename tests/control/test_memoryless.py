"""A user's own law is compiled by itself only where reading it says that nothing in it can remember or vary.

What remembers is called as often as ever, and gives the motion it always gave, to the last bit; what does not is compiled, to
the same motion but for rounding.
"""

import functools
import importlib
import itertools
import math
import time
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi.control.memoryless import doubt

DOOR = importlib.import_module("psiphi.simulation.simulate")
MARCH = DOOR.March
ROBOT = pp.load("pelican")
START, STEPS = np.array([0.3, -0.4]), 620
GAIN = 2.0
GAINS = {"kp": 3.0, "kd": np.array([0.2, 0.1])}
TABLE = [np.array([1.0, 2.0]), np.array([0.5, 0.25])]
COUNT = 0


def motion(tau, compiled=None, q=START, **options) -> Any:
    return pp.simulate(ROBOT, q, tau=tau, duration=STEPS * 1e-3, method="euler", compiled=compiled, **options)


@pytest.fixture
def no_python(monkeypatch):
    """Steps in Python are refused."""

    def refuse(task):
        raise AssertionError(f"steps in Python: {task.why}")

    monkeypatch.setattr(DOOR, "March", refuse)


# laws that remember or vary: each a function that makes one anew

REMEMBER, ALONE = [], []


def remembers(make):
    REMEMBER.append(make)
    return make


def alone(make):
    ALONE.append(make)
    return make


@remembers
def attribute():
    class Law:
        total = 0.0

        def __call__(self, t, q, v):
            self.total += q[0]
            return -v - self.total * 1e-3

    return Law()


@remembers
def method_of_another():
    class Integral:
        def __init__(self):
            self.sum = np.zeros(2)

        def add(self, e):
            self.sum = self.sum + e
            return self.sum

    memory = Integral()
    return lambda t, q, v: -v - 1e-3 * memory.add(q)


@remembers
def property_that_counts():
    class Law:
        calls = 0

        @property
        def gain(self):
            self.calls += 1
            return 1.0 + 1e-3 * self.calls

        def __call__(self, t, q, v):
            return -self.gain * v

    return Law()


@remembers
def attribute_by_getattr():
    class Gains:
        asked = 0

        def __getattr__(self, name):
            Gains.asked += 1
            return 1.0 + 1e-3 * Gains.asked

    gains = Gains()
    return lambda t, q, v: -gains.kp * v


@remembers
def attribute_by_getattribute():
    class Gains:
        kp = 1.0

        def __getattribute__(self, name):
            asked.append(name)
            return 1.0 + 1e-3 * len(asked)

    asked, gains = [], Gains()
    return lambda t, q, v: -gains.kp * v


@remembers
def operator_that_counts():
    class Gain:
        calls = 0

        def __rmul__(self, x):
            self.calls += 1
            return x * (1.0 + 1e-3 * self.calls)

        __array_ufunc__ = None

    gain = Gain()
    return lambda t, q, v: -(v * gain)


@remembers
def appended():
    seen = []

    def law(t, q, v):
        seen.append(q[0])
        return -v - 1e-3 * len(seen)

    return law


@remembers
def nonlocal_number():
    total = 0.0

    def law(t, q, v):
        nonlocal total
        total += q[0]
        return -v - 1e-3 * total

    return law


@remembers
def global_number():
    def law(t, q, v):
        global COUNT
        COUNT = (COUNT + 1) % (4 * STEPS)
        return -v * (1.0 + 1e-4 * COUNT)

    global COUNT
    COUNT = 0
    return law


@remembers
def default_list():
    def law(t, q, v, seen=[]):  # noqa: B006
        seen += [t]
        return -v - 1e-3 * len(seen)

    return law


@remembers
def in_place_slice():
    memory = np.zeros(2)

    def law(t, q, v):
        memory[:] = 0.9 * memory + q
        return -v - memory

    return law


@remembers
def in_place_operator():
    memory = np.zeros(2)

    def law(t, q, v):
        m = memory
        m *= 0.9
        m += q
        return -v - m

    return law


@remembers
def out_by_name():
    memory = np.zeros(2)
    return lambda t, q, v: -v - 1e-3 * np.add(memory, q, out=memory)


@remembers
def copyto():
    memory = np.zeros(2)

    def law(t, q, v):
        np.copyto(memory, memory + q)
        return -v - 1e-3 * memory

    return law


@remembers
def dict_cache():
    cache = {}

    def law(t, q, v):
        if "first" not in cache:
            cache["first"] = q.copy()
        return -(q - cache["first"])

    return law


@remembers
def generator():
    numbers = itertools.count()
    return lambda t, q, v: -v - 1e-3 * next(numbers)


@remembers
def cached_inside():
    calls = []

    @functools.cache
    def once(k):
        calls.append(k)
        return len(calls) * 1e-2

    return lambda t, q, v: -v * once(len(calls) // 5)


@remembers
def cached_property():
    class Law:
        @functools.cached_property
        def origin(self):
            return np.ones(2)

        def __call__(self, t, q, v):
            return -v - self.origin

    return Law()


@remembers
def random_numpy():
    np.random.seed(1)
    return lambda t, q, v: -v + np.random.standard_normal(2)


@remembers
def random_generator():
    rng = np.random.default_rng(1)
    return lambda t, q, v: -v + rng.standard_normal(2)


@remembers
def random_robot():
    rng = np.random.default_rng(1)
    return lambda t, q, v: -v + ROBOT.random(rng)


@remembers
def clock():
    return lambda t, q, v: -v + 0.0 * time.perf_counter()


@remembers
def printing():
    return lambda t, q, v: -v if print("", end="") is None else v


@remembers
def helper_that_remembers():
    seen = []

    def helper(x):
        seen.append(1)
        return x * len(seen) * 1e-3

    def other(x):
        return helper(x) + x

    return lambda t, q, v: -other(v)


@remembers
def helper_by_partial():
    def helper(memory, x):
        memory[0] += 1.0
        return x * (1.0 + 1e-4 * memory[0])

    part = functools.partial(helper, np.zeros(1))
    return lambda t, q, v: -part(v)


@remembers
def reference_that_remembers():
    calls = []

    def reference(t):
        calls.append(t)
        return np.full(2, 1e-3 * len(calls))

    control = pp.PD(ROBOT, reference, 3.0, 1.0)
    return lambda t, q, v: control(t, q, v) - v


@remembers
def subclass_of_a_controller():
    class Mine(pp.PD):
        calls = 0

        def torque(self, q, v, *followed):
            self.calls += 1
            return super().torque(q, v, *followed) * (1.0 + 1e-3 * self.calls)

    return Mine(ROBOT, np.zeros(2), 3.0, 1.0)


@remembers
def controller_whose_gains_are_written():
    control = pp.PD(ROBOT, np.zeros(2), 3.0, 1.0)

    def law(t, q, v):
        control.numbers["kp"][:] = 3.0 + t
        return control(t, q, v)

    return law


@remembers
def tries_and_catches():
    def law(t, q, v):
        try:
            return -v * (2.0 if t > 0.3 else 1.0)
        except TypeError:
            return -v

    return law


@remembers
def of_another_kind():
    return lambda t, q, v: -v if type(t) is float and t > 0.3 else -2.0 * v


@remembers
def exec_text():
    place = {"seen": []}
    exec("def law(t, q, v):\n    seen.append(t)\n    return -v - 1e-3 * len(seen)", place)
    return place["law"]


@remembers
def vectorised():
    seen = []

    def one(x):
        seen.append(x)
        return -x - 1e-4 * len(seen)

    many = np.frompyfunc(one, 1, 1)
    return lambda t, q, v: many(v).astype(float)


@pytest.mark.parametrize("make", REMEMBER)
def test_what_may_remember_is_never_disturbed(make):
    assert doubt(make())
    tried, told = motion(make()), motion(make(), compiled=False)
    assert "a function of Python: " in tried.info["in Python"]
    assert np.array_equal(tried.q, told.q) and np.array_equal(tried.tau, told.tau), tried.info["in Python"]


# laws that are functions of (t, q, v) alone


@alone
def by_numbers():
    k, d = 3.0, np.array([0.2, 0.1])
    return lambda t, q, v: -k * q - d * v + np.sin(2.0 * t)


@alone
def by_globals():
    return lambda t, q, v: -GAIN * q - GAINS["kp"] * np.sin(q) - GAINS["kd"] * v + TABLE[0] * np.cos(t * math.pi)


@alone
def by_statements():
    def law(t, q, v):
        """With its own words."""
        error, rate = q - START, -v
        tau: np.ndarray = -2.0 * error
        tau += rate
        tau[..., 0] = tau[..., 0] * 0.5
        tau[..., 1] -= 0.1
        total = 0.0
        for i, gain in enumerate((1.0, 2.0)):
            total += gain * q[..., i]
        if len(GAINS) == 2:
            total *= 0.1
        parts = []
        for k, x in zip([0.1, 0.2], (q[..., 0], v[..., 1])):  # noqa: B905
            tau[..., 0] = tau[..., 0] - k * x
        parts.append(total)
        return tau - np.stack([total, *parts], axis=-1) - np.concatenate([0.0 * q, v], axis=-1)[..., 2:]

    return law


@alone
def by_helpers():
    def spring(x, k=2.0):
        return -k * x

    def both(q, v, *, d):
        return spring(q), spring(v, k=d)

    def law(t, q, v):
        pull, brake = both(q, v, d=0.3)
        return pull + brake

    return law


@alone
def by_robot():
    control = pp.PD(ROBOT, np.zeros(2), 3.0, 1.0)

    def law(t, q, v):
        tau = ROBOT.gravity(q) - 0.1 * v
        tau += control(t, q, v) / 3.0
        return tau + 0.1 * (ROBOT.mass_matrix(q) @ v[..., None])[..., 0] * ROBOT.nv

    return law


@dataclass(frozen=True)
class Gains:
    kp: float
    kd: float
    least = 0.01

    @property
    def ratio(self):
        return self.kd / self.kp


@alone
def by_object():
    class Law:
        __slots__ = ("gains", "robot")
        sign = -1.0

        def __init__(self):
            self.gains, self.robot = Gains(2.0, 0.4), ROBOT

        @staticmethod
        def brake(v):
            return Gains.least * v**3

        def spring(self, q):
            return self.sign * self.gains.kp * np.sin(q)

        def __call__(self, t, q, v):
            return self.spring(q) - self.gains.ratio * v - self.brake(v) + self.robot.gravity(q) * np.sqrt(1.0 + t)

    return Law()


@alone
def by_method():
    return by_object().__call__


@alone
def by_named_tuple():
    numbers = namedtuple("numbers", "k d")(2.0, 0.5)
    return lambda t, q, v: -numbers.k * q - numbers.d * v


@alone
def by_partial():
    return functools.partial(lambda k, t, q, v, d: -k * q - d * v, 2.0, d=0.3)


@alone
def by_a_force_at_the_tool():
    def law(t, q, v):
        J, x = ROBOT.jacobian(q, "tool"), ROBOT.frame_pose(q, "tool")[..., :3, 3]
        f = np.concatenate([0.0 * x, 0.3 - x], axis=-1)
        return (np.swapaxes(J, -1, -2) @ f[..., None])[..., 0] - (J.swapaxes(-1, -2) @ J @ v[..., None])[..., 0]

    return law


@alone
def by_comprehension():
    return lambda t, q, v: np.stack([-k * x for k, x in zip((1.0, 2.0), (q[..., 0], q[..., 1]), strict=False)], axis=-1) - v


@pytest.mark.parametrize("make", ALONE)
def test_what_cannot_remember_is_compiled(make, no_python):
    law = make()
    fast = motion(law)
    slow = asked(law)
    assert "in Python" not in fast.info and len(fast) == len(slow)
    for field in ("q", "v", "tau"):
        assert np.abs(getattr(fast, field) - getattr(slow, field)).max() < 1e-10, field
    batch = np.stack([START, START + 0.1, -START])
    together = motion(law, q=batch)
    assert np.abs(together.q[0] - slow.q).max() < 1e-10


def asked(law, **options) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DOOR, "March", MARCH)
        return motion(law, compiled=False, **options)


def test_arrays_are_those_of_the_call(no_python):
    """What is changed between two motions is read anew, and what is changed after one leaves it as it is."""
    k = np.array([2.0, 1.0])
    law = lambda t, q, v: -k * q - v  # noqa: E731
    first = motion(law)
    before = first.tau.copy()
    k *= 10.0
    second = motion(law)
    assert np.abs(second.q - asked(law).q).max() < 1e-10 and np.abs(second.q - first.q).max() > 1e-3
    assert np.array_equal(first.tau, before)


def test_what_is_called_beside_it_is_read_as_well():
    """Events and progress may change what a law reads."""
    target = np.zeros(2)
    law = lambda t, q, v: -(q - target) - v  # noqa: E731

    def turn(t, q, v):
        target[0] = t
        return 1.0

    ways: Any = ({"events": {"turn": turn}}, {"progress": turn})
    for beside in ways:
        target[:] = 0.0
        tried = motion(law, **beside)
        assert f"{'turn' if 'events' in beside else 'progress'}: `target[0]`" in tried.info["in Python"]
        target[:] = 0.0
        assert np.array_equal(tried.q, motion(law, compiled=False, **beside).q) or "progress" in beside
    calm = motion(law, events={"low": lambda t, q, v: q[..., 0] + 5.0}, progress=False)
    assert "in Python" not in calm.info


def test_its_own_errors_are_its_own():
    """Also where a trace would not have failed: on a batch, or at the first state."""

    def single(t, q, v):
        return -np.dot(np.eye(2), q)

    with pytest.raises(pp.SimulationError, match="ValueError"):
        motion(single, q=np.stack([START, START, START]))

    def divided(t, q, v):
        return -v / (1.0 if t else 1 / t)

    for compiled in (None, False):
        with pytest.raises(pp.SimulationError, match="ZeroDivisionError"):
            motion(divided, compiled=compiled)
        with pytest.raises(pp.SimulationError, match="no_such"):
            motion(lambda t, q, v: ROBOT.no_such * v, compiled=compiled)  # type: ignore[attr-defined]


def test_compiled_false_leaves_it_alone(monkeypatch):
    monkeypatch.setattr("psiphi.simulation.fast.tried", None)
    assert "in Python" not in motion(by_numbers(), compiled=False).info
    short = pp.simulate(ROBOT, START, tau=by_numbers(), duration=0.1)  # not worth while
    assert short.info["in Python"] == "the torque is <lambda>, a function of Python"


def test_motions_of_several_at_once_mean_motions():
    """q[0] is the first motion of several: the law means that, and goes on to."""
    law = lambda t, q, v: -q[0] * np.ones(2) - v  # noqa: E731
    batch = np.stack([START, 2.0 * START])
    tried = motion(law, q=batch)
    assert "several motions at once" in tried.info["in Python"]
    assert np.array_equal(tried.q, motion(law, compiled=False, q=batch).q)


@pytest.mark.parametrize(
    ("law", "why"),
    [
        (lambda t, q, v: -v if q[0] > 0.0 else -2.0 * v, "'>' not supported"),
        (lambda t, q, v: np.clip(-v, -1.0, 1.0), "calls what may remember or vary"),
        (lambda t, q, v: np.full(2, math.sin(t)), "cannot be traced"),
        (lambda t, q, v: -GAINS.get(t, 1.0) * v, "looked up"),
    ],
)
def test_it_is_said_why_steps_run_in_python(law, why):
    said = motion(law)
    assert why in said.info["in Python"] and why in said.summary()


def test_what_calls_itself_ends():
    def down(x, n):
        return x if n == 0 else down(x, n - 1) + down(x, n - 1)

    assert "calls itself" in doubt(lambda t, q, v: -down(v, 3))
    chain = [lambda x: x]
    for _ in range(40):  # forty deep, each twice
        chain.append(lambda x, f=chain[-1]: f(x) + f(x))
    deep = chain[-1]
    assert doubt(lambda t, q, v: -deep(v)) == ""


def test_text_that_is_not_its_own(tmp_path, monkeypatch):
    """A file that was edited since it was loaded says nothing of what runs."""
    path = tmp_path / "my_edited_law.py"
    path.write_text("seen = []\ndef law(t, q, v):\n    seen.append(t)\n    return -v\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    law = importlib.import_module("my_edited_law").law
    path.write_text("seen = []\ndef law(t, q, v):\n    return -v\n", encoding="utf-8")
    assert "not at hand" in doubt(law)


# one line that remembers or varies, anywhere in a law that does not

BEFORE = """
import itertools, math, time, random
import numpy as np

class Object:
    n, x = 0, 0.0

    def count(self):
        self.n += 1
        return self.n

    __float__ = __index__ = __len__ = __hash__ = count

    def __add__(self, other):
        return self.count() + other

    def __bool__(self):
        return bool(self.count())

    def __array__(self, dtype=None, copy=None):
        return np.full(2, float(self.count()))

    def __eq__(self, other):
        return self.count() > 3

    def __getitem__(self, key):
        return self.count()

OBJECT, ARRAY, LIST, DICT, ITERATOR = Object(), np.zeros(2), [0.0], {"k": 0.0}, itertools.count()
ROWS, RNG, NUMBER = [np.zeros(2), np.zeros(2)], np.random.default_rng(0), 0.0

def same(x):
    return x

def maybe(x, y):
    if len(x):
        return x
    return y
"""
LINES = """
LIST.append(t)
LIST.extend(q)
LIST.insert(0, t)
LIST[0] = t
LIST[:] = [t]
del LIST[:]
x = LIST; x += [t]
ARRAY[:] = q
ARRAY[0] = 1.0
ARRAY[0] += 1.0
ARRAY.fill(0.0)
ARRAY.sort()
ARRAY.T[0] = 1.0
ARRAY.resize(2)
np.copyto(ARRAY, q)
np.put(ARRAY, 0, 1.0)
np.add(q, v, out=ARRAY)
np.add(q, v, ARRAY)
np.add.at(ARRAY, 0, 1.0)
np.dot(np.eye(2), q, ARRAY)
np.sum([q, v], axis=0, out=ARRAY)
np.einsum("i,i->i", q, v, out=ARRAY)
q.dot(np.eye(2), ARRAY)
q.sum(0, None, ARRAY)
x = ARRAY; x += q
x = ARRAY; x[0] = 1.0
x = ARRAY.T; x += q
x = ARRAY[:]; x += q
x = ARRAY[None]; x[0] = q
x = ARRAY.reshape(2, 1); x[0] = 1.0
x = np.asarray(ARRAY); x += q
x = np.reshape(ARRAY, 2); x += q
x = np.array(ARRAY, copy=False); x += q
x = np.einsum("i->i", ARRAY); x += q
x = np.diff(ARRAY, 0); x += q
x = [ARRAY]; x[0] += q
x = [ARRAY] * 2; x[0] += q
x = [ARRAY] + [q]; x[0] += q
x = (ARRAY, q)[0]; x += q
x = {"a": ARRAY}; x["a"] += q
x = {"a": ARRAY}["a"]; x += q
x = list(ROWS); x[0] += q
x = ROWS.copy(); x[0] += q
x = ROWS * 2; x[0] += q
x = np.array([1.0, None]); x[0] = ARRAY; x[0] += q
y = []; y.append(None); x = np.array([1.0, *y]); x[0] = ARRAY; x[0] += q
y = [1.0]; y[0] = None; x = np.array([1.0, *y]); x[0] = ARRAY; x[0] += q
x = sum([], ARRAY); x += q
x = max([ARRAY], key=len); x += q
x = same(ARRAY); x += q
x = maybe(q, ARRAY); x += q
x = ARRAY if len(q) else q; x += q
x = np.zeros(2, "O"); x[0] = ROWS; x[0] += [q]
x = np.zeros(2, dtype="O"); x[0] = ROWS; x[0] += [q]
x = np.zeros(2, dtype=object); x[0] = ROWS; x[0] += [q]
x, y = ARRAY, q; x += q
x, *y = ROWS; x += q
for x in ROWS: x += q
for x, y in [(ARRAY, q)]: x += q
[x.fill(0.0) for x in ROWS]
[LIST.append(x) for x in q]
q += 1.0
q[0] = 1.0
ROWS[0] += q
ROWS[0][:] = q
DICT["k"] = t
DICT.update(k=t)
DICT.setdefault("m", t)
DICT.pop("k")
OBJECT.x = t
OBJECT.x += t
OBJECT.count()
OBJECT.__dict__["x"] = t
OBJECT + q
OBJECT[0]
q + OBJECT
q[OBJECT]
q == OBJECT
-q * float(OBJECT)
len(OBJECT)
math.sin(OBJECT)
np.sin(OBJECT)
np.zeros(OBJECT)
bool(OBJECT)
[OBJECT, q]
{OBJECT: q}
{1.0: OBJECT}
OBJECT in LIST
x = OBJECT or q
x = q if OBJECT else v
if OBJECT: pass
while not OBJECT: pass
Object.n = 3
setattr(OBJECT, "x", t)
object.__setattr__(OBJECT, "x", t)
vars(OBJECT)["x"] = t
globals()["NUMBER"] = t
exec("NUMBER = 1")
eval("LIST.append(1)")
import random
from time import time
next(ITERATOR)
for x in ITERATOR: break
list(zip(ITERATOR, q))
x = [y for y, _ in zip(ITERATOR, q)]
time.time()
time.sleep(0)
random.random()
np.random.rand()
RNG.standard_normal(2)
print(t)
open("x")
input()
f = lambda: LIST.append(t); f()
(lambda: LIST.append(t))()
(x := LIST).append(t)
f"{OBJECT}"
"%s" % OBJECT
str(OBJECT)
sorted(q, key=LIST.append)
list(map(LIST.append, q))
list(filter(LIST.append, q))
np.apply_along_axis(LIST.append, 0, q)
np.vectorize(LIST.append)(q)
np.fromfunction(LIST.append, (2,))
LIST.append.__call__(t)
getattr(LIST, "append")(t)
assert LIST.append(t) is None
raise LIST.append(t)
global NUMBER; NUMBER = t
x = yield
with OBJECT: pass
try: pass | except ValueError: pass
def inner(): LIST.append(t) | inner()
class Inner: LIST.append(t)
math.fsum(ITERATOR)
""".strip().splitlines()
PLACES = {
    "law": "def law(t, q, v):\n    {line}\n    return -v",
    "branch": "def law(t, q, v):\n    if len(q) == 2:\n        {line}\n    else:\n        pass\n    return -v",
    "other branch": "def law(t, q, v):\n    if len(q) == 3:\n        return v\n    else:\n        {line}\n    return -v",
    "loop": "def law(t, q, v):\n    for i in range(2):\n        {line}\n    return -v",
    "helper": "def helper(t, q, v):\n    {line}\n    return v\n\ndef law(t, q, v):\n    return -helper(t, q, v)",
    "method": "class Law:\n    def __call__(self, t, q, v):\n        {line}\n        return -v\n\nlaw = Law()",
    "property": "class Law:\n    @property\n    def gain(self):\n        t, q, v = 0.0, np.ones(2), np.ones(2)\n"
    "        {line}\n        return 2.0\n\n    def law(self, t, q, v):\n        return -v * self.gain\n\nlaw = Law().law",
}


@pytest.mark.parametrize("place", PLACES)
def test_one_line_is_enough(place, tmp_path, monkeypatch):
    """Every line above, in every place: each is a doubt; without it there is none."""

    def law(line, name):
        indent = PLACES[place].partition("{line}")[0].rpartition("\n")[2]
        text = BEFORE + PLACES[place].format(line=line.replace(" | ", f"\n{indent}"))
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return importlib.import_module(name).law

    monkeypatch.syspath_prepend(str(tmp_path))
    stem = place.replace(" ", "_")
    assert doubt(law("pass", f"calm_{stem}")) == ""
    lines = [line for line in LINES if place != "property" or line[0] != "q"]  # there q is its own
    missed = [line for k, line in enumerate(lines) if not doubt(law(line, f"line_{stem}_{k}"))]
    assert not missed
