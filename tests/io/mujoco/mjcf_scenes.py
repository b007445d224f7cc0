"""Small MJCF models, one for each thing that is read: (name, text)."""

GEOM = '<geom type="box" size="0.1 0.05 0.2" pos="0.1 0.02 -0.1"/>'

PENDULUM = f"""<mujoco model="pendulum"><worldbody><body name="rod" pos="0.1 0.2 1" euler="10 20 30">
  <joint name="hinge" axis="0.3 1 0.2" damping="0.1" frictionloss="0.2" armature="0.05" range="-90 45" ref="20"/>
  {GEOM}<site name="tip" pos="0 0 -1" euler="0 90 0"/></body></worldbody>
  <actuator><motor joint="hinge" gear="5" ctrlrange="-2 2"/></actuator>
  <keyframe><key name="up" qpos="1.5"/></keyframe></mujoco>"""  # noqa: E501

SEVERAL = f"""<mujoco model="several"><default><joint armature="0.02" pos="0.05 -0.03 0.2"/></default><worldbody>
  <body name="cart" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" ref="0.1"/><joint name="y" type="slide" axis="0 1 1"/>
  <joint name="yaw" axis="0 0 1" pos="0.1 0.2 0.3" ref="-40"/><joint name="roll" axis="1 1 0"/>{GEOM}
    <body name="arm" pos="0.3 0 0" quat="0.9 0.1 0.3 0.2">
    <joint name="a" axis="0 1 0"/><joint name="b" type="ball" pos="0.1 0 0"/>{GEOM}
    <body name="tool" pos="0 0.1 0" euler="0 30 0"><geom size="0.03"/><site name="tool"/></body></body>
    <body name="other" pos="-0.2 0 0"><joint axis="0 0 1" range="-30 60"/>{GEOM}</body>
  </body></worldbody></mujoco>"""  # noqa: E501

FLYING = f"""<mujoco model="flying"><option gravity="0.1 -0.2 -3"/><worldbody><geom type="plane" size="1 1 1"/>
  <body name="drone" pos="1 2 3" quat="0.5 0.5 0.5 0.5"><freejoint name="fly"/>{GEOM}
    <body name="hand" pos="0 0 -0.2"><joint name="wrist" type="ball" damping="0.3"/>{GEOM}</body>
    <body name="finger" pos="0.1 0 0"><joint name="slide" type="slide" axis="0 0 1"/>{GEOM}</body></body>
  <body name="box" pos="0 0 1"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
  <body name="shelf" pos="0 1 0"><geom type="box" size="0.3 0.1 0.4"/></body></worldbody></mujoco>"""  # noqa: E501

FOUR_BAR = """<mujoco model="four_bar"><default><geom type="capsule" size="0.02"/><joint axis="0 1 0"/></default><worldbody>
  <body name="crank"><joint name="crank"/><geom fromto="0 0 0 0.2 0 0"/>
    <body name="coupler" pos="0.2 0 0"><joint name="elbow"/><geom fromto="0 0 0 0.5 0 0"/></body></body>
  <body name="rocker" pos="0.5 0 -0.3"><joint name="rocker"/><geom fromto="0 0 0 0 0 0.4"/></body></worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.5 0 0"/></equality></mujoco>"""  # noqa: E501

WELDED = """<mujoco model="welded"><default><geom type="capsule" size="0.02"/></default><worldbody>
  <body name="left" pos="0 0.3 0"><joint axis="1 0 0"/><joint axis="0 1 0"/><geom fromto="0 0 0 0.3 0 0"/>
    <body name="left_end" pos="0.3 0 0"><joint type="ball"/><geom fromto="0 0 0 0.3 0 0.1"/></body></body>
  <body name="right" pos="0.6 0.3 0"><joint type="ball"/><geom fromto="0 0 0 0.1 0 0.3"/>
    <body name="right_end" pos="0.1 0 0.3"><joint axis="0 1 0"/><joint axis="1 0 0"/><geom fromto="0 0 0 0.2 0.1 0"/></body>
  </body>
  </worldbody><equality><weld name="seam" body1="left_end" body2="right_end" relpose="0.1 0.2 0.1 0.9 0.1 0.2 0.3"/>
  </equality></mujoco>"""  # noqa: E501

COUPLED = f"""<mujoco model="coupled"><worldbody><body name="a"><joint name="lead" axis="0 1 0" ref="10"/>{GEOM}
  <body name="b" pos="0.3 0 0"><joint name="follow" axis="0 1 0" ref="-20"/>{GEOM}</body></body></worldbody>
  <equality><joint joint1="follow" joint2="lead" polycoef="0.1 -2 0 0 0"/></equality></mujoco>"""  # noqa: E501

SCENES = {
    "pendulum": PENDULUM,
    "several": SEVERAL,
    "flying": FLYING,
    "four_bar": FOUR_BAR,
    "welded": WELDED,
    "coupled": COUPLED,
}

ODD = f"""<mujoco model="odd"><option density="1.2"/><worldbody>
  <body name="a" gravcomp="1"><joint name="lead" axis="0 1 0" stiffness="3"/>{GEOM}
  <body name="b" pos="0.3 0 0"><joint name="bend" axis="0 1 0"/>{GEOM}
  <body name="d"><joint name="ball" type="ball" range="0 60" stiffness="2"/>{GEOM}</body></body></body>
  <body name="c"><joint name="fly" type="free" armature="0.1"/>{GEOM}</body>
  <body name="hand" mocap="true"/></worldbody>
  <tendon><fixed name="string"><joint joint="lead" coef="1"/><joint joint="bend" coef="-1"/></fixed></tendon>
  <equality><joint name="curve" joint1="bend" joint2="lead" polycoef="0 1 2 0 0"/><joint name="still" joint1="lead"/>
  <connect name="off" body1="a" body2="c" anchor="0 0 0" active="false"/><tendon name="taut" tendon1="string"/></equality>
  <actuator><position name="servo" joint="lead" kp="10"/></actuator></mujoco>"""  # noqa: E501
