"""What letters made of vectors do at one body, or at its frames: see `algebra/expressions/multilinear_forms.py` for the forms themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi._util.errors import StateError
from psiphi.algebra.expressions.letters import FormLetter
from psiphi.algebra.expressions.spaces import LINK
from psiphi.compiler.recursions import cluster_step
from psiphi.compiler.recursions.body_step import gauges
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.small_matrices import part


class SitePlace(NamedTuple):
    """A body in its working axes, as forms see it; of a cluster body number `at`, whose joint is that of all."""

    site: BodyView
    at: int = 0

    @property
    def origin(self) -> list:
        own = gauges(self.site)
        gauge = own[self.at] if self.at < len(own) else None  # rotors stand behind the bodies
        return [0.0, 0.0, 0.0] if gauge is None else gauge.inv.translation.tolist()

    @property
    def bodies(self) -> list[SitePlace]:
        """A cluster's, one by one."""
        return (
            [SitePlace(self.site, at) for at in range(len(self.site.link.parts))]
            if self.site.is_cluster
            else [self]
        )

    def risen(self, *along: list) -> list | None:
        if self.site.is_cluster:
            return cluster_step.risen(self.site, *along)
        row = self.site.link.row
        if row.Hdot is None:
            return None
        rule = row.Hdot if len(along) == 1 else row.Hddot
        if rule is None:
            raise StateError(
                f"a {self.site.link.kind} joint tells no second derivative of H",
                "give its row of JOINTS an Hddot",
            )
        return rule(self.site.of("q"), *along, self.site.link)


def formed(x: FormLetter, place: SitePlace, filled: Sequence[Any], argument: Any) -> Any:
    """The letter on a value; over links and frames one by one, and what is missing is zero."""
    slots = [slot for slot, _ in x.filled]
    if not isinstance(argument, dict):
        if any(slot.space != LINK for slot in x.form.slots.values()):
            return x.form.value(place, x, dict(zip(slots, filled, strict=True)), argument)

        def own(at):
            return {slot: part(values, at) for slot, values in zip(slots, filled, strict=True)}

        each = (
            x.form.value(body, x, own(at), part(argument, at))
            for at, body in enumerate(place.bodies)
        )
        return [y for values in each for y in values]
    # a frame without a value in some slot has zero there, and so has the product: it is not written
    numbers = [i for i in argument if all(i in values for values in filled)]
    return {
        i: x.form.value(
            place,
            x,
            {slot: values[i] for slot, values in zip(slots, filled, strict=True)},
            argument[i],
        )
        for i in numbers
    }
