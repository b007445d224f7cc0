"""The compiler, on one page: from an equation to code that runs.

    write      named results, each an expression of one robot        `equations.py`
    resolve    inverses, by the identities that know them            rewriting
    rewrite    the same value in up to three forms                   rewriting
    lower      each form as sweeps over the tree                     lowering
    frame      the tree, in the axes that cost least                 sweeps
    trace      the sweeps, run once on a tape                        sweeps, tape
    choose     the form that costs least, counted exactly
    emit       the tape as the text of a target                      emitters
    load       its machine code, from the cache or made now          emitters, runtime

What is no equation (places, the circuits of closed chains) is written as sweeps already, and begins with `frame`. What a pass
made of an equation is kept as long as the equation: `explain()` (`explanation.py`) tells it pass by pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any

from psiphi._util.errors import SingularError, StateError
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import FORCE, FormLetter
from psiphi.algebra.expressions.terms import Poly, Term
from psiphi.algebra.expressions.type_checks import check_words
from psiphi.algebra.rewriting.body_force_letter import fold, unfold
from psiphi.algebra.rewriting.derivation import Chain, Derivation
from psiphi.algebra.rewriting.normal_form import Normalizer, normalizer
from psiphi.algebra.rewriting.rewrite_rules import reduce, walk
from psiphi.algebra.rewriting.scalar_words import commuted
from psiphi.algebra.rewriting.work_budget import TooLarge, budget, share
from psiphi.compiler.autodiff.analytic_rules import coriolis
from psiphi.compiler.axes.cluster_axes import clustered
from psiphi.compiler.axes.link_axes import Tree, frame_tree
from psiphi.compiler.equations import WHOLE, WRITTEN, Equation, unmade
from psiphi.compiler.lower.column_sweeps import LoweredColumns
from psiphi.compiler.lower.horner_graph import U
from psiphi.compiler.lower.matrix_sweeps import LoweredMatrix
from psiphi.compiler.lower.node_value import has_sweeps
from psiphi.compiler.lower.omega_sides import sided
from psiphi.compiler.lower.quasi_velocity_sweeps import QuasiLowered
from psiphi.compiler.lower.vector_sweeps import Lowered, Result
from psiphi.compiler.sweeps.link_loops import LinkLoops, roll
from psiphi.compiler.sweeps.program_checks import CheckedRun, check_loops
from psiphi.compiler.sweeps.stage_loops import StagedCode, roll_stages
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode, unroll
from psiphi.compiler.tape.tape_checks import check_tape
from psiphi.model.model import Model

UNROLLED = 64  # up to so many bodies are written out as straight-line code,
IN_LINES = (
    256  # and up to so many those in stages: loops share nothing between stages, straight lines do
)
CHECKED = False  # whether what passes hand on is looked at; tests say so
COMPOSITES = "by composites"  # the form of the Coriolis matrix
LONG = 200  # letters of a word beyond which it is not factored

Code = StraightCode | LinkLoops | StagedCode


class Traceable:
    """What is asked as code that stands ready: `ready()` is a tape, loops (then `rolled`), or the `emitters.rollout.Single`
    that joins several."""

    rolled = False
    rods, columns = (
        True,
        "",
    )  # whose values are the same wherever inertia stands; and no operator's columns

    def ready(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return unmade(self)


@dataclass(frozen=True)
class Candidate:
    """One way to compute an equation: its polynomials and how they came about; once lowered, its sweeps."""

    name: str
    polys: Mapping[str, Poly]
    derivation: Derivation | None = None
    made_of: Mapping[Term, Poly] = field(
        default_factory=dict
    )  # the vectors that letters are made of, rewritten likewise
    lowered: Any = None  # Lowered, LoweredMatrix or LoweredColumns
    code: Code | None = None  # traced, where forms were counted against each other


def kept(a_pass: Callable) -> Callable:
    """A pass that is done once for all that is asked: what it made stands in `asked.made`, and goes with it."""

    @wraps(a_pass)
    def once(asked: Any) -> Any:
        made = vars(asked).setdefault("made", {})
        if a_pass.__name__ not in made:
            made[a_pass.__name__] = a_pass(asked)
        return made[a_pass.__name__]

    return once


# -- the page -----------------------------------------------------------------------------------------------------------------


@kept
def code(asked: Any) -> Code:
    """Straight-line code, or the loops of a large robot; or code that stands ready."""
    if isinstance(asked, Traceable):
        return asked.ready()
    if isinstance(asked, Equation) and (chosen := choose(asked)).code is not None:
        return chosen.code
    tree = framed(asked)
    return trace(program(asked, tree), tree)


def framed(asked: Any) -> Tree:
    """The tree that what is asked runs on: places of bodies need no joint, and no cluster of them."""
    tree = frame(asked.model, moves_inertia(asked))
    return tree.open if getattr(asked, "by_body", False) else tree


def program(asked: Any, tree: Tree) -> Program:
    """The sweeps over a framed tree."""
    if not isinstance(asked, Equation):
        return asked.program(tree)
    return choose(asked).lowered.program(next(iter(asked.results)), tree, *asked.arguments())


@kept
def choose(equation: Equation) -> Candidate:
    """The cheapest form that has sweeps; of a large robot, the first one. What was traced to be counted is kept."""
    gyrates = not is_large(equation.model) and any(
        "gyro" in e.letters for e in equation.results.values()
    )
    own = coriolis(equation) if gyrates else None
    rewritten, too_large = rewrite(equation)
    forms = lower(equation, rewritten)
    if own is not None and rewritten:
        forms.append(replace(rewritten[0], name=COMPOSITES, lowered=own))
    if equation.rods:
        forms = [form for form in forms if form.lowered.rods]
    forms = [form for form in forms if not isinstance(form.lowered, LoweredColumns)] or forms
    if not forms and too_large is not None:
        raise too_large
    if not forms and any(
        len(word) > LONG for form in rewritten for poly in form.polys.values() for word in poly
    ):
        raise TooLarge(f"a product has more than {LONG} letters", "write it shorter")
    if not forms:
        names = ", ".join(map(str, equation.results.values()))
        raise StateError(f"{names}: no form of it is made of sweeps", "evaluate it with .dense(q)")
    if len(forms) == 1 or is_large(equation.model):
        return forms[0]
    traced = [_counted(equation, form) for form in forms]
    form, counted = min(traced, key=lambda pair: pair[1].count.flops)
    return form if isinstance(form.lowered, LoweredColumns) else replace(form, code=counted)


# -- pass by pass -------------------------------------------------------------------------------------------------------------


@kept
def resolve(equation: Equation) -> dict[str, Normalizer]:
    """For every result the rules that rewrite it, in which its inverses are polynomials where an identity knows them."""
    with budget(equation.budget):
        return {name: normalizer(e, proving=False) for name, e in equation.results.items()}


def rewrite(equation: Equation) -> tuple[list[Candidate], TooLarge | None]:
    """The forms, each within its share of the budget, and why another was given up."""
    rules = resolve(equation)
    found, too_large = [], None
    with budget(equation.budget):
        for name in equation.forms:
            try:
                with share(0.6):
                    form = _rewritten(equation, name, rules)
            except TooLarge as error:
                too_large = too_large or error
            else:
                found += [] if form is None else [form]
    if CHECKED:
        for form in found:
            for name, poly in form.polys.items():
                check_words(poly, equation.results[name])
    return found, too_large


def lower(equation: Equation, forms: list[Candidate]) -> list[Candidate]:
    """The forms that are made of sweeps."""
    lowered = ((form, _sweeps(equation, form)) for form in forms)
    return [replace(form, lowered=sweeps) for form, sweeps in lowered if sweeps is not None]


@lru_cache(maxsize=32)
def frame(model: Model, rods: bool) -> Tree:
    """The model in the axes that cost least, with inertia moved across joints where the results do not feel it."""
    tree = frame_tree(model, rods)
    return tree if model.embedding is None else clustered(tree)


def trace(sweeps: Program, tree: Tree) -> Code:
    """The program run once on tape scalars; of a large robot, once for every class of links."""
    if (
        sweeps.stages
        and _is_long(tree.model)
        and (staged := roll_stages(sweeps, tree, UNROLLED)) is not None
    ):
        _check(*(code for _, code, _ in staged.blocks))
        return staged
    if not (is_large(tree.model) and sweeps.local):
        return unrolled(sweeps, tree)
    loops = roll(sweeps, tree)
    _check(loops)
    return loops


def unrolled(sweeps: Program, tree: Tree) -> StraightCode:
    """Straight-line code; where passes are checked, each step and the tape it leaves."""
    try:
        lines = unroll(sweeps, tree, CheckedRun) if CHECKED else unroll(sweeps, tree)
    except (
        ZeroDivisionError
    ) as error:  # bodies without inertia fly in forests of closed chains alone
        cause = f"{sweeps.name} of {tree.model.name} divides by the inertia of a body that has none"
        raise SingularError(
            cause, "ask the closed system that holds it, or give it mass and inertia"
        ) from error
    _check(lines)
    return lines


def _check(*made: StraightCode | LinkLoops) -> None:
    """What a pass hands on, where it is looked at."""
    for code in made if CHECKED else ():
        if isinstance(code, LinkLoops):
            check_loops(code)
        else:
            check_tape(
                code.tape,
                (node for *_, node in code.stores),
                [arg.size for arg in code.program.inputs],
            )


# -- what the passes ask ------------------------------------------------------------------------------------------------------


def is_large(model: Model) -> bool:
    """Whether code is loops over links: straight lines would be too many, and forms are not counted against each other."""
    return len(model.joints) > UNROLLED and model.embedding is None


def _has_long_arms(equation: Equation) -> bool:
    """Whether columns of frames are better loops over links than straight lines: a robot is large, and frames on it are few."""
    frames = equation.arguments()[1][0].shape[-1] // 6
    return _is_long(equation.model) and 4 * len(equation.model.joints) >= UNROLLED * frames


def _is_long(model: Model) -> bool:
    """Whether stages are loops over links."""
    return is_large(model) and len(model.joints) > IN_LINES


def in_loops(asked: Any) -> bool:
    """Whether the code may need tables beside it; stages have theirs in it."""
    return (is_large(asked.model) and not getattr(asked, "stages", ())) or (
        isinstance(asked, Traceable) and asked.rolled
    )


def moves_inertia(asked: Any) -> bool:
    """Whether the tree may be framed with inertia moved across joints."""
    return choose(asked).lowered.rods if isinstance(asked, Equation) else asked.rods


def _rewritten(equation: Equation, name: str, rules: dict[str, Normalizer]) -> Candidate | None:
    """One form: inverses resolved and no more, or all rules applied until none fits; with body forces whole, or not."""
    polys, derivation = {}, None
    for result, e in equation.results.items():
        start = _with_inverses(rules[result], rules[result].polynomial(e.term))
        if name == WRITTEN:
            polys[result] = start
            continue
        folded = fold(start) if name == WHOLE else start
        if name == WHOLE and folded == start:
            return None  # there is no body force to keep whole
        chain = Chain(e, folded, tuple(walk(folded, rules[result].find)))
        polys[result], derivation = unfold(chain.result), Derivation(chain)
    return Candidate(name, polys, derivation, _made_of(equation, name, polys))


def _made_of(equation: Equation, name: str, polys: Mapping[str, Poly]) -> dict[Term, Poly]:
    """The vectors that the letters of some polynomials are made of, and those in turn, in the same form."""
    found: dict[Term, Poly] = {}
    waiting = list(polys.values())
    while waiting:
        letters = {x for word in waiting.pop() for x in word if isinstance(x, FormLetter)}
        for term in {inner for x in letters for _, inner in x.filled} - set(found):
            found[term] = _vector(equation, name, term)
            waiting.append(found[term])
    return found


def _vector(equation: Equation, name: str, term: Term) -> Poly:
    """One of them: as it is written, or rewritten, with its body forces whole where that form keeps them so."""
    known = vars(equation).setdefault("made", {}).setdefault("vectors", {})
    if term not in known:
        known[term] = normalizer(Expression(term, equation.model), proving=False)
    rules = known[term]
    start = _with_inverses(rules, rules.polynomial(term))
    if name == WRITTEN:
        return start
    return unfold(reduce(fold(start) if name == WHOLE else start, rules.find)[0])


def _counted(equation: Equation, form: Candidate) -> tuple[Candidate, Code]:
    """A form and its trace; of a matrix by columns, that of one column."""
    tree, lowered = frame(equation.model, form.lowered.rods), form.lowered
    make = lowered.column if isinstance(lowered, LoweredColumns) else lowered.program
    return form, unrolled(make(next(iter(equation.results)), tree, *equation.arguments()), tree)


def _with_inverses(rules: Normalizer, poly: Poly) -> Poly:
    """Inverses that an identity knows, written out."""

    def known(word):
        return next(
            ((i, rules.resolved[x,]) for i, x in enumerate(word) if (x,) in rules.resolved), None
        )

    return reduce(poly, known)[0]


def _sweeps(equation: Equation, form: Candidate) -> Any:
    """The sweeps of a form; None where a letter has none."""
    polys: Mapping[str, Poly] = form.polys
    if equation.velocities:
        results = [Result(n, polys[n], _space(equation, n)) for n in equation.results]
        V, v = (equation.velocities[name].poly() for name in "Vv")
        return QuasiLowered(results, V=V, v=v, movable=equation.rods is not None)
    number = equation.is_number
    polys = {name: commuted(poly) for name, poly in polys.items()}
    polys = {name: sided(poly) for name, poly in polys.items()}
    made_of = {term: sided(poly) for term, poly in form.made_of.items()}
    words = [word for poly in polys.values() for word in poly]
    used = {x for word in words for x in word[number:]} | {
        x.bare for word in words for x in word[:number]
    }
    used |= {x for poly in made_of.values() for word in poly for x in word}
    if not all(map(has_sweeps, used)) or any(len(word) > LONG for word in words):
        return None
    if any(U in word and (len(word) > 1 or not number) for word in words):
        return None  # a number among vectors
    if not equation.is_matrix:
        return Lowered(
            [Result(n, polys[n], _space(equation, n)) for n in equation.results], made_of=made_of
        )
    first = next(iter(equation.results.values()))
    rows, cols = first.rows.name, first.cols.name
    if "link" in (rows, cols):  # entries in link axes, which sweeps do not keep
        return None
    lowered = LoweredMatrix(polys, (rows, cols))
    loops = lowered.is_whole or lowered.only_places
    if lowered.complete and (loops or not (cols == "frame" and _has_long_arms(equation))):
        return lowered
    return (
        LoweredColumns(polys, rows, cols, made_of) if {rows, cols} <= {"joint", "frame"} else None
    )


def _space(equation: Equation, name: str) -> str:
    """The space of a vector; over links, whether it is of forces or motions."""
    rows = equation.results[name].rows.name
    if rows != "link":
        return rows
    found = ends(equation.results[name].term)
    return str(found.value(found.gives) or FORCE)
