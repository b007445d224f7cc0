"""`problem.solve` of torch tensors and JAX arrays, beside the derivatives of NumPy's solution."""

import numpy as np
import pytest

import psiphi as pp
from tests.apps.optimal_control.robots import pelican, reach_batch, reach_problem
from tests.apps.optimal_control.test_optimum_derivatives import inputs, posed_problem

TIGHT = 1e-13


def expected_of_posed(weights):
    """The gradients that `OptimalMotion.vjp` gives for goals of every kind."""
    values, _ = inputs()
    found = posed_problem().solve(tolerance=TIGHT, iterations=300, **values)
    return values, found, found.vjp(**weights)


def random_weights():
    rng, problem = np.random.default_rng(7), posed_problem()
    shapes = {"q": (13, 2), "v": (13, 2), "u": (problem.steps, 2)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def test_gradients_of_torch():
    """Every input, in both modes; batches, broadcast inputs, several weights at once."""
    torch = pytest.importorskip("torch")
    weights = random_weights()
    values, found, expected = expected_of_posed(weights)
    tensors = {name: torch.tensor(x, requires_grad=True) for name, x in values.items()}
    solved = posed_problem().solve(tolerance=TIGHT, iterations=300, **tensors)
    assert solved.converged.dtype == torch.bool and bool(solved.converged)
    for name in "qvu":
        np.testing.assert_array_equal(getattr(solved, name).detach(), getattr(found, name))
    total = sum((getattr(solved, x) * torch.tensor(w)).sum() for x, w in weights.items())
    total.backward()
    for name, gradient in expected.items():
        np.testing.assert_allclose(tensors[name].grad, gradient, rtol=1e-9, atol=1e-11)
    q, v, goal = reach_batch(2)
    first, goal = (torch.tensor(x, requires_grad=True) for x in (q[0], goal))

    def solve(q, goal):
        return reach_problem().solve(q, v, tool=goal, tolerance=TIGHT).u

    options = {"eps": 1e-5, "atol": 1e-4, "rtol": 1e-3}
    assert torch.autograd.gradcheck(
        solve, (first, goal), check_forward_ad=True, check_batched_grad=True, **options
    )


def test_transforms_of_jax():
    """grad, jit, jacfwd, jacrev and vmap, with numbers beside arrays."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        check_transforms(jax)


def check_transforms(jax):
    problem, (q, v, goal) = reach_problem(), reach_batch(3)
    found = problem.solve(q, v, tool=goal, tolerance=TIGHT)
    expected = found.vjp(u=2.0 * found.u, q=np.ones(found.q.shape))

    def solve(start, goal, speed=v):
        return problem.solve(start, speed, tool=goal, tolerance=TIGHT)

    def loss(start, goal):
        moved = solve(start, goal)
        return (moved.u**2).sum() + moved.q.sum()

    arrays = jax.numpy.array(q), jax.numpy.array(goal)
    for gradient in (jax.grad(loss, (0, 1)), jax.jit(jax.grad(loss, (0, 1)))):
        for x, name in zip(gradient(*arrays), ("q", "tool"), strict=True):
            np.testing.assert_allclose(x, expected[name], rtol=1e-9, atol=1e-11)
    ahead, back = (make(lambda g: solve(q[0], g, v[0]).u) for make in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(ahead(arrays[1][0]), back(arrays[1][0]), atol=1e-9)
    mapped = jax.vmap(lambda s, w, g: solve(s, g, w).u)(arrays[0], jax.numpy.array(v), arrays[1])
    np.testing.assert_array_equal(mapped, found.u)
    single = solve(q, jax.numpy.array(goal, "float32"))
    assert single.u.dtype == np.float32 and single.converged.dtype == bool


def test_losses_may_leave_elements_out():
    """An element that diverges spoils no gradient of a loss that does not use it."""
    torch = pytest.importorskip("torch")
    problem, (q, v, goal) = reach_problem(), reach_batch(3)
    v[1] = 1e160, 0.0
    tool = torch.tensor(goal, requires_grad=True)
    solved = problem.solve(q, v, tool=tool)
    assert solved.converged.tolist() == [True, False, True]
    solved.u[solved.converged].square().sum().backward()
    keep = [0, 2]
    alone = problem.solve(q[keep], v[keep], tool=goal[keep])
    gradient = tool.grad.numpy()
    np.testing.assert_array_equal(gradient[1], np.zeros(3))
    np.testing.assert_allclose(gradient[keep], alone.vjp(u=2.0 * alone.u)["tool"], rtol=1e-9)
    tool.grad = None
    problem.solve(q, v, tool=tool).u.sum().backward()
    assert torch.isnan(tool.grad[1]).all() and torch.isfinite(tool.grad[0]).all()


def test_parameters_of_the_robot_and_guesses():
    """A tensor that is bound to the robot is the default; guesses are constants."""
    torch = pytest.importorskip("torch")
    free = pelican().free("mass")
    masses = torch.tensor(free.parameters(), requires_grad=True)
    values, _ = inputs()
    del values["parameters"]
    made = posed_problem()
    bound = pp.OptimalControl(
        free.at(masses), made.dt, made.steps, running=[x.cost for x in made.running],
        final=[x.cost for x in made.final], torque=[2.0, 0.5],
    )  # fmt: skip
    options = {"tolerance": TIGHT, "iterations": 300}
    near = made.solve(parameters=free.parameters(), **values, **options)
    solved = bound.solve(**values, torques=torch.tensor(near.u), **options)
    solved.u.sum().backward()
    expected = near.vjp(u=np.ones(near.u.shape))["parameters"]
    np.testing.assert_allclose(masses.grad, expected, rtol=1e-5)
    q = torch.tensor(values.pop("q"), requires_grad=True)
    twice = made.solve(
        q, parameters=np.stack([free.parameters()] * 2), near=near, **values, **options
    )
    assert twice.u.shape == (2, made.steps, 2)
    twice.u[1].sum().backward()
    np.testing.assert_allclose(q.grad, near.vjp(u=np.ones(near.u.shape))["q"], rtol=1e-5)


def test_bad_arrays():
    torch = pytest.importorskip("torch")
    problem, (q, v, goal) = reach_problem(), reach_batch(3)
    tool = torch.tensor(goal, requires_grad=True)
    solved = problem.solve(q, v, tool=tool)
    (gradient,) = torch.autograd.grad(solved.u.sum(), tool, create_graph=True)
    for call, words in (
        (lambda: problem.solve(q, v, tool=tool[..., :2]), "tool has shape (3, 2), expected"),
        (lambda: problem.solve(q, v, tol=tool), "no cost has the goal 'tol'"),
        (lambda: problem.solve(q, v, tool=tool.int()), "dtype int32, expected float64"),
        (lambda: problem.solve(q[:2], v, tool=tool), "do not fit together"),
        (lambda: problem.solve(tool[:, :2], v), "the goals of 'tool' are missing"),
        (lambda: problem.solve(q, v, tool=tool, parameters=tool), "has no free parameters"),
        (lambda: problem.solve(q, v, tool=tool * torch.nan), "finite"),
        (lambda: gradient.sum().backward(), "second derivatives of an optimum"),
    ):
        with pytest.raises(pp.StateError) as error:
            call()
        assert words in str(error.value)
