"""Pinocchio and MuJoCo with psiphi's conventions: the same names, arrays and axes.

    Pin(model).forward_dynamics(q, v, tau)     the model rebuilt in Pinocchio, joint by joint
    Pin.from_urdf(path)                        Pinocchio's own URDF reader, joints matched by name
    Mj(model).mass_matrix(q)                   the model rebuilt in MuJoCo

In: a `Model` and arrays with any batch axes (a Python loop runs over them). Out: arrays in psiphi's
conventions. A model that the library cannot represent raises `Unsupported`. Read `peer.py` first.

    peer.py              the common base class
    pinocchio_peer.py    Pinocchio
    mujoco_peer.py       MuJoCo
    lazy_import.py       imports the libraries at first use
"""

from psiphi_bench.peers.mujoco_peer import Mj, mujoco_model
from psiphi_bench.peers.peer import Peer, Unsupported
from psiphi_bench.peers.pinocchio_peer import Pin, pinocchio_model

__all__ = ["Mj", "Peer", "Pin", "Unsupported", "mujoco_model", "pinocchio_model"]
