"""The world as the last body: ℰ₀ sums what the roots send, ℰ_c moves the sum to the centre of mass, in world axes.

    ℰ₀ x = sum over roots φ(world, k) x(k)      ℰ_c x = [[I, -c~], [0, I]] ℰ₀ x,   m c = sum of m(k) c(k) in the world
    U = - g·(m c)

Their adjoints hand a motion of the world (of the centre of mass) to the roots. Where sweeps run as loops a step does not know
whether it stands at a root: every body sends, and only the world reads.
"""

from __future__ import annotations

from typing import Any

from psiphi.algebra.dense.dense_letters import no_center
from psiphi.algebra.expressions.letters import Letter, letter
from psiphi.compiler.lower.horner_graph import Apply, Leaf, Node, U
from psiphi.compiler.recursions.body_step import ZERO3, ZERO6
from psiphi.compiler.recursions.newton_euler import Rigid, compose
from psiphi.compiler.sweeps.sweep_program import BodyView, merge
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add, cross, subtract

GROUND = AT_ORIGIN, AT_CENTER = letter("E_0"), letter("E_c")
SPREAD = tuple(x.T for x in GROUND)


def gives(node: Node) -> bool:
    """ℰ₀ x or ℰ_c x: a value of the world."""
    return isinstance(node, Apply) and node.letter in GROUND


def takes(node: Node) -> bool:
    """ℰ₀* y or ℰ_c* y: reads a value of the world."""
    return isinstance(node, Apply) and node.letter in SPREAD


def weighed(node: Node) -> bool:
    """Whether the centre of mass must be known."""
    return is_height(node) or (isinstance(node, Apply) and node.letter.bare == AT_CENTER)


def is_height(node: Node) -> bool:
    """U: a number that only the world has."""
    return isinstance(node, Leaf) and node.letter == U


def potential(site: BodyView, gravity) -> list:
    """U = - g·(m c), at the world."""
    # first moments are linear in the places of all bodies, and so is their weight
    body, total = whole(site), 0.0
    for g, x in zip(gravity, ZERO3 if body is None else body.moment, strict=True):
        total = total - g * x
    return [total]


def send(site: BodyView, name: str, x) -> None:
    """Tip to base: φ(parent, k) x; at roots the world's sum."""
    put(site, **{name: force(site.path, x)})


def put(site: BodyView, **values) -> None:
    """Send; what roots send, the world keeps."""
    site.send(**values)
    # later sweeps read it from the world: the inbox is gone by then
    if site.at_root:
        site.world.update(
            {name: merge(site.world.get(name), value) for name, value in values.items()}
        )


def weigh(site: BodyView) -> None:
    """Tip to base: everything outboard as one rigid body; the world's is ℰ₀ φ M φ* ℰ₀*."""
    # [m, m c] are all that most ask of it: second moments that nobody reads are no code
    compose(site)
    put(site, rigid=site.sent["rigid"])


def whole(site: BodyView) -> Rigid | None:
    """All bodies as one, at the world's origin in world axes; None where there are none."""
    return _sum(site, "rigid")


def total(site: BodyView, letter: Letter, name: str) -> list:
    """ℰ₀ x or ℰ_c x, at the world: the sum under `name`."""
    f = _sum(site, name)
    if f is None:  # there is no body
        return ZERO6
    return f if letter == AT_ORIGIN else at_center(f, center(whole(site)))


def center(body: Rigid | None) -> list:
    """c = m c / m; a robot without mass has none."""
    if body is None or (isinstance(body.mass, float) and not body.mass > 0.0):
        raise no_center("the robot")
    return [x / body.mass for x in body.moment]


def at_center(f, c) -> list:
    """[n - c x F; F]."""
    return subtract(f[:3], cross(c, f[3:])) + f[3:]


def hand(site: BodyView, letter: Letter, y) -> list:
    """ℰ₀* y or ℰ_c* y at this body: the motion y = [w; v] of the world, at roots."""
    if not site.at_root:
        return [0.0] * site.link.size
    V = y.get(0, ZERO6)
    if letter.bare == AT_CENTER:
        # the world's origin moves by v + c x w when the centre of mass moves by v: ℰ_c* y, then φ* as for ℰ₀*
        c = center(whole(site))
        V = V[:3] + add(V[3:], cross(c, V[:3]))
    return motion(site.path, V)


def _sum(site: BodyView, name: str) -> Any:
    """What the roots have sent: kept by the world, or in its inbox where sweeps run as loops."""
    return site.world.get(name) or site.children.get(name)
