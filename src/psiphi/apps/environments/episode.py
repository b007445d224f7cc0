"""One episode of an environment, run alone: the same numbers as in any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import name_of, shown
from psiphi._util.validate import read_array, whole_number
from psiphi.apps.environments.environment_input import POLICY
from psiphi.apps.environments.state_resets import read_word
from psiphi.simulation.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from psiphi.apps.environments.environment import Environment

Policy = Callable[[Any], Any]  # observations (size,) -> action (action_size,)


class Episode(NamedTuple):
    """An episode of n control steps. `motion` has its n + 1 states; observations (n + 1, size) by
    group; actions (n, action_size), rewards (n,). `terminated` or `truncated` says why it ended, if
    it did."""

    motion: Trajectory
    observations: dict[str, np.ndarray]
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool
    truncated: bool


def run_episode(
    env: Environment, policy: object, number: int, episode: int, seed: int, most: int
) -> Episode:
    """`env.episode`."""
    if not callable(policy):
        raise StateError(
            f"policy is {shown(policy)}, expected a function of the observations (size,)",
            "give lambda seen: action, or a constant action by lambda seen: np.zeros(n)",
        )
    limit = whole_number("steps", most)
    state, seen = env.reset([read_word("number", number)], seed, read_word("episode", episode))
    group = POLICY if POLICY in seen else next(iter(seen))
    states, observed, actions, rewards = [state], [seen], [], []
    terminated = truncated = False
    while len(actions) < limit and not (terminated or truncated):
        action, fault = read_array(_action(policy, observed[-1][group][0], len(actions)), None)
        if fault or action.size != env.action_size:
            got = fault or f"has shape {action.shape}"
            cause = f"the action of {name_of(policy)} {got}, expected {env.action_size} numbers"
            raise StateError(cause, "return one number for each motor")
        actions.append(np.asarray(action, dtype=float).reshape(1, env.action_size))
        state, result = env.step(state, actions[-1])
        states.append(state)
        observed.append(result.observations)
        rewards.append(result.reward[0])
        terminated, truncated = bool(result.terminated[0]), bool(result.truncated[0])
    q, v = (np.concatenate([x[name] for x in states]) for name in "qv")
    info: dict[str, Any] = {"seed": int(seed), "environment": int(number), "episode": int(episode)}
    contacts = env.given.setup.contacts
    if contacts is not None:
        info |= {"contacts": list(contacts.names), "ground": contacts.ground.surface}
    motion = Trajectory(np.arange(len(q)) * env.step_time, q, v, system=env.robot, info=info)
    return Episode(
        motion,
        {name: np.concatenate([x[name] for x in observed]) for name in seen},
        np.concatenate(actions) if actions else np.zeros((0, env.action_size)),
        np.array(rewards),
        terminated,
        truncated,
    )


def _action(policy: Callable[[Any], Any], seen: np.ndarray, step: int) -> Any:
    """The action of a policy; an error names the policy if it fails."""
    try:
        return policy(seen)
    except Exception as error:
        if isinstance(error, Error):
            raise
        cause = f"the policy {name_of(policy)} failed at step {step}"
        raise StateError(
            f"{cause}: {type(error).__name__}: {error}",
            f"give a function of the observations {seen.shape}",
        ) from error
