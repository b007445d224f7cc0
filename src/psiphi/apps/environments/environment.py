"""`pp.environment`: a robot, a ground and terms as an environment for reinforcement learning."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import one_of, read_array, real_array, whole_number
from psiphi.apps.environments import vector_env
from psiphi.apps.environments.environment_function import JaxEnvironment
from psiphi.apps.environments.environment_input import EnvironmentInput, NamedTerm, read_input
from psiphi.apps.environments.environment_kernel import Arrays, EnvironmentKernel
from psiphi.apps.environments.environment_program import (
    DISABLED,
    FAILED,
    MODES,
    NEXT_STEP,
    RESET,
    REWARD,
    REWARD_TERMS,
    SAME_STEP,
    TERMINATED,
    TRUNCATED,
    EnvironmentProgram,
    final,
    observed,
)
from psiphi.apps.environments.episode import Episode, run_episode
from psiphi.apps.environments.state_resets import seed_words
from psiphi.apps.environments.terms.term_state import COUNTER, EPISODE, KEY
from psiphi.apps.environments.torch_env import TorchEnvironment
from psiphi.apps.environments.vector_env import MAX_COUNT
from psiphi.apps.viewer.live import policy_page
from psiphi.compiler.ir.lane_blocks import WORD
from psiphi.model.contact.ground import Ground
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_blocks import TOTAL
from psiphi.simulation.contact.placement import check_above_ground
from psiphi.simulation.control.control_law import Controller

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.vector import VectorEnv

Observations = dict[str, np.ndarray]  # (n, size) by group
State = dict[str, np.ndarray]


class StepResult(NamedTuple):
    """What a control step of n environments returns.

    `observations` and `final_observations` are (n, size) by group; the latter are those at the end
    of an episode, and None unless the mode is "same_step". reward, terminated, truncated and failed
    are (n,). An environment fails if its action or its new state is not finite: its episode is
    terminated, in the state before the step. `reward_terms` (n,) by name; `contact_residual` (n,)
    in m/s: by how much the steps violate the laws of contact.
    """

    observations: Observations
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    failed: np.ndarray
    final_observations: Observations | None
    reward_terms: dict[str, np.ndarray]
    contact_residual: np.ndarray


def environment(
    robot: Robot,
    ground: Ground | None = None,
    *,
    actuation: Controller | None = None,
    observations: Mapping[str, Sequence[Any]] | Sequence[Any],
    rewards: Mapping[str, Any] | Callable[..., Any],
    terminations: Mapping[str, NamedTerm] | Sequence[NamedTerm] | NamedTerm | None = None,
    resets: Mapping[str, Any] | Callable[..., Any] | None = None,
    commands: Mapping[str, Any] | None = None,
    command_interval: float | None = None,
    randomize: Mapping[str, Any] | None = None,
    pushes: Mapping[str, Any] | None = None,
    push_interval: float | None = None,
    episode_length: float | None = None,
    dt: float = 0.005,
    decimation: int = 4,
    action_scale: Numbers | None = None,
    action_limit: Numbers = 1.0,
    action_delay: float = 0.0,
    q0: Numbers | None = None,
    v0: Numbers | None = None,
    method: str | None = None,
    damping: bool | Numbers = False,
    friction: bool | Numbers = False,
    friction_speed: float | None = None,
    springs: bool | Numbers = False,
    effort: bool | Numbers = False,
    actuated: str | Sequence[str] | None = None,
    passive: str | Sequence[str] | None = None,
    limits: str = "ignore",
) -> Environment:
    """An environment for reinforcement learning, whose control step is one compiled kernel.

    A control step clips the action to +- `action_limit`, multiplies it by `action_scale`, runs
    `decimation` steps of `dt` seconds, and evaluates the terms. An action has one number for each
    motor: a torque, in units of the effort limit; or with `actuation`, a controller with a constant
    posture such as `pp.PD`, a displacement from that posture.

    A term is a word or a function of the state s of one environment (`s.q`, `s.v`, `s.height`,
    `s.gravity`, `s.contact_forces`, ...), which is traced and compiled as laws are (`pp.law`).
    `observations` is a list of terms, or groups {"policy": [...], "critic": [...]}; a pair
    (term, {"scale": 2.0, "noise": (-0.1, 0.1)}) has options. `rewards` is {word: weight} or
    {name: (weight, term)}; `terminations` are terms that are true at the end of an episode. After
    `episode_length` seconds an episode is truncated.

    `resets` is {"offset": {name: distribution}, "v": {name: distribution}} about the nominal state
    q0 and v0, or a function of s that returns {"q": q, "v": v}. `commands` is {name: distribution},
    drawn for each episode, and again after each `command_interval` seconds: `s.command`. A
    distribution is a number, (low, high), or {"normal": (mean, deviation)}. Random numbers depend
    on the seed, the number of the environment, the number of its episode and the step in it, on
    nothing else.

    `randomize` is {word: distribution} for each episode: "mass", "inertia", "com", "armature",
    "damping", "kp", "kd" and "ground_friction", as in the table [vary] of studies. `pushes` changes
    the velocity every `push_interval` seconds, {"x": (-0.5, 0.5)}. Actions act `action_delay`
    seconds late.

    The other arguments are those of `pp.rollout`.

    >>> import numpy as np, psiphi as pp
    >>> cart = pp.load("cartpole")
    >>> env = environment(
    ...     cart,
    ...     observations=["q", "v"],
    ...     rewards={"alive": 1.0, "upright": (-1.0, lambda s: s.q[1] * s.q[1])},
    ...     terminations={"down": lambda s: np.abs(s.q[1]) > 0.5},
    ...     resets={"offset": {"*": (-0.05, 0.05)}},
    ...     episode_length=5.0,
    ...     actuated="slide",
    ... )
    >>> state, seen = env.reset(3, seed=0)
    >>> state, result = env.step(state, np.zeros((3, 1)))
    >>> result.observations["policy"].shape, result.reward.shape
    ((3, 4), (3,))
    """
    simulation = {
        "method": method,
        "damping": damping,
        "friction": friction,
        "friction_speed": friction_speed,
        "springs": springs,
        "effort": effort,
        "actuated": actuated,
        "passive": passive,
        "limits": limits,
    }
    events = {
        "command_interval": command_interval,
        "pushes": pushes,
        "push_interval": push_interval,
        "action_delay": action_delay,
    }
    return Environment(
        read_input(
            robot,
            ground,
            actuation,
            action_scale,
            action_limit,
            dt,
            decimation,
            observations,
            rewards,
            terminations,
            resets,
            commands,
            randomize,
            events,
            q0,
            v0,
            episode_length,
            simulation,
        )
    )


@dataclass(frozen=True, eq=False)
class Environment:
    """A robot with actions, observations and rewards. Its methods are pure functions on the states
    of n environments: a dict of arrays (n, size).

    `vector(n)` is an environment of gymnasium, `single()` one without a batch.
    """

    given: EnvironmentInput

    def __post_init__(self) -> None:
        for mode in (RESET, NEXT_STEP):  # errors in terms are raised now, not at the first step
            self.program(mode).trace()

    def __repr__(self) -> str:
        given = self.given
        sizes = ", ".join(f"{name} {size}" for name, size in self.observation_sizes.items())
        return (
            f"<Environment of {given.robot.name!r}: {given.action_size} actions, "
            f"observations {sizes}, {given.setup.step_time:g} s a step>"
        )

    @property
    def robot(self) -> Robot:
        """The robot, with its nominal numbers."""
        return self.given.randomization.original

    @property
    def step_time(self) -> float:
        """The duration of a control step in seconds."""
        return self.given.setup.step_time

    @property
    def action_size(self) -> int:
        return self.given.action_size

    @property
    def action_names(self) -> tuple[str, ...]:
        """The joint coordinates that actions move."""
        return tuple(self.robot.velocity_names[i] for i in self.given.setup.motors)

    @cached_property
    def observation_sizes(self) -> dict[str, int]:
        """{group: size}."""
        sizes = self.program(RESET).outputs
        return {group: sizes[observed(group)] for group in self.given.groups}

    @property
    def reward_names(self) -> tuple[str, ...]:
        return tuple(self.given.rewards)

    @cached_property
    def _programs(self) -> dict[str, EnvironmentProgram]:
        return {}

    def program(self, mode: str) -> EnvironmentProgram:
        """(Internal use only) The blocks of a control step, or of a reset."""
        if mode not in self._programs:
            self._programs[mode] = EnvironmentProgram(self.given, mode)
        return self._programs[mode]

    @cached_property
    def _kernels(self) -> dict[str, EnvironmentKernel]:
        return {}

    def kernel(self, mode: str) -> EnvironmentKernel:
        """(Internal use only) The kernel of a mode of autoreset, or of a reset."""
        if mode not in self._kernels:
            self._kernels[mode] = EnvironmentKernel(self.program(mode))
        return self._kernels[mode]

    # -- pure functions on batches -----------------------------------------------------------------

    def reset(
        self,
        count: int | Numbers = 1,
        seed: int | Sequence[int] = 0,
        episode: int | Numbers = 0,
    ) -> tuple[State, Observations]:
        """The states at the start of an episode, and their observations.

        `count` is the number of environments, or the numbers that they have: `reset([17], seed=0)`
        begins the same episode as environment 17 of `reset(100, seed=0)`, to the last bit.
        """
        numbers = _numbers(count)
        kernel = self.kernel(RESET)
        state = {name: np.zeros((len(numbers), n)) for name, n in kernel.state_sizes.items()}
        state[KEY][:] = seed_words(seed, len(numbers))
        state[COUNTER][:, 0] = numbers
        state[COUNTER][:, EPISODE] = _episodes(episode, len(numbers)) - 1
        return self.begin(state, np.ones(len(numbers), dtype=bool))

    def begin(self, state: State, where: np.ndarray) -> tuple[State, Observations]:
        """The states with a new episode `where` (n,) is true, and all observations. Those of other
        environments are without torques and contacts."""
        kernel, now = self.kernel(RESET), self._read_state(state)
        count = len(now[COUNTER])
        chosen, fault = read_array(where, None)
        if fault or chosen.dtype != bool or chosen.shape != (count,):
            cause = f"where is {shown(where)}, expected {count} booleans"
            raise StateError(cause, "give an array: result.terminated | result.truncated")
        out = kernel.empty(count)
        kernel.run(now, chosen.astype(float)[:, None], out)
        contacts = self.given.setup.contacts
        if contacts is not None:
            check_above_ground(contacts, out["q"][chosen], "environment")
        seen = {name: out.pop(observed(name)) for name in self.given.groups}
        return out, seen

    def step(
        self, state: State, action: np.ndarray, autoreset: str = DISABLED
    ) -> tuple[State, StepResult]:
        """The states after a control step with the actions (n, action_size), and its results.

        `autoreset` says where episodes that ended begin again: "disabled" (nowhere), "next_step"
        (in the next step, which ignores the action) or "same_step" (at once).
        """
        kernel = self.kernel(one_of("autoreset", autoreset, MODES))
        now = self._read_state(state)
        count = len(now[COUNTER])
        out = kernel.empty(count)
        kernel.run(now, self.read_actions(action, count), out)
        new = {name: out[name] for name in kernel.state_sizes}
        return new, self.result(kernel, out)

    def read_actions(self, action: object, count: int) -> np.ndarray:
        """(Internal use only) Actions (n, action_size) as floats; they need not be finite."""
        array, fault = read_array(action, None)
        if fault or array.shape != (count, self.action_size):
            got = fault or f"has shape {array.shape}"
            raise StateError(
                f"the action {got}, expected {(count, self.action_size)}: environments, motors",
                f"the motors are {', '.join(self.action_names[:8])}",
            )
        return np.ascontiguousarray(array, dtype=float)

    def result(self, kernel: EnvironmentKernel, out: Arrays) -> StepResult:
        """(Internal use only) The results in the output arrays of a kernel."""
        self.check_rewards(out)
        return self.arrays_result(out)

    def observations_of(self, out: Mapping[str, Any]) -> dict[str, Any]:
        """(Internal use only) The observations in outputs, by group."""
        return {name: out[observed(name)] for name in self.given.groups}

    def arrays_result(self, out: Mapping[str, Any]) -> StepResult:
        """(Internal use only) The results in the outputs of a step, arrays of any library."""
        finals = {name: out[final(name)] for name in self.given.groups if final(name) in out}
        terms = {name: out[REWARD_TERMS][..., i] for i, name in enumerate(self.reward_names)}
        reward = out[REWARD][..., 0]
        total = out.get(TOTAL)  # torch calls the largest number amax
        residual = 0.0 * reward if total is None else getattr(total, "amax", total.max)(-1) ** 0.5
        return StepResult(
            self.observations_of(out),
            reward,
            out[TERMINATED][..., 0] != 0.0,
            out[TRUNCATED][..., 0] != 0.0,
            out[FAILED][..., 0] != 0.0,
            finals or None,
            terms,
            residual,
        )

    def check_rewards(self, out: Arrays) -> None:
        """(Internal use only) Raise an error if a reward is not a number."""
        if np.isfinite(out[REWARD]).all():
            return
        terms = out[REWARD_TERMS]
        rows, columns = np.nonzero(~np.isfinite(terms))
        row = int(rows[0]) if len(rows) else int(np.nonzero(~np.isfinite(out[REWARD]))[0][0])
        name = self.reward_names[int(columns[0])] if len(rows) else "their sum"
        value = terms[row, columns[0]] if len(rows) else out[REWARD][row, 0]
        number, episode, step = (int(x) for x in out[COUNTER][row])
        raise StateError(
            f"the reward {name!r} is {value} in environment {number}, episode {episode}, at step "
            f"{step}",
            "check the term: a division by zero, or a root or logarithm of a negative number",
        )

    def _read_state(self, state: object) -> State:
        """The arrays (n, size) of a state."""
        sizes = self.kernel(RESET).state_sizes
        if not isinstance(state, dict) or set(state) != set(sizes):
            cause = f"the state is {shown(type(state).__name__)}, not one of this environment"
            raise StateError(cause, "give what env.reset or env.step returned")
        remedy = "give what env.reset or env.step returned"
        found = {
            name: real_array(f"{name} of the state", x, (), remedy) for name, x in state.items()
        }
        count = len(np.atleast_1d(found[COUNTER]))
        for name, size in sizes.items():
            if found[name].shape != (count, size):
                cause = f"{name} of the state has shape {found[name].shape}"
                raise StateError(f"{cause}, expected {(count, size)}", remedy)
        return found

    def episode(
        self,
        policy: Callable[[Any], Any],
        number: int = 0,
        episode: int = 0,
        seed: int = 0,
        steps: int = 1000,
    ) -> Episode:
        """Episode `episode` of environment `number`, run alone for at most `steps` control steps:
        the start and the random numbers that it has in any batch with this seed. `policy` takes
        the observations of the group "policy" (size,) and returns an action.

        `.motion` is a `pp.Trajectory`: `env.episode(policy).motion.html("episode.html")`.
        """
        return run_episode(self, policy, number, episode, seed, steps)

    def html(
        self,
        path: str | os.PathLike[str],
        policy: Callable[[Any], Any],
        command: Numbers | None = None,
        **options: Any,
    ) -> Path:
        """Write a live page in which `policy` moves the robot: one HTML file that simulates it,
        with sliders for the commands. The user can pull the robot.

        `policy` takes the observations of the group "policy" (size,) and returns an action; it is
        traced, as terms are, and compiled to WebAssembly with them. `command` are the first values
        of the commands; `options` those of `robot.html`: title=, shapes=, meshes=. The actuation
        is `pp.PD`; noise, randomisation, effort limits and pushes are left out.
        """
        return policy_page.policy_html(self, path, policy, command, **options)

    # -- other libraries ---------------------------------------------------------------------------

    def vector(
        self,
        num_envs: int,
        autoreset: str = NEXT_STEP,
        seed: int | None = None,
        dtype: Any = np.float32,
    ) -> VectorEnv:
        """`gymnasium.vector.VectorEnv` of this environment: `num_envs` environments, one kernel.

        `autoreset` is "next_step", "same_step", "disabled" or a `gymnasium.vector.AutoresetMode`.
        """
        return vector_env.make_vector(self, num_envs, autoreset, seed, dtype)

    def torch(
        self,
        num_envs: int,
        seed: int | None = None,
        dtype: Any = None,
        device: Any = "cpu",
    ) -> TorchEnvironment:
        """`num_envs` environments whose actions, observations and rewards are tensors of torch, as
        skrl and rsl_rl take them. They begin again in the step that ends an episode.

        With `device="cuda"` they stay on the GPU: a control step is three kernels there, with the
        bits of the CPU.
        """
        return TorchEnvironment(self, num_envs, seed, dtype, device)

    def jax(self, autoreset: str = SAME_STEP) -> JaxEnvironment:
        """Pure functions of JAX: `reset(key)` and `step(state, action)`, under jit, vmap, scan."""
        return JaxEnvironment(self, one_of("autoreset", autoreset, MODES))

    def single(self, dtype: Any = np.float32) -> Env:
        """`gymnasium.Env`: one environment, without a batch axis."""
        return vector_env.make_single(self, dtype)


def _numbers(count: object) -> np.ndarray:
    """The numbers of environments (n,), from n or from themselves."""
    numbers, fault = read_array(count, None)
    if not fault and not numbers.ndim:
        most = f"expected at most {MAX_COUNT}"
        if whole_number("count", count) > MAX_COUNT:
            raise StateError(f"count is {shown(count)}, {most}", "give a smaller number")
        numbers = np.arange(whole_number("count", count))
    if fault or numbers.ndim != 1 or not _are_words(numbers):
        cause = f"count is {shown(count)}, expected a number of environments or their numbers"
        raise StateError(cause, "give a whole number, or an array of them")
    return numbers


def _are_words(array: np.ndarray) -> bool:
    """Whether these are whole numbers of 32 bits."""
    return array.dtype.kind in "iu" and bool(((array >= 0) & (array <= WORD)).all())


def _episodes(episode: int | Numbers, count: int) -> np.ndarray:
    array, fault = read_array(episode, None)
    if fault or array.shape not in ((), (count,)) or not _are_words(array):
        cause = f"episode is {shown(episode)}, expected a whole number, or one each"
        raise StateError(cause, "the first episode is 0")
    return array
