"""What a node of a graph is worth at one body, direction by direction: the step of a sweep, node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psiphi.algebra.expressions.letters import (
    A_LOCAL,
    B_LOCAL,
    COUPLE,
    FORCE,
    GRAVITY,
    SIDES,
    A,
    B,
    FormLetter,
    FrameLetter,
    Letter,
    VectorLetter,
)
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.frame_gather import Gathering, combination, inner
from psiphi.compiler.lower.horner_graph import (
    Anticausal,
    Apply,
    BodyForce,
    Causal,
    Dot,
    FrameMotion,
    Leaf,
    MultilinearNode,
    Node,
    Sum,
    U,
)
from psiphi.compiler.recursions.body_step import (
    LOCAL,
    adjoint_map,
    bias_acceleration,
    bias_force,
    couple,
    gravity,
    local_acceleration,
    local_force,
)
from psiphi.compiler.recursions.multilinear_step import SitePlace, formed
from psiphi.compiler.recursions.newton_euler import accelerate, move
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add, subtract


def value_at(site: BodyView, node: Node, gathering: Gathering) -> Any:
    """The node's value at this body."""
    get = lambda n: site.kept[f"n{n.number}"]  # noqa: E731
    if isinstance(node, Leaf):
        return _leaf(site, node.letter)
    if isinstance(node, Sum):
        return combination([(c, get(n)) for c, n in node.terms])
    if isinstance(node, (BodyForce, FrameMotion)):
        # base to tip: w, w', v' of the body from its parent's; then M φ*(H* u + a) + b, or d/dt of B* V at its frames
        u = [0.0] * len(site.H) if node.u is None else get(node.u)
        if isinstance(node, BodyForce):
            return accelerate(site, u, f"motion{node.number}")
        return frame_sweeps.accelerations(site, node.letter, move(site, u, f"motion{node.number}"))
    if isinstance(node, Dot):
        return _dot(site, node, get)
    if isinstance(node, Causal):
        return _causal(site, node, get)
    if isinstance(node, Anticausal):
        return _anticausal(site, node, get)
    # u x, ⟦f⟧ and their like: forms of vectors that stand at this body already
    if isinstance(node, MultilinearNode):
        return formed(
            node.letter, SitePlace(site), [get(n) for n in node.filled], get(node.argument)
        )
    assert isinstance(node, Apply)
    return _applied(
        site,
        node,
        gathering.value(site, node.argument) if node in gathering.readers else get(node.argument),
    )


# vectors made of the state: their steps read V(k), which the first sweep outward has kept
BIASES: dict[Letter, Callable] = {
    A: bias_acceleration,
    B: bias_force,
    A_LOCAL: local_acceleration,
    B_LOCAL: local_force,
    COUPLE: couple,
    GRAVITY: gravity,
}


def _leaf(site: BodyView, x: Letter) -> Any:
    if x in BIASES:
        return BIASES[x](site)
    assert isinstance(x, VectorLetter)
    if x.space == "frame":
        return frame_sweeps.inputs_here(site, x.word)
    if x.space == "joint":
        return site.of(x.word)
    # vectors over links come in public link axes: x(k) in working axes is φ or φ* of the gauge on it
    return frame_sweeps.working(
        site, site.link_part(x.word), x.space if x.space in SIDES else FORCE
    )


def _dot(site: BodyView, node: Dot, get) -> list:
    """Tip to base: x* y of this body and all bodies it carries."""
    # x* y = sum over k of x(k)* y(k): partial sums travel inward, and the world has the whole
    name, here = f"n{node.number}", [inner(get(node.x), get(node.y))]
    below = site.children.get(name)
    value = (
        here if below is None else [sum(below[1:], start=below[0]) + here[0]]
    )  # a cluster has one sum from each body
    site.send(**{name: value})
    return value


def _causal(site: BodyView, node: Causal, get) -> list:
    """Tip to base: z(k) = w(k) + sum_c [psi(k, c) z(c) + phi(k, c) (G x(c) + y(c))], and with phi for psi."""
    name = f"n{node.number}"
    z = site.children.get(name)
    if node.w is not None:
        z = get(node.w) if z is None else add(z, get(node.w))
    z = [0.0] * site.link.size if z is None else z
    # what the parent gets is phi z+, z+ = tau_bar z + G x + y; tau_bar z + G x = z + G (x - H z) is the filter's update,
    # and 6 x 6 matrices psi are never formed
    passed = z
    if node.x is not None and node.kind == "psi":
        x, gain = get(node.x), site.kept["gain"]
        passed = gain.update(z, x, subtract(x, LOCAL["H"](site, z)))
    elif node.kind == "psi":
        passed = site.kept["gain"].through(site.H, z)
    elif node.x is not None:
        passed = add(z, LOCAL["G"](site, get(node.x)))
    passed = passed if node.y is None else add(passed, get(node.y))
    site.send(**{name: force(site.path, passed)})
    return z


def _anticausal(site: BodyView, node: Anticausal, get) -> list:
    """Base to tip: y(k) = psi*(p, k) y(p) + H* u + w, and with phi* for psi*."""
    above = motion(site.path, site.parent[f"n{node.number}"])
    u = get(node.u) if node.u is not None else None
    # psi* y = tau_bar* phi* y = phi* y - H* (G* phi* y): the joint takes back what it would feel, so H* stands once
    if node.kind == "psi*":
        below = site.kept["gain"].adjoint(above)
        u = [-x for x in below] if u is None else subtract(u, below)
    value = above if u is None else add(above, adjoint_map(site.H, u))
    return value if node.w is None else add(value, get(node.w))


def _applied(site: BodyView, node: Apply, x) -> Any:
    letter, name = node.letter, f"n{node.number}"
    # block diagonal: what body k has of x is all it needs
    if letter in LOCAL:
        return LOCAL[letter](site, x)
    # ℰ₀ x goes inward as a force does, and only the world reads it; ℰ₀* y begins at the roots
    if world_body.gives(node):
        world_body.send(site, f"{name} at world", x)
        return x
    if world_body.takes(node):
        return world_body.hand(site, letter, x)
    if isinstance(letter, FrameLetter):
        return frame_sweeps.act(site, letter, x)
    # K = E_phi G and its like reach from child to parent alone: a message inward, and no sum along the path
    if letter in GATHERED:
        site.send(**{name: force(site.path, GATHERED[letter](site, x))})
        return site.children.get(name, [0.0] * site.link.size)
    # their adjoints look up to the parent once
    return INHERITED[letter](site, motion(site.path, site.parent[f"n{node.argument.number}"]))


# E_X = E_phi X: X at the child, then phi to its parent; and X* at the child on phi* of what the parent has
GATHERED: dict[str, Callable] = {
    "K": LOCAL["G"],
    "E_phi": lambda s, x: x,
    "E_psi": LOCAL["tau_bar"],
}
INHERITED: dict[str, Callable] = {
    "K*": LOCAL["G*"],
    "E_phi*": lambda s, x: x,
    "E_psi*": LOCAL["tau_bar*"],
}
LOWERED = {
    *LOCAL,
    *GATHERED,
    *INHERITED,
    *world_body.GROUND,
    *world_body.SPREAD,
    "phi",
    "psi",
    "phi*",
    "psi*",
}  # letters that have sweeps


def has_sweeps(x: Letter) -> bool:
    """Whether a sweep can apply the letter; the row x* of a vector sums over all bodies, and none does."""
    return (
        x == U
        or x in LOWERED
        or isinstance(x, (FrameLetter, FormLetter))
        or (isinstance(x, VectorLetter) and not x.starred)
    )


def write_result(site: BodyView, name: str, space: str, value: Any) -> None:
    """A result at this body."""
    # joints write their own slice, frames where the letter B numbers them, links in their public axes
    if space == "joint":
        site.write_joint(name, value)
    elif space.startswith("frame"):
        for i, part in value.items():
            site.write(name, 6 * i, part)
    else:
        site.write_link(name, frame_sweeps.public(site, value, space))
