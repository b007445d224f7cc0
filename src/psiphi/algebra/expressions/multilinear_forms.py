"""Multilinear forms: with vectors in all slots but two, a form is an operator between those two.

    cross   f* (u × y)                u× maps y to the dual of f; ⟦f⟧ y = y ×* f maps y to the dual
                                      of u, with the matrix [n~ F~; F~ 0] up to sign
    turn    f* diag(u_w~, u_w~) y     rotation of link motions y by the angular velocity u_w, about
                                      the link's public origin
    seen    turn over frames
    rise    u* dH[x] f                derivative of the joint map along x
    bend    u* d²H[x, z] f            its second derivative

The operator to a slot is the derivative of the form by that slot: one rule per slot, on any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

from psiphi.algebra.expressions.block_structure import ANYWHERE, MEMORYLESS
from psiphi.algebra.expressions.letters import (
    DUAL,
    EITHER,
    FORCE,
    MOTION,
    FormLetter,
    Row,
    letter_pair,
)
from psiphi.algebra.expressions.notation import LATEX, POWER, UNICODE
from psiphi.algebra.expressions.spaces import FRAME, JOINT, LINK, Space
from psiphi.algebra.expressions.terms import Term, letter_term, scaled
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.cross_products import force_cross, motion_cross
from psiphi.model.spatial.screws import add, cross, dot


class FormPlace(Protocol):
    """A body at which a form is evaluated."""

    @property
    def origin(self) -> list:
        """The public origin of the link, in the axes of its vectors."""
        ...

    def joint_map_derivative(self, *along: list) -> list | None:
        """The first or second derivative of H along vectors, as rows; None if it is zero."""
        ...


class FormSlot(NamedTuple):
    """The space of a slot's vectors, and their side."""

    space: Space
    side: str = EITHER


@dataclass(frozen=True, eq=False)
class MultilinearForm:
    """A multilinear form.

    rules        rules[slot](place, **others) is the derivative by a slot
    notations    {(input slot, output slot): (Unicode, LaTeX)} of the letters that have a notation
                 of their own, with the names of the filled slots
    """

    name: str
    slots: Mapping[str, FormSlot]
    rules: Mapping[str, Callable]
    notations: Mapping[tuple[str, str], tuple[str, str]]

    def letter(self, inp: str, out: str, filled: Mapping[str, Term]) -> FormLetter:
        """The letter between two slots that have a notation."""
        return _form_letter(self, inp, out, tuple(sorted(filled.items())))

    def operator(self, inp: str, out: str, filled: Mapping[str, Term]) -> Term:
        """The operator from one slot to another: a letter or its adjoint, times a number."""
        c, inner = Fraction(1), {}
        for slot, term in filled.items():
            factor, inner[slot] = term.args if term.op == "scale" else (Fraction(1), term)
            c *= factor
        if self is CROSS:
            c, inp, out, inner = _canonical_cross(c, inp, out, inner)
        if (inp, out) in self.notations:
            return scaled(c, letter_term(self.letter(inp, out, inner)))
        return scaled(c, letter_term(self.letter(out, inp, inner).T))

    def value(
        self, place: FormPlace, x: FormLetter, filled: Mapping[str, list], argument: list
    ) -> list:
        """The letter times a vector at one body."""
        inp, out = x.open_slots
        return self.rules[out](place, **filled, **{inp: argument})


def _canonical_cross(
    c: Fraction, inp: str, out: str, inner: dict[str, Term]
) -> tuple[Fraction, str, str, dict[str, Term]]:
    """u × y = -y × u: the one of the two that has a notation."""
    if {inp, out} == {"u", "f"}:
        other = {"u": "y", "f": "f"}
        return -c, other[inp], other[out], {"u": inner["y"]}
    return (-c, "y", "u", inner) if (inp, out) == ("u", "y") else (c, inp, out, inner)


@lru_cache(maxsize=8192)
def _form_letter(
    form: MultilinearForm, inp: str, out: str, filled: tuple[tuple[str, Term], ...]
) -> FormLetter:
    plain, tex = form.notations[inp, out]
    symbol = plain.format(
        **{slot: UNICODE.text(term, _slot_precedence(plain, slot)) for slot, term in filled}
    )
    latex = tex.format(
        **{slot: LATEX.text(term, _slot_precedence(tex, slot)) for slot, term in filled}
    )
    takes, gives = form.slots[inp], form.slots[out]
    where = ANYWHERE if takes.space.name == "frame" else MEMORYLESS
    row = Row(
        gives.space,
        takes.space,
        symbol,
        latex,
        where,
        DUAL[gives.side],
        takes.side,
        f"multilinear form {form.name}",
    )
    name = f"{form.name}[{inp}>{out}; {', '.join(f'{slot} = {term!r}' for slot, term in filled)}]"
    return letter_pair(FormLetter, name, row, form=form, inp=inp, out=out, filled=filled)


def _slot_precedence(pattern: str, slot: str) -> int:
    """The precedence that the vector of a slot needs."""
    return POWER if pattern.startswith("{" + slot) else 0


# -- rules -----------------------------------------------------------------------------------------


def _negative(x: list) -> list:
    return [-a for a in x]


def _spin_motion(place: FormPlace, u: list) -> list:
    """The motion [w; 0] of the public origin, at the origin in use; ω̃ is its cross product."""
    return [*u[:3], *cross(place.origin, u[:3])]


def _turn_by_u(place: FormPlace, f: list, y: list) -> list:
    n = force_cross(y, f)
    return [*add(n[:3], cross(n[3:], place.origin)), 0.0, 0.0, 0.0]


def _frame_turn(a: list, b: list) -> list:
    return cross(a[:3], b[:3]) + cross(a[:3], b[3:])


def _joint_torques(place: FormPlace, f: list, *along: list) -> list:
    rows = place.joint_map_derivative(*along)
    return [0.0] * len(along[0]) if rows is None else small_matrices.apply(rows, f)


def _link_motions(place: FormPlace, u: list, *along: list) -> list:
    rows = place.joint_map_derivative(*along)
    return [0.0] * 6 if rows is None else small_matrices.apply(small_matrices.transpose(rows), u)


def _by_direction(place: FormPlace, f: list, u: list, *along: list | None) -> list:
    """The derivative by the direction that is None. On rotations, directions do not commute."""
    units = [[1.0 if i == j else 0.0 for j in range(len(u))] for i in range(len(u))]
    return [
        dot(u, _joint_torques(place, f, *(unit if x is None else x for x in along)))
        for unit in units
    ]


_link, _joint = (
    {"f": FormSlot(LINK, FORCE), "u": FormSlot(LINK, MOTION), "y": FormSlot(LINK, MOTION)},
    FormSlot(JOINT),
)
CROSS = MultilinearForm(
    "cross",
    _link,
    {
        "f": lambda place, u, y: motion_cross(u, y),
        "u": lambda place, f, y: force_cross(y, f),
        "y": lambda place, f, u: _negative(force_cross(u, f)),
    },
    {
        ("y", "f"): ("{u}×", r"{u}\times"),
        ("y", "u"): ("⟦{f}⟧", r"\left[\!\left[{f}\right]\!\right]"),
    },
)
TURN = MultilinearForm(
    "turn",
    _link,
    {
        "f": lambda place, u, y: motion_cross(_spin_motion(place, u), y),
        "y": lambda place, f, u: _negative(force_cross(_spin_motion(place, u), f)),
        "u": _turn_by_u,
    },
    {
        ("y", "f"): ("turn({u})", r"\mathrm{{turn}}({u})"),
        ("u", "f"): ("turned({y})", r"\mathrm{{turned}}({y})"),
        ("u", "y"): ("turning({f})", r"\mathrm{{turning}}({f})"),
    },
)
SEEN = MultilinearForm(
    "seen",
    {slot: FormSlot(FRAME()) for slot in "fuy"},
    {
        "f": lambda place, u, y: _frame_turn(u, y),
        "y": lambda place, f, u: _negative(_frame_turn(u, f)),
        "u": lambda place, f, y: [*add(cross(y[:3], f[:3]), cross(y[3:], f[3:])), 0.0, 0.0, 0.0],
    },
    TURN.notations,
)
RISE = MultilinearForm(
    "rise",
    {"f": FormSlot(LINK, FORCE), "u": _joint, "x": _joint},
    {
        "u": lambda place, f, x: _joint_torques(place, f, x),
        "f": lambda place, u, x: _link_motions(place, u, x),
        "x": lambda place, f, u: _by_direction(place, f, u, None),
    },
    {
        ("f", "u"): ("dH[{x}]", r"\mathrm{{d}}H[{x}]"),
        ("x", "u"): ("H′({f})", r"H'({f})"),
        ("x", "f"): ("H′*({u})", r"H'^*({u})"),
    },
)
BEND = MultilinearForm(
    "bend",
    {"f": FormSlot(LINK, FORCE), "u": _joint, "x": _joint, "z": _joint},
    {
        "u": lambda place, f, x, z: _joint_torques(place, f, x, z),
        "f": lambda place, u, x, z: _link_motions(place, u, x, z),
        "x": lambda place, f, u, z: _by_direction(place, f, u, None, z),
        "z": lambda place, f, u, x: _by_direction(place, f, u, x, None),
    },
    {
        ("f", "u"): ("d²H[{x}, {z}]", r"\mathrm{{d}}^2H[{x}, {z}]"),
        ("x", "u"): ("H″({f}, {z})", r"H''({f}, {z})"),
        ("z", "u"): ("H″({f}, {x})", r"H''({f}, {x})"),
        ("x", "f"): ("H″*({u}, {z})", r"H''^*({u}, {z})"),
        ("z", "f"): ("H″*({u}, {x})", r"H''^*({u}, {x})"),
        ("x", "z"): ("H″({f}, {u})", r"H''({f}, {u})"),
    },
)
FORMS = {form.name: form for form in (CROSS, TURN, SEEN, RISE, BEND)}
