"""Pinocchio and MuJoCo behind psiphi's conventions: the same names, arrays and axes as psiphi's own functions.

    Pin(model).forward_dynamics(q, v, tau)     the model rebuilt in Pinocchio, joint by joint
    Pin.from_urdf(path)                        Pinocchio's own URDF reader, joints matched by name
    Mj(model).mass_matrix(q)                   the model rebuilt in MuJoCo

Arrays may have leading batch axes (a plain loop runs over them). What a peer cannot represent raises `Unsupported`.
"""

from peers.calls import Mj, Peer, Pin
from peers.models import Unsupported, mujoco_model, pinocchio_model

__all__ = ["Mj", "Peer", "Pin", "Unsupported", "mujoco_model", "pinocchio_model"]
