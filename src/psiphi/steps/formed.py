"""What letters made of vectors do at one body, or at its frames: see `operators/forms.py` for the forms themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi.errors import StateError
from psiphi.operators.forms import FormPlace
from psiphi.operators.letters import FormLetter
from psiphi.sweeps.program import Site


class SitePlace(NamedTuple):
    """A body in its working axes, as forms see it."""

    site: Site

    @property
    def origin(self) -> list:
        gauge = self.site.gauge
        return [0.0, 0.0, 0.0] if gauge is None else gauge.inv.translation.tolist()

    def risen(self, *along: list) -> list | None:
        row = self.site.link.row
        if row.Hdot is None:
            return None
        rule = row.Hdot if len(along) == 1 else row.Hddot
        if rule is None:
            raise StateError(
                f"a {self.site.link.kind} joint tells no second derivative of H", "give its row of JOINTS an Hddot"
            )
        return rule(self.site.of("q"), *along, self.site.link)


def formed(x: FormLetter, place: FormPlace, filled: Sequence[Any], argument: Any) -> Any:
    """The letter on a value; over frames, frame by frame, and what is missing is zero."""
    slots = [slot for slot, _ in x.filled]
    if not isinstance(argument, dict):
        return x.form.value(place, x, dict(zip(slots, filled, strict=True)), argument)
    # a frame without a value in some slot has zero there, and so has the product: it is not written
    numbers = [i for i in argument if all(i in values for values in filled)]
    return {
        i: x.form.value(place, x, {slot: values[i] for slot, values in zip(slots, filled, strict=True)}, argument[i])
        for i in numbers
    }
