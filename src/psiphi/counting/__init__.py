"""Exact operation counts: Tables 2 and 3 of S1 for the code psiphi generates, beside the papers' figures.

Comes in: nothing but the number of links. Goes out: formulas in N that hold exactly for every N > 2, by recursion.

Read `papers.py` first (what was published, as data), then `recursions.py` (where the operations of a program go),
`formulas.py` (figures as formulas in N) and `tables.py`; `printed_tables.py` prints. Arms are in `arms.py`.
"""

from psiphi.counting.formulas import Formula, fitted
from psiphi.counting.printed_tables import markdown, report
from psiphi.counting.recursions import by_recursion
from psiphi.counting.tables import table_2, table_3

__all__ = ["Formula", "by_recursion", "fitted", "markdown", "report", "table_2", "table_3"]
