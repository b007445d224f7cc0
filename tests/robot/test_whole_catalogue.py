"""Every function of a robot has every derivative: beside complex steps of its tape, and compiled,
in batches of either kind."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.robot.catalogue import quantity_request
from psiphi.robot.catalogue.catalogue import CATALOGUE
from tests.functions.test_derivatives import arguments, close, run

STEP = 1e-30  # of a complex step: no difference is taken, so nothing is lost


def of_robot(robot, name):
    return robot.function(
        name, (robot.bodies[-1].name,) if name in quantity_request.ON_FRAMES else ()
    )


def two_bodies():
    """A universal joint and a slide: q is a vector, and can take complex steps."""
    b = pp.Builder("two")
    for k, kind in enumerate(("universal", "prismatic")):
        b.body(f"b{k}", mass=1.0 + k, com=(0.1, 0.2, -0.3), inertia=np.diag([0.3, 0.4, 0.2]))
        b.joint(
            f"j{k}",
            kind,
            parent=f"b{k - 1}" if k else "world",
            child=f"b{k}",
            axis=(1, k, 0),
            xyz=(0.2, 0.1, -0.5),
        )
    return b.build()


ROBOT = two_bodies()
OTHERS = (
    "link_poses",
    "regressor",
    "mass_pivots",
    "operational_space_inertia",
    "wrench_torques",
    "FD4",
    "added_inertia_dynamics",
)


def along(function, values, changes):
    """d result, by a complex step."""
    with np.errstate(all="ignore"):
        found = run_complex(
            function, [x + 1j * STEP * d for x, d in zip(values, changes, strict=True)]
        )
    return [x.imag / STEP for x in found]


def run_complex(function, values):
    flat = [np.ravel(x) for x in values]
    code, outputs = function.source.code, function.source.outputs
    numbers = evaluate(
        code.tape, [node for *_, node in code.stores], lambda place, i: flat[int(place)][i]
    )
    results = [np.zeros(arg.size, dtype=complex) for arg in outputs]
    for (number, index, _), x in zip(code.stores, numbers, strict=True):
        results[number][index] = x
    return [x.reshape(arg.shape) for arg, x in zip(outputs, results, strict=True)]


@pytest.mark.parametrize("name", [*CATALOGUE, *OTHERS])
def test_every_derivative_beside_complex_steps(name):
    f, rng = of_robot(ROBOT, name), np.random.default_rng(0)
    values = arguments(f, ROBOT, rng)
    changes = [rng.standard_normal(x.shape) for x in values]
    slopes = along(f, values, changes)
    n = len(slopes)
    for got, want in zip(run(f.jvp(), *values, *changes)[n:], slopes, strict=True):
        close(got, want, 1e-10, "jvp")
    columns = iter(run(f.jacobian(), *values))
    for want in slopes:
        close(sum(next(columns) @ d.ravel() for d in changes), want, 1e-10, "jacobian")
    weights = [rng.standard_normal(x.shape) for x in slopes]
    gradients = run(f.vjp(), *values, *weights)[n:]
    total = sum((w * x).sum() for w, x in zip(weights, slopes, strict=True))
    close(sum((g * d).sum() for g, d in zip(gradients, changes, strict=True)), total, 1e-10, "vjp")
    bent = along(f.vjp(), [*values, *weights], [*changes, *(0.0 * w for w in weights)])[n:]
    flat = np.concatenate([d.ravel() for d in changes])
    close(
        run(f.hessian(), *values, *weights)[0] @ flat,
        np.concatenate([x.ravel() for x in bent]),
        1e-9,
        "hessian",
    )


@pytest.mark.parametrize("name", ["mass_matrix", "link_poses"])
def test_compiled_in_batches_of_either_kind(name):
    """Results with axes of their own among them: an element of a batch is what it is alone; single
    precision is near."""
    f, rng = of_robot(ROBOT, name), np.random.default_rng(1)
    values = [rng.standard_normal((5, *arg.shape)) for arg in f.inputs]
    for kind in ("jacobian", "vjp"):
        g = getattr(f, kind)("q")
        given = [
            *values,
            *(rng.standard_normal((5, *arg.shape)) for arg in g.inputs[len(values) :]),
        ]
        own, near = g(*given), g(*(x.astype(np.float32) for x in given))
        alone = run(g, *(x[3] for x in given))
        own, near = (x if isinstance(x, tuple) else (x,) for x in (own, near))
        for x, y, want in zip(own, near, alone, strict=True):
            assert y.dtype == np.float32 and x.shape == y.shape
            close(x[3], want, 1e-11, kind)
            close(y, x, 1e-4, kind)


def test_the_inertia_of_frames_is_the_robots_own():
    """Of full rank it is what `robot.operational_space_inertia` gives by any policy; NaN where that
    has less."""
    for name, frame in (("ur5", "tool0"), ("pelican", "tool")):
        robot = pp.load(name)
        f, q = robot.function("operational_space_inertia", (frame,)), robot.random(seed=1, size=4)
        close(f(q), robot.operational_space_inertia(q, frame), 1e-9, name)
    stretched = np.zeros(robot.nv)
    with np.errstate(invalid="ignore"):
        assert np.isfinite(
            f(stretched)
        ).all()  # two hinges side by side still move the tool in two ways
        assert np.isnan(
            pp.load("ur5").function("operational_space_inertia", ("tool0",))(np.zeros(6))
        ).all()


def test_more_arrays_than_numpy_takes():
    with pytest.raises(pp.StateError, match="name fewer"):
        ROBOT.function("kalman").jacobian()(*np.zeros((3, 3)))
