"""What is left of a motion: samples, their energies, tables, files and pictures.

Comes in: arrays over time. Goes out: a `Trajectory`. Read `trajectory.py` first; it calls

    balance.py         where the energy comes from and goes
    interpolation.py   the motion between its samples
    summary.py         the motion in words
    tabulate.py        the motion as one table, a named column a number
    files.py           .npz and .csv
    export.py          pandas, xarray, matplotlib
"""
