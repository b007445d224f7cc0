"""Robots that come with psiphi, one function each, and generators of chains and trees for tests and benchmarks.

Comes in: a name, or a size and a seed. Goes out: a `Robot`.
Read `data/puma560.toml` first (what a table looks like), then `tables.py` (how it is read), then `made.py` (the generators).
"""

from psiphi.functions.robot import Robot
from psiphi.robots import made
from psiphi.robots.tables import from_table, table_names

__all__ = ["chain", "names", "puma560", "random_tree", "stanford_arm"]


def names() -> list[str]:
    """The bundled robots: each name is a function here, to be called without arguments.

    >>> names()
    ['puma560', 'stanford_arm']
    """
    return table_names()


def puma560() -> Robot:
    """Unimation PUMA 560: six revolute joints, measured masses and inertias, motors' inertia as armature.

    Armstrong, Khatib & Burdick (1986), "The explicit dynamic model and inertial parameters of the PUMA 560 arm", Proc. IEEE
    Int. Conf. Robotics and Automation, pp. 510-518. At q = 0 the upper arm lies along x and the forearm stands upright; the
    origin is the shoulder and "tool" the wrist's centre.

    >>> puma560().nv
    6
    """
    return Robot.of(from_table("puma560"))


def stanford_arm() -> Robot:
    """Stanford (Scheinman) arm: joint 3 slides; actuators' inertia as armature; "tool" lies between the finger tips.

    Frames: Paul (1972), Stanford AIM-177. Masses and inertias: Bejczy (1974), "Robot arm dynamics and control", JPL TM
    33-669, and Paul (1981), "Robot manipulators: mathematics, programming, and control", Tables 6.5 and 6.6.

    >>> [joint.kind for joint in stanford_arm().joints].index("prismatic")
    2
    """
    return Robot.of(from_table("stanford_arm"))


def chain(n: int, planar: bool = False, seed: int = 0, equal: bool = False) -> Robot:
    """N links in a row: general 3-D ones, or `planar`; unequal, or `equal`. The same seed gives the same robot.

    >>> chain(3).nv
    3
    """
    return Robot.of(made.chain(n, planar, seed, equal))


def random_tree(n: int, seed: int = 0, kinds=None, branching: float = 0.3, base: str = "fixed") -> Robot:
    """A random tree of n bodies with joints of the given kinds (any but free by default).

    >>> len(random_tree(4).bodies)
    4
    """
    return Robot.of(made.random_tree(n, seed, kinds, branching, base))
