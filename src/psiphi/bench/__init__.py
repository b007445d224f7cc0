"""`psiphi bench`: psiphi beside Pinocchio and MuJoCo, one run, one table, every target with its figure.

Comes in: nothing but `--quick`, `--only NAME`, `--json FILE`. Goes out: a table, and JSON that benchmarks/ keeps.
Read `rows.py` first (the table as data), then `row.py` (what a row is) and `speed.py` (one that measures). The rest:

    run.py, report.py                   the command, and what it prints
    gradients.py, inputs.py, large.py   run time of derivatives, of robots whose numbers are inputs, of long chains
    motion.py, closed.py, diagonal.py   motions in time, closed chains, diagonalised dynamics
    correctness.py, agreement.py, counts.py   being right beside the peers, function by function; exact operation counts
    starts.py, fresh.py, timing.py      what a start costs; processes of their own; the least of many samples
    example_robots.py, cells.py, interpreted.py   what is measured: robots, closed systems, and both without a compiler
    peers/                              Pinocchio and MuJoCo behind psiphi's conventions
"""

from psiphi.bench.run import main

__all__ = ["main"]
