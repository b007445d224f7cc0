"""The compiler on one page: from an equation to code that runs.

    write      named results, each an expression of one robot         `equations.py`
    resolve    inverses, by the identities that know them             algebra/rewriting
    rewrite    the same value in up to three forms, the candidates    algebra/rewriting
    lower      each candidate as sweeps over the tree                 lower
    frame      the tree, in the axes that cost least                  axes
    trace      the sweeps, run once on a tape                         sweeps, tape
    choose     the candidate with the fewest operations
    emit       the tape as text of a target                           backends
    load       machine code, from the cache or compiled               backends

Requests that are not equations (poses, programs of closed chains) are sweeps already and start with
`frame`. The results of the passes are stored with the request; `explain()` prints them pass by pass
(`explanation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from psiphi._util.errors import SingularError, StateError
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import FORCE, FormLetter
from psiphi.algebra.expressions.terms import Poly, Term, Word
from psiphi.algebra.expressions.type_checks import check_words
from psiphi.algebra.rewriting.body_force_letter import fold, unfold
from psiphi.algebra.rewriting.derivation import Chain, Derivation
from psiphi.algebra.rewriting.normal_form import Normalizer, normalizer
from psiphi.algebra.rewriting.rewrite_rules import reduce, rewriting_steps
from psiphi.algebra.rewriting.scalar_words import commute_scalars
from psiphi.algebra.rewriting.work_budget import TooLarge, limit_work, share
from psiphi.compiler.autodiff.analytic_rules import coriolis_sweeps
from psiphi.compiler.axes.cluster_axes import cluster_tree
from psiphi.compiler.axes.link_axes import Tree, frame_tree
from psiphi.compiler.equations import (
    WHOLE,
    WRITTEN,
    Arguments,
    CompileRequest,
    Equation,
    SweepRequest,
    without_memo,
)
from psiphi.compiler.lower.column_sweeps import LoweredColumns
from psiphi.compiler.lower.horner_graph import U
from psiphi.compiler.lower.matrix_sweeps import LoweredMatrix
from psiphi.compiler.lower.node_value import has_sweeps
from psiphi.compiler.lower.omega_sides import resolve_omega
from psiphi.compiler.lower.quasi_velocity_sweeps import QuasiLowered
from psiphi.compiler.lower.vector_sweeps import Lowered, Result
from psiphi.compiler.sweeps.link_loops import LinkLoops, trace_loops
from psiphi.compiler.sweeps.program_checks import CheckedRun, check_loops
from psiphi.compiler.sweeps.stage_loops import StagedCode, trace_stage_loops
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode, trace_tape
from psiphi.compiler.tape.tape_checks import check_tape
from psiphi.model.model import Model

UNROLL_LIMIT = 64  # bodies: the code of larger robots has loops over links
STAGE_UNROLL_LIMIT = 256  # the same for stages, which share more values as straight-line code
MAX_WORD_LENGTH = 200  # letters: longer words are not lowered
VERIFY_PASSES = False  # whether the output of each pass is checked; tests set it
COMPOSITES = "by composites"  # the form of the Coriolis matrix

Code = StraightCode | LinkLoops | StagedCode
Request = TypeVar("Request")
Made = TypeVar("Made")


class Traceable:
    """A request that returns its own code: a tape, loops (`has_loops`), or a sequence of blocks.

    Subclasses have the `model` and `equation` of a `CompileRequest` as fields or properties.
    """

    has_loops = False
    movable_inertia = True  # results do not depend on which link has the inertia
    columns = ""

    def arguments(self) -> tuple[Arguments, Arguments]:
        raise NotImplementedError

    def trace(self) -> Any:
        """The code."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return without_memo(self)


@dataclass(frozen=True, eq=False)
class RuleRequest(Traceable):
    """A rule of a robot as a request: `rule(inputs, outputs)` is its code."""

    model: Model
    equation: str
    inputs: Arguments
    outputs: Arguments
    rule: Callable[[Arguments, Arguments], Any]
    has_loops: bool = False

    def arguments(self) -> tuple[Arguments, Arguments]:
        return self.inputs, self.outputs

    def trace(self) -> Any:
        return self.rule(self.inputs, self.outputs)


@dataclass(frozen=True)
class Candidate:
    """One form of an equation: its polynomials, their derivation, and its sweeps once lowered."""

    name: str
    polys: Mapping[str, Poly]
    derivation: Derivation | None = None
    # the polynomials of the vectors in slots of multilinear forms
    slot_polys: Mapping[Term, Poly] = field(default_factory=dict)
    lowered: Any = None  # Lowered, LoweredMatrix, LoweredColumns, or analytic sweeps
    code: Code | None = None  # traced, if candidates were compared


def memoized_pass(compiler_pass: Callable[[Request], Made]) -> Callable[[Request], Made]:
    """A pass that runs once per request. Its result is stored with the request, in `memo`."""

    @wraps(compiler_pass)
    def memoized(request: Request) -> Made:
        memo = vars(request).setdefault("memo", {})
        if compiler_pass.__name__ not in memo:
            memo[compiler_pass.__name__] = compiler_pass(request)
        return memo[compiler_pass.__name__]

    return memoized


# -- the compiler --


@memoized_pass
def code(request: CompileRequest) -> Any:
    """The code of a request: one tape, the loops of a large robot, or stages of both (`Code`); or
    what a `Traceable` returns."""
    if isinstance(request, Traceable):
        return request.trace()
    if isinstance(request, Equation) and (chosen := choose(request)).code is not None:
        return chosen.code
    tree = tree_of(request)
    return trace(program(request, tree), tree)


def tree_of(request: CompileRequest) -> Tree:
    """The tree of a request, in working axes. Poses of bodies do not need clusters."""
    tree = frame(request.model, moves_inertia(request))
    return tree.spanning_tree if getattr(request, "on_spanning_tree", False) else tree


def program(request: CompileRequest, tree: Tree) -> Program:
    """The sweeps of a request over its tree."""
    if not isinstance(request, Equation):
        return cast(SweepRequest, request).program(tree)
    return choose(request).lowered.program(next(iter(request.results)), tree, *request.arguments())


@memoized_pass
def choose(equation: Equation) -> Candidate:
    """The candidate with the fewest operations, with its code; for a large robot the first one, or
    the first matrix that loops fill."""
    candidates = _candidates(equation)
    if is_large(equation.model):
        looped = (x for x in candidates if fills_in_loops(x))
        return next(looped, candidates[0])
    if len(candidates) == 1:
        return candidates[0]
    traced = [(candidate, _candidate_code(equation, candidate)) for candidate in candidates]
    cheapest, its_code = min(traced, key=lambda pair: pair[1].count.flops)
    if isinstance(cheapest.lowered, LoweredColumns):
        return cheapest
    return replace(cheapest, code=its_code)


# -- pass by pass --


@memoized_pass
def resolve(equation: Equation) -> dict[str, Normalizer]:
    """The rewrite rules of each result, with its inverses as polynomials where identities know
    them."""
    with limit_work(equation.budget):
        return {name: normalizer(e, proving=False) for name, e in equation.results.items()}


def rewrite(equation: Equation) -> tuple[list[Candidate], TooLarge | None]:
    """The forms of an equation. Forms that exceed their share of the budget are left out; the
    first such error is returned as well."""
    rules = resolve(equation)
    candidates, too_large = [], None
    with limit_work(equation.budget):
        for name in equation.forms:
            try:
                with share(0.6):
                    candidate = _rewrite_form(equation, name, rules)
            except TooLarge as error:
                too_large = too_large or error
            else:
                candidates += [] if candidate is None else [candidate]
    if VERIFY_PASSES:
        for candidate in candidates:
            for name, poly in candidate.polys.items():
                check_words(poly, equation.results[name])
    return candidates, too_large


def lower(equation: Equation, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates that can be computed by sweeps, with their sweeps."""
    lowered = ((candidate, _lower_candidate(equation, candidate)) for candidate in candidates)
    return [replace(candidate, lowered=it) for candidate, it in lowered if it is not None]


@lru_cache(maxsize=32)
def frame(model: Model, movable_inertia: bool) -> Tree:
    """The tree of a model in the axes that cost least. With `movable_inertia`, inertia that does
    not affect a joint is moved to its parent."""
    tree = frame_tree(model, movable_inertia)
    return tree if model.embedding is None else cluster_tree(tree)


def trace(program: Program, tree: Tree) -> Code:
    """The program run on tape scalars: once, or for a large robot once per class of links."""
    if program.stages and _stages_as_loops(tree.model):
        staged = trace_stage_loops(program, tree, UNROLL_LIMIT)
        if staged is not None:
            _verify(*(code for _, code, _ in staged.blocks))
            return staged
    if not (is_large(tree.model) and program.can_loop):
        return straight_code(program, tree)
    loops = trace_loops(program, tree)
    _verify(loops)
    return loops


# -- one candidate --


def _candidates(equation: Equation) -> list[Candidate]:
    """The candidates with sweeps; an error if there are none."""
    analytic = None
    if not is_large(equation.model) and any("gyro" in e.letters for e in equation.results.values()):
        analytic = coriolis_sweeps(equation)
    rewritten, too_large = rewrite(equation)
    candidates = lower(equation, _distinct(rewritten))
    if analytic is not None and rewritten:
        candidates.append(replace(rewritten[0], name=COMPOSITES, lowered=analytic))
    if equation.movable_inertia:
        candidates = [x for x in candidates if x.lowered.movable_inertia]
    # column by column only if there is no other way
    candidates = [x for x in candidates if not isinstance(x.lowered, LoweredColumns)] or candidates
    if candidates:
        return candidates
    if too_large is not None:
        raise too_large
    words = (word for x in rewritten for poly in x.polys.values() for word in poly)
    if any(len(word) > MAX_WORD_LENGTH for word in words):
        cause = f"a product has more than {MAX_WORD_LENGTH} letters"
        raise TooLarge(cause, "split it into shorter expressions")
    names = ", ".join(map(str, equation.results.values()))
    raise StateError(f"{names} cannot be computed by sweeps", "evaluate it with .dense(q)")


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """The first of the candidates with the same polynomials, term by term: their code is the
    same."""
    found: dict[object, Candidate] = {}
    for x in candidates:
        polys = tuple(
            (key, tuple(poly.items()))
            for group in (x.polys, x.slot_polys)
            for key, poly in group.items()
        )
        found.setdefault(polys, x)
    return list(found.values())


def _rewrite_form(equation: Equation, name: str, rules: dict[str, Normalizer]) -> Candidate | None:
    """One form: as written, with inverses resolved only; in normal form; or in normal form with
    body forces as one letter. None if there are no body forces."""
    polys, derivation = {}, None
    for result, e in equation.results.items():
        start = _insert_inverses(rules[result], rules[result].polynomial(e.term))
        if name == WRITTEN:
            polys[result] = start
            continue
        folded = fold(start) if name == WHOLE else start
        if name == WHOLE and folded == start:
            return None
        chain = Chain(e, folded, tuple(rewriting_steps(folded, rules[result].find)))
        polys[result], derivation = unfold(chain.result), Derivation(chain)
    return Candidate(name, polys, derivation, _slot_polys(equation, name, polys))


def _insert_inverses(rules: Normalizer, poly: Poly) -> Poly:
    """The polynomial with its inverses replaced, where identities know them."""

    def known(word: Word) -> tuple[int, Any] | None:
        return next(
            ((i, rules.resolved[x,]) for i, x in enumerate(word) if (x,) in rules.resolved), None
        )

    return reduce(poly, known)[0]


def _slot_polys(equation: Equation, name: str, polys: Mapping[str, Poly]) -> dict[Term, Poly]:
    """The polynomials of the vectors in slots of multilinear forms, recursively, in the
    same form."""
    found: dict[Term, Poly] = {}
    waiting = list(polys.values())
    while waiting:
        letters = {x for word in waiting.pop() for x in word if isinstance(x, FormLetter)}
        for term in {inner for x in letters for _, inner in x.filled} - set(found):
            found[term] = _slot_poly(equation, name, term)
            waiting.append(found[term])
    return found


def _slot_poly(equation: Equation, name: str, term: Term) -> Poly:
    """The polynomial of one such vector."""
    known = vars(equation).setdefault("memo", {}).setdefault("vectors", {})
    if term not in known:
        known[term] = normalizer(Expression(term, equation.model), proving=False)
    rules = known[term]
    start = _insert_inverses(rules, rules.polynomial(term))
    if name == WRITTEN:
        return start
    return unfold(reduce(fold(start) if name == WHOLE else start, rules.find)[0])


def _lower_candidate(
    equation: Equation, candidate: Candidate
) -> Lowered | LoweredMatrix | LoweredColumns | None:
    """The sweeps of a candidate; None if a letter has none."""
    polys: Mapping[str, Poly] = candidate.polys
    if equation.velocities:
        results = [Result(n, polys[n], _space(equation, n)) for n in equation.results]
        V, v = (equation.velocities[name].poly() for name in "Vv")
        return QuasiLowered(results, V=V, v=v, movable=equation.movable_inertia is not None)
    number = equation.is_number
    polys = {name: commute_scalars(poly) for name, poly in polys.items()}
    polys = {name: resolve_omega(poly) for name, poly in polys.items()}
    slot_polys = {term: resolve_omega(poly) for term, poly in candidate.slot_polys.items()}
    words = [word for poly in polys.values() for word in poly]
    used = {x for word in words for x in word[number:]} | {
        x.bare for word in words for x in word[:number]
    }
    used |= {x for poly in slot_polys.values() for word in poly for x in word}
    if not all(map(has_sweeps, used)) or any(len(word) > MAX_WORD_LENGTH for word in words):
        return None
    if any(U in word and (len(word) > 1 or not number) for word in words):
        return None  # a number among vectors
    if not equation.is_matrix:
        results = [Result(n, polys[n], _space(equation, n)) for n in equation.results]
        return Lowered(results, slot_polys=slot_polys)
    first = next(iter(equation.results.values()))
    rows, cols = first.rows.name, first.cols.name
    if "link" in (rows, cols):  # entries in link axes, which sweeps do not use
        return None
    lowered = LoweredMatrix(polys, (rows, cols), equation.model)
    by_columns = cols == "frame" and _columns_as_loops(equation)
    if lowered.complete and (lowered.can_loop or not by_columns):
        return lowered
    return (
        LoweredColumns(polys, rows, cols, slot_polys)
        if {rows, cols} <= {"joint", "frame"}
        else None
    )


def _space(equation: Equation, name: str) -> str:
    """The space of a vector; over links, "force" or "motion"."""
    rows = equation.results[name].rows.name
    if rows != "link":
        return rows
    found = ends(equation.results[name].term)
    return str(found.value(found.gives) or FORCE)


def _candidate_code(equation: Equation, candidate: Candidate) -> StraightCode:
    """The code of a candidate, to count it; of a matrix by columns, that of one column."""
    tree, lowered = frame(equation.model, candidate.lowered.movable_inertia), candidate.lowered
    make = lowered.column_program if isinstance(lowered, LoweredColumns) else lowered.program
    return straight_code(make(next(iter(equation.results)), tree, *equation.arguments()), tree)


def straight_code(program: Program, tree: Tree) -> StraightCode:
    """The program on one tape, verified if `VERIFY_PASSES`."""
    try:
        code = trace_tape(program, tree, CheckedRun) if VERIFY_PASSES else trace_tape(program, tree)
    except ZeroDivisionError as error:  # massless free bodies occur in closed chains only
        cause = f"{program.name} of {tree.model.name} divides by the inertia of a massless body"
        remedy = "give the body mass and inertia, or call the closed system that holds it"
        raise SingularError(cause, remedy) from error
    _verify(code)
    return code


def _verify(*codes: StraightCode | LinkLoops) -> None:
    for code in codes if VERIFY_PASSES else ():
        if isinstance(code, LinkLoops):
            check_loops(code)
        else:
            check_tape(
                code.tape,
                (node for *_, node in code.stores),
                [arg.size for arg in code.program.inputs],
            )


# -- properties of models and requests --


def is_large(model: Model) -> bool:
    """Whether the code has loops over links; then candidates are not compared."""
    return len(model.joints) > UNROLL_LIMIT and model.embedding is None


def fills_in_loops(candidate: Candidate) -> bool:
    """Whether loops over links fill a matrix at once; other matrices of large robots have columns
    of their own, or a tape."""
    lowered = candidate.lowered
    return isinstance(lowered, LoweredMatrix) and lowered.can_loop


def _stages_as_loops(model: Model) -> bool:
    """Whether the stages of a program are loops over links."""
    return is_large(model) and len(model.joints) > STAGE_UNROLL_LIMIT


def _columns_as_loops(equation: Equation) -> bool:
    """Whether columns of frames are computed in loops: for a large robot with few frames."""
    frames = equation.arguments()[1][0].shape[-1] // 6
    bodies = len(equation.model.joints)
    return _stages_as_loops(equation.model) and 4 * bodies >= UNROLL_LIMIT * frames


def needs_tables(request: CompileRequest) -> bool:
    """Whether the code reads tables that are not part of it; stages contain theirs."""
    return (is_large(request.model) and not getattr(request, "stages", ())) or (
        isinstance(request, Traceable) and request.has_loops
    )


def moves_inertia(request: CompileRequest) -> bool:
    """Whether inertia may move across joints in the tree of a request."""
    if isinstance(request, Equation):
        return choose(request).lowered.movable_inertia
    return bool(request.movable_inertia)
