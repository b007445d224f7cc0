"""MJCF and MuJoCo's models.

In: an `MjModel` or an MJCF file. Out: a `Model`, and MJCF again. Read `from_mujoco.py` first.

    from_mujoco.py                  MuJoCo's compiled model as a robot
    mjcf_writer.py                  A robot as MJCF text
    mujoco_actuators.py             MuJoCo's actuators on hinges and slides
    mujoco_equalities.py            MuJoCo's equalities
    mujoco_geoms.py                 Geoms as shapes
    mujoco_unsupported_features.py  What of a MuJoCo model has no counterpart
"""
