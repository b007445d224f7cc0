"""The completed rules for a robot: general, without rotors, for chains. They are cached."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import A_LOCAL, B_LOCAL, A, B, FrameLetter, Letter
from psiphi.algebra.expressions.operators import (
    has_constant_maps,
    has_rotors,
    has_single_joints,
    is_chain,
)
from psiphi.algebra.expressions.terms import Poly, add, adjoint_poly, letter_term, scale_poly
from psiphi.algebra.rewriting.completion import complete
from psiphi.algebra.rewriting.identities import (
    BIASES,
    CHAIN,
    CROSS_PRODUCTS,
    FIXED_MAPS,
    HALVES,
    MOTION,
    NAME,
    ROTORLESS,
    SINGLE,
    at_frame,
    axioms,
    rows,
)
from psiphi.algebra.rewriting.rewrite_rules import Rule, Rules
from psiphi.algebra.rewriting.work_budget import unlimited
from psiphi.model.model import Model

_static_letters = {
    x.bare for row in (*axioms(), *axioms(HALVES)) for word in row.poly for x in word
}
MOTION_LETTERS = {
    x.bare for row in axioms(MOTION) for word in row.poly for x in word if type(x) is Letter
} - _static_letters
CROSS_LETTERS = {"spin", "gyro"}  # cross products with link velocities
CROSS_PAIRS = 60  # completion of these rules does not terminate
CHAIN_PAIRS = 150  # nor of those of Ω; these pairs suffice for the identities of the papers


@lru_cache
def _paper_names() -> list[tuple[Poly, str]]:
    named = [(add(x.lhs.poly(), x.rhs.poly(), -1), x.source) for x in rows(NAME)]
    return [(q, name) for p, name in named for q in (p, adjoint_poly(p))]


def name_of(rule: Rule) -> str:
    """The name of a rule in the papers, or ""."""
    return next(
        (
            name
            for q, name in _paper_names()
            if rule.lead in q and scale_poly(q, 1 / q[rule.lead]) == rule.poly
        ),
        "",
    )


@lru_cache
def rules(rotors: bool = True) -> Rules:
    """The confluent rules, with or without rotor inertia."""
    with unlimited():
        system = (
            complete(axioms(HALVES), complete(axioms()))
            if rotors
            else complete(axioms(ROTORLESS), rules(True))
        )
    return Rules(tuple(replace(rule, name=name_of(rule)) for rule in system), system.complete)


@lru_cache
def omega_rules(rotors: bool, chain: bool, frames: tuple[FrameLetter, ...]) -> Rules:
    """`rules` and rules of Ω: its recursion on a chain, its value at single frames."""
    system = rules(rotors)
    with unlimited():
        if chain:
            system = complete(axioms(CHAIN), system, CHAIN_PAIRS)
        return complete([at_frame(Expression(letter_term(B))) for B in frames], system, CHAIN_PAIRS)


@lru_cache
def bias_rules(rotors: bool) -> Rules:
    """`rules` and the equality of body forces with the two conventions for bias vectors."""
    with unlimited():
        return complete(axioms(BIASES), rules(rotors), CHAIN_PAIRS)


@lru_cache
def motion_rules(rotors: bool, fixed: bool = False, single: bool = False) -> Rules:
    """`rules` and rules of Ṗ, which prove the time derivatives of proved identities.

    `fixed`: H is constant in body axes; `single`: every joint has one coordinate.
    """
    with unlimited():
        if single:
            return complete(axioms(SINGLE), motion_rules(rotors, fixed))
        return (
            complete(axioms(FIXED_MAPS), motion_rules(rotors))
            if fixed
            else complete(axioms(MOTION), rules(rotors))
        )


@lru_cache
def cross_product_rules(rotors: bool, fixed: bool = False, single: bool = False) -> Rules:
    """`motion_rules` and rules of cross products with link velocities; for proofs."""
    with unlimited():
        return complete(axioms(CROSS_PRODUCTS), motion_rules(rotors, fixed, single), CROSS_PAIRS)


def rules_for(
    model: Model | None, letters: frozenset[Letter] = frozenset(), proving: bool = False
) -> Rules:
    """The rules for a robot (None: for any) that the letters of an expression need."""
    rotors, chain = (True, False) if model is None else (has_rotors(model), is_chain(model))
    known = (
        cross_product_rules
        if proving and CROSS_LETTERS & {x.bare for x in letters}
        else motion_rules
    )
    if known is cross_product_rules or MOTION_LETTERS & {x.bare for x in letters}:
        if model is None or not model.joints:
            return known(rotors, False, False)
        return known(rotors, has_constant_maps(model), has_single_joints(model))
    if {A, B} & letters and {A_LOCAL, B_LOCAL} & letters:
        return bias_rules(rotors)
    if "Om" not in letters:
        return rules(rotors)
    singles = {
        x.plain for x in letters if isinstance(x, FrameLetter) and not x.rate and len(x.frames) == 1
    }
    return omega_rules(rotors, chain, tuple(sorted(singles)))
