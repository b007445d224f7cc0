"""Recorded motions: arrays, files, tables, plots, energy balance.

In: samples of a motion. Out: a `Trajectory`. Read `trajectory.py` first.

    trajectory.py          `Trajectory`, `Sample`, `Event`
    trajectory_checks.py   checks of the arrays and names of a trajectory
    recorder.py            collects samples during a run and makes the trajectory
    interpolation.py       states between the samples
    energy_balance.py      energy drift and the work of the torques
    trajectory_summary.py  a trajectory as a small table of text
    trajectory_tables.py   a trajectory as one table, also for pandas and xarray
    trajectory_files.py    .npz and .csv files
    trajectory_plots.py    curves over time with matplotlib
"""
