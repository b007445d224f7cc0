"""Environments of gymnasium: `gymnasium.vector.VectorEnv` and `gymnasium.Env`.

gymnasium is optional (`pip install gymnasium`), and its classes are made at the first use.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import one_of, positive_count
from psiphi.apps.environments.environment_program import (
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
)
from psiphi.apps.environments.state_resets import seed_words
from psiphi.apps.environments.terms.term_state import COUNTER, EPISODE, KEY

if TYPE_CHECKING:
    from psiphi.apps.environments.environment import Environment, StepResult

MAX_COUNT = 1 << 24  # environments of one batch
WHAT, EXTRA = "an environment of gymnasium", "psiphi[rl]"


def make_vector(
    env: Environment, num_envs: int, autoreset: object, seed: int | None, dtype: Any
) -> Any:
    """The VectorEnv of `env.vector`."""
    count, checked = positive_count("num_envs", num_envs, MAX_COUNT), read_dtype(dtype)
    if seed is not None:
        seed_words(seed, count)
    if isinstance(autoreset, str):
        one_of("autoreset", autoreset, MODES)
    return _classes()[0](env, count, autoreset, seed, checked)


def make_single(env: Environment, dtype: Any) -> Any:
    """The Env of `env.single`."""
    checked = read_dtype(dtype)
    return _classes()[1](env, checked)


def read_dtype(dtype: Any) -> np.dtype:
    """float32 or float64."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except Exception:  # NumPy raises TypeError, ValueError and others
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise StateError(f"dtype is {shown(dtype)}, expected float32 or float64", "use np.float32")
    return found


@cache
def _classes() -> tuple[type, type]:
    """`VectorEnv` and `Env` of gymnasium, of psiphi's environments."""
    gym: Any = import_optional("gymnasium", WHAT, EXTRA)
    vector: Any = import_optional("gymnasium.vector", WHAT, EXTRA)
    modes = {
        NEXT_STEP: vector.AutoresetMode.NEXT_STEP,
        SAME_STEP: vector.AutoresetMode.SAME_STEP,
        DISABLED: vector.AutoresetMode.DISABLED,
    }

    class PsiphiVectorEnv(VectorSteps, vector.VectorEnv):
        """n environments of psiphi as a `gymnasium.vector.VectorEnv`."""

        def __init__(self, env: Environment, count: int, autoreset: Any, seed: Any, dtype: Any):
            name = next((name for name, mode in modes.items() if mode is autoreset), autoreset)
            self.autoreset = one_of("autoreset", name, MODES)
            self.metadata = {"autoreset_mode": modes[self.autoreset], "render_modes": []}
            self.env, self.num_envs, self.dtype = env, count, dtype
            self.single_observation_space = _observation_space(gym, env, dtype)
            self.single_action_space = _action_space(gym, env)
            batch = vector.utils.batch_space
            self.observation_space = batch(self.single_observation_space, count)
            self.action_space = batch(self.single_action_space, count)
            self.arrays: dict[str, np.ndarray] | None = None
            self.seed = random_seed() if seed is None else seed

        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict]:
            """New episodes in all environments, or where options["reset_mask"] is true.

            `seed` is one number, from which each environment has random numbers of its own, or a
            list of them.
            """
            if isinstance(seed, int | np.integer) and seed >= 0:
                vector.VectorEnv.reset(self, seed=int(seed))
            return self.begin(seed, options)

        def __repr__(self) -> str:
            return f"PsiphiVectorEnv({self.env.robot.name!r}, num_envs={self.num_envs})"

    class PsiphiEnv(gym.Env):
        """One environment of psiphi as a `gymnasium.Env`."""

        def __init__(self, env: Environment, dtype: Any):
            self.env, self.dtype, self.state = env, dtype, None
            self.metadata = {"render_modes": []}
            self.observation_space = _observation_space(gym, env, dtype)
            self.action_space = _action_space(gym, env)

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
            """A new episode; with a seed, the first one of that seed."""
            gym.Env.reset(self, seed=seed)
            if seed is None and self.state is not None:
                self.state, seen = self.env.begin(self.state, np.ones(1, dtype=bool))
            else:
                number = self.np_random_seed if seed is None else seed
                self.state, seen = self.env.reset(1, int(number) % 2**64)
            return _single(converted(seen, self.dtype)), {}

        def step(self, action: Any) -> Any:
            if self.state is None:
                raise StateError("step before reset", "call env.reset() first")
            row = np.asarray(action)[None] if np.ndim(action) == 1 else action
            self.state, result = self.env.step(self.state, row)
            flags = bool(result.terminated[0]), bool(result.truncated[0])
            terms = {name: float(x[0]) for name, x in result.reward_terms.items()}
            info = {"reward_terms": terms, "failed": bool(result.failed[0])}
            seen = _single(converted(result.observations, self.dtype))
            return seen, float(result.reward[0]), *flags, info

    return PsiphiVectorEnv, PsiphiEnv


def _single(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: x[0] for name, x in observations.items()}
    return observations[0]


def _observation_space(gym: Any, env: Environment, dtype: Any) -> Any:
    """A Box, or a Dict of one for each group."""
    boxes = {
        name: gym.spaces.Box(-np.inf, np.inf, (size,), dtype.type)
        for name, size in env.observation_sizes.items()
    }
    return next(iter(boxes.values())) if len(boxes) == 1 else gym.spaces.Dict(boxes)


def _action_space(gym: Any, env: Environment) -> Any:
    limit = env.given.action_limit.astype(np.float32)
    return gym.spaces.Box(-limit, limit, dtype=np.float32)


def converted(groups: dict[str, np.ndarray], dtype: Any) -> Any:
    """A copy of the observations as an array, or a dict of them if there are several groups."""
    found = {name: x.astype(dtype) for name, x in groups.items()}
    return next(iter(found.values())) if len(found) == 1 else found


class VectorSteps:
    """What a VectorEnv does, without gymnasium: the state of n environments, and their steps."""

    env: Environment
    num_envs: int
    autoreset: str
    dtype: Any
    arrays: dict[str, np.ndarray] | None
    seed: int
    seen: dict[str, np.ndarray]
    result: StepResult

    def begin(self, seed: object, options: object) -> tuple[Any, dict]:
        """`reset` of the VectorEnv."""
        mask = read_mask(options, self.num_envs)
        kernel = self.env.kernel(self.autoreset)
        first = self.arrays is None
        if self.arrays is None:
            self.arrays = kernel.empty(self.num_envs)
            start, self.seen = self.env.reset(self.num_envs, self.seed if seed is None else 0)
        else:
            start = {name: self.arrays[name] for name in kernel.state_sizes}
        where = np.ones(self.num_envs, dtype=bool) if mask is None else mask
        if seed is not None:
            start = self._seeded(start, seed, where)
        if seed is not None or not first:
            start, seen = self.env.begin(start, where)
            for name, x in seen.items():
                self.seen[name] = np.where(where[:, None], x, self.seen[name])
        for name, x in start.items():
            self.arrays[name][:] = x
        return converted(self.seen, self.dtype), {}

    def _seeded(self, start: dict[str, np.ndarray], seed: object, where: np.ndarray) -> dict:
        """The states before the first episode of new seeds; None keeps an environment's seed."""
        rows = list(seed) if isinstance(seed, list | tuple) else [seed] * self.num_envs
        if len(rows) != self.num_envs:
            cause = f"seed has {len(rows)} entries, and there are {self.num_envs} environments"
            raise StateError(cause, "give one seed, or one for each environment")
        given = np.array([x is not None for x in rows]) & where
        words = seed_words([0 if x is None else x for x in rows], self.num_envs)
        found = {name: x.copy() for name, x in start.items()}
        found[KEY][given] = words[given]
        found[COUNTER][given, EPISODE] = -1.0
        return found

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One control step of all environments."""
        if self.arrays is None:
            raise StateError("step before reset", "call env.reset(seed=0) first")
        env, kernel = self.env, self.env.kernel(self.autoreset)
        kernel.run(self.arrays, env.read_actions(actions, self.num_envs), self.arrays)
        self.result = result = env.result(kernel, self.arrays)
        self.seen = result.observations
        seen = converted(result.observations, self.dtype)
        return seen, result.reward.copy(), result.terminated, result.truncated, self._info(result)

    def _info(self, result: StepResult) -> dict[str, Any]:
        """Each entry with the mask of the environments that it is for: "failed" and "_failed"."""
        every = np.ones(self.num_envs, dtype=bool)
        terms: dict[str, Any] = {}
        for name, x in result.reward_terms.items():
            terms |= {name: x.copy(), f"_{name}": every}
        info: dict[str, Any] = {"reward_terms": terms, "_reward_terms": every}
        if result.failed.any():
            info |= {"failed": result.failed, "_failed": result.failed}
        unsolved = result.contact_residual > contact_tolerance(self.env)
        if unsolved.any():
            info |= {"contact_residual": result.contact_residual, "_contact_residual": unsolved}
        ended = result.terminated | result.truncated
        if result.final_observations is not None and ended.any():
            last = {"reward_terms": terms, "_reward_terms": ended}
            last |= {"failed": result.failed, "_failed": ended}
            info |= self._final_info(result.final_observations, ended)
            info["final_info"] = last
        return info

    def _final_info(self, last: dict[str, np.ndarray], ended: np.ndarray) -> dict[str, Any]:
        rows, found = np.flatnonzero(ended), np.full(self.num_envs, None, dtype=object)
        for row in rows:
            found[row] = _single(
                converted({k: x[row : row + 1] for k, x in last.items()}, self.dtype)
            )
        return {"final_obs": found, "_final_obs": ended, "_final_info": ended}


def contact_tolerance(env: Environment) -> float:
    """The residual in m/s above which the contacts of a step are not solved."""
    contacts = env.given.setup.contacts
    return np.inf if contacts is None else contacts.ground.tolerance


def random_seed() -> int:
    """A seed of the system's entropy."""
    return int.from_bytes(np.random.SeedSequence().generate_state(2).tobytes(), "little")


def read_mask(options: object, count: int) -> np.ndarray | None:
    """options["reset_mask"], booleans (count,), or None."""
    mask = options.get("reset_mask") if isinstance(options, dict) else None
    if options is not None and not isinstance(options, dict):
        raise StateError(f"options is {shown(options)}, expected a dict", "omit it")
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (count,):
        raise StateError(
            f"reset_mask is {shown(mask)}, expected {count} booleans of NumPy",
            'options={"reset_mask": terminated | truncated}',
        )
    if not mask.any():
        raise StateError("reset_mask has no True", "leave out the call")
    return mask
