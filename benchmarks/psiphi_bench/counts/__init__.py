"""Exact operation counts: Tables 2 and 3 of S1 for the code of psiphi and for the papers.

In: numbers of links. Out: formulas in N that hold exactly for every N > 2, for each recursion. Read
`published_counts.py` first.

    published_counts.py       published counts, as data
    counts_by_recursion.py    assigns each operation of a program to a recursion
    count_formulas.py         counts as formulas in N
    counted_arms.py           the arms
    count_tables.py           the tables
    count_tables_text.py      the tables as text and Markdown
"""
