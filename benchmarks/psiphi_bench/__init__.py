"""`psiphi bench`: psiphi, Pinocchio and MuJoCo in one run, one table, each row with its target.

In: `--quick`, `--only NAME`, `--json FILE`, `--table FILE`. Out: a table, JSON, Markdown. Read
`rows.py` first (the table as data), then `row.py` (one row) and `rows_of/run_time.py` (a
measurement). The other files:

    run.py                 the command
    report.py              results as text, JSON and Markdown
    best_of.py             timing: the minimum of many samples
    agreement.py           errors of each function relative to another library
    example_robots.py      the robots of the example-robot-data package
    closed_cells.py        closed chains: arms that hold an object
    interpreted_robot.py   robots and closed chains without a compiler
    rows_of/               the measurements of the rows, by subject
    peers/                 Pinocchio and MuJoCo with psiphi's conventions
    counts/                exact operation counts and the published ones
"""
