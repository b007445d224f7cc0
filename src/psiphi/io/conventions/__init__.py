"""Exact conversion of arrays between psiphi and Pinocchio or MuJoCo, neither of which is imported.

    layout = interop.pinocchio(robot)            # joints in psiphi's order
    layout = interop.pinocchio(robot, pin_model) # joints permuted by name to that model's order
    layout = interop.mujoco(robot, ["hip", "knee"])
    layout.to_q(q)        psiphi -> peer           layout.from_q(q)      peer -> psiphi

In: a `Model` and arrays over any leading batch axes. Out: a `Layout` and arrays. Read
`joint_coordinate_maps.py` first.

    joint_coordinate_maps.py  Maps of coordinates and velocities, one row per joint type
                              (quaternion order, planar and free joints)
    joint_matches.py          Indices of each joint in the other library's model, by name
    vector_layout.py          `Layout`: converts vectors and matrices joint by joint

| | psiphi | Pinocchio | MuJoCo |
|---|---|---|---|
| quaternion | x y z w | x y z w | w x y z |
| free q | xyz, quat | xyz, quat | xyz, quat; the pose in the world if the parent is the world |
| free v | [w; v] body axes | [v; w] body axes | [v in the outer axes; w in body axes] |
| spherical v | w, body axes | same | same (a ball joint) |
| continuous q | one angle | cos, sin | one angle (an unlimited hinge) |
| planar q | x, y, angle | x, y, cos, sin | x, y, angle (slide, slide, hinge on one body) |
| planar v | [w, vx, vy] body axes | [vx, vy, w] body axes | [vx, vy in the joint's outer axes, w] |
| cylindrical | angle, slide | same (a composite) | same (hinge, slide on one body) |
| universal | two angles | same | same (hinge, hinge on one body) |
| helical | angle | same | not supported |
| 6-vectors | [w; v] | [v; w] | [w; v] |
| frame Jacobian | rows [w; v] | rows [v; w], LOCAL_WORLD_ALIGNED | rows jacp over jacr |

Every velocity map v' = T(q) v in this table is orthogonal. So tau' = T tau, M' = T M T*,
J' = J T*, and a' = T a + (dT/dt) v. The equation tau = M a + bias holds in both conventions, and
power tau . v and energy v* M v / 2 do not change. The bias does: it gets the term -M' (dT/dt) v,
see `Layout.to_bias`.
"""

from psiphi.io.conventions.joint_matches import mujoco, pinocchio
from psiphi.io.conventions.vector_layout import Layout

__all__ = ["Layout", "mujoco", "pinocchio"]
