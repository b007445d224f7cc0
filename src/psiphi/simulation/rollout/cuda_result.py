"""What `pp.rollout` gives on a graphics card: the states, and the derivatives of the motion, which run there as well."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.functions.arrays.function_registry import sum_repeated
from psiphi.simulation.compiled_rollout.cuda_runner import CudaRunner
from psiphi.simulation.rollout.rollout_result import MotionStates
from psiphi.simulation.rollout_derivatives.cuda_adjoint import CudaRolloutAdjoint
from psiphi.simulation.rollout_derivatives.step_derivatives import NO_DERIVATIVE


class CudaRolloutResult(MotionStates):
    """(q, v), as a tuple of arrays of the card; `vjp`, `jvp` and `hvp` are those of `RolledStates`, on the card. Torques that
    came from the host are constants. `tau`: the shape in which torques of the card came."""

    _runner: CudaRunner
    _every: int
    _tau: tuple[int, ...]

    @classmethod
    def of(cls, runner: CudaRunner, every: int, tau: tuple[int, ...] = ()) -> CudaRolloutResult:
        self = cls(runner.run(every))
        self._runner, self._every, self._tau = runner, every, tau
        return self

    @cached_property
    def _ways(self) -> CudaRolloutAdjoint:
        runner = self._runner
        if runner.options.stops is not None:
            raise StateError(f"rollout: {NO_DERIVATIVE}", 'leave limits="ignore"')
        if within := runner.drive.losses.parameter_slices(runner.plant.robot):
            cause = f"rollout: {', '.join(within)} are free numbers of this robot, and such derivatives are the host's"
            raise StateError(cause, "give arrays of the host")
        return CudaRolloutAdjoint(runner, (self[0], self[1]), self._every)

    @property
    def places(self) -> dict[str, str]:
        known = {
            place.removeprefix("law."): place for place in self._ways.options.derivative_places
        }
        return {
            name: place
            for name, place in known.items()
            if name != "tau" or "tau" in self._runner.given
        }

    def vjp(self, q_weight: Any = None, v_weight: Any = None) -> dict[str, Any]:
        """Gradients of the weighted sum of all samples: by "q" (a tangent one) and "v" of the beginning, by "tau", by the
        controller's numbers, by "parameters"; summed over motions that shared one of the last three."""
        bars = self.coordinate_gradients(tuple(self.places), q_weight, v_weight)
        return {"q": self._ways.tangent(bars["q"]), "v": bars["v"], **self._as_given(bars)}

    def _as_given(self, bars: dict[str, Any]) -> dict[str, Any]:
        """Gradients of every motion, by name, as those of what was given."""
        found = {}
        for name, place in self.places.items():
            shape, own = (
                self._tau if name == "tau" else np.shape(self._runner.numbers[place]),
                bars[name],
            )
            if (
                name == "tau"
                and place not in self._runner.options.packed_per_step
                and self._is_one_row
            ):
                own = own.reshape(*own.shape[:-1], 1, own.shape[-1])
            found[name] = sum_repeated(own, shape)
        return found

    @property
    def _is_one_row(self) -> bool:
        """Whether torques came as a table of one row."""
        return len(self._tau) > len(np.shape(self._runner.given["tau"]))

    def coordinate_gradients(
        self, names: tuple[str, ...], q_weight: Any, v_weight: Any, given: bool = False
    ) -> dict[str, Any]:
        """The same by the nq numbers of q, of every motion, and by these names alone; `given`: by the numbers as they came."""
        places = {"q": "q", "v": "v"} | {name: self.places[name] for name in names}
        bars = self._ways.back(
            tuple(places[name] for name in names), {"q": q_weight, "v": v_weight}, given
        )
        return {name: bars[place] for name, place in places.items()}

    def jvp(self, q: Any = None, v: Any = None, **others: Any) -> tuple[Any, Any]:
        """(dq, dv), shaped as q and v, for changes of the beginning (q: a tangent one), of tau, of a controller's numbers."""
        return self._ways.along(self._changes("jvp", q, v, others))

    def hvp(
        self,
        q_weight: Any = None,
        v_weight: Any = None,
        q: Any = None,
        v: Any = None,
        **others: Any,
    ) -> dict[str, Any]:
        """What the gradients that `vjp` gives change by, for changes as `jvp` has them."""
        manifold = self._runner.plant.manifold
        if manifold.cluster_joints:
            cause = "hvp: embedded loops have no second derivatives of motions on graphics cards"
            raise StateError(cause, "take arrays of the host, or differences of motion.vjp")
        changes, names = self._changes("hvp", q, v, others), tuple(self.places)
        turns = self.coordinate_turns(names, q_weight, v_weight, changes)
        found = {"q": turns["q"], "v": turns["v"], **self._as_given(turns)}
        if manifold.is_flat:
            return found
        if q is None:
            return found | {"q": self._ways.tangent(turns["q"])}
        bar = self.coordinate_gradients((), q_weight, v_weight)["q"]
        return found | {"q": self._ways.turned(turns["q"], bar, changes["q"])}

    def coordinate_turns(
        self,
        names: tuple[str, ...],
        q_weight: Any,
        v_weight: Any,
        changes: dict[str, Any],
        given: bool = False,
    ) -> dict[str, Any]:
        """The same by the nq numbers of q, of every motion, and by these names alone, for changes by place."""
        places = {"q": "q", "v": "v"} | {name: self.places[name] for name in names}
        turns = self._ways.curve(
            tuple(places[name] for name in names), {"q": q_weight, "v": v_weight}, changes, given
        )
        return {name: turns[place] for name, place in places.items()}

    def coordinate_changes(self, changes: dict[str, Any]) -> tuple[Any, Any]:
        """(dq, dv) for changes by place, those of q by its numbers as they came."""
        return self._ways.along(changes, given=True)

    def _changes(self, what: str, q: Any, v: Any, others: dict[str, Any]) -> dict[str, Any]:
        """Changes by place, q by its numbers."""
        self._check_names(what, others)
        given = {"v": v} | {
            self.places[name]: self.one_row(x) if name == "tau" else x for name, x in others.items()
        }
        changes = {name: x for name, x in given.items() if x is not None}
        return changes | ({} if q is None else {"q": self._ways.rate(q)})

    def one_row(self, x: Any) -> Any:
        """A change of torques that came as a table of one row, without that axis."""
        if not self._is_one_row or np.shape(x)[-2:] != self._tau[-2:]:
            return x
        return x.reshape(*x.shape[:-2], x.shape[-1])
