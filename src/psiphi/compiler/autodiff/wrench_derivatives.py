"""Wrenches on frames in derivatives of dynamics: a body needs of its joints what it needs at all, less B f of its frames.

In frame axes wrenches stay as they are. In world axes they turn back as the body turns, by δ_w(k) = R* δ_w(p) + (H* dq)_w:

    d(B f) = B df + X δ_w        X = [n~ + p~ F~; F~] for [n; F] at p, both in body axes

and gradients gather the couple X* Λ = Λ_w × n + (Λ_v + Λ_w × p) × F, which travels inward without levers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter
from psiphi.compiler.lower import frame_sweeps
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, ZERO6
from psiphi.compiler.sweeps.sweep_program import BodyView, ColumnMessage
from psiphi.model.spatial.screw_paths import force, rotate, unrotate
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import plus


class MixedComposite:
    """A matrix of forces by spins (6 x 3), by rows; what children send adds up."""

    def __init__(self, rows: list):
        self.rows = rows

    def __add__(self, other: MixedComposite) -> MixedComposite:
        return MixedComposite(plus(self.rows, other.rows))

    def moved(self, path: list, through: Any = lambda x: x) -> MixedComposite:
        """φ X φ*: forces move, of motions [w; 0] only the spin is left, so that rows only turn. By ψ what passes the joint is
        `through`."""
        # columns are forces at the body, f(p) = φ(p,k) f(k); rows then turn into the axes of the parent
        columns = [force(path, through(list(column))) for column in zip(*self.rows, strict=True)]
        return MixedComposite([rotate(path, list(row)) for row in zip(*columns, strict=True)])


@dataclass(frozen=True)
class WrenchDerivatives:
    """B f, f the input `word`; without a letter there are none."""

    letter: FrameLetter | None = None
    word: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.word,) if self.letter else ()

    @property
    def is_world(self) -> bool:
        return self.letter is not None and self.letter.axes == "world"

    def marks(self, tree: Any) -> dict[int, tuple]:
        return frame_sweeps.marks(tree, [self.letter]) if self.letter else {}

    def start(self, site: BodyView) -> None:
        """At the world."""
        if self.is_world:
            site.keep(R=EYE3, p=ZERO3, turned=ZERO3)

    def less(self, site: BodyView) -> None:
        """Base to tip, when what the body needs is known."""
        # wrenches in world axes need R(k): base to tip, with the motions
        if self.is_world:
            frame_sweeps.locate(site)
        if self.letter:
            # needs(k) = M α + b - B f: what the joints below must bring
            own = frame_sweeps.spread(site, self.letter, frame_sweeps.inputs_here(site, self.word))
            site.keep(needs=subtract(site.kept["needs"], own))

    def change(self, site: BodyView, chi: list, is_changed: bool) -> None:
        """Base to tip: what that changes by, for H* dq = chi and, where the wrenches change too, d f."""
        own = ZERO6
        if self.letter and is_changed:
            own = frame_sweeps.spread(
                site, self.letter, frame_sweeps.inputs_here(site, f"d{self.word}")
            )
        if self.is_world:
            # A body that turns by θ under a wrench that stays in the world sees it turn by -θ:
            # d(R* F) = F × θ, θ(k) = φ*(p,k) θ(p) + chi
            spin = add(unrotate(site.path, site.parent["turned"]), chi[:3])
            site.keep(turned=spin)
            for p, n, F in self._here(site):
                own = add(own, _wrench(p, cross(n, spin), cross(F, spin)))
        if self.letter:
            site.keep(change=subtract(site.kept["change"], own))

    def couple(self, site: BodyView) -> list | None:
        """Tip to base: X* Λ of this body and all that it carries."""
        if not self.is_world:
            return None
        total, (turn, move) = (
            site.children.get("couple"),
            (site.kept["weighed"][:3], site.kept["weighed"][3:]),
        )
        for p, n, F in self._here(site):
            # X* Λ of one wrench: n turns with the body, F with the point p that it acts on
            own = add(cross(turn, n), cross(add(move, cross(turn, p)), F))
            total = own if total is None else add(total, own)
        if total is not None:
            site.send(couple=rotate(site.path, total))
        return total

    def pull(self, site: BodyView, name: str, sign: float) -> None:
        """The gradient by the wrenches, B* Λ."""
        assert self.letter is not None
        # the adjoint of B f is B* Λ: the motion of the frames that the weights are
        for number, value in frame_sweeps.sense(site, self.letter, site.kept["weighed"]).items():
            site.write(name, 6 * number, [sign * x for x in value])

    def turning(self, site: BodyView) -> MixedComposite | None:
        """Tip to base: X of this body, and of what it carries."""
        if not self.is_world:
            return None
        total = site.children.get("X")
        for p, n, F in self._here(site):
            # one column a unit spin: what d(R* F) = F × θ is linear in
            columns = [_wrench(p, cross(n, unit), cross(F, unit)) for unit in EYE3]
            own = MixedComposite([list(row) for row in zip(*columns, strict=True)])
            total = own if total is None else total + own
        return total

    def columns(self, site: BodyView) -> ColumnMessage:
        """Tip to base: the columns of B, by number, that have come to this body."""
        # those of frames further out, which φ has brought here, and those that start on this body
        found = ColumnMessage(site.children.get("wrenches", {}))
        if self.letter is None:
            return found
        for number, *_ in frame_sweeps.here(site, self.letter):
            for c in range(6):
                unit = {number: [1.0 if c == i else 0.0 for i in range(6)]}
                found[6 * number + c] = frame_sweeps.spread(site, self.letter, unit)
        return found

    def _here(self, site: BodyView) -> Iterator[tuple[list, list, list]]:
        """(p, n, F) of every wrench on this body, in its axes."""
        assert self.letter is not None
        for p, _, n, F in frame_sweeps.seen_here(
            site, self.letter, frame_sweeps.inputs_here(site, self.word)
        ):
            yield list(p), n, F


NO_LOADS = WrenchDerivatives()


def _wrench(p: list, n: list, F: list) -> list:
    """A wrench at p, moved to the body's origin."""
    return add(n, cross(p, F)) + F
