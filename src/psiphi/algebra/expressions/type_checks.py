"""Type checks of expressions: spaces must fit, and both sides belong to one robot.

An error suggests the nearest legal expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from psiphi._util.errors import Error, StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.expressions import force_motion_duality, terms
from psiphi.algebra.expressions.letters import (
    EITHER,
    FORCE,
    LETTERS,
    MOTION,
    SIDES,
    STATE_VECTORS,
    Letter,
    SymbolLetter,
    VectorLetter,
    symbol_letter,
    vector_letter,
)
from psiphi.algebra.expressions.notation import Python
from psiphi.algebra.expressions.spaces import ANY, ONE, Space, compatible, describe
from psiphi.algebra.expressions.terms import Term, Word
from psiphi.model.model import Model

if TYPE_CHECKING:
    from psiphi.algebra.expressions.expression import Expression

# letters that a suggestion may insert between two operators
CONNECTING_LETTERS = [
    x
    for plain in LETTERS.values()
    if plain.row.remedy_cost
    for x in dict.fromkeys((plain, plain.T))
]
RESERVED = {"q", "self", "ax", "path"}  # arguments of `dense` and `plot`
INPUT_NAMES = {"parameters", "added"}  # inputs of compiled programs: free numbers, added inertia
ADJOINT_COST, MISMATCH_COST = 1, 4  # of an added star, of forces next to motions


def check_product(a: Term, b: Term, model: Model | None) -> None:
    """a @ b: the rows of b must fit the columns of a."""
    inner, outer = terms.spaces(a)[1], terms.spaces(b)[0]
    if compatible(inner, outer):
        _check_sides(force_motion_duality.product_ends, a, b, "@")
        return
    verb = "holds" if terms.spaces(b)[1] == ONE else "gives"
    takes, gives = (
        _describe_vector(inner, _side(a, -1), model),
        _describe_vector(outer, _side(b, 0), model),
    )
    raise StateError(
        f"{_code(a)} @ {_code(b)}: {_code(a)} takes {takes}, {_code(b)} {verb} {gives}",
        _did_you_mean(_products(a, b)),
    )


def check_sum(a: Term, b: Term, model: Model | None, sign: str = "+") -> None:
    """a + b: both map between the same spaces."""
    if _same_spaces(a, b):
        _check_sides(force_motion_duality.sum_ends, a, b, sign)
        return
    maps = (f"{_code(x)} {_describe_map(*terms.spaces(x), model)}" for x in (a, b))
    pairs = ((a, terms.adjoint(b)), (terms.adjoint(a), b))
    near = [f"{_code(x)} {sign} {_code(y)}" for x, y in pairs if _same_spaces(x, y)]
    raise StateError(f"{_code(a)} {sign} {_code(b)}: {', '.join(maps)}", _did_you_mean(near))


def _check_sides(
    ends_of: Callable[[tuple[Term, Term]], force_motion_duality.Ends], a: Term, b: Term, sign: str
) -> None:
    """Link forces and link motions do not mix, and a name denotes one vector."""
    text = f"{_code(a)} {sign} {_code(b)}"
    try:
        ends_of((a, b))
    except force_motion_duality.NameClash as clash:
        left, right = (
            x if x.startswith("symbol") else f"vector over {x}s" for x in (clash.left, clash.right)
        )
        raise StateError(
            f"{text}: {clash.name} is a {left} in one place, a {right} in another",
            "rename one of them"
            if clash.name != "v"
            else "v is the joint rates: choose another name",
        ) from None
    except force_motion_duality.DualityConflict as clash:
        remedy = (
            "use a separate vector for each"
            if isinstance(clash.left, int)
            else _conflict_remedy(a, b, sign)
        )
        raise StateError(f"{text}: {_conflict(a, b, sign, clash)}", remedy) from None


def _conflict(a: Term, b: Term, sign: str, clash: force_motion_duality.DualityConflict) -> str:
    """The conflict of a and b, as an error message."""
    left, right = force_motion_duality.ends(a), force_motion_duality.ends(b)
    if isinstance(clash.left, int):
        return f"a vector cannot have {clash.left} frames and {clash.right} frames at once"
    pairs = [("takes", left.takes, "gives", right.gives)] if sign == "@" else []
    pairs += (
        [("gives", left.gives, "gives", right.gives), ("takes", left.takes, "takes", right.takes)]
        if sign != "@"
        else []
    )
    for verb, x, other, y in pairs:
        if (found := (left.value(x), right.value(y))) in (
            force_motion_duality.SIDES,
            force_motion_duality.SIDES[::-1],
        ):
            return f"{_code(a)} {verb} link {found[0]}s, {_code(b)} {other} link {found[1]}s"
    values = right.vector_values
    for name, value in left.vector_values.items():
        if value and values.get(name, value) != value:
            return f"{name} is a {value} in {_code(a)}, a {values[name]} in {_code(b)}"
    return "it mixes link forces and link motions"


def _conflict_remedy(a: Term, b: Term, sign: str) -> str:
    """The nearest legal product, or the operators that map forces to motions and back."""
    near = (
        []
        if sign != "@"
        else [text for text in _products(a, b) if text != f"{_code(a)} @ {_code(b)}"]
    )
    maps = "M and P map link motions to forces, Om maps forces to motions"
    return (
        _did_you_mean(near)
        if near
        else f"{maps}; vector(name, 'motion') and vector(name, 'force') declare which a vector is"
    )


def check_square(a: Term, model: Model | None) -> None:
    """a.inv: the rows and columns are one space."""
    rows, cols = terms.spaces(a)
    if (a.op == "scale" and a.args[0] == 0) or terms.identity_multiple(a) == 0:
        raise StateError(f"{_code(a)}.inv: zero has no inverse", "leave it out")
    if compatible(rows, cols) and ONE not in (rows, cols):
        return
    raise StateError(
        f"({_code(a)}).inv: {_code(a)} {_describe_map(rows, cols, model)}; "
        "only a square operator has an inverse",
        "form a square operator first, as in (J @ mass.inv @ J.T).inv",
    )


def check_operand(expression: Expression, sign: str, other: object) -> Expression:
    """`other`, if it is an expression."""
    if isinstance(other, type(expression)):
        return other
    raise operand_error(expression, sign, other)


def operand_error(a: object, sign: str, b: object) -> Error:
    """The error for an operand that is not an expression."""
    operand = b if hasattr(a, "term") else a
    shape = getattr(operand, "shape", None)
    what = f"an array of shape {shape}" if shape else repr(operand)
    cause = f"{_text(a)} {sign} {_text(b)}: {what} is not an operator"
    if shape:
        remedy = "write vector('x') and pass its value when you evaluate; or multiply expr.dense(q)"
    elif sign == "+":
        remedy = "write c * I for a multiple of the identity"
    else:
        remedy = "write c * A to scale by a number"
    return StateError(cause, remedy)


def common_robot(a: Expression, sign: str, b: Expression) -> Model | None:
    """The robot of both sides; None if neither has one."""
    if a.model is None or b.model is None or a.model is b.model:
        return a.model if a.model is not None else b.model
    if a.model == b.model:
        return a.model
    raise StateError(
        f"({a}) {sign} ({b}): the left side belongs to robot {a.model.name!r}, "
        f"the right side to {b.model.name!r}",
        "write both with the operators of one robot",
    )


def named_vector(name: str, space: str) -> VectorLetter:
    """The letter of an input vector."""
    _check_name(name, space, ("joint", "link", "frame", "motion", "force"))
    where = "link" if space in SIDES else space
    if any(x.word == name and x.space == where for x in STATE_VECTORS):
        raise StateError(
            f"{name!r} over {where}s is computed from q and v",
            f"write operators.{name}, or choose another name",
        )
    return vector_letter(name, space)


def named_symbol(name: str, space: str) -> SymbolLetter:
    """The letter of an arbitrary block-diagonal operator."""
    _check_name(name, space, ("link", "joint"))
    return symbol_letter(name, space)


def _check_name(name: object, space: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*", name):
        raise StateError(
            f"{name!r} is not a name", "use letters, digits and _, as for a Python variable"
        )
    if name in RESERVED:
        raise StateError(
            f"{name!r} is the name of an argument of `dense` or `plot`",
            "choose another name",
        )
    if name in INPUT_NAMES:
        raise StateError(
            f"{name!r} is the name of an input of compiled functions", "choose another name"
        )
    if not isinstance(space, str) or space not in allowed:
        remedy = (
            nearest(space, allowed)
            if isinstance(space, str)
            else f"use one of {', '.join(allowed)}"
        )
        raise StateError(f"no space {shown(space)}", remedy)


def _products(a: Term, b: Term) -> list[str]:
    """The legal products nearest to a @ b: with stars, or with one letter in between."""
    found = []
    for left, x in ((a, 0), (terms.adjoint(a), ADJOINT_COST)):
        for right, y in ((b, 0), (terms.adjoint(b), ADJOINT_COST)):
            if terms.spaces(right)[1] != terms.spaces(b)[1] and ONE in terms.spaces(right):
                continue  # do not transpose a vector
            for letter in (None, *CONNECTING_LETTERS):
                chain = (left, *(() if letter is None else (terms.letter_term(letter),)), right)
                if _is_legal(chain):
                    cost = x + y + (0 if letter is None else letter.row.remedy_cost)
                    cost += MISMATCH_COST * _side_conflicts(chain)
                    found.append((cost, len(found), chain))
    nearest = [chain for cost, _, chain in found if cost == min(found)[0]]
    return list(dict.fromkeys(" @ ".join(map(_code, chain)) for chain in nearest))[:2]


def _side_conflicts(chain: tuple[Term, ...]) -> int:
    """The number of neighbours whose sides of duality differ."""
    pairs = ((_side(p, -1), _side(q, 0)) for p, q in pairwise(chain))
    return sum(EITHER not in (takes, gives) and takes != gives for takes, gives in pairs)


def _is_legal(chain: tuple[Term, ...]) -> bool:
    """True if the spaces and the sides of duality of the factors fit."""
    try:
        return all(
            compatible(terms.spaces(p)[1], terms.spaces(q)[0]) for p, q in pairwise(chain)
        ) and bool(force_motion_duality.product_ends(chain))
    except (force_motion_duality.DualityConflict, force_motion_duality.NameClash):
        return False


def _side(term: Term, end: int) -> str:
    """The side of the term's output (end 0) or input (end -1)."""
    if term.op == "letter":
        return term.args[0].takes if end else term.args[0].gives
    inner = [x for x in term.args if isinstance(x, Term)]
    return EITHER if term.op in ("inverse", "adjoint") else _side(inner[end], end)


def _same_spaces(a: Term, b: Term) -> bool:
    """True if both map between the same spaces; I is added to square operators only."""
    (r1, c1), (r2, c2) = terms.spaces(a), terms.spaces(b)
    definite = [pair for pair in ((r1, c1), (r2, c2)) if ANY not in pair]
    return (
        compatible(r1, r2)
        and compatible(c1, c2)
        and (len(definite) != 1 or compatible(*definite[0]))
    )


def _did_you_mean(near: list[str]) -> str:
    return f"did you mean {' or '.join(near)}?" if near else "compare .rows and .cols of both"


_VECTOR_KINDS = {
    ("link", FORCE): "link forces",
    ("link", MOTION): "link motions",
    ("joint", FORCE): "joint torques",
    ("joint", MOTION): "joint rates",
    ("frame", FORCE): "frame wrenches",
    ("frame", MOTION): "frame velocities",
}


def _describe_vector(space: Space, side: str, model: Model | None) -> str:
    """A vector of this space, for messages: link forces, in link space (6·9 = 54)."""
    words = _VECTOR_KINDS.get((space.name, side))
    return f"{words}, in {describe(space, model)}" if words else describe(space, model)


def _describe_map(rows: Space, cols: Space, model: Model | None) -> str:
    if cols == ONE:
        return f"is a vector of {describe(rows, model)}"
    if ANY in (rows, cols):
        return "is square"
    return f"maps {describe(cols, model)} to {describe(rows, model)}"


def _code(term: Term) -> str:
    """The term as Python code without `s.`; sums in brackets."""
    return _BARE.text(term, 1)


def _text(x: object) -> str:
    return str(x) if hasattr(x, "term") else "array" if hasattr(x, "shape") else repr(x)


class _BarePython(Python):
    """Python code without `s.`, and with the bare names of vectors."""

    def __init__(self):
        super().__init__("")

    def letter(self, name: Letter) -> tuple[str, int]:
        if isinstance(name, (VectorLetter, SymbolLetter)):
            return name.word + (".T" if name.starred else ""), 2
        return super().letter(name)


_BARE = _BarePython()


def check_words(words: Iterable[Word], expression: Expression) -> None:
    """Internal check: the words of a polynomial of an expression are legal, in its spaces."""
    for word in words:
        rows, cols = (word[0].rows, word[-1].cols) if word else (ANY, ANY)
        pairs = [
            (expression.rows, rows),
            *((a.cols, b.rows) for a, b in pairwise(word)),
            (cols, expression.cols),
        ]
        if not all(compatible(a, b) for a, b in pairs):
            raise AssertionError(f"{' '.join(map(str, word))} is not a word of {expression}")
