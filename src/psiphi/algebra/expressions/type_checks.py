"""What may be written: spaces that meet must fit, robots must not mix. Each refusal says what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from psiphi._util.errors import Error, StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.expressions import force_motion_duality, terms
from psiphi.algebra.expressions.letters import (
    BIAS,
    EITHER,
    FORCE,
    LETTERS,
    MOTION,
    SIDES,
    Letter,
    SymbolLetter,
    VectorLetter,
    symbol_letter,
    vector_letter,
)
from psiphi.algebra.expressions.notation import Python
from psiphi.algebra.expressions.spaces import ANY, ONE, Space, describe, fits
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model

LEADING = [
    x for plain in LETTERS.values() if plain.row.leads for x in dict.fromkeys((plain, plain.T))
]  # between spaces
RESERVED = {"q", "self", "ax", "path"}  # arguments of `dense` and `plot`
INPUTS = {
    "parameters",
    "added",
}  # what programs know by these names: free numbers of a robot, what stands beside rotors
TURN, MISMATCH = 1, 4  # the cost of a star, and of forces that meet motions


def check_product(a: Term, b: Term, model: Model | None) -> None:
    """a @ b: what b gives must be what a takes."""
    inner, outer = terms.spaces(a)[1], terms.spaces(b)[0]
    if fits(inner, outer):
        _check_sides(force_motion_duality.product_ends, a, b, "@")
        return
    verb = "holds" if terms.spaces(b)[1] == ONE else "gives"
    takes, gives = _held(inner, _side(a, -1), model), _held(outer, _side(b, 0), model)
    raise StateError(
        f"{_code(a)} @ {_code(b)}: {_code(a)} takes {takes}, {_code(b)} {verb} {gives}",
        _did_you_mean(_products(a, b)),
    )


def check_sum(a: Term, b: Term, model: Model | None, sign: str = "+") -> None:
    """a + b: both must map between the same spaces."""
    if _alike(a, b):
        _check_sides(force_motion_duality.sum_ends, a, b, sign)
        return
    maps = (f"{_code(x)} {_maps(*terms.spaces(x), model)}" for x in (a, b))
    turned = [(x, y) for x, y in ((a, terms.adjoint(b)), (terms.adjoint(a), b)) if _alike(x, y)]
    near = [f"{_code(x)} {sign} {_code(y)}" for x, y in turned]
    raise StateError(f"{_code(a)} {sign} {_code(b)}: {', '.join(maps)}", _did_you_mean(near))


def _check_sides(
    together: Callable[[tuple[Term, Term]], force_motion_duality.Ends], a: Term, b: Term, sign: str
) -> None:
    """Forces must not meet motions over links, and one name is one vector."""
    try:
        together((a, b))
    except force_motion_duality.NameClash as clash:
        kinds = [
            x if x.startswith("symbol") else f"vector over {x}s" for x in (clash.left, clash.right)
        ]
        raise StateError(
            f"{_code(a)} {sign} {_code(b)}: {clash.name} is a {kinds[0]} in one place, a {kinds[1]} in another",
            "give one of them another name"
            if clash.name != "v"
            else "v is the joint rates: choose another name",
        ) from None
    except force_motion_duality.DualityConflict as clash:
        remedy = "name one vector for each" if isinstance(clash.left, int) else _unmixed(a, b, sign)
        raise StateError(
            f"{_code(a)} {sign} {_code(b)}: {_mixed(a, b, sign, clash)}", remedy
        ) from None


def _mixed(a: Term, b: Term, sign: str, clash: force_motion_duality.DualityConflict) -> str:
    """What stands on both sides, in words."""
    left, right = force_motion_duality.ends(a), force_motion_duality.ends(b)
    if isinstance(clash.left, int):
        return f"a vector cannot be of {clash.left} and of {clash.right} frames at once"
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
    both = [
        name
        for name, value in left.given.items()
        if value and right.given.get(name, value) != value
    ]
    if both:
        return f"{both[0]} is a {left.given[both[0]]} in {_code(a)}, a {right.given[both[0]]} in {_code(b)}"
    return "a force over links meets a motion"


def _unmixed(a: Term, b: Term, sign: str) -> str:
    """The remedy: what turns one into the other, or the nearest legal product."""
    near = (
        []
        if sign != "@"
        else [text for text in _products(a, b) if text != f"{_code(a)} @ {_code(b)}"]
    )
    turns = "M and P turn link motions into forces, Om turns forces into motions"
    return (
        _did_you_mean(near)
        if near
        else f"{turns}; vector(name, 'motion') and vector(name, 'force') say which a vector is"
    )


def check_square(a: Term, model: Model | None) -> None:
    """a.inv: rows and columns must be one space."""
    rows, cols = terms.spaces(a)
    if (a.op == "scale" and a.args[0] == 0) or terms.multiple(a) == 0:
        raise StateError(f"{_code(a)}.inv: zero has no inverse", "leave it out")
    if fits(rows, cols) and ONE not in (rows, cols):
        return
    raise StateError(
        f"({_code(a)}).inv: {_code(a)} {_maps(rows, cols, model)}; only a square operator has an inverse",
        "multiply it to a square one first, as in (J @ mass.inv @ J.T).inv",
    )


def operand(self: Any, sign: str, other: Any) -> Any:
    """`other`, if it is an expression."""
    if isinstance(other, type(self)):
        return other
    raise foreign(self, sign, other)


def foreign(a: Any, sign: str, b: Any) -> Error:
    """The error for an operand that is no expression."""
    stranger = b if hasattr(a, "term") else a
    shape = getattr(stranger, "shape", None)
    what = f"an array of shape {shape}" if shape else repr(stranger)
    cause = f"{_text(a)} {sign} {_text(b)}: {what} is not an operator"
    if shape:
        return StateError(
            cause, "name it, vector('x'), and give it when you evaluate; or multiply expr.dense(q)"
        )
    return StateError(
        cause,
        "write c * I for a multiple of the identity"
        if sign == "+"
        else "write c * A to scale by a number",
    )


def common_robot(a: Any, sign: str, b: Any) -> Model | None:
    """The robot both sides belong to; None when neither has one yet."""
    if a.model is None or b.model is None or a.model is b.model:
        return a.model if a.model is not None else b.model
    if a.model == b.model:
        return a.model
    raise StateError(
        f"({a}) {sign} ({b}): the left side belongs to robot {a.model.name!r}, the right side to {b.model.name!r}",
        "write both with the operators of one robot",
    )


def named_vector(name: Any, space: Any) -> VectorLetter:
    """The letter of a vector that is given by name."""
    _check_name(name, space, ("joint", "link", "frame", "motion", "force"))
    where = "link" if space in SIDES else space
    if any(x.word == name and x.space == where for x in BIAS):
        raise StateError(
            f"{name!r} over {where}s is made of q and v: it is operators.{name}",
            "choose another name",
        )
    return vector_letter(name, space)


def named_symbol(name: Any, space: Any) -> SymbolLetter:
    """The letter of any block diagonal operator, by name."""
    _check_name(name, space, ("link", "joint"))
    return symbol_letter(name, space)


def _check_name(name: Any, space: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*", name):
        raise StateError(
            f"{name!r} is not a name", "use letters, digits and _, as for a Python variable"
        )
    if name in RESERVED:
        raise StateError(
            f"{name!r} is taken: every expression depends on the configuration",
            "choose another name",
        )
    if name in INPUTS:
        raise StateError(
            f"{name!r} is taken: a robot's own numbers go by this name", "choose another name"
        )
    if not isinstance(space, str) or space not in allowed:
        remedy = (
            nearest(space, allowed) if isinstance(space, str) else f"there are {', '.join(allowed)}"
        )
        raise StateError(f"no space {shown(space)}", remedy)


def _products(a: Term, b: Term) -> list[str]:
    """The legal products nearest to a @ b: stars on either side, one letter between."""
    found = []
    for left, x in ((a, 0), (terms.adjoint(a), TURN)):
        for right, y in ((b, 0), (terms.adjoint(b), TURN)):
            if terms.spaces(right)[1] != terms.spaces(b)[1] and ONE in terms.spaces(right):
                continue  # a vector stays a column
            for between, z in (((), 0), *(((terms.of_letter(x),), x.row.leads) for x in LEADING)):
                chain = (left, *between, right)
                if _legal(chain):
                    found.append((x + y + z + MISMATCH * _clashes(chain), len(found), chain))
    nearest = [chain for cost, _, chain in found if cost == min(found)[0]]
    return list(dict.fromkeys(" @ ".join(map(_code, chain)) for chain in nearest))[:2]


def _clashes(chain: tuple[Term, ...]) -> int:
    """How often forces meet motions between neighbours."""
    pairs = ((_side(p, -1), _side(q, 0)) for p, q in pairwise(chain))
    return sum(EITHER not in (takes, gives) and takes != gives for takes, gives in pairs)


def _legal(chain: tuple[Term, ...]) -> bool:
    """Do the factors fit, and do forces meet forces over links?"""
    try:
        return all(
            fits(terms.spaces(p)[1], terms.spaces(q)[0]) for p, q in pairwise(chain)
        ) and bool(force_motion_duality.product_ends(chain))
    except (force_motion_duality.DualityConflict, force_motion_duality.NameClash):
        return False


def _side(term: Term, end: int) -> str:
    """What the term gives (end 0) or takes (end -1): forces, motions, or either."""
    if term.op == "letter":
        return term.args[0].takes if end else term.args[0].gives
    inner = [x for x in term.args if isinstance(x, Term)]
    return EITHER if term.op in ("inverse", "adjoint") else _side(inner[end], end)


def _alike(a: Term, b: Term) -> bool:
    """Do both map between the same spaces? I stands only beside square operators."""
    (r1, c1), (r2, c2) = terms.spaces(a), terms.spaces(b)
    definite = [pair for pair in ((r1, c1), (r2, c2)) if ANY not in pair]
    return fits(r1, r2) and fits(c1, c2) and (len(definite) != 1 or fits(*definite[0]))


def _did_you_mean(near: list[str]) -> str:
    return f"did you mean {' or '.join(near)}?" if near else "look at .rows and .cols of both"


_HELD = {
    ("link", FORCE): "link forces",
    ("link", MOTION): "link motions",
    ("joint", FORCE): "joint torques",
    ("joint", MOTION): "joint rates",
    ("frame", FORCE): "frame wrenches",
    ("frame", MOTION): "frame velocities",
}


def _held(space: Space, side: str, model: Model | None) -> str:
    """What a vector of this space is: link forces, in link space (6·9 = 54)."""
    words = _HELD.get((space.name, side))
    return f"{words}, in {describe(space, model)}" if words else describe(space, model)


def _maps(rows: Space, cols: Space, model: Model | None) -> str:
    if cols == ONE:
        return f"is a vector of {describe(rows, model)}"
    if ANY in (rows, cols):
        return "is square"
    return f"maps {describe(cols, model)} to {describe(rows, model)}"


def _code(term: Term) -> str:
    """The term as typed, without the robot's prefix; sums in brackets."""
    return _BARE.text(term, 1)


def _text(x: Any) -> str:
    return str(x) if hasattr(x, "term") else "array" if hasattr(x, "shape") else repr(x)


class _Bare(Python):
    """Python without prefix, vectors by their bare names."""

    def __init__(self):
        super().__init__("")

    def letter(self, name: Letter) -> tuple[str, int]:
        if isinstance(name, (VectorLetter, SymbolLetter)):
            return name.word + (".T" if name.starred else ""), 2
        return super().letter(name)


_BARE = _Bare()


def check_words(poly: Mapping[Any, Any], whole: Any) -> None:
    """Between passes: every word of a polynomial is a legal product with the spaces of the expression it came from."""
    for word in poly:
        rows, cols = (word[0].rows, word[-1].cols) if word else (ANY, ANY)
        pairs = [
            (whole.rows, rows),
            *((a.cols, b.rows) for a, b in pairwise(word)),
            (cols, whole.cols),
        ]
        if not all(fits(a, b) for a, b in pairs):
            raise AssertionError(f"{' '.join(map(str, word))} is no word of {whole}")
