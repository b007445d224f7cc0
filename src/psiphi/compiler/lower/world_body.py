"""The world as the last body: ℰ₀ sums the messages of the roots; ℰ_c moves the sum to the centre of
mass, in world axes.

    ℰ₀ x = sum over roots φ(world, k) x(k)
    ℰ_c x = [[I, -c~], [0, I]] ℰ₀ x,   m c = sum of m(k) c(k) in the world
    U = - g·(m c)

Their adjoints map a motion of the world (of the centre of mass) to the roots. A step that runs in a
loop does not know whether its body is a root: every body sends, and only the world reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.algebra.dense.dense_letters import no_center_of_mass
from psiphi.algebra.expressions.letters import Letter, letter
from psiphi.compiler.lower.frame_sweeps import FrameVector
from psiphi.compiler.lower.horner_graph import Apply, Leaf, Node, U
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6
from psiphi.compiler.recursions.newton_euler import Rigid, composite_body
from psiphi.compiler.sweeps.sweep_program import BodyView, add_messages
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add, cross, subtract

TO_WORLD = AT_ORIGIN, AT_CENTER = letter("E_0"), letter("E_c")
FROM_WORLD = tuple(x.T for x in TO_WORLD)


def is_world_sum(node: Node) -> bool:
    """Whether the node is ℰ₀ x or ℰ_c x: a value of the world."""
    return isinstance(node, Apply) and node.letter in TO_WORLD


def reads_world(node: Node) -> bool:
    """Whether the node is ℰ₀* y or ℰ_c* y: it reads a value of the world."""
    return isinstance(node, Apply) and node.letter in FROM_WORLD


def needs_center_of_mass(node: Node) -> bool:
    """Whether the node needs the centre of mass."""
    return is_potential(node) or (isinstance(node, Apply) and node.letter.bare == AT_CENTER)


def is_potential(node: Node) -> bool:
    """Whether the node is U, a number of the world."""
    return isinstance(node, Leaf) and node.letter == U


def potential(body: BodyView, gravity: Sequence[AnyScalar]) -> list:
    """U = - g·(m c), at the world."""
    # U is linear in the first moment
    robot, total = whole_robot(body), 0.0
    for g, x in zip(gravity, ZERO3 if robot is None else robot.moment, strict=True):
        total = total - g * x
    return [total]


def send_inward(body: BodyView, name: str, x: list) -> None:
    """Tip to base: send φ(parent, k) x; at roots it is added to the world's sum."""
    send_and_store(body, **{name: force(body.path, x)})


def send_and_store(body: BodyView, **values: object) -> None:
    """Send values; the world stores those of the roots."""
    body.send(**values)
    # later sweeps read the record of the world; the inbox lives for one sweep
    if body.at_root:
        body.world.update(
            {name: add_messages(body.world.get(name), value) for name, value in values.items()}
        )


def sum_masses(body: BodyView) -> None:
    """Tip to base: all bodies outboard as one rigid body. At the world it is ℰ₀ φ M φ* ℰ₀*."""
    # second moments that are not read are dead code
    composite_body(body)
    send_and_store(body, rigid=body.sent["rigid"])


def whole_robot(body: BodyView) -> Rigid | None:
    """All bodies as one, at the world's origin in world axes; None if there are no bodies."""
    return _received(body, "rigid")


def world_sum(body: BodyView, letter: Letter, name: str) -> list:
    """ℰ₀ x or ℰ_c x at the world, from the sum with this name."""
    f = _received(body, name)
    if f is None:  # there are no bodies
        return ZERO6
    return f if letter == AT_ORIGIN else about_center(f, center_of_mass(whole_robot(body)))


def center_of_mass(robot: Rigid | None) -> list:
    """c = m c / m; raises an error for a robot without mass."""
    if robot is None or (isinstance(robot.mass, float) and not robot.mass > 0.0):
        raise no_center_of_mass("the robot")
    return [x / robot.mass for x in robot.moment]


def about_center(f: list, c: list) -> list:
    """[n - c x F; F]."""
    return subtract(f[:3], cross(c, f[3:])) + f[3:]


def root_motion(body: BodyView, letter: Letter, y: FrameVector) -> list:
    """ℰ₀* y or ℰ_c* y at this body, a root: the motion y = [w; v] of the world; zero at other
    bodies."""
    if not body.at_root:
        return [0.0] * body.link.size
    V = y.get(0, ZERO6)
    if letter.bare == AT_CENTER:
        # if the centre of mass moves by v, the world's origin moves by v + c x w: ℰ_c* y, then φ*
        # as for ℰ₀*
        c = center_of_mass(whole_robot(body))
        V = V[:3] + add(V[3:], cross(c, V[:3]))
    return motion(body.path, V)


def _received(body: BodyView, name: str) -> Any:
    """The sum of the roots' messages: stored by the world, or in its inbox if sweeps run
    as loops."""
    return body.world.get(name) or body.children.get(name)
