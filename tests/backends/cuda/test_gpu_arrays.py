"""Arrays on a graphics card: every function answers there, with the host's bits, or says in words
what is wrong.

The card is a stand-in (`notebook_cards.py`) whose arrays refuse to be read on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.apps.cli import main as cli
from psiphi.backends.cpu.cpu_target import has_fma
from psiphi.backends.cuda import driver_bindings
from tests.backends.cuda.fake_gpu import CardArray, Standin, StandinDriver, cards
from tests.backends.kernels import same_bits
from tests.functions.call_cases import DOORS, Door, arguments, gymnast, parts, stone

__all__ = ["cards"]  # a fixture
N = 35


def on(given: dict[str, np.ndarray], device: int = 0) -> dict[str, CardArray]:
    return {name: CardArray(array, device) for name, array in given.items()}


def agree(found: Any, host: Any) -> None:
    for x, y in zip(parts(found), map(np.asarray, parts(host)), strict=True):
        assert isinstance(x, CardArray) and x.array.shape == y.shape and x.array.dtype == y.dtype
        assert same_bits(x.array, y) if has_fma() else np.allclose(x.array, y, rtol=1e-4)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_every_function_of_a_robot(door: Door, cards: StandinDriver):
    robot, given = gymnast(), arguments(gymnast(), (N,))
    agree(door(robot, on(given)), door(robot, given))
    kind, blocks, threads, stream, device = cards.log[-1]
    assert kind == "launch" and blocks * threads >= N and (stream, device) == (7000, 0)


def test_both_number_types_and_wrenches(cards):
    robot = gymnast()
    for char in "df":
        given = {name: x.astype(char) for name, x in arguments(robot, (N,)).items()}
        force, at = np.arange(6, dtype=char), on(given)
        found = robot.forward_dynamics(
            at["q"], at["v"], at["tau"], f_ext={"tool": CardArray(force)}
        )
        agree(
            found,
            robot.forward_dynamics(given["q"], given["v"], given["tau"], f_ext={"tool": force}),
        )


def test_batches_of_every_shape(cards):
    """None, several axes, one row for all, none at all."""
    robot = gymnast()
    for lead in ((), (1,), (2, 3), (0,)):
        given = arguments(robot, lead)
        agree(robot.gravity(CardArray(given["q"])), robot.gravity(given["q"]))
    q, v = arguments(robot, (2, 3))["q"], arguments(robot)["v"]
    agree(robot.bias(CardArray(q), CardArray(v)), robot.bias(q, v))
    agree(robot.bias(CardArray(q), CardArray(v[None, None])), robot.bias(q, v))
    agree(
        robot.bias(CardArray(q[0, 0]), CardArray(np.tile(v, (4, 1)))),
        robot.bias(q[0, 0], np.tile(v, (4, 1))),
    )


def test_derivatives_expressions_and_quasi_velocities(cards):
    robot = pp.robots.puma560()
    d = robot.diagonalised
    given = arguments(robot, (N,))
    q, v, tau, x = (given[name] for name in ("q", "v", "tau", "x"))
    f, at = robot.function("forward_dynamics"), [CardArray(y) for y in (q, v, tau)]
    agree(f.jacobian("q", "v")(*at), f.jacobian("q", "v")(q, v, tau))
    agree(f.jvp("q")(*at, CardArray(x)), f.jvp("q")(q, v, tau, x))
    agree(f.vjp("tau")(*at, CardArray(x)), f.vjp("tau")(q, v, tau, x))
    s = robot.operators
    g = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    agree(g(at[0]), g(q))
    agree(d.velocities(at[0], at[1]), d.velocities(q, v))
    agree(d.motion(*at), d.motion(q, v, tau))


def test_out_and_another_card(cards):
    robot, given = gymnast(), arguments(gymnast(), (N,))
    q, out = CardArray(given["q"], 1), CardArray(np.zeros((N, robot.nv)), 1)
    assert robot.gravity(q, out=out) is out and cards.log[-1][3:] == (7001, 1)
    assert same_bits(out.array, robot.gravity(given["q"])) or not has_fma()


def test_kernels_are_loaded_once_a_card_and_found_in_the_cache(cards):
    b = pp.Builder("pole of its own")
    b.body("pole", 1.2345, com=(0, 0, 0.5), inertia=np.eye(3))
    b.joint("hinge", "revolute", "world", "pole", axis=(1, 0, 0))
    robot, again = b.build(), b.build()
    for device in (0, 1, 0):
        robot.gravity(CardArray([0.5], device))
    assert [entry[:2] for entry in cards.log if entry[0] != "launch"] == [
        (x, i) for i in (0, 1) for x in ("assemble", "load")
    ]
    cards.log.clear()
    again.gravity(CardArray([0.5]))
    assert [entry[0] for entry in cards.log] == ["load", "launch"]


def test_a_robot_that_does_not_move(cards):
    agree(stone().gravity(CardArray(np.zeros((3, 0)))), stone().gravity(np.zeros((3, 0))))
    agree(
        stone().frame_pose(CardArray(np.zeros((3, 0))), "tool"),
        stone().frame_pose(np.zeros((3, 0)), "tool"),
    )


@pytest.mark.parametrize("method", ["rk4", "euler", "lie", "implicit"])
def test_steps(method, cards):
    """Bits of the host, for flat robots and curved ones."""
    for robot in (pp.robots.puma560(), gymnast()):
        given = arguments(robot, (N,))
        q, v, tau = (given[name] for name in ("q", "v", "tau"))
        for dt in (1e-3, 2e-3, 1e-3):
            agree(
                robot.step(*map(CardArray, (q, v, tau)), dt, method),
                robot.step(q, v, tau, dt, method),
            )


def test_rollouts_in_one_launch(cards):
    """Bits of the host: nothing drives it, numbers, controllers with references of all kinds,
    losses, limits of effort."""
    robot = pp.robots.puma560()
    given = arguments(robot, (N,))
    q, v, tau = given["q"], given["v"], given["tau"]
    each = pp.PD(robot, q, kp=np.linspace(10, 60, 6), kd=5.0, gravity=True)
    moving = pp.ComputedTorque(
        robot,
        lambda t: (np.full(6, np.sin(t)), np.full(6, np.cos(t)), np.full(6, -np.sin(t))),
        kp=9.0,
        kd=6.0,
    )
    for options in (
        {},
        dict(tau=tau[0]),
        dict(tau=each, damping=True, effort=True, every=3),
        dict(tau=moving, method="euler", hold=True),
        dict(tau=moving),
        dict(tau=np.random.default_rng(0).standard_normal((7, 6)), method="lie"),
        dict(springs=[5e5, 1e4, 0.0, 20.0, 3.0, 1.0], damping=3.0, method="midpoint"),
        dict(springs=2e4, friction=0.5),
    ):
        cards.log.clear()
        found = pp.rollout(robot, CardArray(q), CardArray(v), steps=7, **options)
        assert [entry[0] for entry in cards.log].count("launch") == 1
        agree(found, pp.rollout(robot, q, v, steps=7, **options))
    agree(
        pp.rollout(robot, CardArray(q), tau=CardArray(tau), steps=4),
        pp.rollout(robot, q, tau=tau, steps=4),
    )
    free = gymnast()
    q = free.random(1, 5)
    found, host = (
        pp.rollout(free, CardArray(q), steps=9, every=2),
        pp.rollout(free, q, steps=9, every=2),
    )
    assert all(
        np.allclose(x.array, y, rtol=1e-12, atol=1e-12) for x, y in zip(found, host, strict=True)
    )
    q32 = robot.random(2, 5).astype("f")
    found, host = pp.rollout(robot, CardArray(q32), steps=9), pp.rollout(robot, q32, steps=9)
    assert all(
        x.array.dtype == np.float32 and np.allclose(x.array, y, atol=1e-4)
        for x, y in zip(found, host, strict=True)
    )


def wrong(robot: pp.Robot) -> dict[str, Any]:
    """What a call may be given, and the words it gets."""
    given = arguments(robot, (4,))
    q, v = given["q"], given["v"]
    bias, on_two = robot.bias, CardArray(v, 1)
    wide = CardArray(np.zeros((4, 2 * robot.nv))[:, ::2])
    odd = CardArray(
        np.frombuffer(bytes(8 * 4 * robot.nv + 4), np.uint8)[4:].view(float).reshape(4, robot.nv)
    )
    f = robot.function("bias")
    return {
        "v is a ndarray on the host, and q is on the GPU": lambda: bias(CardArray(q), v),
        "q is a ndarray on the host, and v is on": lambda: f(q, CardArray(v)),
        "v is on GPU 1, and q is on GPU 0": lambda: bias(CardArray(q), on_two),
        "v is float32, and q is float64": lambda: bias(CardArray(q), CardArray(v.astype("f"))),
        "v is of dtype int64": lambda: bias(CardArray(q), CardArray(v.astype(int))),
        "v is not aligned to 8 bytes": lambda: bias(CardArray(q), odd),
        "v is not contiguous": lambda: bias(CardArray(q), wide),
        r"v has shape \(4, 10\), expected \(..., 11\)": lambda: bias(
            CardArray(q), CardArray(v[:, :10])
        ),
        "batch axes do not fit together: q .4,., v .3,.": lambda: bias(
            CardArray(q), CardArray(v[:3])
        ),
        "q has batch axes .4, 1., the call has .4, 2.": lambda: bias(
            CardArray(q[:, None]), CardArray(np.zeros((4, 2, 11)))
        ),
        "check=True works on NumPy arrays": lambda: bias(CardArray(q), CardArray(v), check=True),
        "dtype is float32, and the arrays are float64": lambda: bias(
            CardArray(q), CardArray(v), dtype=np.float32
        ),
        "integrate: v is a ndarray on the host": lambda: robot.integrate(CardArray(q), v),
        "out is a ndarray": lambda: bias(CardArray(q), CardArray(v), out=np.zeros((4, 11))),
        "out is float64 .4, 10. on GPU 0": lambda: bias(
            CardArray(q), CardArray(v), out=CardArray(np.zeros((4, 10)))
        ),
        "out shares memory with v": lambda: bias(CardArray(q), CardArray(v), out=CardArray(v)),
        "v is a ndarray on the host, and q is": lambda: robot.step(CardArray(q), v, v, 1e-3),
        "dt is an array of NumPy": lambda: robot.step(
            CardArray(q), CardArray(v), CardArray(v), np.full(4, 1e-3)
        ),
        "step: dt is float32, and q is float64": lambda: robot.step(
            CardArray(q), CardArray(v), CardArray(v), CardArray(np.full((4, 1), 1e-3, "f"))
        ),
        r"step: dt has shape \(4,\), expected \(..., 1\)": lambda: robot.step(
            CardArray(q), CardArray(v), CardArray(v), CardArray(np.full(4, 1e-3))
        ),
        "v0 is a ndarray on the host": lambda: pp.rollout(robot, CardArray(q), v),
        "q0 is a ndarray on the host": lambda: pp.rollout(robot, q, CardArray(v)),
        "out= is not implemented on the GPU": lambda: pp.rollout(robot, CardArray(q), out=(q, v)),
        "effort= is not implemented for tau on the GPU": lambda: pp.rollout(
            robot, CardArray(q), tau=CardArray(v), effort=True
        ),
        "DOP853 chooses its own steps": lambda: pp.rollout(robot, CardArray(q), method="DOP853"),
        "method is .dop853., expected one of euler": lambda: pp.rollout(
            robot, CardArray(q), method="dop853"
        ),
        "q_ref has batch axes .3,., the initial state .4,.": lambda: pp.rollout(
            robot, CardArray(q), tau=pp.PD(robot, robot.random(0, 3), kp=1.0, kd=1.0)
        ),
    }


@pytest.mark.parametrize("words", wrong(gymnast()))
def test_what_does_not_fit_is_named(words, cards):
    with pytest.raises(StateError, match=words):
        wrong(gymnast())[words]()


def test_where_there_is_no_room_the_array_is_named(cards, monkeypatch):
    """Each library has an error of its own for that."""

    class OutOfMemoryError(RuntimeError):
        pass

    def full(self, *what):
        raise OutOfMemoryError("tried to allocate")

    q = CardArray(pp.load("pelican").random(0, 3))
    monkeypatch.setattr(Standin, "empty", full)
    with pytest.raises(
        StateError,
        match=r"gravity: the result \w+: \(3, 2\) numbers of float64 need 4.8e-08 GB.*smaller "
        r"batch",
    ):
        pp.load("pelican").gravity(q)
    with pytest.raises(StateError, match=r"rollout: samples of 2 numbers: \(3, 5, 2\) numbers"):
        pp.rollout(pp.load("pelican"), q, steps=4)
    monkeypatch.setattr(Standin, "empty", lambda self, *what: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pp.load("pelican").gravity(q)


def test_a_stream_of_another_card(cards, monkeypatch):
    monkeypatch.setattr(Standin, "stream", lambda self, x: 7001)
    q = CardArray(pp.load("pelican").random(0, 3))
    with pytest.raises(
        StateError, match="gravity: q is on GPU 0, and the current stream belongs to another GPU"
    ):
        pp.load("pelican").gravity(q)
    with pytest.raises(
        StateError, match="rollout: q0 is on GPU 0, and the current stream belongs to another GPU"
    ):
        pp.rollout(pp.load("pelican"), q, steps=2)


def test_arrays_that_would_let_themselves_be_read(cards):
    """JAX's turn into NumPy's without a word: one state of them stays on the card, too, and is not
    mixed with the host's."""

    class Readable(CardArray):
        def __array__(self, dtype=None, copy=None):
            return self.array

    robot = pp.robots.puma560()
    given = arguments(robot)
    q, v, tau = (given[name] for name in ("q", "v", "tau"))
    for f in (robot.forward_dynamics, lambda *state: robot.step(*state, 1e-3)):
        host = f(q, v, tau)  # from now on there is a quick way for one state
        agree(f(Readable(q), Readable(v), Readable(tau)), host)
        for mixed in ((q, Readable(v), tau), (q, v, Readable(tau)), (Readable(q), v, tau)):
            with pytest.raises(StateError, match=r"on the host, and .* is on the GPU"):
                f(*mixed)


def test_a_stranger(cards):
    class Stranger:
        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(
        StateError,
        match="q is a Stranger on the GPU, expected an array of torch, cupy, jax",
    ):
        gymnast().gravity(Stranger())


def test_info_tells_what_is_there(cards, capsys):
    for words in (["info", "--gpu"], ["info", "ur5", "--gpu"]):
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code in (0, None)
        lines = capsys.readouterr().out.splitlines()
        assert (
            lines[0].startswith("compiler  nvptx64-nvidia-cuda of LLVM ")
            and lines[1] == "driver    CUDA 13.0"
        )
        assert (
            lines[2] == "GPU 0     Stand-in: compute capability 9.0, 16 GiB, 4 multiprocessors"
            and len(lines) == 4
        )


def test_info_without_a_driver(monkeypatch, capsys):
    monkeypatch.setattr(driver_bindings, "LIBRARIES", ("libno_such_driver.so",))
    monkeypatch.setattr(driver_bindings, "driver", driver_bindings.driver.__wrapped__)
    with pytest.raises(SystemExit):
        cli.main(["info", "--gpu"])
    assert "driver    none: no GPU driver was found" in capsys.readouterr().out


def test_without_a_driver(monkeypatch):
    monkeypatch.setattr(driver_bindings, "LIBRARIES", ("libno_such_driver.so",))
    driver_bindings.driver.cache_clear()
    with pytest.raises(
        driver_bindings.DriverError,
        match=r"no GPU driver was found.*install NVIDIA's driver",
    ):
        driver_bindings.driver()
    driver_bindings.driver.cache_clear()


def test_words_of_the_driver():
    """Its codes become its own words, and a hint."""

    class Library:
        def cuInit(self, flags):
            return 100

        def cuGetErrorName(self, status, text):
            text._obj.value = b"CUDA_ERROR_NO_DEVICE"
            return 0

        def cuGetErrorString(self, status, text):
            return 1

    with pytest.raises(
        driver_bindings.DriverError, match=r"cuInit: CUDA_ERROR_NO_DEVICE\. Remedy: run nvidia-smi"
    ):
        driver_bindings.Driver(Library())


def test_few_states_are_shared_by_teams(cards):
    """A robot with limbs: up to as many warps as the card has multiprocessors, several do a state;
    the bits are the same."""
    robot, arm = pp.load("anymal_c"), pp.load("pelican")
    cards.small_batch = 2
    for launched, n in (
        ((2, 128), 40),
        ((2, 64), 70),
    ):  # blocks and threads: four warps do 32 states, or two do 64
        q = robot.random(seed=n, size=n).astype("f")
        agree(robot.gravity(CardArray(q)), robot.gravity(q))
        assert cards.log[-1][1:3] == launched
        q = arm.random(seed=n, size=n)
        agree(arm.gravity(CardArray(q)), arm.gravity(q))
    assert [row[0] for row in cards.log].count("load") == 3  # an arm has no limbs, and one kernel


# -- closed chains ---------------------------------------------------------------------------------


def pinned() -> pp.System:
    return pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])


def test_closed_chains_and_their_derivatives(cards):
    """Accelerations, forces and derivatives; torques of all coordinates or of the motors."""
    chain = pinned()
    guesses = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2)) + np.array([0.5, 1.0])
    q = chain.assemble(guesses)
    _, v = chain.project(q, np.ones_like(q))
    state = {"q": q, "v": v, "tau": np.linspace(-1.0, 1.0, 2 * N).reshape(N, 2)}
    at, x = on(state), np.ones((N, 2))
    found, host = (chain.forward_dynamics(*y.values(), forces=True) for y in (at, state))
    for one, other in zip(found, host, strict=True):
        assert isinstance(one, CardArray) and np.allclose(one.array, other, rtol=1e-9, atol=1e-9)
    f = chain.function("forward_dynamics")
    for made, more in ((f.jacobian("q", "v", "tau"), ()), (f.vjp("q"), (x,)), (f.jvp("tau"), (x,))):
        found, host = (
            made(*y.values(), *z) for y, z in ((at, map(CardArray, more)), (state, more))
        )
        for one, other in zip(parts(found), parts(host), strict=True):
            assert np.allclose(one.array, other, rtol=1e-8, atol=1e-8)
    with pytest.raises(StateError, match="an argument is on the GPU"):
        f.hessian("q")(*at.values(), CardArray(x))


def test_where_the_host_looks_again_a_card_has_nan(cards):
    """Stretched out at full length there is no answer; rows that follow from others leave
    accelerations alone."""
    chain = pinned()
    q = np.array([[0.3, 0.0], [0.5, 1.0]])
    stretched = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.52)])
    a = stretched.forward_dynamics(*(CardArray(x) for x in (q, 0 * q + 1.0, 0 * q))).array
    assert (
        np.isnan(a[0]).all() == np.isnan(stretched.forward_dynamics(q, 0 * q + 1.0, 0 * q)[0]).all()
    )
    spare = pp.connect(pp.load("pelican"), 2 * [pp.Loop("distance", "tool", "world", length=0.3)])
    q = chain.assemble(np.tile([0.5, 1.0], (3, 1)))
    at = [CardArray(x) for x in (q, 0 * q, 0 * q + 1.0)]
    assert np.allclose(
        spare.forward_dynamics(*at).array, chain.forward_dynamics(q, 0 * q, 0 * q + 1.0)
    )
    for call in (
        spare.function("contact_forces"),
        spare.function("forward_dynamics").jacobian("q"),
    ):
        with pytest.raises(StateError, match="are redundant, which is solved on the CPU only"):
            call(*at)
