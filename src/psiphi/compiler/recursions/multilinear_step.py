"""The step of letters with vectors in their slots, at one body or at its frames.
`algebra/expressions/multilinear_forms.py` defines the forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psiphi._util.errors import StateError
from psiphi.algebra.expressions.letters import FormLetter
from psiphi.algebra.expressions.spaces import LINK
from psiphi.compiler.recursions import cluster_step
from psiphi.compiler.recursions.body_step import gauges
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.small_matrices import body_part


class FormBody(NamedTuple):
    """A body in its working axes, as forms read it. In a cluster it is body `number`, with
    the joint of the cluster."""

    body: BodyView
    number: int = 0

    @property
    def origin(self) -> list:
        all_gauges = gauges(self.body)
        gauge = (
            all_gauges[self.number] if self.number < len(all_gauges) else None
        )  # rotors come after the bodies
        return [0.0, 0.0, 0.0] if gauge is None else gauge.inv.translation.tolist()

    @property
    def bodies(self) -> list[FormBody]:
        """The bodies of a cluster, one by one."""
        return (
            [FormBody(self.body, index) for index in range(len(self.body.link.parts))]
            if self.body.is_cluster
            else [self]
        )

    def joint_map_derivative(self, *along: list) -> list | None:
        if self.body.is_cluster:
            return cluster_step.joint_map_derivative(self.body, *along)
        row = self.body.link.row
        if row.Hdot is None:
            return None
        rule = row.Hdot if len(along) == 1 else row.Hddot
        if rule is None:
            raise StateError(
                f"a {self.body.link.kind} joint has no second derivative of H",
                "set Hddot in its row of JOINTS",
            )
        return rule(self.body.joint_input("q"), *along, self.body.link)


def apply_form(
    x: FormLetter, place: FormBody, filled: Sequence[Any], argument: list | dict[int, list]
) -> Any:
    """The letter applied to a value, body by body or frame by frame. Missing entries of frames are
    zero."""
    slots = [slot for slot, _ in x.filled]
    if not isinstance(argument, dict):
        if any(slot.space != LINK for slot in x.form.slots.values()):
            return x.form.value(place, x, dict(zip(slots, filled, strict=True)), argument)

        def slots_of(index: int) -> dict:
            return {
                slot: body_part(values, index) for slot, values in zip(slots, filled, strict=True)
            }

        each = (
            x.form.value(body, x, slots_of(index), body_part(argument, index))
            for index, body in enumerate(place.bodies)
        )
        return [y for values in each for y in values]
    # a frame without a value in some slot has zero there, so its product is zero and not written
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
