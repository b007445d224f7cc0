"""Sensors of motions: what they measure, at their own rates, with noise.

In: a `Trajectory`, or arrays of q, v, a. Out: measurements. Read `sensor_models.py` first.

    sensor_models.py     `pp.IMU`, `pp.JointTorque`, `pp.ContactForce`: what they measure
    sensor_noise.py      white noise, a constant bias and a drifting bias, from a seed
    measurement.py       `motion.measure(sensors)`: sensors at their own rates
    contact_wrenches.py  the contact forces of a motion as wrenches on frames
    philox.py            counter-based random numbers

The quantities that sensors measure are rows of the catalogue ("frame_imu", "joint_torques"): laws
of control and environments use the same equations in their compiled steps.
"""
