"""What is left of a motion: samples, their energies, tables, files and pictures.

Comes in: arrays over time. Goes out: a `Trajectory`. Read `trajectory.py` first; it calls

    given.py           arrays that fit together, and the joints' names
    record.py          samples as they come, and the trajectory they make
    balance.py         where the energy comes from and goes
    interpolation.py   the motion between its samples
    summary.py         the motion in words
    tabulate.py        the motion as one table, a named column a number
    files.py           .npz and .csv, written and read within a budget
    curves.py          matplotlib: curves over time, joints by name, their limits
"""
