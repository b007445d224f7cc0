"""Derivatives of every function on trees of every joint kind, beside complex steps of dense
equations (`homogeneous.py`).

Every way to a derivative is run, the one that is taken and those that cost more; the code is read,
not compiled.
"""

from functools import cached_property, partial

import numpy as np
import pytest

from psiphi.robot.catalogue import quantity_request
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi.robot.robot import Robot
from tests import zoo
from tests.functions.test_derivatives import on_tape
from tests.oracles.homogeneous import STEP, Homogeneous

EVERY = (*zoo.KINDS, "fixed")
TREES = {  # name -> (seed, bodies, with rotors, a forest)
    "a tree": (5, 5, False, False),
    "a tree with rotors": (10, 5, True, False),
    "a forest with rotors": (9, 5, True, True),
}
LOADED = "forward_dynamics", "inverse_dynamics"
FRAMED = {*quantity_request.ON_FRAMES, "operational_space_inertia"}
EXACT = 1e-9
BENT = 1e-8  # a difference of exact first derivatives
POINTS = ((1, 45.0), (2, -9.0), (3, 1.0))  # of a difference of sixth order, over 60 h


def close(got, want, tolerance, what):
    scale = 1.0 + np.abs(want).max(initial=0.0)
    assert np.abs(np.asarray(got) - want).max(initial=0.0) <= tolerance * scale, what


class Case:
    """One function of a robot at a random state: what psiphi says, and what the dense equations
    say."""

    def __init__(self, model, name, seed=0, frames=(), axes="world"):
        self.model, self.name, self.axes = model, name, axes
        self.frames = frames or (("tool",) if name in FRAMED else ())
        self.function = Robot.of(model).function(name, self.frames, axes)
        self.rng = rng = np.random.default_rng(seed)
        self.inputs = self.function.inputs
        self.values = [
            model.random(rng) if arg.name == "q" else rng.standard_normal(arg.shape)
            for arg in self.inputs
        ]
        self.shapes = [(model.nv,) if arg.name == "q" else arg.shape for arg in self.inputs]
        self.changes = [rng.standard_normal(shape) for shape in self.shapes]
        self.own = [
            np.zeros(model.nv),
            *self.values[1:],
        ]  # q itself stands in the oracle, which takes changes of it
        self.weights = [rng.standard_normal(arg.shape) for arg in self.function.outputs]

    def dense(self, *given, q=None):
        """The results of the oracle, a list."""
        robot = Homogeneous(self.model, self.values[0] if q is None else q)
        call = getattr(robot, self.name)
        if self.name in LOADED and self.frames:
            call = partial(call, frames=self.frames, axes=self.axes)
        elif self.frames:
            call = partial(call, frame=self.frames[0], axes=self.axes)
        found = call(*given)
        return list(found) if isinstance(found, tuple) else [found]

    def columns(self, own=None, q=None):
        """d result / d (all arguments in a row), (*shape, n) each."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        units = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=-1)
        steps = [
            1j * STEP * unit.reshape(-1, *shape)
            for unit, shape in zip(units, self.shapes, strict=True)
        ]
        moved = [x + step for x, step in zip(own or self.own, steps, strict=True)]
        return [np.moveaxis(x.imag, 0, -1) / STEP for x in self.dense(*moved, q=q)]

    @cached_property
    def slopes(self):
        return self.columns()

    def gradient(self, own=None, q=None):
        """Of the weighted sum of the results, all arguments in a row."""
        pairs = zip(self.weights, self.columns(own, q) if own else self.slopes, strict=True)
        return sum(np.tensordot(w, x, np.ndim(w)) for w, x in pairs)

    def bent(self):
        """The change of that gradient along `changes`: the configuration moves first, then all is
        asked there."""
        total, h = 0.0, 5e-3
        for k, factor in POINTS:
            for sign in (1.0, -1.0):
                x, *rest = (
                    y + sign * k * h * d for y, d in zip(self.own, self.changes, strict=True)
                )
                at = self.model.integrate(self.values[0], x)
                total = total + sign * factor * self.gradient([np.zeros(self.model.nv), *rest], at)
        return total / (60.0 * h)

    def ways(self, derivative):
        """The results of every way to a derivative."""
        asked = derivative.source.request
        _, outputs = asked.arguments()
        for sweeps, lines in asked.candidates():
            yield (
                f"{self.name}: {asked.kind} by {'the tape' if sweeps is None else 'sweeps'}",
                partial(on_tape, lines, outputs),
            )

    def check_first(self):
        given, results = self.values, len(self.function.outputs)
        values = on_tape(self.function.source.code, self.function.outputs, *given)
        for got, want in zip(values, self.dense(*self.own), strict=True):
            close(got, want, 1e-10, self.name)
        flat = np.concatenate([d.ravel() for d in self.changes])
        for what, run in self.ways(self.function.jacobian()):
            found, n = run(*given), len(self.inputs)
            for i, want in enumerate(self.slopes):
                blocks = [x.reshape((*want.shape[:-1], -1)) for x in found[i * n : i * n + n]]
                close(np.concatenate(blocks, axis=-1), want, EXACT, what)
        for what, run in self.ways(self.function.jvp()):
            for got, want in zip(run(*given, *self.changes)[results:], self.slopes, strict=True):
                close(got, want @ flat, EXACT, what)
        for what, run in self.ways(self.function.vjp()):
            got = np.concatenate([x.ravel() for x in run(*given, *self.weights)[results:]])
            close(got, self.gradient(), EXACT, what)

    def check_second(self):
        want, flat = self.bent(), np.concatenate([d.ravel() for d in self.changes])
        for what, run in self.ways(self.function.hessian()):
            close(run(*self.values, *self.weights)[0] @ flat, want, BENT, what)


def tree(seed, bodies, armature, forest):
    return zoo.random_tree(seed, bodies, EVERY, armature=armature, forest=forest)


def kinds_of(model):
    return {joint.kind for joint in model.description.joints}


def test_the_trees_have_every_kind():
    assert set().union(*(kinds_of(tree(*row)) for row in TREES.values())) == set(EVERY)
    assert tree(*TREES["a forest with rotors"]).parent.count(-1) > 1


@pytest.mark.parametrize("name", [*CATALOGUE, "operational_space_inertia"])
def test_every_function_of_trees(name):
    for seed, row in enumerate(TREES.values()):
        for axes in ("world", "frame") if name in FRAMED else ("world",):
            case = Case(tree(*row), name, seed, axes=axes)
            case.check_first()
        if seed == 0:
            case.check_second()


@pytest.mark.parametrize("kind", EVERY)
def test_dynamics_of_every_kind(kind):
    """Between hinges, with rotors; wrenches on two links, in world axes and in their own: first and
    second derivatives."""
    model = zoo.chain(kind, ["revolute", kind, "revolute"], seed=sum(map(ord, kind)), armature=True)
    for name, axes in zip(LOADED, ("frame", "world"), strict=True):
        case = Case(model, name, 1, ("tool", "elbow"), axes)
        case.check_first()
        case.check_second()


def test_log_det_and_its_gradient():
    """Of the pivots of D: tr M^-1 dM."""
    model = tree(*TREES["a forest with rotors"])
    robot, q = Robot.of(model), model.random(seed=0)
    f = robot.function("mass_pivots")
    (d,) = on_tape(f.source.code, f.outputs, q)
    gradient = on_tape(f.vjp().source.code, f.vjp().outputs, q, 1.0 / d)[1]
    found = Homogeneous(model, q).mass_log_det(1j * STEP * np.eye(model.nv))
    close(np.log(d).sum(), found[0].real, EXACT, "log det M")
    close(gradient, found.imag / STEP, EXACT, "its gradient")
