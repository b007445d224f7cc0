"""Wrenches on frames in derivatives of dynamics: B f is subtracted from the force of each body.

Wrenches in frame axes are constant in body axes. Those in world axes are not: if the body rotates
by δ_w(k) = R* δ_w(p) + (H* dq)_w, they rotate back in its axes:

    d(B f) = B df + X δ_w        X = [n~ + p~ F~; F~] for [n; F] at p, both in body axes

Gradients contain the couple X* Λ = Λ_w × n + (Λ_v + Λ_w × p) × F, which is summed tip to base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from psiphi.algebra.expressions.letters import FrameLetter
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower import frame_sweeps
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, ZERO6
from psiphi.compiler.sweeps.sweep_program import BodyView, ColumnMessage
from psiphi.model.spatial.screw_paths import force, rotate, unrotate
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import add_matrices


class MixedComposite:
    """A matrix that maps spins to forces (6 x 3), by rows. The messages of children are summed."""

    def __init__(self, rows: list):
        self.rows = rows

    def __add__(self, other: MixedComposite) -> MixedComposite:
        return MixedComposite(add_matrices(self.rows, other.rows))

    def moved(self, path: list, transmit: Callable[[list], list] = lambda x: x) -> MixedComposite:
        """φ X φ* restricted to motions [w; 0], whose spins are only rotated; ψ X φ* if `transmit`
        gives the part of a force that the joint transmits."""
        # columns are forces at the body, f(p) = φ(p,k) f(k); rows are rotated to the parent's axes
        columns = [force(path, transmit(list(column))) for column in zip(*self.rows, strict=True)]
        return MixedComposite([rotate(path, list(row)) for row in zip(*columns, strict=True)])


@dataclass(frozen=True)
class WrenchDerivatives:
    """B f for the input f, `input_name`; nothing if there is no letter."""

    letter: FrameLetter | None = None
    input_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.input_name,) if self.letter else ()

    @property
    def is_world(self) -> bool:
        return self.letter is not None and self.letter.axes == "world"

    def body_data(self, tree: Tree) -> dict[int, tuple]:
        """The frames of B by body, for `Program`."""
        return frame_sweeps.frame_data(tree, [self.letter]) if self.letter else {}

    def start(self, body: BodyView) -> None:
        """At the world: the initial pose and rotation."""
        if self.is_world:
            body.store(R=EYE3, p=ZERO3, rotation=ZERO3)

    def subtract_wrenches(self, body: BodyView) -> None:
        """Base to tip: M α + b - B f instead of M α + b, the force that the joints transmit."""
        # wrenches in world axes need R(k)
        if self.is_world:
            frame_sweeps.store_pose(body)
        if self.letter:
            wrench = frame_sweeps.spread_wrenches(
                body, self.letter, frame_sweeps.frame_inputs_here(body, self.input_name)
            )
            body.store(body_force=subtract(body.record["body_force"], wrench))

    def change(self, body: BodyView, chi: list, is_changed: bool) -> None:
        """Base to tip: subtract d(B f), for H* dq = chi and, if the wrenches change, d f."""
        change = ZERO6
        if self.letter and is_changed:
            change = frame_sweeps.spread_wrenches(
                body, self.letter, frame_sweeps.frame_inputs_here(body, f"d{self.input_name}")
            )
        if self.is_world:
            # a wrench that is constant in the world rotates by -θ in the axes of a body that
            # rotates by θ: d(R* F) = F × θ, θ(k) = φ*(p,k) θ(p) + chi
            spin = add(unrotate(body.path, body.parent["rotation"]), chi[:3])
            body.store(rotation=spin)
            for p, n, F in self._wrenches_here(body):
                change = add(change, _wrench(p, cross(n, spin), cross(F, spin)))
        if self.letter:
            body.store(d_body_force=subtract(body.record["d_body_force"], change))

    def couple(self, body: BodyView) -> list | None:
        """Tip to base: X* Λ of this body and all its descendants."""
        if not self.is_world:
            return None
        total, (turn, move) = (
            body.children.get("couple"),
            (body.record["costate"][:3], body.record["costate"][3:]),
        )
        for p, n, F in self._wrenches_here(body):
            # X* Λ of one wrench: Λ_w × n, and the velocity of its point p times F
            couple = add(cross(turn, n), cross(add(move, cross(turn, p)), F))
            total = couple if total is None else add(total, couple)
        if total is not None:
            body.send(couple=rotate(body.path, total))
        return total

    def write_gradient(self, body: BodyView, name: str, sign: float) -> None:
        """The gradient with respect to the wrenches, ± B* Λ."""
        assert self.letter is not None
        for number, value in frame_sweeps.frame_velocities(
            body, self.letter, body.record["costate"]
        ).items():
            body.write(name, 6 * number, [sign * x for x in value])

    def rotation_composite(self, body: BodyView) -> MixedComposite | None:
        """Tip to base: X of this body and all its descendants."""
        if not self.is_world:
            return None
        total = body.children.get("X")
        for p, n, F in self._wrenches_here(body):
            # one column per unit spin θ of d(R* F) = F × θ
            columns = [_wrench(p, cross(n, unit), cross(F, unit)) for unit in EYE3]
            X = MixedComposite([list(row) for row in zip(*columns, strict=True)])
            total = X if total is None else total + X
        return total

    def columns(self, body: BodyView) -> ColumnMessage:
        """Tip to base: the columns of φ B at this body, by number."""
        # φ has moved those of frames further out; those of frames on this body are added
        columns = ColumnMessage(body.children.get("wrenches", {}))
        if self.letter is None:
            return columns
        for number, *_ in frame_sweeps.frames_here(body, self.letter):
            for c in range(6):
                unit = {number: [1.0 if c == i else 0.0 for i in range(6)]}
                columns[6 * number + c] = frame_sweeps.spread_wrenches(body, self.letter, unit)
        return columns

    def _wrenches_here(self, body: BodyView) -> Iterator[tuple[list, list, list]]:
        """(p, n, F) of each wrench on this body, in its axes."""
        assert self.letter is not None
        for p, _, n, F in frame_sweeps.wrenches_here(
            body, self.letter, frame_sweeps.frame_inputs_here(body, self.input_name)
        ):
            yield list(p), n, F


NO_LOADS = WrenchDerivatives()


def _wrench(p: list, n: list, F: list) -> list:
    """The wrench [n; F] at p, moved to the body's origin."""
    return add(n, cross(p, F)) + F
