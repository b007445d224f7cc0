"""Recorded motions: arrays, files, tables, plots, energy balance.

In: samples of a motion. Out: a `Trajectory`. Read `trajectory.py` first.

    energy_balance.py      Where a trajectory's energy comes from and goes
    interpolation.py       A trajectory between its samples
    recorder.py            Samples as they come, and the trajectory they make
    trajectory.py          What a simulation leaves
    trajectory_checks.py   What a trajectory is given
    trajectory_files.py    Trajectories on disk
    trajectory_plots.py    A motion as curves over time
    trajectory_summary.py  A trajectory in words
    trajectory_tables.py   A trajectory as one table
"""
