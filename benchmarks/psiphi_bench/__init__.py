"""`psiphi bench`: psiphi beside Pinocchio and MuJoCo, one run, one table, every target with its figure.

Comes in: nothing but `--quick`, `--only NAME`, `--json FILE`. Goes out: a table, and JSON that benchmarks/ keeps.
Read `rows.py` first (the table as data), then `row.py` (what a row is) and `run_time.py` (one that measures). The rest:

    run.py, report.py                   the command, and what it prints
    gradients.py, parameter_inputs.py, long_chains.py   run time of derivatives, of robots whose numbers are inputs, of long chains
    motions.py, closed_chains.py, diagonal_form.py   motions in time, closed chains, diagonalised dynamics
    correctness.py, agreement.py, operation_counts.py   being right beside the peers, function by function; exact operation counts
    fresh_process.py, best_of.py                 what a start costs, in processes of their own; the least of many samples
    example_robots.py, closed_cells.py, interpreted_robot.py   what is measured: robots, closed systems, and both without a compiler
    peers/                              Pinocchio and MuJoCo behind psiphi's conventions
"""
