"""The completed rules for a robot: general, without rotors, on chains. Made once and kept."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from psiphi.model.model import Model
from psiphi.operators import Expression, has_rotors, is_chain
from psiphi.operators.letters import A_LOCAL, B_LOCAL, A, B, FrameLetter, Letter
from psiphi.operators.terms import of_letter
from psiphi.rewriting.axioms import AXIOMS, BIASES, FIXED_MAPS, HALVES, IN_MOTION, ON_CHAINS, SINGLE, WITHOUT_ROTORS, at_frame
from psiphi.rewriting.budget import unlimited
from psiphi.rewriting.completion import complete
from psiphi.rewriting.lemmas import name_of
from psiphi.rewriting.rules import Rules

_still = {x.bare for row in (*AXIOMS, *HALVES) for word in row.poly for x in word}
MOVING = {x.bare for row in IN_MOTION for word in row.poly for x in word if type(x) is Letter} - _still  # what moves
CHAIN_PAIRS = 150  # Ω's rules do not end; these prove what the papers say of it


@lru_cache
def rules(rotors: bool = True) -> Rules:
    """The confluent rules, with rotor inertia or without."""
    with unlimited():
        system = complete(HALVES, complete(AXIOMS)) if rotors else complete(WITHOUT_ROTORS, rules(True))
    return Rules(tuple(replace(rule, name=name_of(rule)) for rule in system), system.complete)


@lru_cache
def omega_rules(rotors: bool, chain: bool, frames: tuple[FrameLetter, ...]) -> Rules:
    """`rules`, and what is known of Ω: its recursion on a chain, its value at single frames."""
    system = rules(rotors)
    with unlimited():
        if chain:
            system = complete(ON_CHAINS, system, CHAIN_PAIRS)
        return complete([at_frame(Expression(of_letter(B))) for B in frames], system, CHAIN_PAIRS)


@lru_cache
def bias_rules(rotors: bool) -> Rules:
    """`rules`, and that the two conventions for bias vectors make the same body forces."""
    with unlimited():
        return complete(BIASES, rules(rotors), CHAIN_PAIRS)


@lru_cache
def moving_rules(rotors: bool, fixed: bool = False, single: bool = False) -> Rules:
    """`rules`, and what is known of P's derivative in time: enough to prove what differentiating a proved identity gives.

    `fixed`: no joint map changes in body axes; `single`: every joint has one coordinate.
    """
    with unlimited():
        if single:
            return complete(SINGLE, moving_rules(rotors, fixed))
        return complete(FIXED_MAPS, moving_rules(rotors)) if fixed else complete(IN_MOTION, rules(rotors))


def rules_for(model: Model | None, letters: frozenset[Letter] = frozenset()) -> Rules:
    """The rules that hold for this robot (any robot: None), as far as the letters of an expression need them."""
    rotors, chain = (True, False) if model is None else (has_rotors(model), is_chain(model))
    if MOVING & {x.bare for x in letters}:
        rows = [] if model is None else [joint.row for joint in model.joints]
        fixed, single = (bool(rows) and all(test) for test in ([r.Hdot is None for r in rows], [r.nv == 1 for r in rows]))
        return moving_rules(rotors, fixed, single)
    if {A, B} & letters and {A_LOCAL, B_LOCAL} & letters:
        return bias_rules(rotors)
    if "Om" not in letters:
        return rules(rotors)
    singles = {x.of for x in letters if isinstance(x, FrameLetter) and not x.rate and len(x.frames) == 1}
    return omega_rules(rotors, chain, tuple(sorted(singles)))
