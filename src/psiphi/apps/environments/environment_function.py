"""A control step, or a reset, as a function of arrays of torch and JAX, and pure functions of JAX.

The arrays are those of the state by name, with any batch axes; there are no derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import array_library, batch_axes
from psiphi.apps.environments.environment_program import RESET, RESETTING
from psiphi.apps.environments.terms.term_state import COUNTER, EPISODE, KEY
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.array_dispatch import dispatch
from psiphi.functions.arrays.function_registry import register

if TYPE_CHECKING:
    from psiphi.apps.environments.environment import Environment, StepResult

Arrays = dict[str, Any]
NO_DERIVATIVE = "a control step of an environment has no derivative"
ACTION = "the action"


class EnvironmentFunction:
    """(state, action) -> (state, outputs), or (state, where) -> the same at the start of an
    episode; all as arrays (..., size)."""

    def __init__(self, env: Environment, mode: str):
        self.env, self.mode, self.name = env, mode, "environment"
        self.kernel = env.kernel(mode)
        sizes = self.kernel.state_sizes
        last = Argument(RESETTING, (1,)) if mode == RESET else Argument(ACTION, (env.action_size,))
        self.inputs = (*(Argument(name, (size,)) for name, size in sizes.items()), last)
        self.outputs = tuple(
            Argument(name, (n,)) for name, n in (sizes | self.kernel.outputs).items()
        )
        self.number = register(self)

    def on(self, state: Arrays, given: AnyArray) -> Arrays:
        """The outputs by name, for arrays of torch or JAX."""
        values = [*(state[name] for name in self.kernel.state_sizes), given]
        return dict(zip((x.name for x in self.outputs), dispatch(self, values), strict=True))

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype = np.result_type(np.float32, *arrays)
        leads = {x.name: y.shape[:-1] for x, y in zip(self.inputs, arrays, strict=True)}
        batch = batch_axes(self.name, leads)
        rows = [
            np.ascontiguousarray(np.broadcast_to(x, (*batch, x.shape[-1])), dtype=float)
            for x in arrays
        ]
        flat = [x.reshape(-1, x.shape[-1]) for x in rows]
        *state, given = flat
        out = self.kernel.empty(len(given))
        self.kernel.run(dict(zip(self.kernel.state_sizes, state, strict=True)), given, out)
        if self.mode != RESET:
            self.env.check_rewards(out)
        found = (out[x.name] for x in self.outputs)
        return tuple(x.reshape(*batch, x.shape[-1]).astype(dtype, copy=False) for x in found)

    def run(self, values: Sequence[Any], out: Out = None, dtype: DType = None) -> Any:
        raise StateError("environments run on the CPU, and an array is on a GPU", "use .cpu()")

    run_on_gpu = run

    def pushforward(self, *names: str) -> Any:
        raise StateError(NO_DERIVATIVE, "use torch.no_grad() or jax.lax.stop_gradient")

    pullback = pushforward


class JaxEnvironment:
    """Pure functions of JAX, under jit, vmap and scan: `reset(key)` and `step(state, action)`."""

    def __init__(self, env: Environment, autoreset: str):
        self.env = env
        self.jax: Any = import_optional("jax", "an environment of JAX", "psiphi[jax]")
        if not self.jax.config.jax_enable_x64:
            raise StateError(
                "JAX has no float64, and the state of an environment needs it",
                'call jax.config.update("jax_enable_x64", True) first',
            )
        self.reset_function = EnvironmentFunction(env, RESET)
        self.step_function = EnvironmentFunction(env, autoreset)

    def reset(self, key: Any) -> tuple[Arrays, Arrays]:
        """The state and the observations of episode 0, for a key of `jax.random`; for keys with
        batch axes, of as many environments."""
        jnp: Any = self.jax.numpy
        typed = self.jax.numpy.issubdtype(getattr(key, "dtype", None), self.jax.dtypes.prng_key)
        words = self.jax.random.key_data(key) if typed else jnp.asarray(key)
        if words.dtype != np.uint32 or words.shape[-1:] != (2,):
            cause = f"the key is {shown(words)}, expected one of jax.random"
            raise StateError(cause, "give jax.random.key(0)")
        sizes, lead = self.reset_function.kernel.state_sizes, words.shape[:-1]
        state = {name: jnp.zeros((*lead, n)) for name, n in sizes.items()}
        state[KEY] = words.astype(float)
        state[COUNTER] = state[COUNTER].at[..., EPISODE].set(-1.0)
        out = self.reset_function.on(state, jnp.ones((*lead, 1)))
        return {name: out[name] for name in sizes}, self.env.observations_of(out)

    def step(self, state: Arrays, action: Any) -> tuple[Arrays, StepResult]:
        """The next state, and its `StepResult`."""
        if array_library(action) != "jax":
            action = self.jax.numpy.asarray(action, float)
        out = self.step_function.on(state, action)
        return {name: out[name] for name in state}, self.env.arrays_result(out)
