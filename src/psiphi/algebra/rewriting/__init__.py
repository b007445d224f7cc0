"""Identities, completion, normal form and proof.

In: an `Expression`. Out: its normal form, or a `Derivation`. Read `identities.py` first.

    identities.py         The table of identities: axioms, inverses, equations of the papers
    rewrite_rules.py      Rules, sets of rules, and rewriting with them
    completion.py         Confluent rules from axioms (Knuth-Bendix)
    rule_sets.py          The rules for a robot and the letters of an expression
    known_inverses.py     The inverses in the table of identities
    normal_form.py        The normal form of an expression, with its derivation
    factored_steps.py     Steps on an expression before it is multiplied out
    body_force_letter.py  A letter for M phi* a + b, so that rewriting does not separate it
    scalar_words.py       Sorts scalar factors of words
    proof.py              `pp.prove`: equal normal forms, counter-examples
    proof_robots.py       Small robots on which claims about any robot are checked
    derivation.py         Derivations, and how they print
    work_budget.py        A limit on the work of rewriting
"""
