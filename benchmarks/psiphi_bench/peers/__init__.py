"""Pinocchio and MuJoCo behind psiphi's conventions: the same names, arrays and axes as psiphi's own functions.

    Pin(model).forward_dynamics(q, v, tau)     the model rebuilt in Pinocchio, joint by joint
    Pin.from_urdf(path)                        Pinocchio's own URDF reader, joints matched by name
    Mj(model).mass_matrix(q)                   the model rebuilt in MuJoCo

Comes in: a `Model` and arrays over any leading axes (a plain loop runs over them). Goes out: psiphi's arrays. What a peer
cannot represent raises `Unsupported`. Read `peer.py` first; `lazy_import.py` imports the peers when they are first used.
"""

from psiphi_bench.peers.mujoco_peer import Mj, mujoco_model
from psiphi_bench.peers.peer import Peer, Unsupported
from psiphi_bench.peers.pinocchio_peer import Pin, pinocchio_model

__all__ = ["Mj", "Peer", "Pin", "Unsupported", "mujoco_model", "pinocchio_model"]
