"""psiphi on a GPU, compared with its kernels on the CPU: `make test-gpu`.

Every bundled robot, every function, both dtypes; torch, CuPy and JAX, whichever is installed.
Skipped without a GPU. Without pytest: PYTHONPATH=src:. python
tests/backends/cuda/test_on_gpu.py
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np

import psiphi as pp
from psiphi import scenes
from psiphi._util.errors import Error, StateError
from psiphi.backends.cuda import driver_bindings
from psiphi.simulation.integration.integrators import METHODS
from tests.functions.call_cases import DOORS

FLOAT = {"d": 1e-12, "f": 1e-4}
FEW = 20  # coordinates up to which every function is compared


def has_card() -> bool:
    try:
        return driver_bindings.driver().count > 0
    except Error:
        return False


class Torch:
    def put(self, x: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(x).cuda()

    def get(self, x: Any) -> np.ndarray:
        assert type(x).__name__ == "Tensor" and x.is_cuda
        return x.cpu().numpy()


class CuPy:
    def put(self, x: np.ndarray) -> Any:
        import cupy

        return cupy.asarray(x)

    def get(self, x: Any) -> np.ndarray:
        import cupy

        assert isinstance(x, cupy.ndarray)
        return x.get()


class Jax:
    def put(self, x: np.ndarray) -> Any:
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.device_put(x)

    def get(self, x: Any) -> np.ndarray:
        import jax

        assert isinstance(x, jax.Array) and x.__dlpack_device__()[0] == 2
        return np.asarray(x)


LIBRARIES = {
    name: kind()
    for name, kind in (("torch", Torch), ("cupy", CuPy), ("jax", Jax))
    if importlib.util.find_spec(name)
}
WITH = next(iter(LIBRARIES.values()), Torch())


def relative(found: Any, host: Any, library: Any = WITH) -> float:
    """The largest difference, relative to the largest number of each result; NaN is none."""
    worst = 0.0
    pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (found, host)), strict=True)
    for x, y in pairs:
        z, y = library.get(x), np.asarray(y)
        assert z.shape == y.shape and z.dtype == y.dtype
        assert np.array_equal(np.isnan(z), np.isnan(y))
        off, size = (
            float(np.nanmax(np.abs(number), initial=0.0)) for number in (z - y, y)
        )  # no float32, in which 1e-300 is 0
        worst = max(worst, off / max(size, 1e-300))
    return worst


def state(robot: pp.Robot, char: str, n: int = 1000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    rest = {
        name: rng.standard_normal((n, robot.nv)).astype(char) for name in ("v", "a", "tau", "x")
    }
    return {"q": robot.random(rng, n).astype(char), **rest}


def compare(name: str, char: str) -> dict[str, float]:
    """Every function of one robot: {function: difference}."""
    robot = pp.load(name)
    frame = list(robot.frames)[-1]
    given, found = state(robot, char), {}
    for door in DOORS if robot.nv <= FEW else DOORS[:4]:
        if door.name.startswith("cent") and not robot.mass > 0.0:
            continue
        host = door(robot, given, frame=frame) if door.frame else door(robot, given)
        card = {x: WITH.put(y) for x, y in given.items()}
        found[door.name] = relative(
            door(robot, card, frame=frame) if door.frame else door(robot, card), host
        )
    return found


def check_robot(name: str, char: str) -> None:
    wrong = {door: error for door, error in compare(name, char).items() if not error <= FLOAT[char]}
    assert not wrong, f"{name} {char}: {wrong}"


def check_derivatives(char: str) -> None:
    for name, base in (("ur5", "fixed"), ("anymal_c", "free")):
        robot = pp.load(name, base=base)
        f, given = robot.function("forward_dynamics"), state(robot, char)
        q, v, tau, x = (given[k] for k in ("q", "v", "tau", "x"))
        for made, more in (
            (f.jacobian("q", "v"), ()),
            (f.jvp("q"), (x,)),
            (f.vjp("q", "tau"), (x,)),
        ):
            host = made(q, v, tau, *more)
            assert relative(made(*map(WITH.put, (q, v, tau, *more))), host) <= FLOAT[char], (
                name,
                made,
            )
        d = robot.diagonalised
        assert relative(d.motion(*map(WITH.put, (q, v, tau))), d.motion(q, v, tau)) <= FLOAT[char]


def check_motion(char: str) -> None:
    """Steps and whole motions."""
    for name in ("ur5", "anymal_c"):
        robot = pp.load(name)
        given = state(robot, char)
        q, v, tau = (given[k] for k in ("q", "v", "tau"))
        host = robot.step(q, v, tau, 1e-3)
        assert relative(robot.step(*map(WITH.put, (q, v, tau)), 1e-3), host) <= FLOAT[char], name
        hold = pp.PD(robot, robot.neutral(), kp=20.0, kd=2.0, gravity=True)
        found = pp.rollout(robot, WITH.put(q), tau=hold, steps=30, every=10)
        host = tuple(x.astype(char) for x in pp.rollout(robot, q, tau=hold, steps=30, every=10))
        assert relative(found, host) <= (1e-9 if char == "d" else 1e-3), name


def check_linearize(char: str) -> None:
    """A and B, at once and over a step, by every method; of closed chains at once."""
    for name, base in (("ur5", "fixed"), ("anymal_c", "free")):
        robot = pp.load(name, base=base)
        given = state(robot, char, 200)
        q, v, tau = (given[k] for k in ("q", "v", "tau"))
        every = np.full((200, 1), 1e-3, char)
        for dt, method in ((None, "rk4"), *((1e-3, method) for method in METHODS)):
            host = robot.linearize(q, v, tau, dt, method)
            assert (
                relative(robot.linearize(*map(WITH.put, (q, v, tau)), dt, method), host)
                <= 10 * FLOAT[char]
            ), (name, method)
        found = robot.linearize(*map(WITH.put, (q, v, tau, every)), "euler")
        assert (
            relative(found, robot.linearize(q, v, tau, every[:, 0], "euler")) <= 10 * FLOAT[char]
        ), name
    if char == "d":
        case = scenes.load("two_arms")
        rest = np.zeros((50, case.system.nv))
        at = np.tile(case.q0, (50, 1)), rest, rest
        assert (
            relative(case.system.linearize(*map(WITH.put, at)), case.system.linearize(*at)) <= 1e-8
        )


def check_ended() -> None:
    """Functions that end in the library's own algebra, and configurations moved, compared and
    scaled."""
    robot = pp.load("panda", base="free")
    given = state(robot, "d", 200)
    q, v = given["q"], given["v"]
    hand = list(robot.frames)[-1]
    calls: dict[str, Any] = {
        "operational_space_inertia": lambda q, v: robot.operational_space_inertia(q, hand),
        "damped": lambda q, v: robot.operational_space_inertia(q, hand, policy="damped"),
        "exact": lambda q, v: robot.operational_space_inertia(q, hand, policy="exact"),
        "operational_space_bias": lambda q, v: robot.operational_space_bias(q, v, [hand]),
        "mass_log_det": lambda q, v: robot.mass_log_det(q),
        "integrate": lambda q, v: robot.integrate(q, v, 0.1),
        "difference": lambda q, v: robot.difference(q, robot.integrate(q, v, 0.1)),
        "rate": robot.rate,
        "normalize": lambda q, v: robot.normalize(q),
        "velocity_of": lambda q, v: robot.velocity_of(q, q),
        "energy_regressor": robot.energy_regressor,
        "coriolis": robot.diagonalised.coriolis,
        "wrench_regressor": lambda q, v: robot.wrench_regressor(q, v, v, robot.bodies[3].name),
        "more columns": lambda q, v: robot.regressor(q, v, v, more=("armature", "friction")),
        "excitation": lambda q, v: robot.excitation(q, v, v),
        "at_energy": lambda q, v: robot.diagonalised.at_energy(q, v, 1e3),
    }
    wrong = {
        name: relative(call(WITH.put(q), WITH.put(v)), call(q, v)) for name, call in calls.items()
    }
    assert all(error <= 1e-8 for error in wrong.values()), wrong


def check_stops() -> None:
    """Joints that end at their limits."""
    robot, rng = pp.robots.puma560(), np.random.default_rng(0)
    q, v = robot.random(rng, 1000), 5.0 * rng.standard_normal((1000, 6))
    options: dict[str, Any] = dict(steps=100, every=20, dt=5e-3, limits="block")
    assert (
        relative(
            pp.rollout(robot, WITH.put(q), WITH.put(v), **options),
            pp.rollout(robot, q, v, **options),
        )
        <= 1e-9
    )


def check_closed_motion(name: str) -> None:
    """Motions of closed chains."""
    case = scenes.load(name)
    cell, rng = case.system, np.random.default_rng(0)
    tau = rng.standard_normal((200, cell.nv))
    tau[:, cell.idle] = 0.0
    given = np.tile(case.q0, (200, 1)), np.zeros((200, cell.nv)), tau
    options: dict[str, Any] = dict(steps=50, every=10)
    assert (
        relative(
            pp.rollout(cell, *map(WITH.put, given), **options), pp.rollout(cell, *given, **options)
        )
        <= 1e-9
    )


def check_motion_gradients() -> None:
    """vjp, jvp and hvp of motions, samples of every step and of some; a flying base among the
    joints."""
    for name, base in (("ur5", "fixed"), ("pelican", "free")):
        robot, rng = pp.load(name, base=base), np.random.default_rng(0)
        q, v, tau = (
            robot.random(rng, 300),
            rng.standard_normal((300, robot.nv)),
            rng.standard_normal((300, 40, robot.nv)),
        )
        for every in (1, 20):
            host = pp.rollout(robot, q, v, tau, steps=40, every=every)
            there: Any = pp.rollout(robot, *map(WITH.put, (q, v, tau)), steps=40, every=every)
            weights = [rng.standard_normal(x.shape) for x in host]
            found, truth = there.vjp(*map(WITH.put, weights)), host.vjp(*weights)
            assert relative(tuple(found[x] for x in truth), tuple(truth.values())) <= 1e-9, (
                name,
                every,
            )
            assert relative(there.jvp(v=WITH.put(v)), host.jvp(v=v)) <= 1e-9, (name, every)
            for changes in ({"q": v, "tau": tau}, {"v": v}):
                found = there.hvp(
                    *map(WITH.put, weights), **{x: WITH.put(y) for x, y in changes.items()}
                )
                truth = host.hvp(*weights, **changes)
                assert relative(tuple(found[x] for x in truth), tuple(truth.values())) <= 1e-8, (
                    name,
                    every,
                )


def check_autograd() -> None:
    """torch: loss.backward() through a motion on the card."""
    import torch

    robot, rng = pp.load("ur5"), np.random.default_rng(0)
    q, tau = robot.random(rng, 500), rng.standard_normal(6)
    at = [torch.from_numpy(x).cuda().requires_grad_() for x in (q, tau)]
    Q, V = pp.rollout(robot, at[0], tau=at[1], steps=50, every=25)
    (Q.square().sum() + V.sum()).backward()
    host = pp.rollout(robot, q, tau=tau, steps=50, every=25)
    truth = host.vjp(2 * host.q, np.ones_like(host.v))
    assert (
        relative(tuple(x.grad for x in at), (truth["q"], truth["tau"]), LIBRARIES["torch"]) <= 1e-9
    )
    turner = pp.load("pelican", base="free")
    loss = lambda q: (pp.rollout(turner, q, steps=20, every=10)[0] ** 4).sum()  # noqa: E731
    both = [
        torch.from_numpy(turner.random(seed=1, size=50)).to(kind).requires_grad_()
        for kind in ("cuda", "cpu")
    ]
    for slope in [[torch.autograd.grad(loss(q), q, create_graph=True)[0] for q in both]]:
        bends = tuple(
            torch.autograd.grad((g**2).sum(), q)[0] for g, q in zip(slope, both, strict=True)
        )
        for found, host in (slope, bends):  # by the four numbers of a quaternion
            assert relative(found.detach(), host.detach().numpy(), LIBRARIES["torch"]) <= 1e-8


def check_library(name: str) -> None:
    """The same library's arrays come out; huge angles, one row for all, wrenches, empty batches."""
    library, robot = LIBRARIES[name], pp.load("panda")
    given = state(robot, "d")
    q, v, tau, force = given["q"] * 1e6, given["v"], given["tau"][0], np.arange(6.0)
    hand = list(robot.frames)[-1]
    found = robot.forward_dynamics(*map(library.put, (q, v, tau)), f_ext={hand: library.put(force)})
    assert relative(found, robot.forward_dynamics(q, v, tau, f_ext={hand: force}), library) <= 1e-9
    assert library.get(robot.gravity(library.put(q[:0]))).shape == (0, robot.nv)
    try:
        robot.bias(library.put(q), v)
    except StateError as error:
        assert "v is a ndarray on the host, and q is on the GPU" in str(error)
    else:
        raise AssertionError("host and card were mixed without a word")


def check_graph() -> None:
    """torch captures a call in a graph, and replays it with other numbers."""
    import torch

    robot = pp.load("ur5")
    given = state(robot, "f")
    q, v, tau = (torch.from_numpy(given[k]).cuda() for k in ("q", "v", "tau"))
    robot.forward_dynamics(q, v, tau)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a = robot.forward_dynamics(q, v, tau)
    tau.mul_(2.0)
    graph.replay()
    torch.cuda.synchronize()
    assert (
        relative(
            a, robot.forward_dynamics(given["q"], given["v"], 2 * given["tau"]), LIBRARIES["torch"]
        )
        <= 1e-4
    )


def check_jit(char: str) -> None:
    """JAX compiles a call into its own programs: values, gradients, batches, loops; nothing
    waits."""
    import jax

    library, robot = Jax(), pp.load("panda")
    given = state(robot, char)
    q, v, tau = (library.put(given[k]) for k in ("q", "v", "tau"))
    host = tuple(given[k] for k in ("q", "v", "tau"))
    found = jax.jit(lambda *x: robot.forward_dynamics(*x) * 2.0)(q, v, tau)
    assert relative(found, 2 * robot.forward_dynamics(*host), library) <= FLOAT[char]
    assert (
        relative(
            robot.forward_dynamics(q, v, tau[0]),
            robot.forward_dynamics(*host[:2], host[2][0]),
            library,
        )
        <= FLOAT[char]
    )
    slope = jax.jit(jax.grad(lambda q: (robot.forward_dynamics(q, v, tau) ** 2).sum()))(q)
    weights = 2 * robot.forward_dynamics(*host)
    truth = robot.function("forward_dynamics").vjp("q")(*host, weights)[-1]
    assert relative(slope, truth, library) <= 10 * FLOAT[char]
    assert relative(jax.vmap(robot.gravity)(q), robot.gravity(host[0]), library) <= FLOAT[char]

    def step(state, _):
        q, v = state
        v = v + 1e-3 * robot.forward_dynamics(q, v, tau)
        return (q + 1e-3 * v, v), None

    found = jax.jit(lambda q, v: jax.lax.scan(step, (q, v), None, length=20)[0])(q, v)
    here = host[:2]
    for _ in range(20):
        speed = here[1] + np.asarray(1e-3, char) * robot.forward_dynamics(*here, host[2])
        here = here[0] + np.asarray(1e-3, char) * speed, speed
    assert relative(found, here, library) <= 100 * FLOAT[char]


def check_jit_motion() -> None:
    """Whole motions within JAX's programs, and their gradients, within them and outside; samples of
    every step and of some."""
    import jax

    library, robot, rng = Jax(), pp.load("ur5"), np.random.default_rng(0)
    q, tau, v = (
        robot.random(rng, 300),
        rng.standard_normal((300, 20, 6)),
        rng.standard_normal((300, 6)),
    )
    hold = pp.PD(robot, robot.neutral(), kp=20.0, kd=2.0, gravity=True)
    found = jax.jit(lambda q: tuple(pp.rollout(robot, q, tau=hold, steps=20, every=5)))(
        library.put(q)
    )
    assert (
        relative(found, tuple(pp.rollout(robot, q, tau=hold, steps=20, every=5)), library) <= 1e-9
    )
    found = jax.jit(lambda q, tau: tuple(pp.rollout(robot, q, tau=tau, steps=20)))(
        library.put(q), library.put(tau)
    )
    host = pp.rollout(robot, q, tau=tau, steps=20)
    assert relative(found, tuple(host), library) <= 1e-9
    for every in (1, 5):
        host = pp.rollout(robot, q, tau=tau, steps=20, every=every)
        slope = jax.grad(
            lambda q, tau, n=every: (
                pp.rollout(robot, q, tau=tau, steps=20, every=n)[0] ** 2
            ).sum(),
            argnums=(0, 1),
        )
        truth = host.vjp(2 * host.q)
        for f in (slope, jax.jit(slope)):
            for _ in range(2):
                assert (
                    relative(
                        f(library.put(q), library.put(tau)), (truth["q"], truth["tau"]), library
                    )
                    <= 1e-9
                ), every
    square = lambda q: (pp.rollout(robot, q, steps=20, every=5)[0] ** 2).sum()  # noqa: E731
    turned = jax.jit(jax.grad(lambda q: (jax.grad(square)(q) * v).sum()))(library.put(q))
    host = pp.rollout(robot, q, steps=20, every=5)
    truth = host.hvp(2 * host.q, q=v)["q"] + host.vjp(2 * host.jvp(q=v)[0])["q"]
    assert relative(turned, truth, library) <= 1e-8
    end = lambda q: pp.rollout(robot, q, steps=20)[0][-1]  # noqa: E731
    columns = [pp.rollout(robot, q[0], steps=20).jvp(q=unit)[0][-1] for unit in np.eye(6)]
    assert (
        relative(jax.jit(jax.jacrev(end))(library.put(q[0])), np.stack(columns, axis=-1), library)
        <= 1e-9
    )


def check_jit_closed() -> None:
    """Closed chains within JAX's programs: accelerations and their gradients."""
    import jax

    library, case = Jax(), scenes.load("two_arms")
    cell, rng = case.system, np.random.default_rng(0)
    state = (
        np.tile(case.q0, (300, 1)),
        np.zeros((300, cell.nv)),
        rng.standard_normal((300, cell.na)),
    )
    at, a = [*map(library.put, state)], cell.forward_dynamics(*state)
    assert relative(jax.jit(cell.forward_dynamics)(*at), a, library) <= 1e-9
    truth = cell.function("forward_dynamics").vjp("tau")(*state, 2 * a)[1]
    slope = jax.grad(lambda *x: (cell.forward_dynamics(*x) ** 2).sum(), argnums=2)
    for f in (slope, jax.jit(slope)):
        assert relative(f(*at), truth, library) <= 1e-8


def check_closed() -> None:
    """Closed chains: accelerations, forces, derivatives, within jit of JAX as well."""
    for name in ("four_bar", "two_arms"):
        case = scenes.load(name)
        cell, rng = case.system, np.random.default_rng(0)
        state = (
            np.tile(case.q0, (500, 1)),
            np.zeros((500, cell.nv)),
            rng.standard_normal((500, cell.na)),
        )
        at = [*map(WITH.put, state)]
        assert relative(cell.forward_dynamics(*at), cell.forward_dynamics(*state)) <= 1e-9, name
        asked = cell.complete(*state[:2], rng.standard_normal((500, cell.nv)))
        asked[::7] += 1.0  # leaves the constraints: NaN, on both
        found, host = (
            cell.inverse_dynamics(*at[:2], WITH.put(asked)),
            cell.inverse_dynamics(*state[:2], asked),
        )
        assert relative(found, host) <= 1e-8, name
        if name == "four_bar":
            continue
        f = cell.function("forward_dynamics")
        assert relative(f.jacobian("q", "tau")(*at), f.jacobian("q", "tau")(*state)) <= 1e-8
        forces = cell.function("contact_forces")
        assert relative(forces(*at), forces(*state)) <= 1e-9


def check_study() -> None:
    """A study on the card has the host's bits."""
    keys = {
        "motions": 5000,
        "chunk": 2048,
        "duration": 0.05,
        "vary": {"mass": {"uniform": [0.8, 1.2], "relative": True}},
    }
    plain, there = (pp.study(pp.load("ur5"), **keys, cards=cards) for cards in (False, True))
    assert np.array_equal(plain.final.q, there.final.q) and np.array_equal(
        plain.final.v, there.final.v
    )


def checks() -> dict[str, Any]:
    """By name, the quick ones first."""
    found: dict[str, Any] = {
        f"library-{name}": lambda name=name: check_library(name) for name in LIBRARIES
    }
    found |= {"graph": check_graph} if "torch" in LIBRARIES else {}
    found |= (
        {f"jit-{char}": lambda char=char: check_jit(char) for char in "df"}
        if "jax" in LIBRARIES
        else {}
    )
    found |= (
        {"jit-motion": check_jit_motion, "jit-closed": check_jit_closed}
        if "jax" in LIBRARIES
        else {}
    )
    found |= {
        "closed": check_closed,
        "ended": check_ended,
        "stops": check_stops,
        "motion-gradients": check_motion_gradients,
    }
    found |= {
        f"closed-{name}": lambda name=name: check_closed_motion(name)
        for name in ("four_bar", "two_arms")
    }
    found |= {"autograd": check_autograd} if "torch" in LIBRARIES else {}
    found |= {"study": check_study} if importlib.util.find_spec("zarr") else {}
    found |= {f"linearize-{char}": lambda char=char: check_linearize(char) for char in "df"}
    found |= {f"motion-{char}": lambda char=char: check_motion(char) for char in "df"}
    found |= {f"derivatives-{char}": lambda char=char: check_derivatives(char) for char in "df"}
    each = [(name, char) for name in pp.robots.bundled() for char in "df"]
    return found | {
        f"{name}-{char}": lambda name=name, char=char: check_robot(name, char)
        for name, char in each
    }


def pytest_generate_tests(metafunc: Any) -> None:
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", checks() if has_card() else ["nothing"])


def test_card(check: str) -> None:
    if not has_card():
        import pytest

        pytest.skip("no graphics card")
    checks()[check]()


if __name__ == "__main__":
    failed = []
    for name, check in checks().items():
        try:
            check()
            print(f"{name} passed", flush=True)
        except Exception as error:
            failed.append(name)
            print(f"{name} FAILED: {type(error).__name__}: {error}", flush=True)
    print(f"{len(checks()) - len(failed)} passed, {len(failed)} failed: {' '.join(failed)}")
    sys.exit(bool(failed))
