"""torch tensors on the CPU: values, gradients of every order, torch.compile and torch.func; errors
name the argument."""

import copy
import gc
import pickle
import re
from functools import cache

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays import array_dispatch
from psiphi.functions.arrays.function_registry import register
from psiphi.simulation.rollout.rollout_arrays import RolloutFunction
from tests.robot.embedding.mechanisms import slider_crank

torch = pytest.importorskip("torch")
check, check_twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck

ARM = pp.load("pelican")  # two hinges
TOOL = list(ARM.frames)[-1]
OTHER = "elbow"


def tensors(*sizes, batch=(2,), seed=0):
    """Random ones that want a gradient."""
    rng = np.random.default_rng(seed)
    return tuple(torch.tensor(rng.standard_normal((*batch, n)), requires_grad=True) for n in sizes)


@cache
def ball():
    """A body on a ball joint: q is a quaternion."""
    b = pp.Builder("ball")
    b.body("bob", mass=2.0, com=(0.1, 0.2, -0.5), inertia=(0.8, 0, 0, 0.9, 0, 0.4))
    b.joint("socket", "spherical", parent="world", child="bob")
    return b.build()


def test_values_are_numpys_and_nothing_is_copied():
    q, v, tau = tensors(2, 2, 2)
    a = ARM.forward_dynamics(q, v, tau)
    assert type(a) is torch.Tensor and a.requires_grad and a.dtype == torch.float64
    plain = [x.detach().numpy() for x in (q, v, tau)]
    assert np.array_equal(a.detach().numpy(), ARM.forward_dynamics(*plain))
    assert ARM.forward_dynamics(*(x.float() for x in (q, v, tau))).dtype == torch.float32
    assert ARM.forward_dynamics(q.float(), v, tau).dtype == torch.float64
    assert (
        ARM.forward_dynamics(q.detach().float(), [0] * 2, np.zeros(2)).dtype == torch.float32
    )  # numbers follow tensors
    assert torch.equal(ARM.forward_dynamics(plain[0][0], plain[1][0], tau[0]), a[0])
    seen = []
    function = ARM.function("gravity")
    inner = type("Peek", (), {"__call__": lambda self, x: seen.append(x) or x * 1.0})()
    inner.name, inner.inputs, inner.outputs, inner.number = (
        "peek",
        function.inputs,
        function.outputs,
        register(inner),
    )
    array_dispatch.dispatch(inner, (q,))
    assert seen[0].ctypes.data == q.data_ptr()


CALLS = {
    "method": lambda q, v, tau: ARM.forward_dynamics(q, v, tau),
    "function": lambda q, v, tau: ARM.function("forward_dynamics")(q, v, tau),
    "step": lambda q, v, tau: ARM.step(q, v, tau, 0.1)[1],
    "linearize": lambda q, v, tau: ARM.linearize(q, v, tau)[0],
    "rollout": lambda q, v, tau: pp.rollout(ARM, q, v, tau, dt=0.1, steps=2)[1],
    "closed": lambda q, v, tau: rod().forward_dynamics(q, v, tau),
}


@cache
def rod():
    return pp.connect(ARM, [pp.Loop("distance", "tool", "world", length=0.3)])


@pytest.mark.parametrize("name", CALLS)
def test_numbers_beside_tensors_may_change_before_the_gradient_is_taken(name):
    """Gradients use the values of the call, even if the NumPy arrays change later. Any strides are
    allowed."""
    q, v, tau = (x.detach() for x in tensors(2, 2, 2, batch=()))
    tau.requires_grad_()
    weights = torch.tensor([1.0, 2.0], dtype=torch.float64)
    right = (CALLS[name](q, v, tau)[..., :2] * weights).square().sum()
    for lay in (np.copy, lambda x: x[::-1].copy()[::-1], lambda x: x.astype(">f8")):
        given = [lay(x.numpy()) for x in (q, v)]
        found = (CALLS[name](*given, tau)[..., :2] * weights).square().sum()
        for x in given:
            x[...] = 7.0
        assert torch.equal(
            torch.autograd.grad(found, tau)[0],
            torch.autograd.grad(right, tau, retain_graph=True)[0],
        )


def test_linearisations_of_closed_chains_beside_numbers():
    """Any of the arguments may be the tensor."""
    given = [np.array(rod().assemble([0.5, 1.0])), np.zeros(2), np.ones(2)]
    right = rod().linearize(*given)
    for k in range(3):
        found = rod().linearize(*(torch.tensor(x) if i == k else x for i, x in enumerate(given)))
        assert all(
            np.allclose(x, y, atol=1e-12) and type(x) is torch.Tensor
            for x, y in zip(found, right, strict=True)
        )


def test_wrenches_on_several_frames():
    """Tensors and numbers in any mixture; one of other than six numbers is not spread over six."""
    q, v, tau, w = tensors(2, 2, 2, 6)
    plain = [x.detach().numpy() for x in (q, v, tau, w)]
    right = ARM.forward_dynamics(*plain[:3], f_ext={TOOL: plain[3], OTHER: plain[3][0]})
    for here, there in ((w, w[0]), (w, plain[3][0]), (plain[3], w[0]), (w, plain[3][0].tolist())):
        found = ARM.forward_dynamics(*plain[:3], f_ext={TOOL: here, OTHER: there})
        assert (
            np.allclose(found.detach(), right, atol=1e-12)
            and torch.autograd.grad(found.sum(), w)[0].abs().sum() > 0
        )
    for bad, cause in (
        (torch.tensor(1.0), r"has shape \(\), expected"),
        (w[:, :1], r"has shape \(2, 1\), expected"),
        (torch.ones(3, 6), "batch axes do not fit"),
        (torch.ones(6, dtype=torch.int64), "is of dtype int64"),
        (np.ones(5), r"has shape \(5,\), expected"),
    ):
        with pytest.raises(pp.StateError, match=cause):
            ARM.forward_dynamics(q, v, tau, f_ext={TOOL: w, OTHER: bad})


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_graphs_of_torch_jit_have_the_operator():
    """Nothing of what is traced is a constant."""
    q, v, tau = (x.detach() for x in tensors(2, 2, 2))
    for call in (
        lambda q: ARM.forward_dynamics(q, v, tau),
        lambda q: ARM.step(q, np.zeros(2), tau, 0.1)[1],
    ):
        call(q)
        graph, other = torch.jit.trace(call, (q,)), (2.0 * q).detach().requires_grad_()
        (found,), (right,) = (
            torch.autograd.grad(x(other).square().sum(), other) for x in (graph, call)
        )
        assert torch.allclose(graph(other), call(other)) and torch.allclose(found, right)


def test_a_dt_of_any_kind():
    """One number of NumPy or torch, also after calls with the same number; with two dtypes, the
    wider one is used."""
    q, v, _ = (x.detach() for x in tensors(2, 2, 2))
    one = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    for move in (
        ARM.integrate,
        lambda *x: ARM.step(*x[:2], v[0], x[2])[0],
        lambda *x: ARM.linearize(*x[:2], v[0], x[2])[0],
    ):
        plain = move(q[0].numpy(), v[0].numpy(), 0.1)
        for given in (q[0], q[0].numpy()):
            found = move(given, v[0].numpy(), one)
            assert torch.allclose(found, torch.as_tensor(plain), atol=1e-12)
            assert torch.autograd.grad(found.sum(), one)[0].abs() > 0
    mixed = [
        x(q[0].float(), v[0], 0.1)
        for x in (ARM.integrate, lambda *x: ARM.step(*x[:2], v[0], x[2])[0])
    ]
    same = [
        x(q[0].float().double(), v[0], 0.1)
        for x in (ARM.integrate, lambda *x: ARM.step(*x[:2], v[0], x[2])[0])
    ]
    assert all(map(torch.equal, mixed, same))
    for dt, cause in (("1", "dt is '1'"), (None, "dt is None"), ([0.1], "dt is an array of NumPy")):
        with pytest.raises(pp.StateError, match=cause):
            ARM.integrate(q, v, dt)


def test_gradients_of_first_and_second_order():
    q, v, tau = tensors(2, 2, 2)
    assert check(ARM.forward_dynamics, (q, v, tau)) and check_twice(
        ARM.forward_dynamics, (q, v, tau)
    )
    assert check(ARM.inverse_dynamics, (q, v, tau)) and check(ARM.energy, (q, v))
    assert check(lambda q: ARM.frame_pose(q, TOOL), (q,)) and check(ARM.mass_matrix, (q,))
    (w,) = tensors(6)
    assert check(lambda *x: ARM.forward_dynamics(*x[:3], f_ext={TOOL: x[3]}), (q, v, tau, w))
    s, x = ARM.operators, pp.vector("v")
    assert check(pp.function(x.T @ s.mass @ x / 2), (q, v))


def test_weights_that_are_stacked():
    """`is_grads_batched`: all rows of a Jacobian at once, also of rollouts and closed chains."""
    q, v, tau = tensors(2, 2, 2)
    assert check(ARM.forward_dynamics, (q, v, tau), check_batched_grad=True, check_forward_ad=True)
    assert check_twice(ARM.forward_dynamics, (q, v, tau), check_batched_grad=True)
    bar = pp.connect(ARM, [pp.Loop("distance", TOOL, "world", length=0.3)])
    closed = torch.tensor(bar.assemble([0.5, 1.0])), v[0], tau[0]
    torques = torch.zeros(3, 2, dtype=torch.float64)
    for f, at in (
        (ARM.mass_matrix_factors, (q,)),
        (bar.function("forward_dynamics"), closed),
        (lambda t: tuple(pp.rollout(ARM, closed[1].detach(), tau=t, steps=3, dt=0.02)), (torques,)),
    ):
        rows, each = (
            torch.autograd.functional.jacobian(f, at, vectorize=way) for way in (True, False)
        )
        assert all(map(torch.allclose, _leaves(rows), _leaves(each)))


def _leaves(nested):
    return [x for part in nested for x in _leaves(part)] if isinstance(nested, tuple) else [nested]


def test_what_ends_in_a_library_of_arrays_ends_in_torch():
    """log det M by its pivots, the operational-space inertia where it has an inverse."""
    (q,) = tensors(2)
    assert check(ARM.mass_log_det, (q,)) and check_twice(ARM.mass_log_det, (q,))
    there = q.detach().numpy()
    np.testing.assert_allclose(
        ARM.mass_log_det(q).detach(), np.linalg.slogdet(ARM.mass_matrix(there))[1], rtol=1e-12
    )
    d = ARM.function("mass_pivots")
    gradient = d.vjp("q")(there, 1.0 / d(there))[1]
    np.testing.assert_allclose(
        torch.autograd.grad(ARM.mass_log_det(q).sum(), q)[0], gradient, atol=1e-12
    )
    assert torch.isnan(
        ARM.operational_space_inertia(q, TOOL, policy="exact")
    ).all()  # two hinges, six directions
    arm = pp.load("puma560")
    (q,) = tensors(6, batch=())
    inertia = lambda q: arm.operational_space_inertia(q, "tool", policy="exact")  # noqa: E731
    np.testing.assert_allclose(
        inertia(q).detach(), arm.operational_space_inertia(q.detach().numpy(), "tool"), rtol=1e-7
    )
    assert check(inertia, (q,))


def test_gradients_of_arguments_that_are_repeated_are_summed():
    q, tau = tensors(2, 2)
    (v,) = tensors(2, batch=())
    assert check(ARM.forward_dynamics, (q, v, tau))


def test_derivatives_are_functions_too():
    q, v, tau, w = tensors(2, 2, 2, 2)
    f = ARM.function("forward_dynamics")
    assert check(f.vjp("q"), (q, v, tau, w)) and check(f.jvp("v"), (q, v, tau, w))


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_steps(method):
    q, v, tau = tensors(2, 2, 2, batch=())
    dt = torch.tensor([0.02], dtype=torch.float64, requires_grad=True)
    assert check(lambda *x: ARM.step(*x, method=method), (q, v, tau, dt))
    there = ARM.step(*(x.detach().numpy() for x in (q, v, tau)), 0.02, method=method)
    assert np.array_equal(ARM.step(q, v, tau, 0.02, method=method)[0].detach().numpy(), there[0])


def test_quaternions_have_gradients_by_their_four_numbers():
    robot = ball()
    p, v, tau = tensors(4, 3, 3)  # not of unit length: the functions depend on p / |p|
    assert check(robot.forward_dynamics, (p, v, tau)) and check_twice(
        robot.forward_dynamics, (p, v, tau)
    )
    assert check(lambda *x: robot.step(*x, 0.05, method="euler"), (p, v, tau))
    (gradient,) = torch.autograd.grad(robot.forward_dynamics(p, v, tau).sum(), p)
    assert torch.allclose((gradient * p).sum(-1), torch.zeros(2, dtype=torch.float64), atol=1e-12)
    # along a tangent vector x it is the tangent gradient that vjp gives
    plain = [y.detach().numpy() for y in (p, v, tau)]
    tangent = robot.function("forward_dynamics").vjp("q")(*plain, np.ones(3))[1]
    x = np.array([0.3, -0.2, 0.5])
    along = (gradient.numpy() * robot.manifold.rate(plain[0], np.tile(x, (2, 1)))).sum(-1)
    assert np.allclose(along, tangent @ x)


def test_the_operator_passes_torchs_own_checks():
    operators = pytest.importorskip("psiphi.functions.arrays.torch_operators")
    index = ARM.function("energy").number
    torch.library.opcheck(
        getattr(torch.ops.psiphi, operators.operator(index)).default, (index, *tensors(2, 2))
    )


def test_torch_compile_takes_it_whole():
    q, v, tau = tensors(2, 2, 2)

    def loss(q, v, tau):
        nearer, faster = ARM.step(q, v, tau.tanh(), 0.01, method="euler")
        return (ARM.forward_dynamics(nearer, faster, tau) ** 2).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    one, two = (torch.autograd.grad(f(q, v, tau), (q, v, tau)) for f in (loss, compiled))
    assert all(map(torch.allclose, one, two))


def test_torch_compile_takes_one_function_after_another():
    """A compiled graph is specific to one function, also if two functions share one call site."""
    (q,) = tensors(2)
    whole = {"fullgraph": True, "backend": "aot_eager"}
    either = torch.compile(lambda f, q: f(q), **whole)
    for name in ("gravity", "mass_matrix", "center_of_mass"):
        f = ARM.function(name)
        for compiled in (torch.compile(f, **whole)(q), either(f, q)):
            assert torch.equal(compiled, f(q))
            one, two = (torch.autograd.grad(x.square().sum(), q)[0] for x in (compiled, f(q)))
            assert torch.allclose(one, two)
    bar = pp.connect(ARM, [pp.Loop("distance", TOOL, "world", length=0.3)])
    closed = torch.tensor(bar.assemble([0.5, 1.0])), torch.zeros(2), torch.ones(2)
    for name in ("forward_dynamics", "contact_forces"):
        f = bar.function(name)
        assert torch.allclose(
            f(*closed), torch.compile(f, **whole)(*closed)
        )  # made at the first call


def test_torch_compile_runs_motions_between_graphs():
    def loss(q, tau):
        return sum(
            (x.sin() ** 2).sum() for x in pp.rollout(ARM, q.tanh(), tau=2 * tau, dt=0.02, steps=3)
        )

    compiled = torch.compile(loss, backend="aot_eager")
    for seed in range(2):  # a motion of its own each time
        at = tensors(2, 2, seed=seed)
        one, two = (torch.autograd.grad(f(*at), at) for f in (loss, compiled))
        assert all(map(torch.allclose, one, two))


def _carried(f):
    """Forward mode by hand."""
    forward = torch.autograd.forward_ad

    def slope(q):
        with forward.dual_level():
            return forward.unpack_dual(f(forward.make_dual(q, q.sin()), q)).tangent

    return slope


def test_derivatives_within_torch_compile():
    """Operators have no rule for forward mode (torch would use zero tangents): they run between two
    graphs."""
    f, func, q = ARM.function("energy"), torch.func, tensors(2)[0].detach()
    f(q, q)
    for slope in (
        lambda q: func.vmap(lambda x: func.jvp(lambda y: f(y, x), (x,), (x.sin(),))[1])(q),
        lambda q: func.vmap(func.grad(lambda x: f(x, x).sum()))(q),
        _carried(f),
    ):
        torch._dynamo.reset()
        assert torch.allclose(torch.compile(slope, backend="aot_eager")(q), slope(q), rtol=1e-12)
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"disable\(\)"):
        torch.compile(_carried(f), backend="aot_eager", fullgraph=True)(q)
    around = torch.compile(lambda q: 2 * f(q, q), backend="aot_eager")
    changes = [func.jvp(g, (q,), (q,))[1] for g in (around, lambda q: 2 * f(q, q))]
    assert torch.allclose(*changes) and changes[0].abs().max() > 0.1


def test_torch_func():
    q, v, tau = (x.detach() for x in tensors(2, 2, 2))
    f, func = ARM.forward_dynamics, torch.func
    assert torch.equal(func.vmap(f, in_dims=(0, None, 1))(q, v[0], tau.T), f(q, v[0], tau))
    square = func.vmap(func.vmap(f, in_dims=(0, None, None)), in_dims=(None, 0, None))(q, v, tau[0])
    assert torch.equal(square, f(q, v[:, None], tau[0]))
    rows = func.vmap(func.jacrev(f))(q, v, tau)
    assert torch.allclose(
        rows,
        torch.tensor(
            ARM.function("forward_dynamics").jacobian("q")(*(x.numpy() for x in (q, v, tau)))
        ),
    )
    whole = func.grad(lambda q: func.vmap(f)(q, v, tau).sum())(q)
    each = func.vmap(func.grad(lambda q, v, tau: f(q, v, tau).sum()))(q, v, tau)
    assert torch.allclose(whole, each) and torch.allclose(each, rows.sum(1))
    assert torch.equal(func.functionalize(func.vmap(f))(q, v, tau), f(q, v, tau))


def test_forward_mode():
    """Forward mode: values and gradients have tangents, of any order; otherwise there is an
    error."""
    q, v, tau = tensors(2, 2, 2)
    asked = lambda *x: ARM.forward_dynamics(*x)  # noqa: E731
    assert torch.autograd.gradcheck(
        asked, (q, v, tau), check_forward_ad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(asked, (q, v, tau), check_fwd_over_rev=True)
    func, x, w = torch.func, q[0].detach(), torch.ones(2, dtype=torch.float64)
    bend = torch.tensor(ARM.function("energy").hessian("q")(x.numpy(), w.numpy(), 1.0))
    for twice in (
        func.hessian,
        lambda f: func.jacfwd(func.jacfwd(f)),
        lambda f: func.jacrev(func.jacfwd(f)),
    ):
        assert torch.allclose(twice(lambda x: ARM.energy(x, w))(x), bend)
    moved = func.vmap(lambda x: func.jvp(ARM.mass_matrix_factors, (x,), (w,))[1][0])(
        q.detach()
    )  # two results, one of them D
    assert torch.allclose(
        moved,
        torch.tensor(
            ARM.function("mass_matrix_factors").jvp("q")(q.detach().numpy(), w.numpy())[2]
        ),
    )
    system = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    there, rest = torch.tensor(system.assemble([0.5, 1.0])), torch.zeros(2, dtype=torch.float64)
    push = func.jvp(lambda tau: system.forward_dynamics(there, rest, tau), (rest,), (w,))[1]
    matrix = system.function("forward_dynamics").jacobian("tau")(
        there.numpy(), rest.numpy(), rest.numpy()
    )
    assert np.allclose(push, matrix.sum(axis=-1))
    with torch.autograd.forward_ad.dual_level():
        carried = torch.autograd.forward_ad.make_dual(x, w)
        for call, words in (
            (
                lambda: pp.rollout(ARM, carried, steps=3, limits="block"),
                "changes velocities abruptly",
            ),
            (lambda: pp.simulate(ARM, carried, duration=0.1), "is of forward mode"),
            (lambda: ARM.forward_dynamics([carried[0], 0.0], w, w), "is of forward mode"),
        ):
            with pytest.raises(pp.Error, match=words):
                call()


def test_what_does_not_fit_is_named():
    q, v, tau = tensors(2, 2, 2)
    wrong = [
        (
            lambda: ARM.forward_dynamics(q[:, :1], v, tau),
            r"q has shape \(2, 1\), expected \(\.\.\., 2\)",
        ),
        (
            lambda: ARM.forward_dynamics(q.long(), v, tau),
            "q is of dtype int64, expected float64 or float32",
        ),
        (
            lambda: ARM.forward_dynamics(q, v, torch.zeros(3, 2, dtype=torch.float64)),
            "batch axes do not fit together",
        ),
        (lambda: ARM.forward_dynamics(q, v, "x"), "tau is 'x'"),
        (lambda: ARM.forward_dynamics(q, v, tau, check=True), "check=True works on NumPy arrays"),
        (lambda: ARM.forward_dynamics(q, v, tau, out=tau), "out= is for NumPy"),
        (lambda: ARM.operational_space_inertia(q, TOOL), "eigenvectors have no gradients"),
        (lambda: pp.simulate(ARM, q, duration=0.1), "requires grad"),
        (lambda: ARM.step(q, v, tau, np.full((2,), 0.1)), "dt is an array of NumPy"),
    ]
    for call, text in wrong:
        with pytest.raises(pp.Error, match=text):
            call()


def test_nan_stays_in_its_row():
    q, v, tau = (x.detach() for x in tensors(2, 2, 2))
    tau[1, 0] = torch.nan
    a = ARM.forward_dynamics(q, v, tau)
    assert torch.isfinite(a[0]).all() and torch.isnan(a[1]).any()


def test_a_graph_keeps_its_function():
    q, v = tensors(2, 2)
    robot = pp.load("pelican")
    energy = robot.energy(q, v).sum()
    del robot
    gc.collect()
    energy.backward()
    assert torch.isfinite(q.grad).all()


def hung():
    """A body on a ball joint, and another hinged to it, which a rod connects to the world; the
    hinge has no motor."""
    b = pp.Builder("hung")
    for i, kind in enumerate(("spherical", "revolute")):
        b.body(f"b{i}", mass=1.0 + i, com=(0.1, 0.2, -0.3), inertia=np.diag([0.3, 0.4, 0.2]))
        b.joint(
            f"j{i}",
            kind,
            f"b{i - 1}" if i else "world",
            f"b{i}",
            axis=(1, i, 0),
            xyz=(0.2, 0.1, -0.5),
        )
    return pp.connect(b.build(), [pp.Loop("distance", "b1", "world", length=1.0)], passive=["j1"])


def test_closed_chains():
    """Accelerations, forces, wrenches and motor torques; quaternions by their numbers; second
    derivatives if no constraint is redundant."""
    system = hung()
    q, v, tau, w = tensors(5, 4, 3, 6)  # three motors
    loaded = lambda *x: system.forward_dynamics(*x[:3], forces=True, f_ext={"b1": x[3]})[1]  # noqa: E731
    assert check(loaded, (q, v, tau, w)) and check_twice(system.forward_dynamics, (q, v, tau))
    plain = [x.detach().numpy() for x in (q, v, tau)]
    a, forces = system.forward_dynamics(q, v, tau, forces=True)
    assert a.requires_grad and np.array_equal(a.detach().numpy(), system.forward_dynamics(*plain))
    assert (
        forces.shape == (2, 1, 6)
        and system.forward_dynamics(q.float(), v.float(), tau.float()).dtype == torch.float32
    )
    f = system.function("forward_dynamics")
    assert torch.equal(
        f.vjp("v")(q, v, tau, v)[1].detach(), torch.tensor(f.vjp("v")(*plain, plain[1])[1])
    )
    each = torch.func.vmap(torch.func.grad(lambda *x: f(*x).sum()))(
        *(x.detach() for x in (q, v, tau))
    )
    assert torch.allclose(each, torch.autograd.grad(f(q, v, tau).sum(), q)[0])
    for call, text in (
        (lambda: f(q, v, tau[:, :2]), r"tau has shape \(2, 2\), expected \(\.\.\., 4\)"),
        (lambda: f(q.long(), v, tau), "q is of dtype int64"),
        (lambda: f(q, v), "got 2 arguments"),
        (lambda: system.forward_dynamics(q, v, tau, method="KKT"), "method= is for NumPy"),
        (lambda: system.forward_dynamics(q, v, tau, check=True), "check= is for NumPy"),
        (lambda: f.jacobian("q")(q, v, tau).sum().backward(), "has no pullback"),
    ):
        with pytest.raises(pp.Error, match=text):
            call()


@pytest.mark.parametrize("shape", [(2,), (5, 2), (2, 5, 2)])
def test_rollouts(shape):
    q, v = tensors(2, 2)
    tau = torch.tensor(np.random.default_rng(3).standard_normal(shape), requires_grad=True)
    moved = lambda *x: pp.rollout(ARM, *x, dt=0.02, steps=5)  # noqa: E731
    assert check(moved, (q, v, tau), check_forward_ad=True, check_batched_forward_grad=True)
    states = pp.rollout(
        ARM, q.detach().numpy(), v.detach().numpy(), tau.detach().numpy(), dt=0.02, steps=5
    )
    assert np.array_equal(
        pp.rollout(ARM, q, v, tau, dt=0.02, steps=5)[0].detach().numpy(), states.q
    )


def test_a_rollout_has_names():
    """q and v of tensors, also in torch.func and torch.compile."""
    q, v, tau = (x.detach() for x in tensors(2, 2, 2))
    run = lambda q: pp.rollout(ARM, q, v, tau, dt=0.02, steps=3)  # noqa: E731
    motion = run(q)
    first, second = motion
    assert first is motion.q and second is motion.v and motion.v.shape == (2, 4, 2)
    every = torch.func.vmap(lambda q: pp.rollout(ARM, q, steps=3))(q)
    assert torch.equal(every.v, pp.rollout(ARM, q, steps=3).v)
    slope = torch.func.grad(lambda q: run(q).v.sum())
    assert torch.equal(slope(q), torch.func.grad(lambda q: run(q)[1].sum())(q))
    compiled = torch.compile(lambda q: 2.0 * run(q.tanh()).v, backend="aot_eager")
    assert torch.allclose(compiled(q), 2.0 * run(q.tanh())[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shape",
    [(2,), (4, 2), (1, 4, 2), (3, 2), (3, 1, 2), (3, 4, 2), (3, 3, 2), (5, 4, 2), (2, 3, 4, 2)],
)
@pytest.mark.parametrize("begin", [(2,), (1, 2), (3, 2)])
@pytest.mark.parametrize("steps", [3, 4])
def test_torques_of_a_rollout_are_read_as_numpys(shape, begin, steps):
    """Rows per step or per motion, decided by the batch axes of q and v; ambiguous shapes are
    refused."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(x) for x in (begin, (3, 2), shape)]
    try:
        wanted = pp.rollout(ARM, *given, steps=steps)
    except pp.StateError as error:
        with pytest.raises(pp.StateError, match=re.escape(error.cause)):
            pp.rollout(ARM, *map(torch.tensor, given), steps=steps)
        return
    for x, y in zip(wanted, pp.rollout(ARM, *map(torch.tensor, given), steps=steps), strict=True):
        np.testing.assert_array_equal(x, y.numpy())


def test_jacobians_of_rollouts_row_by_row():
    """Weights with more batch axes than the motion, once and twice."""
    x, rest, steps = (
        torch.tensor([0.3, 0.1], dtype=torch.float64),
        torch.zeros(2, dtype=torch.float64),
        dict(dt=0.02, steps=3),
    )
    motion = pp.rollout(ARM, x.numpy(), rest.numpy(), rest.numpy(), **steps)
    end = lambda x: pp.rollout(ARM, x, rest, rest, **steps)[0][-1]  # noqa: E731
    rows = torch.func.jacrev(end)(x).numpy()
    for i, row in enumerate(rows):
        weights = np.zeros_like(motion.q)
        weights[-1, i] = 1.0
        np.testing.assert_allclose(row, motion.vjp(weights)["q"], rtol=1e-12)
        bend = torch.func.jacrev(torch.func.grad(lambda x, i=i: end(x)[i]))(x).numpy()
        np.testing.assert_allclose(
            bend, [motion.hvp(weights, q=unit)["q"] for unit in np.eye(2)], rtol=1e-9, atol=1e-12
        )


def test_a_rollout_is_of_the_numbers_that_came():
    """Of an array that was written over, in the same place, it is another."""
    run = lambda q, v, tau: pp.rollout(ARM, q, v, tau, dt=0.02, steps=3)  # noqa: E731
    asked = RolloutFunction(
        run, tuple(Argument(name, (2,), name) for name in "qv"), None, (2, 2), 4
    )
    q, v = np.zeros(2), np.zeros(2)
    first = asked(q, v)[0].copy()
    q += 0.3
    assert not np.allclose(asked(q, v)[0], first)
    assert np.array_equal(asked(q, v)[0], pp.rollout(ARM, q, v, dt=0.02, steps=3).q)


def test_rollouts_of_a_batch_by_torch_func():
    q, v = (x.detach() for x in tensors(2, 2))
    tau = torch.zeros(5, 2, dtype=torch.float64)

    def loss(q, v, tau):
        return pp.rollout(ARM, q, v, tau, steps=5, dt=0.02)[0].pow(2).sum()

    each = torch.func.vmap(torch.func.grad(loss, argnums=2), in_dims=(0, 0, None))(q, v, tau)
    assert torch.allclose(
        each.sum(0), torch.func.grad(loss, argnums=2)(q, v, tau)
    ) and each.shape == (2, 5, 2)


def test_linearize():
    """A and B of tensors, one dt or one a state; they have gradients."""
    robot = hung().robot
    rng = np.random.default_rng(0)
    state = robot.random(rng, 2), *rng.standard_normal((2, 2, 4))
    at = [torch.from_numpy(x).requires_grad_() for x in state]
    for dt, theirs in (
        (None, None),
        (0.01, 0.01),
        (np.full(2, 0.01), torch.full((2, 1), 0.01, dtype=torch.float64)),
    ):
        host, found = robot.linearize(*state, dt), robot.linearize(*at, theirs)
        assert all(
            np.allclose(x.detach().numpy(), y, rtol=1e-12, atol=1e-12)
            for x, y in zip(found, host, strict=True)
        )
    q, (v,) = torch.tensor(ball().random(rng)), tensors(3, batch=())
    assert check(
        lambda v: ball().linearize(q, v, torch.zeros_like(v), 0.01)[0].sum(-1),
        (v,),
        check_forward_ad=True,
    )
    assert robot.linearize(*(x.detach().float() for x in at))[0].dtype == torch.float32
    with pytest.raises(
        pp.StateError, match="linearize: tau is float32, and another argument float64"
    ):
        robot.linearize(*at[:2], at[2].float())


def test_a_rollout_without_a_derivative_says_so():
    q, v = tensors(2, 2)
    with pytest.raises(pp.Error, match=r"limits=.block"):
        pp.rollout(ARM, q, v, steps=5, limits="block")
    (slope,) = torch.autograd.grad(pp.rollout(ARM, q, v, steps=5)[0].sum(), q, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), q, create_graph=True)
    with pytest.raises(pp.Error, match="third derivatives"):
        bend.sum().backward()


def test_second_derivatives_of_rollouts():
    q, v = tensors(2, 2)
    tau = torch.tensor(np.random.default_rng(3).standard_normal((4, 2)), requires_grad=True)
    motion = lambda *x: pp.rollout(ARM, *x, dt=0.02, steps=4, method="euler")  # noqa: E731
    assert torch.autograd.gradgradcheck(motion, (q, v, tau), check_fwd_over_rev=True)
    func, start = torch.func, [x.detach() for x in (q[0], v[0], tau)]
    loss = lambda *x: sum(y.pow(2).sum() for y in motion(*x))  # noqa: E731
    bend = func.hessian(loss, (0, 1, 2))(*start)
    for twice in (
        lambda f, n: func.jacfwd(func.jacfwd(f, n), n),
        lambda f, n: func.jacrev(func.jacfwd(f, n), n),
    ):
        for rows, wanted in zip(twice(loss, (0, 1, 2))(*start), bend, strict=True):
            assert all(map(torch.allclose, rows, wanted))


@pytest.mark.parametrize("robot", [ball(), slider_crank("to crank")], ids=["ball", "embedded"])
def test_motions_of_bent_coordinates_carry_changes(robot):
    """Quaternions, loops: forward mode equals motion.jvp, and twice, gradients of gradients."""
    rng, rest = np.random.default_rng(0), torch.zeros(robot.nv, dtype=torch.float64)
    q, v, way = robot.random(rng), *rng.standard_normal((2, robot.nv))

    def moved(x):
        return pp.rollout(
            robot,
            robot.integrate(torch.tensor(q), x),
            torch.tensor(v),
            dt=0.02,
            steps=3,
            method="euler",
        )

    there = pp.rollout(robot, q, v, dt=0.02, steps=3, method="euler").jvp(q=way)
    carried = torch.func.jvp(moved, (rest,), (torch.tensor(way),))[1]
    assert all(
        np.allclose(x, y, rtol=1e-10, atol=1e-12) for x, y in zip(carried, there, strict=True)
    )
    loss = lambda x: moved(x)[0].pow(2).sum()  # noqa: E731
    bend = torch.func.jacfwd(torch.func.jacfwd(loss))(rest)
    assert torch.allclose(bend, torch.func.jacrev(torch.func.jacrev(loss))(rest), rtol=1e-9)


def test_parameters_of_a_robot_have_gradients():
    light = ARM.free("mass")
    q, v, tau = tensors(2, 2, 2)
    masses = torch.tensor(light.parameters(), requires_grad=True)
    assert check(lambda q, m: light.forward_dynamics(q, v, tau, parameters=m), (q, masses))
    assert check(lambda q, m: light.at(m).step(q, v, tau, 0.01, method="euler"), (q, masses))
    assert torch.equal(
        light.at(masses).step(*(x.detach().numpy() for x in (q, v, tau)), 0.01)[0],
        light.at(masses).step(q, v, tau, 0.01)[0],
    )
    assert check(
        lambda m: light.at(m).linearize(q[0].detach().numpy(), v[0].detach(), tau[0].detach())[0],
        (masses,),
    )
    assert check(
        lambda m: pp.ComputedTorque(light.at(m), [0.1, 0.2])(0.0, np.ones(2), np.ones(2)), (masses,)
    )


def brick():
    """A body that flies."""
    b = pp.Builder("brick")
    b.body("brick", mass=2.0, com=(0.1, 0.2, -0.5), inertia=(0.8, 0, 0, 0.9, 0, 0.4))
    b.joint("flight", "free", parent="world", child="brick")
    return b.build()


def test_flying_bases_that_do_not_turn():
    """A step whose rotation angle is (almost) zero: also in float32, and second derivatives,
    compared with finite differences."""
    robot, func = brick(), torch.func
    q, still = torch.tensor(robot.random(seed=1)), torch.zeros(6, dtype=torch.float64)
    moved = lambda v: robot.integrate(q, v).sum()  # noqa: E731
    away = lambda v: robot.difference(q, robot.integrate(q, v))  # noqa: E731
    v = still.clone()
    v[3:] = torch.tensor([0.7, -0.4, 0.9])
    steps = 1e-2 * torch.eye(6, dtype=torch.float64)
    slope = func.vmap(func.grad(moved))
    near = [slope(v + x * steps) for x in (1, -1, 2, -2)]
    bend = (8.0 * (near[0] - near[1]) - (near[2] - near[3])) / 12e-2
    for turn in (0.0, 1e-8):
        assert torch.allclose(func.hessian(moved)(v + turn), bend, atol=1e-6)
        assert torch.allclose(
            func.jacrev(away)(v + turn), torch.eye(6, dtype=torch.float64), atol=1e-12
        )
    q, still = q.float(), still.float()
    assert torch.allclose(robot.integrate(q, still), q) and torch.allclose(
        func.jacfwd(away)(still), torch.eye(6), atol=1e-6
    )
    for method in ("lie", "rk4"):
        assert all(x.isfinite().all() for x in robot.step(q, still, still, 0.01, method=method))


@pytest.mark.parametrize("batch", [(), (2,)])
def test_motions_have_gradients_by_parameters(batch):
    """One set of parameters for all motions, or one per motion; also of losses, and second
    derivatives; compared with motion.vjp; other cases are errors."""
    light, start = ARM.free("mass", "damping"), np.array([0.3, 0.2])
    p = torch.tensor(
        np.broadcast_to(light.parameters() + 0.1, (*batch, 4)) * np.linspace(0.9, 1.1, 4),
        requires_grad=True,
    )
    run = lambda p, q: pp.rollout(light.at(p), q, steps=3, dt=0.02, method="euler", damping=True)  # noqa: E731
    q = torch.tensor(np.stack([start, start + 0.1]), requires_grad=True)
    assert check(run, (p, q), check_forward_ad=True)
    assert check_twice(run, (p, q), check_fwd_over_rev=True)
    motion = run(p.detach().numpy(), start)
    (slope,) = torch.autograd.grad(run(p, start)[0].sum(), p)
    np.testing.assert_allclose(slope, motion.vjp(np.ones_like(motion.q))["parameters"], rtol=1e-12)
    for call, words in (
        (
            lambda: pp.rollout(light.at(p), start, steps=3, limits="block"),
            "changes velocities abruptly",
        ),
        (lambda: run(p[..., :3], start), r"parameters has shape .*3.*, expected \(..., 4\)"),
        (
            lambda: pp.simulate(light.at(p), start, duration=0.1),
            "simulate: parameters is a tensor that requires grad",
        ),
    ):
        with pytest.raises(pp.Error, match=words):
            call()


def test_copies_have_numbers_of_their_own():
    fresh = pp.load("pelican").function("gravity")
    other = pickle.loads(pickle.dumps(fresh))
    assert len({fresh.number, other.number, copy.copy(fresh).number}) == 3
    assert torch.equal(other(torch.zeros(2)), fresh(torch.zeros(2)))


def laws():
    """Controllers of arms, of a ball, of a robot with free masses; one needs a torque at a joint
    without motor."""
    socket, light = ball(), ARM.free("mass")
    light = light.at(2.0 * light.parameters())
    yield ARM, pp.PD(ARM, lambda t: np.array([t, 0.2]), kp=3.0, kd=[0.5, 0.2], gravity=True)
    yield socket, pp.PD(socket, socket.random(seed=1), kp=3.0, kd=0.5)
    yield light, pp.ComputedTorque(light, [0.1, 0.2])
    yield ARM, pp.ComputedTorque(ARM, [0.1, 0.2], passive=[ARM.joint_names[0]])
    yield ARM, pp.GravityCompensation(ARM)
    yield ARM, pp.Lyapunov(ARM, [0.1, 0.2], 3.0, 0.5)


def test_controllers_called_by_hand():
    """The steps of a law, with derivatives by the state; other values may be arrays of any
    library."""
    for robot, law in laws():
        rng = np.random.default_rng(0)
        q, v = robot.random(rng, 2), rng.standard_normal((2, robot.nv))
        tau = law(0.3, torch.tensor(q), torch.tensor(v))
        np.testing.assert_allclose(tau.numpy(), law(0.3, q, v), rtol=1e-12, atol=1e-12)
        assert law(0.3, torch.tensor(q).float(), torch.tensor(v[0]).float()).dtype == torch.float32
        rest = torch.zeros(robot.nv, dtype=torch.float64, requires_grad=True)

        def asked(x, v, q=q, law=law, robot=robot):
            return law(0.3, robot.integrate(torch.tensor(q[0]), x), v)

        assert check(asked, (rest, torch.tensor(v[0], requires_grad=True)), check_forward_ad=True)
    assert type(pp.GravityCompensation(ARM)(0.0, np.zeros(2), torch.zeros(2))) is torch.Tensor
    q, chain = torch.zeros(2), pp.connect(ARM, [pp.Loop("distance", "tool", "world", length=0.3)])
    assert torch.equal(pp.PD(chain, [0.1, 0.2], 3.0, 0.5)(0.0, q, q), torch.tensor([0.3, 0.6]))
    for call, words in (
        (
            lambda: pp.PD(ARM, [0.1, 0.2], 3.0, 0.5)(0.0, q[:1], q),
            r"PD: q has shape \(1,\), expected \(..., 2\)",
        ),
        (lambda: pp.PD(ARM, [0.1, 0.2], 3.0, 0.5)(0.0, q.long(), q), "PD: q is of dtype int64"),
        (
            lambda: pp.PD(ARM, [0.1, 0.2], torch.ones(2, requires_grad=True), 0.5),
            "kp is a tensor that requires grad",
        ),
        (
            lambda: pp.GravityCompensation(chain)(0.0, q, q),
            "GravityCompensation of a closed chain takes NumPy arrays",
        ),
    ):
        with pytest.raises(pp.Error, match=words):
            call()


def polar():
    """A hand of 1 kg on a slide that turns: 1.5 kg outwards and, 1 m out, 1.5 kg tangentially;
    nothing lifts it."""
    b = pp.Builder("polar", gravity=(0, 0, 0))
    b.body("arm", mass=1.0, inertia=np.diag([0.5, 0.5, 0.5]))
    b.joint("turn", "revolute", "world", "arm")
    b.body("hand", mass=1.0, inertia=np.zeros((3, 3)))
    b.joint("out", "prismatic", "arm", "hand", axis=(1, 0, 0), armature=0.5)
    return b.build()


def _slope(f, x, h=1e-4):
    """d f / dx by differences of fourth order."""
    there, back, far, behind = (
        np.stack([np.asarray(f(x + s * h * e)) for e in np.eye(len(x))], -1) for s in (1, -1, 2, -2)
    )
    return (8.0 * (there - back) - (far - behind)) / (12.0 * h)


def test_laws_of_task_space_where_compliances_are_equal():
    """First and second derivatives, compared with differences of NumPy's eigenvectors; also in
    float32."""
    law = pp.OperationalSpace(polar(), "hand", np.array([0.5, 0.9, 0.3]), kp=10.0, kd=3.0)
    q, rate = np.array([0.7, 1.0]), torch.tensor([0.2, -0.1], dtype=torch.float64)

    def of(x):
        return torch.autograd.functional.jacobian(
            lambda y: law(0.0, y, rate.to(y.dtype)), x
        ).numpy()

    slope = _slope(lambda x: law(0.0, x, rate.numpy()), q)
    np.testing.assert_allclose(of(torch.tensor(q)), slope, rtol=1e-7)
    short = torch.tensor(q, dtype=torch.float32)
    np.testing.assert_allclose(
        law(0.0, short, rate.float()).numpy(), law(0.0, q, rate.numpy()), rtol=1e-5
    )
    np.testing.assert_allclose(of(short), slope, rtol=1e-4)
    bend = torch.autograd.functional.hessian(
        lambda x: law(0.0, x, rate).sum(), torch.tensor(q)
    ).numpy()
    np.testing.assert_allclose(
        bend, _slope(lambda x: of(torch.tensor(x)).sum(axis=0), q, 1e-3), rtol=1e-6, atol=1e-6
    )


def test_laws_of_task_space_at_their_target():
    """The norm of zero has no derivative, its square has; stretched arms have rows without motion,
    also in float32."""
    robot = pp.load("pelican")
    law, q, rest = (
        pp.OperationalSpace(robot, "tool", robot.frame_pose([0.0, 0.0], "tool")[:3, 3]),
        np.zeros(2),
        np.zeros(2),
    )
    found = torch.autograd.functional.jacobian(
        lambda x: law(0.0, x, torch.zeros_like(x)), torch.tensor(q)
    ).numpy()
    np.testing.assert_allclose(found, _slope(lambda x: law(0.0, x, rest), q), atol=1e-6)
    assert np.isfinite(law(0.0, torch.zeros(2), torch.zeros(2)).numpy()).all()


def test_descriptions_lose_no_gradient():
    """Robots are built from floats: a tensor that requires a gradient is refused."""
    x, three, eye = (
        torch.tensor(y, dtype=torch.float64, requires_grad=True)
        for y in (1.0, [0.0, 0.0, -1.0], np.eye(3))
    )
    b, link = pp.Builder("b"), ARM.bodies[1].name
    for call in (
        lambda: ARM.with_gravity(three),
        lambda: ARM.with_gravity([0.0, 0.0, x]),
        lambda: pp.load("pelican", gravity=three),
        lambda: ARM.with_inertia(link, mass=x),
        lambda: ARM.with_inertia(link, com=three),
        lambda: b.body("link", mass=x),
        lambda: b.body("link", mass=1.0, inertia=eye),
        lambda: b.joint("joint", "revolute", "world", "link", rotation=eye),
        lambda: b.joint("joint", "revolute", "world", "link", damping=x),
    ):
        with pytest.raises(
            pp.Error, match=r"is a tensor that requires grad.*Remedy: .*(free|gravity is no input)"
        ):
            call()
