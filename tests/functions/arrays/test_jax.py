"""JAX arrays on the CPU: values, jit, grad, vmap, derivatives of any order; errors name the
argument."""

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.memory_layout import aligned_array
from psiphi_bench.interpreted_robot import uncompiled

jax = pytest.importorskip("jax")
jnp = jax.numpy
check_grads = pytest.importorskip("jax.test_util").check_grads
primitives = pytest.importorskip("psiphi.functions.arrays.jax_primitives")

ARM = pp.load("pelican")  # two hinges
f = ARM.forward_dynamics


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def arrays(*sizes, batch=(2,), seed=0):
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(rng.standard_normal((*batch, n))) for n in sizes)


def plain(*arrays):
    return [np.asarray(x) for x in arrays]


def test_values_are_numpys_in_jit_and_out_of_it():
    q, v, tau = arrays(2, 2, 2)
    a = f(*plain(q, v, tau))
    assert isinstance(f(q, v, tau), jax.Array) and np.array_equal(f(q, v, tau), a)
    assert np.array_equal(jax.jit(f)(q, v, tau), a)
    assert np.array_equal(
        jax.jit(f)(q, v[0], tau[:1]), f(*plain(q, v[0], tau[:1]))
    )  # one row for all
    wide = jax.jit(f)(q[:, None], v[None], tau[0])
    assert np.array_equal(wide, f(*plain(q[:, None], v[None], tau[0])))
    single = [x.astype(jnp.float32) for x in (q, v, tau)]
    assert jax.jit(f)(*single).dtype == jnp.float32 and np.array_equal(
        jax.jit(f)(*single), f(*plain(*single))
    )
    assert np.array_equal(f(q, [0, 0], np.zeros(2)), f(np.asarray(q), np.zeros(2), np.zeros(2)))
    assert np.array_equal(jax.jit(ARM.mass_matrix)(q), ARM.mass_matrix(np.asarray(q)))


def test_xla_calls_the_loop_itself(monkeypatch):
    assert primitives._has_handler()
    q, v, tau = arrays(2, 2, 2, batch=(17,))
    text = jax.jit(lambda *x: f(*x)).lower(q, v, tau).as_text()
    assert "psiphi_call" in text and "callback" not in text
    monkeypatch.setattr(primitives, "_has_handler", lambda: False)  # otherwise it calls back
    other = jax.jit(lambda *x: f(*x))
    assert "psiphi_call" not in other.lower(q, v, tau).as_text()
    assert np.array_equal(other(q, v, tau), f(*plain(q, v, tau)))


def test_derivatives_of_first_and_second_order():
    q, v, tau = arrays(2, 2, 2)
    check_grads(f, (q, v, tau), order=2)
    check_grads(f, (q, v[0], tau), order=1)  # summed where it was repeated
    check_grads(ARM.mass_log_det, (q,), order=2)
    gradient = jax.jit(jax.grad(lambda q: f(q, v, tau).sum()))(q)
    assert np.allclose(
        gradient, ARM.function("forward_dynamics").vjp("q")(*plain(q, v, tau), np.ones((2, 2)))[1]
    )
    hessian = jax.vmap(jax.hessian(lambda q, v, tau: f(q, v, tau).sum()))(q, v, tau)
    assert np.allclose(
        hessian, ARM.function("forward_dynamics").hessian("q")(*plain(q, v, tau), np.ones((2, 2)))
    )
    s, x = ARM.operators, pp.vector("v")
    check_grads(pp.function(x.T @ s.mass @ x / 2), (q, v), order=1)


def test_vmap():
    q, v, tau = arrays(2, 2, 2)
    assert np.array_equal(
        jax.vmap(f, in_axes=(0, None, 1))(q, v[0], tau.T), f(*plain(q, v[0], tau))
    )
    square = jax.vmap(jax.vmap(f, in_axes=(0, None, None)), in_axes=(None, 0, None))(q, v, tau[0])
    assert np.array_equal(square, f(*plain(q, v[:, None], tau[0])))


def test_steps_and_rollouts():
    q, v, tau = arrays(2, 2, 2)
    check_grads(lambda *x: ARM.step(*x, 0.02, method="euler"), (q, v, tau), order=1)
    for way in (lambda f: f, jax.jit):
        check_grads(
            way(lambda *x: tuple(pp.rollout(ARM, *x, dt=0.02, steps=4))), (q, v, tau), order=2
        )
    # weights with an axis more than the motion
    rows = jax.jacrev(lambda q: pp.rollout(ARM, q, v, tau[:, None], dt=0.02, steps=2)[0])(q)
    bend = jax.jacrev(
        jax.grad(lambda q: pp.rollout(ARM, q, v, tau[:, None], dt=0.02, steps=2)[0].sum())
    )(q)
    assert rows.shape == (*q.shape[:-1], 3, 2, *q.shape) and np.isfinite(bend).all()
    found = jax.jit(lambda *x: pp.rollout(ARM, *x, steps=4)[0])(q, v, tau)
    assert np.array_equal(found, pp.rollout(ARM, *plain(q, v, tau), steps=4).q)


def test_a_rollout_has_names():
    """q and v of JAX arrays, in and out of jit, vmap and grad."""
    q, v = arrays(2, 2)
    run = lambda q, v: pp.rollout(ARM, q, v, dt=0.02, steps=3)  # noqa: E731
    wanted = run(*plain(q, v))
    for found in (run(q, v), jax.jit(run)(q, v), jax.vmap(run)(q, v)):
        first, second = found
        assert first is found.q and second is found.v
        assert np.array_equal(found.q, wanted.q) and np.array_equal(found.v, wanted.v)
    slope = jax.jit(jax.grad(lambda q: run(q, v).v.sum()))(q)
    assert np.allclose(slope, wanted.vjp(v_weight=np.ones_like(wanted.v))["q"], rtol=1e-12)


def test_linearize():
    """A and B, within jit, and by vmap; a ball and a hinge."""
    robot = pp.robots.random_tree(2, seed=0, kinds=("spherical", "revolute"))
    assert [joint.kind for joint in robot.joints] == ["spherical", "revolute"]
    q, v, tau = jnp.asarray(robot.random(0, 2)), *arrays(4, 4)

    def direct(f):
        return f

    for dt, method, wrapped in (
        (None, "rk4", (direct, jax.jit, jax.vmap)),
        (0.01, "lie", (direct, jax.jit, jax.vmap)),
        (0.01, "rk4", (jax.jit,)),
    ):
        f = lambda *x, dt=dt, method=method: robot.linearize(*x, dt, method)  # noqa: E731
        host = f(*plain(q, v, tau))
        for found in (wrap(f)(q, v, tau) for wrap in wrapped):
            assert all(
                np.allclose(x, y, rtol=1e-12, atol=1e-12) for x, y in zip(found, host, strict=True)
            )


def test_a_program_that_runs_again_has_the_numbers_of_this_run():
    """XLA uses its memory again: an address does not say which numbers stand there."""
    both = jax.jit(jax.value_and_grad(lambda q: (pp.rollout(ARM, q, steps=3)[0] ** 2).sum()))
    for seed in range(60):
        (q,) = arrays(2, seed=seed)
        value, slope = both(q)
        motion = pp.rollout(ARM, np.asarray(q), steps=3)
        assert np.allclose(value, (motion.q**2).sum(), rtol=1e-12), seed
        assert np.allclose(slope, motion.vjp(2 * motion.q)["q"], rtol=1e-9), seed


def test_rollouts_by_parameters():
    light = ARM.free("mass")
    run = lambda p: tuple(pp.rollout(light.at(p), [0.3, 0.2], steps=3, dt=0.02, method="euler"))  # noqa: E731
    p = jnp.asarray(light.parameters())
    for way in (lambda f: f, jax.jit):
        check_grads(way(run), (p,), order=1)
    check_grads(jax.vmap(run), (jnp.stack([p, 1.1 * p]),), order=1)
    with pytest.raises(pp.Error, match="dt cannot be read"):
        jax.jit(lambda h: pp.rollout(ARM, p, dt=h, steps=2))(0.1)


def test_jacobians_of_rollouts():
    """Many weights of one motion."""
    q, _ = arrays(2, 2, batch=())
    end = lambda q: pp.rollout(ARM, q, dt=0.02, steps=4)[0][-1]  # noqa: E731
    columns = [
        pp.rollout(ARM, np.asarray(q), dt=0.02, steps=4).jvp(q=unit)[0][-1] for unit in np.eye(2)
    ]
    for found in (
        jax.jacrev(end)(q),
        jax.jit(jax.jacrev(end))(q),
        jax.jacfwd(end)(q),
        jax.jit(jax.jacfwd(end))(q),
    ):
        assert np.allclose(found, np.stack(columns, axis=-1), rtol=1e-9)
    whole = lambda q: (end(q) ** 2).sum()  # noqa: E731
    bend = jax.jacrev(jax.jacrev(whole))(q)
    for twice in (
        jax.hessian,
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: jax.jacrev(jax.jacfwd(f)),
    ):
        for found in (twice(whole)(q), jax.jit(twice(whole))(q)):
            assert np.allclose(found, bend, rtol=1e-9, atol=1e-12)


def test_controllers_called_by_hand():
    q, v = arrays(2, 2)
    law = pp.ComputedTorque(ARM, [0.1, 0.2])
    ask = lambda q, v: law(0.0, q, v)  # noqa: E731
    assert np.allclose(jax.jit(ask)(q, v), ask(*plain(q, v)), rtol=1e-12)
    check_grads(ask, (q, v), order=1)


def test_jacobians_forwards():
    """Changes with an axis more than the arguments, within jit as outside."""
    q, v, tau = arrays(2, 2, 2, batch=())
    for asked in (lambda q: f(q, v, tau), lambda q: f(q, v, tau[None]), ARM.mass_matrix_factors):
        want = jax.tree.leaves(jax.jacrev(asked)(q))
        for found in (jax.jacfwd(asked)(q), jax.jit(jax.jacfwd(asked))(q)):
            assert all(map(np.allclose, jax.tree.leaves(found), want))
    energy = lambda q: ARM.energy(q, v)  # noqa: E731
    bend = ARM.function("energy").hessian("q")(*plain(q, v), 1.0)
    for twice in (
        jax.hessian,
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: jax.jacrev(jax.jacfwd(f)),
    ):
        assert np.allclose(jax.jit(twice(energy))(q), bend)


def test_quaternions_have_gradients_by_their_four_numbers():
    b = pp.Builder("ball")
    b.body("bob", mass=2.0, com=(0.1, 0.2, -0.5), inertia=(0.8, 0, 0, 0.9, 0, 0.4))
    b.joint("socket", "spherical", parent="world", child="bob")
    p, v, tau = arrays(4, 3, 3)
    check_grads(b.build().forward_dynamics, (p, v, tau), order=1)


def test_what_does_not_fit_is_named():
    q, v, tau = arrays(2, 2, 2)
    blocked = lambda q: pp.rollout(ARM, q, steps=2, limits="block")[0]  # noqa: E731
    wrong = [
        (lambda: f(q[:, :1], v, tau), r"q has shape \(2, 1\), expected \(\.\.\., 2\)"),
        (lambda: jax.jit(f)(q.astype(int), v, tau), "q is of dtype int"),
        (lambda: jax.jit(f)(q, v, jnp.zeros((3, 2))), "batch axes do not fit together"),
        (lambda: f(q, v, tau, check=True), "check=True works on NumPy arrays"),
        (lambda: f(q, v, tau, dtype=np.float32), "dtype= is for NumPy"),
        (
            lambda: jax.jit(lambda q: ARM.operational_space_inertia(q, "tool"))(q),
            "eigenvectors have no gradients",
        ),
        (lambda: jax.jvp(blocked, (q,), (q,)), "changes velocities abruptly"),
        (lambda: jax.jit(jax.jacfwd(blocked))(q), "changes velocities abruptly"),
        (lambda: jax.jit(jax.jacrev(blocked))(q), "changes velocities abruptly"),
        (
            lambda: jax.jacfwd(jax.hessian(lambda q: pp.rollout(ARM, q, steps=2)[0].sum()))(q),
            "third derivatives",
        ),
    ]
    for call, text in wrong:
        with pytest.raises(pp.Error, match=text):
            call()
    torch = pytest.importorskip("torch")
    with pytest.raises(pp.Error, match="arrays of jax and torch"):
        f(q, v, torch.zeros(2, dtype=torch.float64))


def test_numbers_beside_arrays_that_are_traced():
    """Wrenches, and states beside parameters: what is no array of JAX's becomes one."""
    q, w = np.array([0.5, 1.0]), np.arange(6.0)
    gradient = jax.grad(lambda x: f(q, q, q, f_ext={"tool": x, "world": w}).sum())(jnp.asarray(w))
    assert np.allclose(
        gradient,
        ARM.function("forward_dynamics", ("tool",)).vjp("f_ext")(q, q, q, w[None], np.ones(2))[1][
            0
        ],
    )
    light = ARM.free("mass")
    grown = jax.make_jaxpr(lambda p: light.at(p).linearize(q, q, q)[0])(
        jnp.asarray(light.parameters())
    )
    assert grown.out_avals[0].shape == (4, 4)


def test_numbers_beside_arrays_may_change_before_the_gradient_is_taken():
    """JAX shares NumPy memory that is aligned to a cache line: gradients use the values of the
    call."""
    _, _, tau = arrays(2, 2, 2, batch=())
    system = uncompiled(pp.connect(ARM, [pp.Loop("distance", "tool", "world", length=0.3)]))
    for call in (f, system.forward_dynamics, lambda *x: pp.rollout(ARM, *x, dt=0.1, steps=2)[1]):
        q = aligned_array((2,), 1)[:, 0]  # from a line of memory on
        q[:] = 0.5
        gradient = jax.vjp(lambda tau, q=q, call=call: call(q, np.zeros(2), tau), tau)[1]
        right = jax.vjp(lambda tau, call=call: call(np.full(2, 0.5), np.zeros(2), tau), tau)
        q[:] = 7.0
        assert np.array_equal(*(g(jnp.ones_like(right[0]))[0] for g in (gradient, right[1])))


def test_closed_chains():
    """Callbacks from jit; forward and reverse mode, twice; the gradient of a shared row is
    summed."""
    system = uncompiled(pp.connect(ARM, [pp.Loop("distance", "tool", "world", length=0.3)]))
    q, v, tau = arrays(2, 2, 2)
    g = system.function("contact_forces")
    assert np.array_equal(
        jax.jit(system.forward_dynamics)(q, v, tau), system.forward_dynamics(*plain(q, v, tau))
    )
    check_grads(system.forward_dynamics, (q, v[0], tau), order=1)
    check_grads(lambda q: g(q, v, tau)[..., 3:], (q,), order=2, rtol=1e-3)
    rows = jax.vmap(jax.jacrev(system.forward_dynamics))(q, v, tau)
    assert np.allclose(rows, system.function("forward_dynamics").jacobian("q")(*plain(q, v, tau)))
    assert (
        system.forward_dynamics(*(x.astype(jnp.float32) for x in (q, v, tau))).dtype == jnp.float32
    )
