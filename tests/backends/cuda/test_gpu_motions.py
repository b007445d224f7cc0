"""Whole motions on a graphics card: joints that end at their limits, closed chains, and the
derivatives of all of them.

The card is a stand-in (`notebook_cards.py`); the truth is the host's kernel, which other tests hold
against physics and differences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends.cpu.cpu_target import has_fma
from psiphi.backends.cuda import device_arrays
from psiphi.backends.cuda.cuda_target import CudaTarget
from psiphi.backends.cuda.device_arrays import ArrayView, TorchArrays
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout import cuda_runner
from psiphi.simulation.compiled_rollout.cuda_runner import CudaRolloutProgram
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.control.control_law import Law
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.plant import Plant
from psiphi.simulation.rollout_derivatives import cuda_adjoint
from psiphi.simulation.rollout_derivatives.second_order import SecondOrderAdjoint
from psiphi.simulation.rollout_derivatives.step_derivatives import AdjointSteps
from tests.backends.cuda import ptx_assembler
from tests.backends.cuda.fake_gpu import CardArray, cards
from tests.backends.kernels import same_bits

__all__ = ["cards"]  # a fixture
N = 5


def agree(found: Any, host: Any) -> None:
    for x, y in zip(found, host, strict=True):
        assert isinstance(x, CardArray) and x.array.shape == y.shape
        assert same_bits(x.array, y) if has_fma() else np.allclose(x.array, y, rtol=1e-9, atol=1e-9)


def pendulum() -> pp.Robot:
    """Two links with limits that both reach within some steps; the second hits back on the
    first."""
    b = pp.Builder("pendulum between stops")
    for i, under in enumerate(("world", "upper")):
        name = ("upper", "lower")[i]
        b.body(name, 1.0 + i, com=(0, 0, -0.3), inertia=0.01 * np.eye(3))
        b.joint(
            f"joint{i}",
            "revolute",
            under,
            name,
            xyz=(0, 0, -0.5 * i),
            axis=(0, 1, 0),
            lower=-0.4,
            upper=0.3,
        )
    b.frame("tip", "lower", xyz=(0, 0, -0.5))
    return b.build()


def spun() -> pp.Robot:
    """A ball and a hinge: nq = 5, nv = 4."""
    b = pp.Builder("spun")
    b.body("top", 1.0, com=(0, 0, 0.2), inertia=np.diag([0.1, 0.2, 0.15]))
    b.body("arm", 0.5, com=(0.1, 0, 0), inertia=0.02 * np.eye(3))
    b.joint("ball", "spherical", "world", "top")
    b.joint("hinge", "revolute", "top", "arm", xyz=(0, 0, 0.4), axis=(0, 1, 0))
    return b.build()


def pinned() -> System:
    return pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])


def begun(chain: System) -> tuple[np.ndarray, np.ndarray]:
    guesses = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 2)) + np.array([0.5, 1.0])
    q = chain.assemble(guesses)
    return q, chain.project(q, np.ones_like(q))[1]


# -- limits ----------------------------------------------------------------------------------------


def test_joints_end_at_their_limits(cards):
    """Bits of the host, where some motions of a warp hit a stop and others do not; no joint leaves
    its range."""
    robot, rng = pendulum(), np.random.default_rng(1)
    q, v = (
        rng.uniform(-0.3, 0.2, (35, 2)),
        4.0 * rng.standard_normal((35, 2)) * (np.arange(35)[:, None] % 2),
    )
    given = dict(steps=30, dt=1e-2, every=3, limits="block")
    found, host = (
        pp.rollout(robot, CardArray(q), CardArray(v), **given),
        pp.rollout(robot, q, v, **given),
    )
    agree(found, host)
    ends = (host[0] == -0.4) | (host[0] == 0.3)
    assert (
        ends.any()
        and not ends.all(axis=(1, 2)).all()
        and (abs(host[0] + 0.05) <= 0.35 + 1e-15).all()
    )
    assert [entry[0] for entry in cards.log].count("launch") == 1
    with pytest.raises(StateError, match="has no derivative"):
        found.vjp(found.q)


# -- closed chains ---------------------------------------------------------------------------------


def test_closed_chains_move(cards):
    """Bits of the host, driven by torques, and by controllers that hold the chain; the loop stays
    closed in float32."""
    chain = pinned()
    q, v = begun(chain)
    tau = np.random.default_rng(2).standard_normal((N, 2))
    at = CardArray(q), CardArray(v)
    agree(pp.rollout(chain, *at, CardArray(tau), steps=6), pp.rollout(chain, q, v, tau, steps=6))
    hold = pp.PD(chain, q, kp=20.0, kd=2.0, gravity=True)
    options = dict(tau=hold, steps=6, damping=0.1, method="euler")
    agree(pp.rollout(chain, *at, **options), pp.rollout(chain, q, v, **options))
    found = pp.rollout(chain, *(CardArray(x.astype("f")) for x in (q, v)), steps=50)
    residual = chain.constraint_residual(found.q.array.astype(float), found.v.array.astype(float))
    assert found.q.array.dtype == np.float32 and np.abs(residual).max() < 1e-5


def test_what_only_the_host_can_solve_is_nan(cards, monkeypatch):
    """A start off the constraints, whose neighbours in the warp move on; and from where constraints
    are strained too much."""
    chain = pinned()
    q, v = begun(chain)
    q[1] += 0.01
    found = pp.rollout(chain, CardArray(q), CardArray(v), steps=3)
    assert [np.isnan(x.array).all(axis=(1, 2)).tolist() for x in found] == [
        [i == 1 for i in range(N)]
    ] * 2
    agree([x[2:] for x in found], pp.rollout(chain, q[2:], v[2:], steps=3))
    strict = pp.connect(
        pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3217)]
    )  # no other test's
    monkeypatch.setitem(cuda_runner.MAX_ILL_CONDITIONING, "d", 1.0 + 1e-12)
    q = strict.assemble(q)
    found = pp.rollout(strict, CardArray(q), steps=3).q.array
    assert np.array_equal(found[:, 0], q) and np.isnan(found[:, 1:]).all()


# -- derivatives -----------------------------------------------------------------------------------


def gradients(
    system: Any,
    q: np.ndarray,
    v: np.ndarray,
    tau: Any,
    changed: dict[str, np.ndarray],
    **options: Any,
) -> Any:
    """vjp and jvp on the card beside those of the host; how to try hvp."""
    rng = np.random.default_rng(3)
    host = pp.rollout(system, q, v, tau, **options)
    there = pp.rollout(
        system,
        CardArray(q),
        CardArray(v),
        CardArray(tau) if isinstance(tau, np.ndarray) else tau,
        **options,
    )
    weights = [rng.standard_normal(x.shape) for x in host]
    found, truth = there.vjp(*map(CardArray, weights)), host.vjp(*weights)
    assert found.keys() == truth.keys()
    for name, y in truth.items():
        assert found[name].shape == y.shape and np.allclose(
            found[name].array, y, rtol=1e-9, atol=1e-9 * np.abs(y).max()
        ), name
    changes = {"q": rng.standard_normal(v.shape), "v": rng.standard_normal(v.shape), **changed}
    moved = {k: CardArray(x) for k, x in changes.items()}
    for x, y in zip(there.jvp(**moved), host.jvp(**changes), strict=True):
        assert np.allclose(x.array, y, rtol=1e-9, atol=1e-9 * np.abs(y).max())

    def second() -> None:
        found, truth = there.hvp(*map(CardArray, weights), **moved), host.hvp(*weights, **changes)
        assert found.keys() == truth.keys()
        for name, y in truth.items():
            x = found[name]
            assert x.shape == y.shape and np.allclose(
                x.array, y, rtol=1e-8, atol=1e-9 * np.abs(y).max()
            ), name

    return second


def test_gradients_by_the_beginning_and_by_torques(cards, monkeypatch):
    """Tangent ones of a ball; torques of every step; samples of every step, and of some, with
    checkpoints between them."""
    robot, rng = spun(), np.random.default_rng(4)
    q, v = robot.random(rng, N), rng.standard_normal((N, 4))
    table, one = rng.standard_normal((N, 12, 4)), rng.standard_normal(4)
    gradients(robot, q, v, table, {"tau": table}, steps=12, dt=1e-2, method="euler")()
    monkeypatch.setattr(cuda_adjoint, "MEMORY_LIMIT", 3 * N * 9)
    gradients(robot, q, v, table, {"tau": table}, steps=12, dt=1e-2, every=6, method="euler")
    gradients(robot, q, v, one, {"tau": one}, steps=12, dt=1e-2, every=4, method="euler")()
    gradients(robot, q, v, one, {"tau": one}, steps=0, method="euler")()
    short = pp.rollout(
        robot, *map(CardArray, (q, v, table)), steps=12, dt=1e-2, every=5, method="euler"
    )
    for way in (lambda: short.vjp(short.q), lambda: short.jvp(tau=CardArray(table))):
        with pytest.raises(StateError, match="of 12 steps every 5th is sampled"):
            way()
    row = table[:, :1].copy()  # a table of one row: for all steps, or for the only one
    gradients(robot, q, v, row, {"tau": row}, steps=2, dt=1e-2, every=2, method="euler")
    gradients(robot, q, v, row, {"tau": row}, steps=1, method="euler")()
    some, host = (
        pp.rollout(robot, x, y, steps=2, method="euler")
        for x, y in ((CardArray(q), CardArray(v)), (q, v))
    )
    alone = some.hvp(CardArray(np.ones_like(host.q)), v=CardArray(v))["q"].array
    assert np.allclose(alone, host.hvp(np.ones_like(host.q), v=v)["q"], rtol=1e-9, atol=1e-12)


def test_gradients_by_gains_of_closed_chains(cards):
    """The numbers of a controller, shared and one a motion; a chain that stays closed."""
    chain = pinned()
    q, v = begun(chain)
    law = pp.PD(chain, q, kp=np.array([20.0, 10.0]), kd=2.0)
    gradients(chain, q, v, law, {"kp": np.array([1.0, -2.0])}, steps=5, method="euler")()
    spare = pp.connect(pp.load("pelican"), 2 * [pp.Loop("distance", "tool", "world", length=0.3)])
    found = pp.rollout(spare, CardArray(q), CardArray(v), steps=2)
    for way in (found.vjp, found.hvp):
        with pytest.raises(
            StateError, match="redundant, and then derivatives are available on the CPU"
        ):
            way(found.q)


def test_weights_that_do_not_fit_are_named(cards):
    robot = pp.load("pelican")
    motion = pp.rollout(robot, CardArray(robot.random(0, 3)), steps=2)
    for words, call in {
        "q_weight is a ndarray on the host, and q0 is on": lambda: motion.vjp(np.zeros((3, 3, 2))),
        r"q_weight has shape \(3, 3\)": lambda: motion.vjp(CardArray(np.zeros((3, 3)))),
        "q_weight is float32, and q0 is float64": lambda: motion.vjp(
            CardArray(np.zeros((3, 3, 2), "f"))
        ),
        "the change of v is on GPU 1, and q0 is on GPU 0": lambda: motion.jvp(
            v=CardArray(np.zeros(2), 1)
        ),
        "q_weight has batch axes .2,., the motion .3,.": lambda: motion.vjp(
            CardArray(np.zeros((2, 3, 2)))
        ),
        "jvp with respect to 'tau', which is not an input": lambda: motion.jvp(
            tau=CardArray(np.zeros(2))
        ),
    }.items():
        with pytest.raises(StateError, match=words):
            call()


class TorchHere(TorchArrays):
    """Tensors of the host that are said to be on a card."""

    def view(self, x: Any) -> ArrayView:
        found = super().view(x)
        return ArrayView(found.pointer, found.shape, found.char, found.contiguous, 0)

    def stream(self, x: Any) -> int:
        return 7000


def test_autograd_by_the_numbers_of_a_quaternion(cards, monkeypatch):
    """Motions begin at q / |q|: along q itself nothing changes, forwards and backwards, once and
    twice. Beside the host's, of a quaternion that torch has divided."""
    torch = pytest.importorskip("torch")
    robot, rng = spun(), np.random.default_rng(6)
    q, v, tau, x, y = (torch.from_numpy(rng.standard_normal((N, n))) for n in (5, 4, 4, 5, 4))
    mix = torch.from_numpy(rng.standard_normal((3, 5)))

    def divided(q):
        return torch.cat([q[..., :4] / q[..., :4].norm(dim=-1, keepdim=True), q[..., 4:]], dim=-1)

    def derivatives(begin: Any) -> list[Any]:
        def loss(q, v):
            return (
                pp.rollout(robot, begin(q), v, tau, steps=4, every=2, dt=0.05, method="euler")[0]
                ** 2
                * mix
            ).sum()

        slope = torch.func.grad(loss, argnums=(0, 1))
        there = torch.func.grad(
            lambda q, v: sum((a * b).sum() for a, b in zip(slope(q, v), (x, y), strict=True)),
            (0, 1),
        )
        forward = [torch.func.jvp(way, (q, v), (x, y))[1] for way in (loss, slope)]
        return [*slope(q, v), *there(q, v), forward[0], *forward[1]]

    truth = derivatives(divided)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setitem(device_arrays.BY_MODULE, "torch", TorchHere())
    for found, own in zip(derivatives(lambda q: q), truth, strict=True):
        assert torch.allclose(found, own, rtol=1e-9, atol=1e-9 * float(own.abs().max()))
    assert "launch" in [entry[0] for entry in cards.log]


def test_autograd_of_torch(cards, monkeypatch):
    """loss.backward() through a motion on the card: by the beginning, and by a torque that motions
    share."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setitem(device_arrays.BY_MODULE, "torch", TorchHere())
    robot, rng = pp.load("pelican"), np.random.default_rng(5)
    q, v, tau = robot.random(rng, N), rng.standard_normal((N, 2)), rng.standard_normal(2)
    at = [torch.from_numpy(x).requires_grad_() for x in (q, v, tau)]
    host = pp.rollout(robot, q, v, tau, steps=6, every=3)
    Q, V = pp.rollout(robot, *at, steps=6, every=3)
    (Q.square().sum() + V.sum()).backward()
    assert cards.log[-1][3] == 7000 and np.allclose(Q.detach().numpy(), host.q, rtol=1e-12)
    truth = host.vjp(2 * host.q, np.ones_like(host.v))
    for x, y in zip(at, (truth[name] for name in ("q", "v", "tau")), strict=True):
        assert np.allclose(x.grad.numpy(), y, rtol=1e-9, atol=1e-12)
    with pytest.raises(StateError, match="has no derivative"):
        pp.rollout(robot, *at, steps=3, limits="block")
    slopes = torch.autograd.grad(
        (pp.rollout(robot, *at, steps=6, every=3)[0] * Q.detach()).sum(), at, create_graph=True
    )
    turns = torch.autograd.grad(sum((x * x.detach()).sum() for x in slopes), at)
    moved = {name: x.detach().numpy() for name, x in zip(("q", "v", "tau"), slopes, strict=True)}
    truth = host.hvp(host.q, **moved)
    for x, y in zip(turns, (truth[name] for name in ("q", "v", "tau")), strict=True):
        assert np.allclose(x.numpy(), y, rtol=1e-9, atol=1e-12)
    assert torch.func.jacrev(lambda q: pp.rollout(robot, q, steps=2)[0][-1])(
        at[0].detach()[0]
    ).shape == (2, 2)


@pytest.mark.skipif(not ptx_assembler.found(), reason="needs nvidia-nvjitlink")
def test_the_assembler_takes_these_kernels():
    """Detours, closed chains and reversed steps, as PTX."""
    robot, chain = pendulum(), pinned()
    plan = RolloutOptions("euler", Law(), time_varying=False, hold=False)
    for machine in (
        CudaRolloutProgram(robot, replace(plan, stops=JointStops(Plant(robot)))),
        CudaRolloutProgram(chain, replace(plan, closure=chain.key, project=True)),
        AdjointSteps(RolloutProgram(robot, plan), ("tau",)),
        SecondOrderAdjoint(RolloutProgram(robot, plan), ("tau",)),
        *(
            cuda_adjoint.StartDerivative(RolloutProgram(spun(), plan), rule)
            for rule in ("tangent_gradient_derivative", "vjp_derivative")
        ),
        cuda_adjoint.StartDerivative(
            RolloutProgram(pp.load("pelican", base="free"), plan), "vjp_derivative"
        ),
    ):
        for char in "df":
            assert "Used" in ptx_assembler.assemble(
                CudaTarget().emit(machine.rollout, char), "sm_90"
            )
