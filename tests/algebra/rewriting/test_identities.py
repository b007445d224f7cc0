"""Every identity of the papers: proved from the axioms, and true in numbers; every misprint refuted
by a counter-example."""

import math

import numpy as np
import pytest

from psiphi.algebra.expressions.operator_properties import random_values
from psiphi.algebra.expressions.operators import Operators, is_chain
from psiphi.algebra.rewriting.identities import CHAIN, MISPRINT, ROTORLESS, STATED, rows
from psiphi.algebra.rewriting.normal_form import normal_form
from psiphi.algebra.rewriting.proof import find_counterexample, prove
from psiphi.algebra.rewriting.rule_sets import rules, rules_for
from psiphi.algebra.rewriting.work_budget import limit_work
from tests.zoo import chain, random_tree

PLAIN = Operators(random_tree(21, 7, branching=0.7, forest=True))
ROTORS = Operators(random_tree(22, 6, branching=0.7, armature=True))
CHAINS = [
    Operators(chain("chain", ["revolute", "spherical", "prismatic", "universal"], 1, armature))
    for armature in (False, True)
]
HINGES = Operators(random_tree(5, 7, kinds=["revolute", "helical", "prismatic"], branching=1.0))


def identities(s: Operators) -> list:
    """What the papers state of all robots, or of those without rotors."""
    return [*rows(STATED, "", s.model), *rows(STATED, ROTORLESS, s.model)]


def label(row):
    return f"{row.source}: {row.lhs} = {row.rhs}"


@pytest.mark.parametrize("row", identities(PLAIN), ids=label)
def test_identity(row):
    proof = prove(row.lhs, row.rhs)
    assert proof, str(proof)
    assert proof.left.result == proof.right.result
    assert find_counterexample(row.lhs, row.rhs) is None


@pytest.mark.parametrize("row", identities(ROTORS), ids=label)
def test_identity_with_rotors(row):
    proof = prove(row.lhs, row.rhs)
    assert bool(proof) is (row.needs != ROTORLESS), str(proof)
    assert (proof.counterexample is not None) is (row.needs == ROTORLESS)
    assert proof.counterexample or find_counterexample(row.lhs, row.rhs) is None


@pytest.mark.parametrize("s", [*CHAINS, HINGES], ids=["chain", "chain with rotors", "tree"])
def test_omega_on_chains(s):
    for row in rows(STATED, CHAIN, s.model):
        proof = prove(row.lhs, row.rhs)
        assert bool(proof) is (proof.counterexample is None) is is_chain(s.model), label(row)


@pytest.mark.parametrize("row", rows(MISPRINT, None, HINGES.model), ids=label)
def test_misprint(row):
    proof = prove(row.lhs, row.rhs)
    assert not proof and proof.counterexample is not None
    found = proof.counterexample
    own = {
        side: {
            k: x
            for k, x in found.values.items()
            if k in random_values(side, np.random.default_rng(0))
        }
        for side in row[:2]
    }
    left, right = (side.dense(found.q, **own[side])[found.place] for side in row[:2])
    assert (left, right) == (found.left, found.right) and abs(left - right) > 1e-7


def test_all_of_it_takes_little_work():
    rules.cache_clear()
    with limit_work(2.0):
        assert all(prove(row.lhs, row.rhs, budget=math.inf) for row in identities(PLAIN))


def test_words_are_proved_for_any_robot():
    s = Operators()
    assert all(prove(row.lhs, row.rhs) for row in identities(s) if row.needs == "")
    assert not prove(s.H @ s.G, s.I)  # rotors are possible


def test_normal_forms_are_shared():
    """Equal expressions have one normal form, whatever side of the identity they came from: by the
    rules of both."""
    for row in identities(PLAIN):
        both = rules_for(PLAIN.model, row.lhs.letters | row.rhs.letters, proving=True)
        assert normal_form(row.lhs, both)[0] == normal_form(row.rhs, both)[0], label(row)
