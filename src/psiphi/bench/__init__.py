"""`psiphi bench`: psiphi beside Pinocchio and MuJoCo, one run, one table, every target with its figure.

Comes in: nothing but `--quick`, `--only NAME`, `--json FILE`. Goes out: a table, and JSON that benchmarks/ keeps.
Read `rows.py` first (the table as data), then `speed.py`, `gradients.py` and `checks.py` (what a row measures); `peers/` are
the peers behind psiphi's conventions, `fresh.py` measures in processes of their own.
"""

from psiphi.bench.run import main

__all__ = ["main"]
