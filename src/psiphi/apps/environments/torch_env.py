"""Environments whose observations, rewards and actions are tensors of torch, for learning
libraries: the conventions of Isaac Lab, which skrl takes, and of rsl_rl.

On the CPU, flags are views of the arrays that the kernel writes, which are valid until the next
step. On a GPU the state stays there (`cuda_environment.py`), and nothing waits for it; resets by
hand go through the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import array_library, positive_count, read_array
from psiphi.apps.environments.cuda_environment import CudaEnvironment
from psiphi.apps.environments.environment_program import SAME_STEP
from psiphi.apps.environments.state_resets import seed_words
from psiphi.apps.environments.terms.term_state import COUNTER, EPISODE, KEY, STEP
from psiphi.apps.environments.vector_env import MAX_COUNT, random_seed

if TYPE_CHECKING:
    from psiphi.apps.environments.environment import Environment, StepResult

LIBRARY = "torch"


class TorchEnvironment:
    """n environments with tensors on one device, which begin again in the step that ends an
    episode.

        observations, extras = env.reset(seed=0)              {"policy": (n, size), ...}
        observations, reward, terminated, truncated, extras = env.step(actions)

    `extras["final_observations"]` are those of episodes that ended, `extras["log"]` the means of
    the reward terms. `rsl_rl` has the methods that rsl_rl calls.
    """

    def __init__(
        self, env: Environment, num_envs: int, seed: int | None, dtype: Any, device: Any = "cpu"
    ):
        self.env, self.num_envs = env, positive_count("num_envs", num_envs, MAX_COUNT)
        if seed is not None:
            seed_words(seed, 1)
        self.torch: Any = import_optional(LIBRARY, "an environment of torch", "psiphi[torch]")
        self.dtype = self.torch.float32 if dtype is None else dtype
        if not any(self.dtype is x for x in (self.torch.float32, self.torch.float64)):
            cause = f"dtype is {shown(dtype)}, expected torch.float32 or torch.float64"
            raise StateError(cause, "use torch.float32")
        self.device = self._read_device(device)
        self.num_actions = env.action_size
        self.max_episode_length = env.given.most_steps
        program = env.program(SAME_STEP)
        self.state_sizes = program.state_sizes
        self.on_gpu = self.device.type == "cuda"
        self.cuda = CudaEnvironment(program)
        self.tensors: dict[str, Any] = {}  # the state on a GPU
        sizes = self.state_sizes if self.on_gpu else self.state_sizes | program.outputs
        self.arrays = {name: np.empty((self.num_envs, size)) for name, size in sizes.items()}
        self.seed = random_seed() if seed is None else seed
        self.started = False
        self.observations: dict[str, Any] = {}

    def _read_device(self, value: Any) -> Any:
        try:
            device = self.torch.device(value)
            if device.type == "cuda":
                self.torch.empty(0, device=device)
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            cause = f"device is {shown(value)}, which torch does not have: {error}"
            raise StateError(cause.partition("\n")[0], 'use "cpu" or "cuda"') from error
        if device.type not in ("cpu", "cuda"):
            raise StateError(f"device is {shown(value)}, expected a CPU or a GPU", 'use "cuda"')
        return device

    @property
    def rsl_rl(self) -> RslEnvironment:
        """The same environments, with the methods of rsl_rl's VecEnv."""
        return RslEnvironment(self)

    @property
    def unwrapped(self) -> TorchEnvironment:
        return self

    def reset(self, env_ids: Any = None, seed: int | None = None) -> tuple[dict[str, Any], dict]:
        """New episodes in all environments, or in those of the indices `env_ids`; with a seed, the
        first ones of that seed."""
        where = np.ones(self.num_envs, dtype=bool)
        if env_ids is not None:
            where[:] = False
            where[self._indices(env_ids)] = True
        if self.on_gpu:
            for name, x in self.tensors.items():
                self.arrays[name][:] = x.cpu().numpy()
        if seed is not None or not self.started:
            words = seed_words(self.seed if seed is None else seed, 1)
            fresh, _ = self.env.reset(self.num_envs, 0)
            for name in self.state_sizes:
                rows = where if self.started else slice(None)
                self.arrays[name][rows] = fresh[name][rows]
            rows = where if self.started else slice(None)
            self.arrays[KEY][rows] = words
            self.arrays[COUNTER][rows, EPISODE] = -1.0
            if not self.started:
                where[:] = True
            self.started = True
        state = {name: self.arrays[name] for name in self.state_sizes}
        new, seen = self.env.begin(state, where)
        for name, x in new.items():
            self.arrays[name][:] = x
        if self.on_gpu:
            self.tensors = {
                name: self.torch.tensor(x, device=self.device) for name, x in new.items()
            }
        rows = self.torch.from_numpy(where)[:, None].to(self.device)
        for name, x in seen.items():
            fresh = self._tensor(x)
            old = self.observations.get(name, fresh)
            self.observations[name] = self.torch.where(rows, fresh, old)
        return dict(self.observations), {}

    def _indices(self, env_ids: Any) -> np.ndarray:
        if array_library(env_ids) == LIBRARY:
            env_ids = env_ids.cpu()
        found, fault = read_array(env_ids, None)
        good = not fault and found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
        if not good or (found.size and not 0 <= found.min() <= found.max() < self.num_envs):
            cause = f"env_ids is {shown(env_ids)}, expected indices below {self.num_envs}"
            raise StateError(cause, "give a tensor of whole numbers")
        return found.astype(int)

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """One control step: observations, reward, terminated, truncated, extras."""
        if not self.started:
            raise StateError("step before reset", "call env.reset(seed=0) first")
        if array_library(actions) != LIBRARY or actions.device.type != self.device.type:
            where = "a GPU" if self.on_gpu else "the CPU"
            cause = f"the actions are {shown(actions)}, expected a tensor on {where}"
            raise StateError(cause, f'use .to("{self.device}")')
        result = self._gpu_step(actions) if self.on_gpu else self._cpu_step(actions)
        self.observations = {name: self._tensor(x) for name, x in result.observations.items()}
        flags = map(self._flag, (result.terminated, result.truncated))
        return dict(self.observations), self._tensor(result.reward), *flags, self._extras(result)

    def _cpu_step(self, actions: Any) -> StepResult:
        kernel = self.env.kernel(SAME_STEP)
        given = self.env.read_actions(actions.detach().numpy(), self.num_envs)
        kernel.run(self.arrays, given, self.arrays)
        return self.env.result(kernel, self.arrays)

    def _gpu_step(self, actions: Any) -> StepResult:
        expected = self.num_envs, self.num_actions
        if tuple(actions.shape) != expected:
            cause = f"the action has shape {tuple(actions.shape)}, expected {expected}"
            raise StateError(cause, "one row for each environment, one number for each motor")
        given = actions.detach().to(self.torch.float64).contiguous()
        out = self.cuda.run(self.tensors, given)
        self.tensors = {name: out[name] for name in self.state_sizes}
        return self.env.arrays_result(out)

    def _extras(self, result: StepResult) -> dict[str, Any]:
        last = result.final_observations or {}
        return {
            "final_observations": {name: self._tensor(x) for name, x in last.items()},
            "failed": self._flag(result.failed),
            "contact_residual": self._tensor(result.contact_residual),
            "log": {f"reward/{name}": self._mean(x) for name, x in result.reward_terms.items()},
        }

    def _tensor(self, x: Any) -> Any:
        """A copy, which later steps do not change."""
        if isinstance(x, np.ndarray):
            return self.torch.tensor(x, dtype=self.dtype, device=self.device)
        return x.to(self.dtype)

    def _flag(self, x: Any) -> Any:
        return self.torch.from_numpy(x) if isinstance(x, np.ndarray) else x

    def _mean(self, x: Any) -> Any:
        """A number, or a tensor without axes that the host has not waited for."""
        return x.mean() if self.on_gpu else float(x.mean())

    @property
    def episode_length_buf(self) -> Any:
        """The step of each episode (n,)."""
        if self.on_gpu:
            return self.tensors[COUNTER][:, STEP].to(self.torch.int64)
        return self.torch.from_numpy(self.arrays[COUNTER][:, STEP].astype(np.int64))

    def close(self) -> None:
        """There is nothing to close."""


class RslEnvironment:
    """rsl_rl's VecEnv: one flag for the end of an episode, and time-outs in the extras."""

    def __init__(self, env: TorchEnvironment):
        self.env, self.cfg = env, {"robot": env.env.robot.name}
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.device, self.max_episode_length = env.device, env.max_episode_length

    @property
    def episode_length_buf(self) -> Any:
        return self.env.episode_length_buf

    def reset(self) -> tuple[Any, dict[str, Any]]:
        observations, extras = self.env.reset()
        return self._packed(observations), extras

    def get_observations(self) -> Any:
        """The observations of now, by group."""
        if not self.env.started:
            self.env.reset()
        return self._packed(self.env.observations)

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Observations, reward, done, extras."""
        seen, reward, terminated, truncated, extras = self.env.step(actions)
        done = (terminated | truncated).to(self.env.torch.long)
        return self._packed(seen), reward, done, extras | {"time_outs": truncated}

    def _packed(self, observations: dict[str, Any]) -> Any:
        """A TensorDict, which rsl_rl expects."""
        package: Any = import_optional("tensordict", "an environment of rsl_rl", "tensordict")
        return package.TensorDict(dict(observations), batch_size=[self.num_envs])
