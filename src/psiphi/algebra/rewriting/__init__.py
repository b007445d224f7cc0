"""Identities, completion, normal form and proof.

In: an `Expression`. Out: its normal form, or a `Derivation`. Read `identities.py` first.

    body_force_letter.py  Body forces kept whole
    completion.py         Completion
    derivation.py         A derivation
    factored_steps.py     Moves
    identities.py         The book
    known_inverses.py     Inverses the book knows
    normal_form.py        The normal form of an expression
    proof.py              Proof
    proof_robots.py       Small robots on which claims are tried that are made of any robot
    rewrite_rules.py      Rules
    rule_sets.py          The completed rules for a robot
    scalar_words.py       Scalars
    work_budget.py        A budget for rewriting
"""
