"""From an expression to the program that costs least.

Three forms of the same value are lowered and counted, exactly, for the robot at hand; the cheapest runs:

    as written      the user's polynomial, inverses resolved
    rewritten       its normal form under the operator identities
    with the body forces M phi* a + b kept whole, everything else rewritten
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from psiphi.errors import StateError
from psiphi.lowering.columns import LoweredColumns
from psiphi.lowering.loops import loops
from psiphi.lowering.matrices import LoweredMatrix
from psiphi.lowering.turning import sided
from psiphi.lowering.vectors import LOWERED, Lowered, Result
from psiphi.model.model import Model
from psiphi.operators import terms
from psiphi.operators.expression import Expression
from psiphi.operators.letters import BIAS, FORCE, needs_velocity
from psiphi.operators.polynomial import Poly
from psiphi.operators.printing import show_poly
from psiphi.operators.sides import ends, settled
from psiphi.operators.terms import Term
from psiphi.rewriting.budget import SECONDS, TooLarge, budget, share
from psiphi.rewriting.derivation import Chain, Derivation
from psiphi.rewriting.normal import Normalizer, normalizer
from psiphi.rewriting.rules import reduce, walk
from psiphi.rewriting.scalars import commuted
from psiphi.sweeps.framing import Tree, frame_tree
from psiphi.sweeps.program import Argument, Program
from psiphi.sweeps.unroll import unroll
from psiphi.tape.ops import Count

A, B = "vec:a@link", "vec:b@link"
FORMS = ("body forces whole", "as written", "rewritten")
LONG = 200  # letters of a word beyond which it is not factored
LARGE = 64  # bodies from which on forms are not counted against each other
BODY = "vec:body force@link"  # stands for M phi* a + b while the rest is rewritten


@dataclass(frozen=True)
class Form:
    """One way to compute it."""

    name: str
    polys: Mapping[str, Poly]
    lowered: Lowered | LoweredMatrix | LoweredColumns
    derivation: Derivation | None = None


@dataclass(eq=False)
class Equation:
    """Named results, each an expression of one robot; `at_rest` leaves out the velocity, `given` orders the inputs."""

    results: dict[str, Expression]
    model: Model
    at_rest: bool = False
    given: Sequence[str] = ()
    equation: str = ""
    forms: Sequence[str] = FORMS
    rods: bool | None = None  # True: only forms that allow inertia to change sides; None: as the chosen form allows
    columns: str = ""
    by_link: bool = False  # results over links come as (bodies, 6), not as one long vector
    budget: float = SECONDS  # of rewriting

    def __post_init__(self):
        self.results = {name: Expression(settled(e.term), e.model) for name, e in self.results.items()}

    @cached_property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        return repr([(n, repr(e)) for n, e in self.results.items()] + [self.at_rest, list(self.given), list(self.forms)])

    @cached_property
    def letters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(x for e in self.results.values() for x in terms.letters(e.term)))

    @property
    def is_matrix(self) -> bool:
        return any(e.cols.name in ("joint", "frame", "link", "any") for e in self.results.values())

    @property
    def is_number(self) -> bool:
        """x* A y: rows of vectors stand first in every word."""
        return all(e.rows.name == e.cols.name == "one" for e in self.results.values())

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        """Inputs and outputs of the function: q, then v where a or b need it, then the vectors by first appearance."""
        model = self.model
        vectors = {
            x[4:].split("@")[0]: x.rstrip("*") for x in self.letters if x.startswith("vec:") and x.rstrip("*") not in BIAS
        }
        names = [name for name in (*self.given, *vectors) if name in vectors]
        moving = not self.at_rest and any(map(needs_velocity, self.letters))
        names = list(dict.fromkeys((["v"] if moving else []) + names))
        inputs = [Argument("q", (model.nq,), "q")]
        for name in names:
            inputs.append(self._argument(name, vectors.get(name, f"vec:{name}@joint")))
        return tuple(inputs), tuple(self._output(n, e) for n, e in self.results.items())

    def _argument(self, name: str, vector: str) -> Argument:
        space = vector.split("@")[1]
        if space == "joint":
            return Argument(name, (self.model.nv,), "v")
        if space != "frame":
            return Argument(name, (6 * len(self.model.bodies),))
        count = self._frames(name)
        return Argument(name, (count, 6) if self.by_link else (6 * count,))

    def _frames(self, name: str) -> int:
        """How many frames a frame vector is of: those of the B, or of the vectors, it meets."""
        counts = (ends(e.term).given.get(name) for e in self.results.values())
        for count in counts:
            if isinstance(count, int) and count:
                return count
        raise StateError(f"how many frames {name} is of is not known", "multiply it with B(frames), or add it to J(frames) @ v")

    def _output(self, name: str, e: Expression) -> Argument:
        sizes = {"joint": self.model.nv, "link": 6 * len(self.model.bodies)}
        shape = tuple(sizes.get(space.name, 6 * (space.frames or 0)) for space in (e.rows, e.cols) if space.name != "one")
        if self.by_link and e.rows.name == "link" and len(shape) == 1:
            shape = (len(self.model.bodies), 6)
        of_joints = (e.rows.name == "joint" and len(shape) == 1) or (e.rows.name == "frame" and e.cols.name == "joint")
        return Argument(name, shape, "v" if of_joints else "")

    @cached_property
    def form(self) -> Form:
        """The cheapest form that has sweeps; on a large robot, the first one."""
        with budget(self.budget):
            tried = {name: self._within(name) for name in self.forms}
        options = [form for form in tried.values() if isinstance(form, Form)]
        if self.rods:
            options = [form for form in options if form.lowered.rods]
        options = [form for form in options if not isinstance(form.lowered, LoweredColumns)] or options
        if not options and (large := [form for form in tried.values() if isinstance(form, TooLarge)]):
            raise large[0]
        if not options:
            names = ", ".join(map(str, self.results.values()))
            raise StateError(f"{names}: no form of it is made of sweeps", "evaluate it with .dense(q)")
        return options[0] if len(options) == 1 or len(self.model.joints) > LARGE else min(options, key=self._flops)

    def _within(self, name: str) -> Form | TooLarge | None:
        """A form, if its share of the budget makes it."""
        try:
            with share(0.6):
                return self._form(name)
        except TooLarge as error:
            return error

    @property
    def tree(self) -> Tree:
        return frame_tree(self.model, self.moves_inertia)

    @property
    def opaque(self) -> dict[str, frozenset[Term]]:
        """What stands under the inverses no identity resolves, for every result."""
        with budget(self.budget):
            return {
                name: frozenset(e.term for e in self.results[name].inverses if e.term not in n.known)
                for name, n in self._normalizers.items()
            }

    def _flops(self, form: Form) -> int:
        tree, lowered = frame_tree(self.model, form.lowered.rods), form.lowered
        make = lowered.column if isinstance(lowered, LoweredColumns) else lowered.program
        return unroll(make("trial", tree, *self.arguments()), tree).count.flops

    @cached_property
    def _normalizers(self) -> dict[str, Normalizer]:
        return {name: normalizer(e, proving=False) for name, e in self.results.items()}

    def _written(self, name: str) -> Poly:
        """The polynomial as written, inverses resolved."""
        n = self._normalizers[name]
        start = n.polynomial(self.results[name].term)
        return reduce(start, lambda word: next(((i, n.resolved[x,]) for i, x in enumerate(word) if (x,) in n.resolved), None))[
            0
        ]

    def _form(self, name: str) -> Form | None:
        polys, derivation = {}, None
        for result, e in self.results.items():
            start = self._written(result)
            if name == "as written":
                polys[result] = start
                continue
            opaque = fold(start) if name == "body forces whole" else start
            if name == "body forces whole" and opaque == start:
                return None
            chain = Chain(e, opaque, tuple(walk(opaque, self._normalizers[result].find)))
            polys[result], derivation = unfold(chain.result), Derivation(chain)
        lowered = self._lower(polys)
        return None if lowered is None else Form(name, polys, lowered, derivation)

    def _lower(self, polys: dict[str, Poly]) -> Lowered | LoweredMatrix | LoweredColumns | None:
        polys = {name: sided(commuted(poly) if self.is_number else poly) for name, poly in polys.items()}
        used = {x for poly in polys.values() for word in poly for x in word[self.is_number :]}
        used |= {x.removesuffix("*") for poly in polys.values() for word in poly for x in word[: self.is_number]}
        if any(not _has_sweeps(x) for x in used) or any(len(word) > LONG for poly in polys.values() for word in poly):
            return None
        if self.is_matrix:
            spaces = next(iter(self.results.values()))
            rows, cols = spaces.rows.name, spaces.cols.name
            if "link" in (rows, cols):  # entries in link axes, which sweeps do not keep
                return None
            lowered = LoweredMatrix(polys, (rows, cols))
            if lowered.complete:
                return lowered
            return LoweredColumns(polys, rows, cols) if {rows, cols} <= {"joint", "frame"} else None
        return Lowered([Result(n, polys[n], self._space(n, polys[n])) for n in self.results])

    def _space(self, name: str, poly: Poly) -> str:
        rows = self.results[name].rows.name
        if rows != "link":
            return rows
        found = ends(self.results[name].term)
        return str(found.value(found.gives) or FORCE)

    @property
    def moves_inertia(self) -> bool:
        """Whether the tree may be framed with inertia moved across joints."""
        return self.form.lowered.rods

    def program(self, tree: Tree, frames: tuple[str, ...] = (), axes: str = "world") -> Program:
        return self.form.lowered.program(next(iter(self.results)), tree, *self.arguments())

    def inverses(self) -> list[str]:
        """What each inverse became, and by which identity."""
        lines = []
        for name, n in self._normalizers.items():
            for i, inner in enumerate(self.results[name].inverses):
                rule = n.resolved.get((f"inv:{i}",))
                if rule is not None:
                    lines.append(f"({inner})⁻¹ = {show_poly(rule.rest)}    [{rule.name}]")
        return list(dict.fromkeys(lines))

    def explain(self, count: Count) -> str:
        """The derivation step by step, the loops it ends in, and what they cost."""
        form = self.form
        lines = [*(f"{name} = {e}" for name, e in self.results.items()), *self.inverses()]
        if form.derivation is not None and form.derivation.steps:
            lines += ["", "rewritten, with M φ* a + b as one body force:" if form.name == FORMS[0] else "rewritten:"]
            lines += str(form.derivation).splitlines()[1:]
        lines += ["", *(f"{name} = {show_poly(poly)}" for name, poly in form.polys.items())]
        plural = "" if self.sweeps == 1 else "s"
        lines += ["", f"{self.sweeps} sweep{plural}{self._unfused()}:", *(f"  {line}" for line in self.loops()), ""]
        order = "O(N), and the entries of the result" if self.is_matrix else "O(N)"
        c = count
        lines.append(f"{c.flops} flops ({c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos), {order}")
        return "\n".join(lines)

    def _unfused(self) -> str:
        """How many sweeps the equation has before neighbours are fused."""
        written = self.form.lowered.chain if isinstance(self.form.lowered, Lowered) else self.sweeps
        return f" ({written} as written, fused)" if written > self.sweeps else ""

    def loops(self) -> list[str]:
        """The sweeps of the chosen form, as the papers' pseudo-code."""
        lowered = self.form.lowered
        if isinstance(lowered, LoweredColumns):
            return ["for every column x of the identity:", *(f"  {line}" for line in loops(lowered.lowered))]
        return loops(lowered)

    @property
    def sweeps(self) -> int:
        """How many sweeps run."""
        lowered = self.form.lowered
        if isinstance(lowered, LoweredColumns):
            return lowered.sweeps
        return len(lowered.sweeps) if isinstance(lowered, LoweredMatrix) else len(lowered.schedule.directions)


def _has_sweeps(x: str) -> bool:
    """Whether a sweep can apply the letter; the row x* of a vector sums over all bodies, and none does."""
    return x in LOWERED or x.startswith(("B[", "Bdot[")) or (x.startswith("vec:") and not x.endswith("*"))


def fold(poly: Poly) -> Poly:
    """x M phi* a + x b -> x BODY, for every prefix x."""
    out = dict(poly)
    for word, c in poly.items():
        if word[-3:] == ("M", "phi*", A) and out.get((*word[:-3], B)) == c:
            del out[word], out[(*word[:-3], B)]
            out[(*word[:-3], BODY)] = c
    return out


def unfold(poly: Poly) -> Poly:
    """x BODY -> x M phi* a + x b."""
    out: Poly = {}
    for word, c in poly.items():
        if word[-1:] == (BODY,):
            for tail in (("M", "phi*", A), (B,)):
                key = (*word[:-1], *tail)
                out[key] = out.get(key, Fraction(0)) + c
        else:
            out[word] = out.get(word, Fraction(0)) + c
    return out
