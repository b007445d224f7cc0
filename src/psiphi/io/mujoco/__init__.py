"""MJCF and MuJoCo models.

In: an `MjModel` or an MJCF file. Out: a `Model`; `mjcf_writer.py` writes MJCF. Read
`from_mujoco.py` first.

    from_mujoco.py                  Reader: bodies, joints, sites, keyframes
    mujoco_actuators.py             Effort limits and rotors from actuators
    mujoco_equalities.py            Equality constraints as loops, mimic joints and gears
    mujoco_geoms.py                 Geoms as shapes
    mujoco_unsupported_features.py  Report of features that psiphi does not support
    mjcf_writer.py                  Writer: a robot as MJCF text
"""
