"""Control steps on a graphics card: the bits of the processor.

The card is a stand-in (`tests/backends/cuda/fake_gpu.py`) that runs the kernels on this processor.
"""

import numpy as np
import pytest

from psiphi._util.errors import StateError
from psiphi.apps.environments.cuda_environment import CudaEnvironment
from psiphi.apps.environments.environment_program import MODES
from psiphi.backends.cpu.cpu_target import has_fma
from tests.apps.environments import test_randomization, worlds
from tests.backends.cuda.fake_gpu import CardArray, cards

__all__ = ["cards"]  # a fixture
N, STEPS = 37, 12  # environments: more than a warp


def everything(**options):
    """A ball with an arm: all that differs by episode, events, noise, and an early end."""
    given = dict(
        observations={
            "policy": ["q", ("v", {"noise": (-0.1, 0.1)}), "action", "command", "air_time"],
            "critic": ["contact_forces", "tau", "specific_force", "time"],
        },
        rewards={"track_linear_velocity": 1.0, "action_rate": -0.1, "air_time": 0.5},
        terminations=[lambda s: np.abs(s.v[6]) > 3.0],
        commands={"vx": (-1.0, 1.0), "vy": {"normal": (0.0, 0.3)}, "turn": 0.5},
        command_interval=0.04,
        pushes={"x": (-1.0, 1.0), "z": (0.0, 0.5)},
        push_interval=0.03,
        randomize=test_randomization.NUMBERS,
        resets={"v": {"x": (0.5, 1.5)}, "offset": {"z": (0.0, 0.02)}},
        action_delay=0.016,  # a whole control step of 12 ms, and one step of 4 ms
    )
    return test_randomization.make(**(given | options))


def compare(env, mode, card=None, bad=()):
    """Control steps on the card and on the processor, from one state; NaN as `bad` actions."""
    card = CudaEnvironment(env.kernel(mode).program) if card is None else card
    state, _ = env.reset(N, seed=3)
    there = {name: CardArray(x) for name, x in state.items()}
    rng, ends = np.random.default_rng(0), 0
    for k in range(STEPS):
        action = 1.5 * rng.standard_normal((N, env.action_size))
        action[list(bad) if k == 2 else []] = np.nan
        state, result = env.step(state, action, mode)
        out = card.run(there, CardArray(action))
        there = {name: out[name] for name in state}
        found = env.arrays_result({name: x.array for name, x in out.items()})
        pairs = [(state[name], there[name].array) for name in state]
        pairs += [(result.observations[x], found.observations[x]) for x in result.observations]
        pairs += [(getattr(result, x), getattr(found, x)) for x in ("reward", "contact_residual")]
        pairs += [(getattr(result, x), getattr(found, x)) for x in ("terminated", "truncated")]
        pairs += [(result.failed, found.failed)]
        for group, x in (result.final_observations or {}).items():
            pairs.append((x, found.final_observations[group]))
        for x, y in pairs:
            assert x.shape == y.shape and np.allclose(x, y, rtol=1e-9, atol=1e-9)
            assert not has_fma() or np.array_equal(x, y)
        ends += int((result.terminated | result.truncated).sum())
    return ends


@pytest.mark.parametrize("mode", MODES)
def test_a_card_has_the_bits_of_the_processor(cards, mode):
    env = everything()
    assert compare(env, mode, bad=[4, 33]) > N // 2
    assert [entry[0] for entry in cards.log].count("launch") == 3 * STEPS


def test_torques_with_limits_and_without_a_ground(cards):
    """Torques act late, within the effort limits; a robot without contacts, and no delay."""
    late = everything(
        actuation=None,
        action_scale=6.0,  # above the limit of 4 Nm
        randomize={"mass": test_randomization.NUMBERS["mass"]},
        resets=lambda s: {"v": s.normal(0.0, 0.5, size=7)},
    )
    compare(late, "same_step")
    assert compare(worlds.cart_pole(groups=True, random=True), "same_step") > 3


def test_what_a_card_refuses(cards):
    env = worlds.cart_pole()
    state, _ = env.reset(3, seed=0)
    there = {name: CardArray(x) for name, x in state.items()}
    card = CudaEnvironment(env.program("disabled"))
    with pytest.raises(StateError, match="the action is a ndarray on the host"):
        card.run(there, np.zeros((3, 1)))
    with pytest.raises(StateError, match="float32"):
        short = {name: CardArray(x.astype("f")) for name, x in state.items()}
        card.run(short, CardArray(np.zeros((3, 1), "f")))
    with pytest.raises(StateError, match="has shape"):
        card.run(there, CardArray(np.zeros((3, 2))))
    with pytest.raises(StateError, match="a reset runs on the CPU"):
        CudaEnvironment(env.program("reset")).run(there, CardArray(np.zeros((3, 1))))


def test_devices_of_torch():
    """A device that torch does not have, or that is no GPU, is refused."""
    torch = pytest.importorskip("torch")
    env = worlds.cart_pole()
    for device in ("meta", "nowhere", *["cuda"] * (not torch.cuda.is_available())):
        with pytest.raises(StateError, match="device is"):
            env.torch(3, device=device)
