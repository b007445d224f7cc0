"""Proof and rewriting: axioms as data, completed to rules; normal forms, derivations, counter-examples.

Comes in: an `Expression`. Goes out: its normal form (a polynomial) and the `Derivation`, or a proof that two are equal.

Read `book.py` first (the mathematics: every equation is a row, with what it is used for), then `completion.py` (axioms to
rules, `rules.py`; `systems.py` keeps them for each sort of robot) and `normal.py` (rules to normal forms; `inverses.py` finds
those the book knows). Beside them

    moves.py, folding.py         what makes derivations short, and keeps body forces whole
    budget.py, scalars.py        how much work it may be; what numbers may do
    proof.py, derivation.py      the door, and what it answers; specimens.py has small robots to try claims on

Statements about blocks, φ(k,j) = φ(k,i) φ(i,j) and sums along the path, are proved by `induction.py`: blocks of expressions
become blocks of letters (`unfolding.py`), these a normal form (`blockwise.py`).

The sources that rules and steps name:
    S0  Rodriguez, Kreutz: Recursive mass matrix factorization and inversion, JPL 88-11, 1988, part I (open chains)
    S1  Kozłowski: Robot dynamics models in terms of generalized and quasi-coordinates
    S2  Rodriguez: Kalman filtering, smoothing and recursive robot arm forward and inverse dynamics, JPL 86-48, 1986
    S3  Rodriguez, Jain, Kreutz-Delgado: A spatial operator algebra for manipulator modeling and control
    S4  the second part of S0 (closed chains)
"""

from psiphi.operators.terms import Poly, Word
from psiphi.rewriting.completion import complete
from psiphi.rewriting.derivation import Counterexample, Derivation
from psiphi.rewriting.induction import BlockProof
from psiphi.rewriting.normal import normal_form
from psiphi.rewriting.proof import prove
from psiphi.rewriting.rules import Axiom, Rewriting, Rule, Rules
from psiphi.rewriting.systems import rules_for

__all__ = [
    "prove",
    "normal_form",
    "Derivation",
    "BlockProof",
    "Counterexample",
    "Rewriting",
    "Rule",
    "Rules",
    "rules_for",
    "complete",
    "Axiom",
    "Poly",
    "Word",
]
