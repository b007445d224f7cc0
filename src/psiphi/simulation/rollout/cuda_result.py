"""The result of `pp.rollout` on the GPU: the states and the derivatives of the motion, which are
computed there, too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi.functions.arrays.function_registry import sum_repeated
from psiphi.simulation.compiled_rollout.cuda_runner import CudaRunner
from psiphi.simulation.rollout.rollout_result import MotionStates
from psiphi.simulation.rollout_derivatives.cuda_adjoint import CudaRolloutAdjoint
from psiphi.simulation.rollout_derivatives.step_derivatives import NO_DERIVATIVE

NO_CONTACT_DERIVATIVE = "derivatives of motions with contacts are available on the CPU only"
ON_CPU = "give NumPy arrays, or tensors on the CPU"


class CudaRolloutResult(MotionStates):
    """The tuple (q, v) of GPU arrays, with the derivatives of `RolloutResult` on the GPU.

    Torques that were given as NumPy arrays are constants.
    """

    contact_residual: Any = None  # (..., n) in m/s, with contacts with the ground
    _runner: CudaRunner
    _every: int
    _tau_shape: tuple[int, ...]  # of the argument tau, if it is a GPU array

    @classmethod
    def of(
        cls, runner: CudaRunner, every: int, tau_shape: tuple[int, ...] = ()
    ) -> CudaRolloutResult:
        q, v, *residual = runner.run(every)
        self = cls((q, v))
        self.contact_residual = residual[0] if residual else None
        self._runner, self._every, self._tau_shape = runner, every, tau_shape
        return self

    @cached_property
    def _adjoint(self) -> CudaRolloutAdjoint:
        runner = self._runner
        if runner.options.contacts is not None:
            raise StateError(f"rollout: {NO_CONTACT_DERIVATIVE}", ON_CPU)
        if runner.options.all_stops is not None:
            raise StateError(f"rollout: {NO_DERIVATIVE}", 'use limits="ignore"')
        if names := runner.rollout_input.losses.parameter_slices(runner.plant.robot):
            raise StateError(
                f"rollout: {', '.join(names)} are free parameters of this robot, and derivatives "
                "with respect to them are available on the CPU only",
                ON_CPU,
            )
        return CudaRolloutAdjoint(runner, (self[0], self[1]), self._every)

    @property
    def places(self) -> dict[str, str]:
        places = {
            place.removeprefix("law."): place for place in self._adjoint.options.derivative_places
        }
        if "tau" not in self._runner.arrays:
            places.pop("tau", None)
        return places

    def vjp(
        self, q_weight: AnyArray | None = None, v_weight: AnyArray | None = None
    ) -> dict[str, Any]:
        """Gradients of the weighted sum of all samples: with respect to the initial "q" (tangent
        vectors) and "v", to "tau", to the controller's numbers and to "parameters"; the last three
        are summed over the motions that shared them."""
        bars = self.coordinate_gradients(tuple(self.places), q_weight, v_weight)
        q_bar = self._adjoint.tangent_gradient(bars["q"])
        return {"q": q_bar, "v": bars["v"], **self._in_input_shapes(bars)}

    def _in_input_shapes(self, bars: Mapping[str, Any]) -> dict[str, Any]:
        """Gradients of each motion, by name, as gradients in the shapes of the inputs."""
        found = {}
        for name, place in self.places.items():
            bar = bars[name]
            if name != "tau":
                shape = np.shape(self._runner.host_values[place])
            else:
                shape = self._tau_shape
                if place not in self._runner.options.packed_per_step and self._has_step_axis:
                    bar = bar.reshape(*bar.shape[:-1], 1, bar.shape[-1])
            found[name] = sum_repeated(bar, shape)
        return found

    @property
    def _has_step_axis(self) -> bool:
        """Whether tau was given as a table of one row, and passed on without the axis of steps."""
        return len(self._tau_shape) > len(np.shape(self._runner.arrays["tau"]))

    def coordinate_gradients(
        self,
        names: tuple[str, ...],
        q_weight: AnyArray | None,
        v_weight: AnyArray | None,
        before_unit: bool = False,
    ) -> dict[str, Any]:
        """Gradients of each motion, with respect to the nq coordinates of q, to v, and to `names`.

        With `before_unit`, q is the given one, and not unit(q), at which the motion starts.
        """
        places = {"q": "q", "v": "v"} | {name: self.places[name] for name in names}
        weights = {"q": q_weight, "v": v_weight}
        bars = self._adjoint.vjp(tuple(places[name] for name in names), weights, before_unit)
        return {name: bars[place] for name, place in places.items()}

    def jvp(
        self, q: AnyArray | None = None, v: AnyArray | None = None, **others: AnyArray
    ) -> tuple[Any, Any]:
        """(dq, dv), in the shapes of q and v, for changes of the initial state (q: a tangent
        vector), of tau, of a controller's numbers or of parameters."""
        return self._adjoint.jvp(self._changes("jvp", q, v, others))

    def hvp(
        self,
        q_weight: AnyArray | None = None,
        v_weight: AnyArray | None = None,
        q: AnyArray | None = None,
        v: AnyArray | None = None,
        **others: AnyArray,
    ) -> dict[str, Any]:
        """The changes of the gradients of `vjp` for changes as in `jvp`."""
        manifold = self._runner.plant.manifold
        if manifold.cluster_joints:
            raise StateError(
                "hvp: second derivatives of motions with embedded loops are not implemented on "
                "the GPU",
                "use arrays on the CPU, or finite differences of motion.vjp",
            )
        changes, names = self._changes("hvp", q, v, others), tuple(self.places)
        bar_dots = self.coordinate_gradient_changes(names, q_weight, v_weight, changes)
        found = {"q": bar_dots["q"], "v": bar_dots["v"], **self._in_input_shapes(bar_dots)}
        if manifold.is_flat:
            return found
        if q is None:
            return found | {"q": self._adjoint.tangent_gradient(bar_dots["q"])}
        bar = self.coordinate_gradients((), q_weight, v_weight)["q"]
        q_bar_dot = self._adjoint.tangent_gradient_derivative(bar_dots["q"], bar, changes["q"])
        return found | {"q": q_bar_dot}

    def coordinate_gradient_changes(
        self,
        names: tuple[str, ...],
        q_weight: AnyArray | None,
        v_weight: AnyArray | None,
        changes: Mapping[str, AnyArray],
        before_unit: bool = False,
    ) -> dict[str, Any]:
        """The changes of `coordinate_gradients`, for changes by place; q is in coordinates."""
        places = {"q": "q", "v": "v"} | {name: self.places[name] for name in names}
        weights = {"q": q_weight, "v": v_weight}
        bar_dots = self._adjoint.vjp_derivative(
            tuple(places[name] for name in names), weights, changes, before_unit
        )
        return {name: bar_dots[place] for name, place in places.items()}

    def coordinate_jvp(self, changes: Mapping[str, AnyArray]) -> tuple[Any, Any]:
        """(dq, dv) for changes by place; q is in coordinates, before it is normalized."""
        return self._adjoint.jvp(changes, before_unit=True)

    def _changes(
        self,
        method: str,
        q: AnyArray | None,
        v: AnyArray | None,
        others: Mapping[str, AnyArray],
    ) -> dict[str, AnyArray]:
        """Changes by place, with q in coordinates; q is given as a tangent vector."""
        self._check_names(method, others)
        by_place = {"v": v}
        for name, x in others.items():
            by_place[self.places[name]] = self.drop_step_axis(x) if name == "tau" else x
        changes = {name: x for name, x in by_place.items() if x is not None}
        return changes | ({} if q is None else {"q": self._adjoint.rate(q)})

    def drop_step_axis(self, x: Any) -> Any:
        """A change of tau without the axis of steps, if tau was given as a table of one row."""
        if not self._has_step_axis or np.shape(x)[-2:] != self._tau_shape[-2:]:
            return x
        return x.reshape(*x.shape[:-2], x.shape[-1])
