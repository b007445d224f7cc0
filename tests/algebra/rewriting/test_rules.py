"""The rules: confluent, terminating, proved from the axioms, true in numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import DualityConflict, product_ends
from psiphi.algebra.expressions.letters import LETTERS, frame_letter, letter
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.spaces import compatible
from psiphi.algebra.expressions.terms import (
    accumulate,
    add,
    adjoint_poly,
    letter_term,
    product,
    two_sided_product,
)
from psiphi.algebra.rewriting.completion import complete
from psiphi.algebra.rewriting.identities import (
    BIASES,
    CHAIN,
    CROSS_PRODUCTS,
    FACTORED,
    FIXED_MAPS,
    HALVES,
    IDENTITIES,
    MOTION,
    NAME,
    ROTORLESS,
    SINGLE,
    axioms,
    rows,
)
from psiphi.algebra.rewriting.known_inverses import inverse_rows
from psiphi.algebra.rewriting.normal_form import normal_form
from psiphi.algebra.rewriting.proof import prove
from psiphi.algebra.rewriting.rewrite_rules import Statement, term_order
from psiphi.algebra.rewriting.rule_sets import omega_rules, rules, rules_for
from tests.zoo import chain, random_tree

SYSTEMS = {
    "general": rules(True),
    "without rotors": rules(False),
    "chains": omega_rules(True, True, (frame_letter(["tool"]),)),
}
each_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def overlaps(a, b):
    return [n for n in range(1, min(len(a.lead), len(b.lead))) if a.lead[-n:] == b.lead[:n]]


@pytest.mark.parametrize("rotors", [True, False])
def test_every_critical_pair_agrees(rotors):
    system = rules(rotors)
    assert system.complete
    for a in system:
        for b in system:
            for n in overlaps(a, b):
                left, right = a.lead[:-n], b.lead[n:]
                assert system.reduce(two_sided_product((), a.rest, right)) == system.reduce(
                    two_sided_product(left, b.rest, ())
                ), (str(a), str(b))


@each_system
def test_rules_go_down_and_sides_are_reduced(system):
    for rule in system:
        assert all(term_order(word) < term_order(rule.lead) for word in rule.rest), str(rule)
        assert all(system.find(word) is None for word in rule.rest) or not system.complete
        assert [r for r in system if r is not rule and _inside(r.lead, rule.lead)] == []


def _inside(part, word):
    return any(word[i : i + len(part)] == part for i in range(len(word)))


@each_system
def test_every_rule_follows_from_axioms(system):
    """The proof of a rule, expanded down to the axioms, adds up to the rule: plain polynomial
    arithmetic."""
    known: dict = {}

    def proved(rule):
        if isinstance(rule, Statement):
            return rule.poly
        if id(rule) not in known:
            total = {}
            for use in rule.proof:
                accumulate(total, two_sided_product(use.left, proved(use.rule), use.right), use.c)
            known[id(rule)] = total
        return known[id(rule)]

    for rule in system:
        assert proved(rule) == rule.poly, str(rule)
        assert rule.axioms and rule.source


def test_the_set_is_small():
    assert (len(axioms()) + len(axioms(HALVES)), len(rules(True)), len(rules(False))) == (
        20,
        57,
        58,
    )


@pytest.mark.parametrize("rotors", [True, False])
def test_the_adjoint_of_a_rule_holds_too(rotors):
    system = rules(rotors)
    for rule in system:
        assert system.reduce(adjoint_poly(rule.poly)) == {}


def value(poly, s, q, v=None):
    """The matrix of a polynomial."""
    terms = [
        c * Expression(product(*map(letter_term, word or ("I",))), s.model)
        for word, c in poly.items()
    ]
    return sum(terms[1:], terms[0]).dense(q, v)


@pytest.mark.parametrize("armature", [True, False])
def test_axioms_and_rules_are_true(armature):
    s = Operators(random_tree(31, 6, armature=armature, branching=0.6))
    q = s.model.random(seed=0)
    true = [
        *axioms(),
        *axioms(HALVES),
        *(() if armature else axioms(ROTORLESS)),
        *rules_for(s.model),
    ]
    for row in true:
        gap = value(row.poly, s, q) if set(row.poly) != {()} else np.zeros(1)
        assert np.abs(gap).max() < 1e-8, str(row)


@pytest.mark.parametrize("needs", [MOTION, BIASES, CROSS_PRODUCTS])
def test_axioms_of_motion_are_true(needs):
    s = Operators(random_tree(31, 6, armature=True, branching=0.6))
    v = np.linspace(-1.0, 1.0, s.model.nv)
    for row in axioms(needs):
        lhs, rhs = (
            Expression(side.term, s.model).dense(s.model.random(seed=0), v) for side in row.sides
        )
        assert np.abs(lhs - rhs).max() < 1e-9 * (1.0 + np.abs(lhs).max()), str(row)


@pytest.mark.parametrize(
    ("needs", "kinds"), [(FIXED_MAPS, ["spherical", "planar"]), (SINGLE, ["helical", "prismatic"])]
)
def test_axioms_of_some_joints_are_true(needs, kinds):
    s = Operators(random_tree(31, 6, kinds=kinds))
    for row in axioms(needs):
        gap = value(row.poly, s, s.model.random(seed=0), np.linspace(-1.0, 1.0, s.model.nv))
        assert np.abs(gap).max() < 1e-12, str(row)


def test_axioms_of_chains_are_true():
    s = Operators(chain("chain", ["revolute", "universal", "prismatic", "helical"], 3, True))
    for row in [*axioms(CHAIN), *omega_rules(True, True, (frame_letter(["tool"]),))]:
        assert np.abs(value(row.poly, s, s.model.random(seed=0))).max() < 1e-7, str(row)


def test_lemmas_name_rules():
    """Each name is that of a rule, with rotors or without."""
    named = {rule.name for system in (rules(True), rules(False)) for rule in system}
    names = rows(NAME)
    assert {x.source for x in names} == named - {""}
    assert all(
        prove(x.lhs, x.rhs) or rules(False).reduce(add(x.lhs.poly(), x.rhs.poly(), -1)) == {}
        for x in names
    )


def test_no_row_stands_twice():
    """An equation with several uses is one row; a name and a statement may have their own words for
    it."""
    seen = [(*sorted((repr(x.lhs), repr(x.rhs))), x.source) for x in IDENTITIES]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("row", rows(FACTORED), ids=lambda row: str(row[0]))
def test_moves_are_identities(row):
    assert rules(True).reduce(add(row[0].poly(), row[1].poly(), -1)) == {}


@pytest.mark.parametrize("row", inverse_rows(), ids=lambda row: str(row[0]))
def test_inverses_are_inverses(row):
    X, Y, _ = row
    for p in ((X @ Y).poly(), (Y @ X).poly()):
        assert rules(True).reduce(p) == {(): 1}


def test_completion_gives_up_in_time():
    system = complete(axioms(CHAIN), rules(True), pairs=20)
    assert not system.complete


# random words: whatever rewriting makes of them has the same value
MODEL = random_tree(41, 5, branching=0.6, armature=True)
S = Operators(MODEL)
Q = MODEL.random(seed=3)
STARRED = sorted(
    {x for name in LETTERS if name not in ("I", "Om") for x in (letter(name), letter(name).T)}
)


@st.composite
def words(draw):
    """A legal product of up to eight letters."""
    word = [draw(st.sampled_from(STARRED))]
    for _ in range(draw(st.integers(0, 7))):
        word.append(draw(st.sampled_from([x for x in STARRED if _follows(word, x)])))
    return tuple(word)


def _follows(word, x):
    """Spaces fit, and forces meet forces."""
    try:
        return compatible(letter(word[-1]).cols, letter(x).rows) and bool(
            product_ends(map(letter_term, (*word, x)))
        )
    except DualityConflict:
        return False


@given(words())
def test_rewriting_keeps_the_value(word):
    e = Expression(product(*map(letter_term, word)), MODEL)
    p, derivation = normal_form(e)
    system = rules_for(MODEL, e.letters, proving=True)
    assert all(system.find(left) is None for left in p)
    v = np.linspace(-1.0, 1.0, MODEL.nv)
    dense = e.dense(Q, v)
    rewritten = value(p, S, Q, v) if p else 0.0 * dense
    assert np.abs(dense - rewritten).max() <= 1e-6 * (
        1.0 + np.abs(dense).max() + np.abs(rewritten).max()
    ), str(e)
    assert normal_form(e.T)[0] == system.reduce(adjoint_poly(p))
    for step in derivation.left.steps:
        assert step.word[step.position : step.position + len(step.rule.lead)] == step.rule.lead


def test_coefficients_are_exact():
    p, _ = normal_form(S.phi @ S.E_phi / 3 - 0.5 * S.psi)
    assert p == {("phi",): Fraction(1, 3), (): Fraction(-1, 3), ("psi",): Fraction(-1, 2)}
