# %% [markdown]
# # Your own URDF
# This example reads a URDF description of a pendulum with a sliding bob, prints its joints, and
# evaluates its dynamics as NumPy functions.

# %%
import numpy as np

import psiphi as pp

DURATION = 5.0  # tests: 0.5

URDF = """
<robot name="slider">
  <link name="base"/>
  <link name="rod">
    <inertial>
      <origin xyz="0 0 -0.5"/> <mass value="1.2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.001"/>
    </inertial>
    <visual>
      <origin xyz="0 0 -0.5"/> <geometry> <cylinder radius="0.02" length="1"/> </geometry>
    </visual>
  </link>
  <link name="bob">
    <inertial>
      <mass value="0.8"/>
      <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.002"/>
    </inertial>
    <visual> <geometry> <sphere radius="0.08"/> </geometry> </visual>
  </link>
  <joint name="hinge" type="continuous">
    <parent link="base"/> <child link="rod"/> <axis xyz="0 1 0"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="rod"/> <child link="bob"/> <origin xyz="0 0 -1"/> <axis xyz="0 0 1"/>
    <limit lower="-0.2" upper="0.8" effort="50" velocity="5"/>
  </joint>
</robot>
"""
# or pp.load("my_robot.urdf"), pp.load("package://my_description/urdf/arm.urdf")
robot = pp.load(URDF)
for joint in robot.joints:
    print(
        f"{joint.name}: {joint.kind}, q[{joint.q_slice.start}], carries "
        f"{robot.bodies[joint.index].name}"
    )

# %% [markdown]
# Every function takes one state or a batch of states.

# %%
q = np.array([0.7, 0.1])
print("mass matrix\n", robot.mass_matrix(q))
print("gravity torques", robot.gravity(q))
many = robot.random(seed=0, size=1000)
a = robot.forward_dynamics(many, np.zeros(2), np.zeros(2))
tau = robot.inverse_dynamics(many, np.zeros(2), a)
print("1000 accelerations", a.shape, "and back: largest torque", np.abs(tau).max())
assert np.abs(tau).max() < 1e-10

# %% [markdown]
# Simulate it with a spring and a damper at the sliding joint. `motion.view()` opens it in the
# browser (it needs `pip install viser`), `motion.save("swing.npz")` saves it.


# %%
@pp.law  # a pure function of t, q, v: psiphi can compile it
def spring(t, q, v):
    return np.stack([0.0 * q[..., 0], -200.0 * q[..., 1] - 2.0 * v[..., 1]], axis=-1)


motion = pp.simulate(robot, q, tau=spring, duration=DURATION)
print(motion.summary())
assert motion.energy[-1] < motion.energy[0] + 0.5 * 200.0 * q[1] ** 2, "the damper only dissipates"

# %% [markdown]
# Notebooks display a motion: its final state, events, curves.

# %%
motion
