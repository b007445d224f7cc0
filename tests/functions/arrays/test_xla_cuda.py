"""JAX's jit on the GPU, tested without a GPU: what XLA receives, and what the handler does with
XLA's call frame.

The GPU is a stand-in that runs kernels on the CPU; the frame has the layout of jaxlib's c_api.h.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

import psiphi as pp
from psiphi.backends.cuda.shared_memory import WARP
from psiphi.functions.arrays import xla_cuda
from tests.backends.cuda.fake_gpu import StandinDriver, cards
from tests.functions.call_cases import gymnast

jax = pytest.importorskip("jax")
jnp = jax.numpy
jax_primitives = pytest.importorskip("psiphi.functions.arrays.jax_primitives")

__all__ = ["cards"]  # a fixture
N = 35
STREAM = 7001  # of the second GPU
I32, WORD = ctypes.c_uint, ctypes.c_void_p


class XlaCards:
    """The driver's functions, as machine code calls them; `log` is what was asked of them."""

    def __init__(self, standin: StandinDriver, status: int = 0):
        self.log: list[tuple] = []
        self.kernels: dict[int, object] = {}
        load = standin.load
        standin.load = lambda *given: self._known(load(*given))  # type: ignore[method-assign]

        def launch(kernel, bx, by, bz, tx, ty, tz, shared, stream, parameters, extra):
            self.log.append(("launch", bx, tx, stream))
            if not status:
                made = self.kernels[kernel]
                made.launch(parameters, bx * tx // WARP // made.team)
            return status

        def owner(stream, place):
            ctypes.c_void_p.from_address(place).value = 0xC0 + stream - 7000 if stream else 0xDEAD
            return 0

        def push(context):
            self.log.append(("push", context))
            return 0

        def pop(place):
            self.log.append(("pop",))
            return 0

        kinds = WORD, I32, I32, I32, I32, I32, I32, I32, WORD, WORD, WORD
        made = (
            ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(launch),
            ctypes.CFUNCTYPE(ctypes.c_int, WORD, WORD)(owner),
        )
        made += tuple(ctypes.CFUNCTYPE(ctypes.c_int, WORD)(x) for x in (push, pop))
        self.functions = dict(zip(xla_cuda.DRIVER_FUNCTIONS, made, strict=True))
        standin.address = lambda name: ctypes.cast(self.functions[name], WORD).value  # type: ignore[attr-defined]

    def _known(self, emulation):
        self.kernels[emulation.handle] = emulation
        return emulation


def pointers(*arrays: np.ndarray) -> np.ndarray:
    return np.array([x.ctypes.data for x in arrays], dtype=np.int64)


def called(
    block: int, taken: list[np.ndarray], given: list[np.ndarray], stream: int = STREAM
) -> str:
    """The handler on a frame of XLA's; the words of its error."""
    words: list[bytes] = []

    def error(place):
        words.append(ctypes.string_at(ctypes.c_void_p.from_address(place + 16).value or 0))
        return 0xE

    def get(place):
        ctypes.c_void_p.from_address(place + 24).value = stream
        return 0

    door = ctypes.CFUNCTYPE(WORD, WORD)
    doors = door(error), door(get)
    api, frame = np.zeros(24, np.int64), np.zeros(24, np.int64)
    api[6], api[10] = (ctypes.cast(x, WORD).value for x in doors)
    buffers = [np.array([0, 0, 0, x.ctypes.data], np.int64) for x in (*taken, *given)]
    args, rets = pointers(*buffers[: len(taken)]), pointers(*buffers[len(taken) :])
    value = np.array([block], np.int64)
    scalar = np.array([0, value.ctypes.data], np.int64)
    attrs = pointers(scalar)
    frame[2], frame[7], frame[9] = api.ctypes.data, len(taken), args.ctypes.data
    frame[12], frame[14], frame[20] = len(given), rets.ctypes.data, attrs.ctypes.data
    status = door(int(xla_cuda.library().address("handler")))(frame.ctypes.data)
    assert (status == 0xE) == bool(words) and status in (None, 0xE)
    return b"".join(words).decode()


def lowered(f, *arrays) -> int:
    """The address of the block in XLA's program for the GPU."""
    text = jax.jit(f).trace(*arrays).lower(lowering_platforms=("cuda",)).as_text()
    assert f"@{xla_cuda.TARGET}(" in text and "callback" not in text
    return int(re.search(r"block = (-?\d+) : i64", text)[1])


@pytest.mark.parametrize("char", "df")
def test_a_call_sends_the_kernel_on_its_stream(cards, char):
    robot, rng = gymnast(), np.random.default_rng(0)
    machine = XlaCards(cards)
    q = robot.random(rng, N).astype(char)
    v, tau = (
        rng.standard_normal((N, robot.nv)).astype(char),
        rng.standard_normal(robot.nv).astype(char),
    )
    with jax.enable_x64(True):
        block = lowered(robot.forward_dynamics, *map(jnp.asarray, (q, v, tau)))
        a = np.full((N, robot.nv), np.nan, char)
        assert not called(block, [q, v, tau], [a])
        assert np.allclose(
            a, robot.forward_dynamics(q, v, tau), rtol=1e-4 if char == "f" else 1e-12
        )
        (_, blocks, threads, stream), order = machine.log[1], [x[0] for x in machine.log]
        assert order == ["push", "launch", "pop"] and machine.log[0] == ("push", 0xC1)
        assert stream == STREAM and blocks * threads >= N


def test_gradients_batches_and_nothing_at_all(cards):
    robot, rng = gymnast(), np.random.default_rng(1)
    machine = XlaCards(cards)
    q = robot.random(rng, N)
    with jax.enable_x64(True):
        text = (
            jax.jit(jax.grad(lambda q: robot.gravity(q).sum()))
            .trace(jnp.asarray(q))
            .lower(lowering_platforms=("cuda",))
        )
        assert text.as_text().count(f"@{xla_cuda.TARGET}(") >= 1
        block = lowered(robot.gravity, jnp.asarray(q[:0]))
        assert not called(block, [q[:0]], [np.zeros((0, robot.nv))]) and not machine.log


def test_what_the_driver_refuses_is_an_error_of_xlas(cards):
    robot = gymnast()
    q, out = robot.random(seed=0, size=3), np.zeros((3, robot.nv))
    with jax.enable_x64(True):
        machine = XlaCards(cards, status=700)
        block = lowered(robot.gravity, jnp.asarray(q))
        assert "the GPU driver refused to launch a kernel" in called(block, [q], [out])
        assert [x[0] for x in machine.log] == ["push", "launch", "pop"]
        assert (
            "refused to launch a kernel" in called(block, [q], [out], stream=0)
            and len(machine.log) == 3
        )  # of no GPU


def sent(f, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of a function inside jit on the GPU: of each XLA call of its program, in
    order."""

    def door(target, shapes):
        def call(*values, block, key):
            out = [np.full(x.shape, np.nan, x.dtype) for x in shapes]
            assert (
                target == xla_cuda.TARGET
                and key
                and not called(int(block), [*map(np.asarray, values)], out)
            )
            return [*map(jnp.asarray, out)]

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.ffi, "ffi_call", door)
        return [
            np.asarray(x) for x in evaluated(jax.make_jaxpr(f)(*map(jnp.asarray, arrays)), arrays)
        ]


def evaluated(traced, arrays) -> list:
    """Evaluate a JAX program operation by operation; psiphi's as on the GPU."""
    known = dict(zip(traced.jaxpr.constvars, traced.consts, strict=True))
    known |= dict(zip(traced.jaxpr.invars, map(jnp.asarray, arrays), strict=True))

    def value(x):
        return x.val if hasattr(x, "val") else known[x]

    for line in traced.jaxpr.eqns:
        given = [value(x) for x in line.invars]
        if line.primitive is jax_primitives.value_p:
            found = jax_primitives.record_launches(line.params["function"], *given)
        elif inner := line.params.get("jaxpr"):
            found = evaluated(inner, given)
        else:
            found = line.primitive.bind(*given, **line.params)
        known |= dict(
            zip(line.outvars, found if isinstance(found, list | tuple) else [found], strict=True)
        )
    return [value(x) for x in traced.jaxpr.outvars]


def near(x: np.ndarray, y: np.ndarray) -> bool:
    close = 1e-4 if x.dtype == np.float32 else 1e-9
    return x.shape == y.shape and bool((np.abs(x - y) <= close * np.abs(y).max(initial=0.0)).all())


@pytest.mark.parametrize("char", "df")
def test_whole_motions(cards, char):
    """One launch; gains and dt are constants of the program; torques of each step are an
    argument."""
    robot, rng = pp.load("pelican"), np.random.default_rng(2)
    machine = XlaCards(cards)
    q, v = (rng.standard_normal((3, 2)).astype(char) for _ in range(2))
    tau = rng.standard_normal((3, 4, 2)).astype(char)
    hold = pp.PD(robot, np.zeros(2), kp=np.array([30.0, 20.0]), kd=3.0)
    with jax.enable_x64(True):
        for f, given in (
            (lambda q, v: tuple(pp.rollout(robot, q, v, hold, steps=4, every=2)), [q, v]),
            (lambda q, v, tau: tuple(pp.rollout(robot, q, v, tau, steps=4)), [q, v, tau]),
            (lambda q: tuple(pp.rollout(robot, q, steps=4)), [q[:0]]),
        ):
            assert lowered(f, *map(jnp.asarray, given))
            assert all(
                near(x, y.astype(char)) for x, y in zip(sent(f, *given), f(*given), strict=True)
            )
        assert [x[0] for x in machine.log] == ["push", "launch", "pop"] * 2


@pytest.mark.parametrize("char", "df")
def test_gradients_of_whole_motions(cards, char):
    """One XLA call for the motion, its steps between samples again, and the backward sweep;
    gradients by the initial state, by shared torques, and of a ball joint by its four numbers."""
    robot, rng = gymnast(), np.random.default_rng(3)
    machine = XlaCards(cards)
    q, v, tau = (
        robot.random(rng, 3).astype(char),
        rng.standard_normal((3, robot.nv)).astype(char),
        np.ones(robot.nv, char),
    )
    table = rng.standard_normal((3, 6, robot.nv)).astype(char)
    weights = [rng.standard_normal((3, 3, n)).astype(char) for n in (robot.nq, robot.nv)]

    def loss(q, v, tau):
        Q, V = pp.rollout(robot, q, v, tau, steps=6, every=3, dt=1e-2, method="euler")
        return (Q * weights[0]).sum() + (V * weights[1]).sum()

    with jax.enable_x64(True):
        for given in ((q, v, tau), (q, v, table)):
            f = jax.grad(loss, argnums=(0, 1, 2))
            assert lowered(f, *map(jnp.asarray, given))
            del machine.log[:]
            found = sent(f, *given)
            assert [x[0] for x in machine.log].count("push") == 2  # the motion, and its gradient
            host = [np.asarray(x) for x in f(*map(jnp.asarray, given))]
            assert all(
                near(x.astype(char), y.astype(char)) for x, y in zip(found, host, strict=True)
            )


def test_gradients_of_many_weights_and_of_none(cards):
    """jacrev: many weights of one motion; an empty batch; the initial state only; second
    derivatives; one row of torques for all steps; forward mode, also over reverse mode; the
    numbers of a quaternion."""
    robot, turner = pp.load("pelican"), gymnast().with_gravity((0, 0, -1.0))  # a kernel of its own
    XlaCards(cards)
    with jax.enable_x64(True):
        for f, q in (
            (jax.jacrev(lambda q: pp.rollout(robot, q, steps=2)[0][-1]), np.array([0.3, 0.2])),
            (jax.grad(lambda q: pp.rollout(robot, q, steps=2)[0].sum()), np.zeros((0, 2))),
            (jax.grad(lambda q: (pp.rollout(robot, q, steps=0)[0] ** 2).sum()), np.ones((2, 2))),
            (
                jax.jacrev(
                    jax.grad(lambda q: (pp.rollout(robot, q, steps=4, every=2)[1] ** 2).sum())
                ),
                np.array([0.3, 0.2]),
            ),
            (
                jax.grad(lambda tau: pp.rollout(robot, np.ones(2), tau=tau, steps=3)[0].sum()),
                np.ones((1, 2)),
            ),
            (
                jax.jacfwd(lambda q: pp.rollout(robot, q, steps=4, every=2)[0][-1]),
                np.array([0.3, 0.2]),
            ),
            (
                lambda q: jax.jvp(lambda q: pp.rollout(robot, q, tau=q, steps=3)[1], (q,), (q,))[1],
                np.ones((2, 2)),
            ),
            (
                jax.hessian(
                    lambda tau: (pp.rollout(robot, np.ones(2), tau=tau, steps=3)[0] ** 2).sum()
                ),
                np.ones(2),
            ),
            (
                jax.hessian(lambda q: pp.rollout(turner, q, steps=2, method="euler")[0].sum()),
                turner.random(seed=3),
            ),
        ):
            (found,) = sent(f, q)
            assert (
                np.allclose(found, f(jnp.asarray(q)), rtol=1e-9, atol=1e-12)
                and found.shape == f(jnp.asarray(q)).shape
            )


def test_closed_chains_within_jit(cards):
    """Accelerations, and their gradients."""
    chain = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    XlaCards(cards)
    q = chain.assemble(np.tile([0.5, 1.0], (3, 1)))
    with jax.enable_x64(True):
        for f in (
            chain.forward_dynamics,
            jax.grad(lambda *x: (chain.forward_dynamics(*x) ** 2).sum(), argnums=(0, 2)),
        ):
            found, host = (
                sent(f, q, 0 * q, 0 * q + 1.0),
                f(*map(jnp.asarray, (q, 0 * q, 0 * q + 1.0))),
            )
            assert all(
                near(x, np.asarray(y))
                for x, y in zip(found, host if isinstance(host, tuple) else [host], strict=True)
            )


def test_what_has_no_derivative_is_refused_in_words(cards):
    XlaCards(cards)
    robot = pp.robots.puma560()
    with jax.enable_x64(True), pytest.raises(pp.Error, match="has no derivative"):
        lowered(
            jax.grad(lambda q: pp.rollout(robot, q, steps=3, limits="block")[0].sum()),
            jnp.zeros((3, 6)),
        )
