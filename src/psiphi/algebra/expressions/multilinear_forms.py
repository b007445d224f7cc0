"""Operators made of vectors: a multilinear form with a vector in every slot but two is an operator between those two.

    cross   f* (u × y)      u× takes y and gives what f sees; ⟦f⟧ y = y ×* f takes y and gives what u sees, [n~ F~; F~ 0]
                            but for sign
    turn    f* diag(u_w~, u_w~) y     the turn of link motions with the spin of u, at the link's own origin
    seen    the same over frames
    rise    u* dH[x] f      the joint map's derivative along x; bend: its second derivative, u* d²H[x, z] f

What a letter does to a vector is the form's derivative by the slot that it gives: one rule a slot, over any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from psiphi.algebra.expressions.block_structure import ANYWHERE, MEMORYLESS
from psiphi.algebra.expressions.letters import DUAL, EITHER, FORCE, MOTION, FormLetter, Row, _pair
from psiphi.algebra.expressions.notation import LATEX, POWER, UNICODE
from psiphi.algebra.expressions.spaces import FRAME, JOINT, LINK, Space
from psiphi.algebra.expressions.terms import Term, of_letter, scaled
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.cross_products import force_cross, motion_cross
from psiphi.model.spatial.screws import add, cross, dot


class FormPlace(Protocol):
    """One body, as forms see it."""

    @property
    def origin(self) -> list:
        """The link's public origin, from where its vectors are written."""
        ...

    def risen(self, *along: list) -> list | None:
        """The derivative of H along one or two vectors, by rows; None where it is zero."""
        ...


class FormSlot(NamedTuple):
    space: Space
    side: str = EITHER


@dataclass(frozen=True, eq=False)
class MultilinearForm:
    """`rules[slot](place, **others)` is the derivative by a slot; `written` are the letters it makes: (takes, gives) and how
    they print, with the names of the filled slots."""

    name: str
    slots: Mapping[str, FormSlot]
    rules: Mapping[str, Callable]
    written: Mapping[tuple[str, str], tuple[str, str]]

    def letter(self, inp: str, out: str, filled: Mapping[str, Term]) -> FormLetter:
        """The letter of a written pair of slots."""
        return _letter(self, inp, out, tuple(sorted(filled.items())))

    def operator(self, inp: str, out: str, filled: Mapping[str, Term]) -> Term:
        """The operator from one slot to another: a letter, its adjoint, or a multiple; numbers stand before it."""
        c, inner = Fraction(1), {}
        for slot, term in filled.items():
            factor, inner[slot] = term.args if term.op == "scale" else (Fraction(1), term)
            c *= factor
        if self is CROSS:
            c, inp, out, inner = _antisymmetric(c, inp, out, inner)
        if (inp, out) in self.written:
            return scaled(c, of_letter(self.letter(inp, out, inner)))
        return scaled(c, of_letter(self.letter(out, inp, inner).T))

    def value(
        self, place: FormPlace, x: FormLetter, filled: Mapping[str, Any], argument: Any
    ) -> list:
        """What the letter makes of its argument at one body."""
        inp, out = x.ends
        return self.rules[out](place, **filled, **{inp: argument})


def _antisymmetric(
    c: Fraction, inp: str, out: str, inner: dict[str, Term]
) -> tuple[Fraction, str, str, dict[str, Term]]:
    """u × y = -y × u: one way to write it."""
    if {inp, out} == {"u", "f"}:
        other = {"u": "y", "f": "f"}
        return -c, other[inp], other[out], {"u": inner["y"]}
    return (-c, "y", "u", inner) if (inp, out) == ("u", "y") else (c, inp, out, inner)


@lru_cache(maxsize=8192)
def _letter(
    form: MultilinearForm, inp: str, out: str, filled: tuple[tuple[str, Term], ...]
) -> FormLetter:
    plain, tex = form.written[inp, out]
    symbol = plain.format(
        **{slot: UNICODE.text(term, _tight(plain, slot)) for slot, term in filled}
    )
    latex = tex.format(**{slot: LATEX.text(term, _tight(tex, slot)) for slot, term in filled})
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
        f"made of {form.name}",
    )
    spelled = (
        f"{form.name}[{inp}>{out}; {', '.join(f'{slot} = {term!r}' for slot, term in filled)}]"
    )
    return _pair(FormLetter, spelled, row, form=form, inp=inp, out=out, filled=filled)


def _tight(pattern: str, slot: str) -> int:
    """Whether what fills a slot stands in brackets of its own."""
    return POWER if pattern.startswith("{" + slot) else 0


# -- the rules ----------------------------------------------------------------------------------------------------------------


def _minus(x: list) -> list:
    return [-a for a in x]


def _spun(place: FormPlace, u: list) -> list:
    """[w; 0] of the public origin, as a motion of the origin at hand: ω̃ is the cross product with it."""
    return [*u[:3], *cross(place.origin, u[:3])]


def _spinner(place: FormPlace, f: list, y: list) -> list:
    n = force_cross(y, f)
    return [*add(n[:3], cross(n[3:], place.origin)), 0.0, 0.0, 0.0]


def _halves(a: list, b: list) -> list:
    return cross(a[:3], b[:3]) + cross(a[:3], b[3:])


def _torques(place: FormPlace, f: list, *along: list) -> list:
    rows = place.risen(*along)
    return [0.0] * len(along[0]) if rows is None else small_matrices.apply(rows, f)


def _motions(place: FormPlace, u: list, *along: list) -> list:
    rows = place.risen(*along)
    return [0.0] * 6 if rows is None else small_matrices.apply(small_matrices.transpose(rows), u)


def _slopes(place: FormPlace, f: list, u: list, *along: list | None) -> list:
    """By the slot that is None: of two directions the first is taken first, and where bodies turn they do not commute."""
    units = [[1.0 if i == j else 0.0 for j in range(len(u))] for i in range(len(u))]
    return [
        dot(u, _torques(place, f, *(unit if x is None else x for x in along))) for unit in units
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
        "y": lambda place, f, u: _minus(force_cross(u, f)),
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
        "f": lambda place, u, y: motion_cross(_spun(place, u), y),
        "y": lambda place, f, u: _minus(force_cross(_spun(place, u), f)),
        "u": _spinner,
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
        "f": lambda place, u, y: _halves(u, y),
        "y": lambda place, f, u: _minus(_halves(u, f)),
        "u": lambda place, f, y: [*add(cross(y[:3], f[:3]), cross(y[3:], f[3:])), 0.0, 0.0, 0.0],
    },
    TURN.written,
)
RISE = MultilinearForm(
    "rise",
    {"f": FormSlot(LINK, FORCE), "u": _joint, "x": _joint},
    {
        "u": lambda place, f, x: _torques(place, f, x),
        "f": lambda place, u, x: _motions(place, u, x),
        "x": lambda place, f, u: _slopes(place, f, u, None),
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
        "u": lambda place, f, x, z: _torques(place, f, x, z),
        "f": lambda place, u, x, z: _motions(place, u, x, z),
        "x": lambda place, f, u, z: _slopes(place, f, u, None, z),
        "z": lambda place, f, u, x: _slopes(place, f, u, x, None),
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
