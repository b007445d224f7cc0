"""Calls of environments for `junk.py`: how they are made, and their methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import psiphi as pp
from tests.hostile.junk import Call


def calls() -> list[Call]:
    """A cart and its pole: the cheapest robot with a joint that has no motor."""
    cart = pp.load("cartpole")
    posture = np.zeros(cart.nq)
    servo = pp.PD(cart, posture, kp=10.0, kd=1.0, actuated="slide")
    needed = {"observations": ["q"], "rewards": {"alive": 1.0}}
    given = {
        "robot": cart,
        "ground": None,
        "actuation": servo,
        **needed,
        "terminations": {"down": lambda s: s.q[1] > 0.5},
        "resets": {"offset": {"*": (-0.05, 0.05)}},
        "commands": {"speed": (-1.0, 1.0)},
        "command_interval": 0.1,
        "randomize": {"kp": (0.9, 1.1)},
        "pushes": {"slide": (-0.5, 0.5)},
        "push_interval": 0.1,
        "episode_length": 1.0,
        "dt": 0.005,
        "decimation": 1,
        "action_scale": None,
        "action_limit": 1.0,
        "action_delay": 0.0,
        "q0": posture,
        "v0": np.zeros(cart.nv),
        "method": None,
        "damping": False,
        "friction": False,
        "friction_speed": None,
        "springs": False,
        "effort": False,
        "actuated": "slide",
        "passive": None,
        "limits": "ignore",
    }
    return [Call("environment", pp.environment, given), *_methods(cart, needed)]


def _methods(cart: pp.Robot, needed: dict[str, Any]) -> list[Call]:
    env = pp.environment(cart, actuated="slide", episode_length=0.1, decimation=1, **needed)
    state, action = env.reset(2)[0], np.zeros((2, 1))
    many = {"num_envs": 2, "seed": 0, "dtype": None}
    return [
        Call("Environment.reset", env.reset, {"count": 2, "seed": 0, "episode": 0}),
        Call("Environment.begin", env.begin, {"state": state, "where": np.ones(2, dtype=bool)}),
        Call(
            "Environment.step",
            env.step,
            {"state": state, "action": action, "autoreset": "disabled"},
        ),
        Call(
            "Environment.step from a state",
            lambda **o: env.step(state | o, action),
            dict(state),
        ),
        Call(
            "Environment.episode of an action",
            lambda action: env.episode(lambda seen: action, steps=1),
            {"action": [0.0]},
        ),
        Call(
            "Environment.episode",
            env.episode,
            {"policy": lambda seen: [0.0], "number": 0, "episode": 0, "seed": 0, "steps": 1},
        ),
        Call(
            "Environment.vector",
            lambda **o: env.vector(**o).reset(),
            {**many, "autoreset": "disabled", "dtype": np.float32},
        ),
        Call("Environment.single", lambda **o: env.single(**o).reset(), {"dtype": np.float32}),
        Call("Environment.torch", lambda **o: env.torch(**o).reset(), many | {"device": "cpu"}),
        Call("Environment.jax", lambda **o: _in_float64(env.jax, **o), {"autoreset": "disabled"}),
    ]


def _in_float64(make: Callable, **options: Any) -> Any:
    import jax

    with jax.enable_x64(True):
        return make(**options)
