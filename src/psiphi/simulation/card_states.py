"""What `pp.rollout` gives on a graphics card: the states, and the derivatives of the motion, which run there as well."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from psiphi.errors import StateError
from psiphi.rollouts.card_gradients import CardSensitivity
from psiphi.rollouts.differentiated import NO_SLOPE
from psiphi.rollouts.on_cards import CardRunner
from psiphi.wording import nearest


class CardStates(tuple[Any, Any]):
    """(q, v), as a tuple of arrays of the card; `vjp` and `jvp` are those of `RolledStates`, on the card. Torques that came
    from the host are constants."""

    _runner: CardRunner
    _every: int

    @classmethod
    def of(cls, runner: CardRunner, every: int) -> CardStates:
        self = cls(runner.run(every))
        self._runner, self._every = runner, every
        return self

    def __reduce__(self) -> Any:
        """A copy in another process is the states alone."""
        return tuple, (tuple(self),)

    @property
    def q(self) -> Any:
        return self[0]

    @property
    def v(self) -> Any:
        return self[1]

    @cached_property
    def _ways(self) -> CardSensitivity:
        runner = self._runner
        if runner.plan.stops is not None:
            raise StateError(f"rollout: {NO_SLOPE}", 'leave limits="ignore"')
        if within := runner.drive.losses.parameters(runner.plant.robot):
            cause = f"rollout: {', '.join(within)} are free numbers of this robot, and such derivatives are the host's"
            raise StateError(cause, "give arrays of the host")
        return CardSensitivity(runner, (self[0], self[1]), self._every)

    @property
    def places(self) -> dict[str, str]:
        """What a derivative is taken by, besides the beginning: by name, its place in the kernel."""
        known = {place.removeprefix("law."): place for place in self._ways.names}
        return {name: place for name, place in known.items() if name != "tau" or "tau" in self._runner.given}

    def vjp(self, q_weight: Any = None, v_weight: Any = None) -> dict[str, Any]:
        """Gradients of the weighted sum of all samples: by "q" (a tangent one) and "v" of the beginning, by "tau", by the
        controller's numbers, by "parameters"; summed over motions that shared one of the last three."""
        bars = self.coordinate_gradients(tuple(self.places), q_weight, v_weight)
        shapes = {
            name: np.shape(self._runner.given.get(name, self._runner.numbers.get(at))) for name, at in self.places.items()
        }
        found = {name: _summed(bars[name], shape) for name, shape in shapes.items()}
        return {"q": self._ways.tangent(bars["q"]), "v": bars["v"], **found}

    def coordinate_gradients(self, names: tuple[str, ...], q_weight: Any, v_weight: Any) -> dict[str, Any]:
        """The same by the nq numbers of q, of every motion, and by these names alone."""
        places = {"q": "q", "v": "v"} | {name: self.places[name] for name in names}
        bars = self._ways.back(tuple(places[name] for name in names), {"q": q_weight, "v": v_weight})
        return {name: bars[place] for name, place in places.items()}

    def jvp(self, q: Any = None, v: Any = None, **others: Any) -> tuple[Any, Any]:
        """(dq, dv), shaped as q and v, for changes of the beginning (q: a tangent one), of tau, of a controller's numbers."""
        for name in others:
            if name not in self.places:
                raise StateError(f"jvp by {name!r}, which drives nothing here", nearest(name, ["q", "v", *self.places]))
        given = {"v": v} | {self.places[name]: x for name, x in others.items()}
        changes = {name: x for name, x in given.items() if x is not None}
        return self._ways.along(changes | ({} if q is None else {"q": self._ways.rate(q)}))


def _summed(bars: Any, shape: tuple[int, ...]) -> Any:
    """Summed over axes along which what has this shape was repeated."""
    for _ in range(bars.ndim - len(shape)):
        bars = bars.sum(0)
    for axis, n in enumerate(shape):
        if n == 1 and bars.shape[axis] != 1:
            bars = bars.sum(axis, keepdims=True)
    return bars
