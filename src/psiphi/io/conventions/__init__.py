"""psiphi's arrays in the conventions of Pinocchio and MuJoCo, and back, exactly. Neither library is imported.

    layout = interop.pinocchio(robot)            # joints in psiphi's order
    layout = interop.pinocchio(robot, pin_model) # joints permuted by name to that model's order
    layout = interop.mujoco(robot, ["hip", "knee"])
    layout.to_q(q)        psiphi -> peer           layout.from_q(q)      peer -> psiphi

In: a `Model` and arrays over any leading batch axes. Out: a `Layout` and arrays. Read `peer_joint_types.py` first.

    peer_joint_types.py  a joint kind is one row for each library
    joint_matches.py     finds each joint's place in the other library's model by name
    vector_layout.py     moves the blocks of vectors and matrices

| | psiphi | Pinocchio | MuJoCo |
|---|---|---|---|
| quaternion | x y z w | x y z w | w x y z |
| free q | xyz, quat | xyz, quat | xyz, quat; of the body in the world when the joint hangs on the world |
| free v | [w; v] body axes | [v; w] body axes | [v in the outer axes; w in body axes] |
| spherical v | w, body axes | same | same (a ball joint) |
| continuous q | one angle | cos, sin | one angle (an unlimited hinge) |
| planar q | x, y, angle | x, y, cos, sin | x, y, angle (slide, slide, hinge on one body) |
| planar v | [w, vx, vy] body axes | [vx, vy, w] body axes | [vx, vy in the joint's outer axes, w] |
| cylindrical | angle, slide | same (a composite) | same (hinge, slide on one body) |
| universal | two angles | same | same (hinge, hinge on one body) |
| helical | angle | same | none: refused |
| 6-vectors | [w; v] | [v; w] | [w; v] |
| frame Jacobian | rows [w; v] | rows [v; w], LOCAL_WORLD_ALIGNED | rows jacp over jacr |

Every velocity map v' = T(q) v of that table is orthogonal, so tau' = T tau, M' = T M T*, J' = J T*, and
a' = T a + (dT/dt) v. Hence tau - M a is *not* one vector seen twice (it picks up M (dT/dt) v, see `Layout.to_bias`),
while the equation tau = M a + bias holds in either convention, and power tau . v and energy v* M v / 2 are equal numbers.
"""

from psiphi.io.conventions.joint_matches import mujoco, pinocchio
from psiphi.io.conventions.vector_layout import Layout

__all__ = ["Layout", "mujoco", "pinocchio"]
