"""Exact operation counts: Tables 2 and 3 of S1 for the code psiphi generates, beside the papers' figures.

Comes in: nothing but the number of links. Goes out: formulas in N that hold exactly for every N > 2, by recursion.

Read `published_counts.py` first (what was published, as data), then `counts_by_recursion.py` (where the operations of a program go),
`count_formulas.py` (figures as formulas in N) and `count_tables.py`; `count_tables_text.py` prints. Arms are in `counted_arms.py`.
"""
