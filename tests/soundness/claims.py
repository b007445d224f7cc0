"""Random claims about operators: true ones, made by applying identities, and false ones, bent out
of true ones.

A claim is two recipes of one robot. Whether it is true is for the oracle to say, at random states:
a true claim must be proved or left open, a false one refuted or left open, whatever psiphi's rules
are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import psiphi as pp
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.rewriting.identities import IDENTITIES, MISPRINT
from tests.soundness import robots
from tests.soundness.examine import Outcome, Patience, limited
from tests.soundness.oracle import (
    LETTER_SPACES,
    NoValue,
    Oracle,
    Singular,
    Value,
    dual,
    is_identity,
    kinds_of,
)
from tests.soundness.recipes import Node, children, letter, read, size, text, walk
from tests.soundness.robots import Spec
from tests.soundness.writing import LETTERS, Pick, Writer

STATES = 3
PATIENCE, BUDGET = 40, 10.0
GOALS = [
    ("joint", "joint"),
    ("joint", "one"),
    ("force", "force"),
    ("joint", "force"),
    ("frame1", "joint"),
    ("frame1", "frame1"),
]
GOALS += [
    ("force", "motion"),
    ("force", "joint"),
    ("motion", "one"),
    ("force", "one"),
    ("one", "one"),
]
FALSE = 1e-5  # sides that differ by more, relative to their entries, are not equal


class Claim(NamedTuple):
    """lhs = rhs on a robot; `meant` says whether it was made to be true."""

    robot: Spec
    lhs: Node
    rhs: Node
    meant: bool = True

    def source(self) -> str:
        """A script that shows it."""
        return "\n".join(
            [
                "import sys; sys.path[:0] = ['.', 'src']",
                "import psiphi as pp",
                "from tests.soundness.robots import build",
                f"s = build({[tuple(j) for j in self.robot.joints]!r}, "
                f"seed={self.robot.seed}).operators",
                f"print(pp.prove({text(self.lhs)},\n               {text(self.rhs)}))",
            ]
        )


# -- whether it is true ----------------------------------------------------------------------------


def truth(claim: Claim, states: int = STATES) -> bool | None:
    """By numbers: True (equal at every state), False (they differ), None (no value anywhere, or too
    blurred to say)."""
    robot = robots.build(*claim.robot)
    q, v = robots.state(robot, claim.robot.seed, states)
    rng, equal = np.random.default_rng([claim.robot.seed, 17]), 0
    for i in range(states):
        given = _given(robot, claim, rng)
        try:
            sides = [Oracle(robot, q[i], v[i], given).value(side) for side in claim[1:3]]
            blurry = [Oracle(robot, q[i], v[i], given, blur=rng).value(side) for side in claim[1:3]]
        except NoValue:
            continue
        (left, right), (left1, right1) = _matrices(sides), _matrices(blurry)
        if left is None:
            return None if sides[0] != sides[1] else True
        gap, size = (
            np.abs(left - right).max(initial=0.0),
            np.abs(left).max(initial=0.0) + np.abs(right).max(initial=0.0),
        )
        spread = np.abs(left1 - left).max(initial=0.0) + np.abs(right1 - right).max(initial=0.0)
        if gap > FALSE * size and gap > 1e3 * spread and gap > 1e-9:
            return False
        equal += bool(gap <= 100.0 * spread + 1e-10 * (1.0 + size) and spread < 1e-4 * (1.0 + size))
    return True if equal else None


def _matrices(sides) -> tuple:
    """Both as matrices; a multiple of I takes the other's size."""
    n = next((len(x.m) for x in sides if isinstance(x, Value)), None)
    if n is None:
        return None, None
    return tuple(x.m if isinstance(x, Value) else x * np.eye(n) for x in sides)


def _two_meanings(claim: Claim) -> bool:
    """Does one name stand for vectors over joints, links and frames at once?"""
    nodes = {x for side in claim[1:3] for x in walk(side) if x.op in ("vector", "symbol")}
    over = {(x.args[0], x.args[1] if x.args[1] in ("joint", "frame") else "link") for x in nodes}
    return len(over) > len({name for name, _ in over})


def _given(robot, claim: Claim, rng) -> dict[str, np.ndarray]:
    """Random numbers for vectors and symbols, as psiphi's `random_values` would; frame vectors
    belong to one frame here."""
    out = {}
    length = {"joint": robot.nv, "frame": 6}
    for node in sorted(
        {x for side in claim[1:3] for x in walk(side) if x.op in ("vector", "symbol")}, key=repr
    ):
        n = length.get(node.args[1], 6 * len(robot.bodies))
        out[node.args[0]] = rng.standard_normal(n if node.op == "vector" else (n, n))
        out[f"{node.args[0]}_dot"] = rng.standard_normal(n if node.op == "vector" else (n, n))
    return out


# -- the facts -------------------------------------------------------------------------------------


def stated() -> Iterator[tuple[Expression, Expression]]:
    """Every equation of psiphi's book, true of a robot or not."""
    yield from ((row.lhs, row.rhs) for row in IDENTITIES if MISPRINT not in row.use)


@lru_cache(maxsize=128)
def facts(spec: Spec) -> tuple[tuple[Node, Node], ...]:
    """The stated equations that the oracle finds true of this robot."""
    found = dict.fromkeys((read(repr(x)), read(repr(y))) for x, y in stated())
    return tuple(pair for pair in found if truth(Claim(spec, *pair), 1))


# -- true claims -----------------------------------------------------------------------------------


def some_robots(pick: Pick, count: int) -> list[Spec]:
    """Robots to claim something of: a few, since their facts are checked first."""
    found = (robots.draw_spec(pick, 4) for _ in range(9 * count))
    return [spec for spec in found if spec.joints][:count]


def draw_claim(pick: Pick, specs: list[Spec]) -> Claim:
    """A claim that should be true, or one bent out of it."""
    spec = pick(specs)
    known = facts(spec)
    claim = pick([_framed, _framed, _rewritten, _rewritten, _summed])(pick, spec, known)
    if pick([True, True, False]):
        return Claim(*claim[:3], True)
    return Claim(spec, claim.lhs, bend(pick, claim.rhs), False)


def _fact(pick: Pick, known) -> tuple[Node, Node, tuple[str, str]]:
    """One fact, perhaps turned: (lhs, rhs, (rows, cols))."""
    lhs, rhs = pick(known)
    lhs, rhs = pick([(lhs, rhs), (rhs, lhs)])
    rows, cols = next((k for k in (kinds_of(lhs), kinds_of(rhs)) if all(k)), ("", ""))
    if not rows:  # a fact of I alone, or of a vector of open side
        rows, cols = next((k for k in (kinds_of(lhs), kinds_of(rhs)) if k[1]), ("joint", "joint"))
    if rows and cols != "one" and pick([False, False, True]):
        return lhs.T, rhs.T, (dual(cols), dual(rows))
    return lhs, rhs, (rows, cols)


def _framed(pick: Pick, spec: Spec, known) -> Claim:
    """A l B + C = C + A r B."""
    lhs, rhs, (rows, cols) = _fact(pick, known)
    writer = Writer(pick, most=1)
    if rows and pick([True, False]):
        A = writer.write(
            pick(["joint", rows, "frame1" if rows in ("motion", "joint") else rows]),
            rows,
            pick([0, 0, 1]),
        )
        lhs, rhs = A @ lhs, A @ rhs
        rows = kinds_of(A)[0] or rows
    if cols and cols != "one" and pick([True, False]):
        B = writer.write(cols, pick(["joint", "one", cols]), pick([0, 0, 1]))
        lhs, rhs = lhs @ B, rhs @ B
        cols = kinds_of(B)[1] or cols
    if rows and pick([False, True]):
        C = writer.write(rows, cols, 1)
        lhs, rhs = lhs + C, C + rhs
    if pick([False, False, True]):
        c = pick([2, -1, 0.5, 3])
        lhs, rhs = c * lhs, c * rhs
    return Claim(spec, lhs, turned(pick, rhs, known))


def _summed(pick: Pick, spec: Spec, known) -> Claim:
    """l + c m = r + c s, for two facts of one kind."""
    lhs, rhs, kinds = _fact(pick, known)
    others = [
        pair for pair in known if kinds in (kinds_of(pair[0]), kinds_of(pair[1])) and all(kinds)
    ]
    if others:
        c, (l2, r2) = pick([2, -1, 0.5]), pick(others)
        lhs, rhs = lhs + c * l2, c * r2 + rhs
    return Claim(spec, lhs, turned(pick, rhs, known))


def _rewritten(pick: Pick, spec: Spec, known) -> Claim:
    """What a user might write, and the same after a few identities and rules of reckoning."""
    rows, cols = pick(GOALS)
    node = Writer(pick, most=1).write(rows, cols, pick([1, 2]))
    other = node
    for _ in range(pick([1, 2, 3])):
        other = turned(pick, other, known)
    return Claim(spec, node, other)


def turned(pick: Pick, node: Node, known) -> Node:
    """One identity applied somewhere, or one rule of reckoning."""
    options = (
        [y for y in _replacements(node, known) if size(y) < 120][:40]
        if pick([True, True, False])
        else []
    )
    options = options or list(_reckonings(node))[:40]
    return pick(options) if options else node


def _replacements(node: Node, known) -> Iterator[Node]:
    """The node with one part replaced by its equal."""
    for lhs, rhs in known:
        for a, b in ((lhs, rhs), (rhs, lhs)):
            if a == node and not is_identity(a) and not is_identity(b):
                yield b
    yield from _inside(node, lambda x: _replacements(x, known))


def _reckonings(node: Node) -> Iterator[Node]:
    """A (B + C) = A B + A C, (A B)* = B* A*, A + B = B + A, A** = A, ..."""
    op, args = node
    if op == "sum":
        yield args[1] + args[0]
    if op == "product":
        A, B = args
        if B.op in ("sum", "difference"):
            yield Node(B.op, (A @ B.args[0], A @ B.args[1]))
        if A.op in ("sum", "difference"):
            yield Node(A.op, (A.args[0] @ B, A.args[1] @ B))
        if A.op == "product":
            yield A.args[0] @ (A.args[1] @ B)
        if kinds_of(node) == ("one", "one"):
            yield B.T @ A.T
    if op == "T" and args[0].op == "product":
        yield args[0].args[1].T @ args[0].args[0].T
    if op == "T" and args[0].op in ("sum", "difference"):
        yield Node(args[0].op, tuple(x.T for x in args[0].args))
    if op == "scale":
        yield (0.5 * args[0] * args[1]) + (0.5 * args[0] * args[1])
    if op not in ("scale", "T"):
        yield node.T.T
    if op == "letter" and args[0] != "I" and LETTER_SPACES[args[0]][1] != "one":
        yield I_ @ node
    yield from _inside(node, _reckonings)


I_ = letter("I")


def _inside(node: Node, change) -> Iterator[Node]:
    for i, x in enumerate(node.args):
        if isinstance(x, Node):
            for y in change(x):
                yield Node(node.op, (*node.args[:i], y, *node.args[i + 1 :]))


# -- false ones ------------------------------------------------------------------------------------

SWAPS = [
    ("phi", "psi"),
    ("E_phi", "E_psi"),
    ("M", "P"),
    ("G", "K"),
    ("Phi", "Psi"),
    ("P", "P_plus"),
    ("Delta_phi", "Delta_psi"),
]
SWAPS += [
    ("D", "mass"),
    ("K", "L"),
    ("D_half", "mass_half"),
    ("a", "a_local"),
    ("b", "b_local"),
    ("P_dot", "lambda_dot"),
]


def bend(pick: Pick, node: Node) -> Node:
    """The node with one mistake in it."""
    options = [y for y in _bent(node) if size(y) < 120]
    return pick(options) if options else 2 * node


def _bent(node: Node) -> Iterator[Node]:
    op, args = node
    rows, cols = kinds_of(node)
    if op == "letter":
        for pair in SWAPS:
            if args[0] in pair:
                yield letter(pair[1 - pair.index(args[0])])
    if op == "sum":
        yield args[0] - args[1]
        yield from args
    if op == "difference":
        yield args[0] + args[1]
        yield args[0]
    if op == "scale":
        yield (args[0] + 1) * args[1]
        yield args[1]
    if op == "product":
        for keep, drop in (args, args[::-1]):
            if len(set(kinds_of(drop))) == 1 and kinds_of(drop)[0] not in ("", "one"):
                yield keep  # a factor lost
        for extra in LETTERS.get((kinds_of(args[1])[0],) * 2, [])[:6]:
            if kinds_of(args[1])[0] not in ("", "one"):
                yield args[0] @ extra @ args[1]
    if op == "T" and rows == cols and rows in ("joint", "frame1"):
        yield args[0]  # a star lost
    if op == "inv" and rows == cols and rows == "joint":
        yield args[0]
    if op in ("letter", "product") and rows and rows != "one":
        yield 2 * node
        yield -1 * node
    yield from _inside(node, _bent)


# -- the verdict -----------------------------------------------------------------------------------


def judge(claim: Claim) -> Outcome:
    """Held against the oracle: "proved", "open", "refuted", "refused" where that is right; what
    went wrong otherwise."""
    ambiguous = _two_meanings(claim)
    real = None if ambiguous else truth(claim)
    if real is None and not ambiguous and not _singular(claim):
        return Outcome("blurred")
    robot, start = robots.build(*claim.robot), time.process_time()
    try:
        with limited(PATIENCE):
            lhs, rhs = (eval(text(side), {"s": robot.operators, "pp": pp}) for side in claim[1:3])
            proof = pp.prove(lhs, rhs)
            assert isinstance(str(proof), str)
    except Patience:
        return Outcome("slow", f"more than {PATIENCE} s", PATIENCE)
    except pp.Error as error:
        return Outcome("refused", str(error))
    except Exception as error:
        return Outcome("crash", f"{type(error).__name__}: {str(error)[:200]}")
    seconds = time.process_time() - start
    if seconds > BUDGET:
        return Outcome("slow", f"{seconds:.1f} s", seconds)
    if ambiguous:
        return Outcome("wrong", "a name of two vectors was not refused", seconds)
    if real is None:
        return (
            Outcome("wrong", "proved, though an inverse in it exists nowhere", seconds)
            if proof
            else Outcome("open")
        )
    if proof and not real:
        return Outcome("wrong", "proved, and false", seconds)
    if real and proof.counterexample is not None:
        return Outcome("wrong", f"refuted, and true: {proof.counterexample}", seconds)
    return Outcome(
        "proved" if proof else "refuted" if proof.counterexample is not None else "open",
        "",
        seconds,
    )


def _singular(claim: Claim) -> bool:
    """Is something under .inv singular at every state?"""
    robot = robots.build(*claim.robot)
    q, v = robots.state(robot, claim.robot.seed, STATES)
    given = _given(robot, claim, np.random.default_rng(0))
    for i in range(STATES):
        try:
            for side in claim[1:3]:
                Oracle(robot, q[i], v[i], given).value(side)
        except Singular:
            continue
        except NoValue:
            return False
        return False
    return True


OK = ("proved", "open", "refuted", "refused", "blurred")


def smaller(claim: Claim) -> Iterator[Claim]:
    """Claims with one piece less on both sides."""
    for lhs in [*children(claim.lhs), claim.lhs]:
        for rhs in [*children(claim.rhs), claim.rhs]:
            if (lhs, rhs) != claim[1:3]:
                yield Claim(claim.robot, lhs, rhs, claim.meant)


def shrink(claim: Claim, trials: int = 60) -> Claim:
    """A smaller claim that fails in the same way."""
    wrong, changed = judge(claim), True
    while changed and trials > 0:
        changed = False
        for other in smaller(claim):
            trials -= 1
            try:
                same = judge(other)
            except Exception:
                continue
            if trials > 0 and same.kind == wrong.kind and same.detail[:20] == wrong.detail[:20]:
                claim, changed = other, True
                break
    return claim
