"""The value of a node of the graph at one body: the steps of the sweeps, node by node."""

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
from psiphi.compiler.lower.frame_gather import FrameGather, inner_product, linear_combination
from psiphi.compiler.lower.frame_sweeps import FrameVector
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
from psiphi.compiler.recursions.multilinear_step import FormBody, apply_form
from psiphi.compiler.recursions.newton_euler import body_motion, required_force
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial.screw_paths import force, motion
from psiphi.model.spatial.screws import add, subtract

GetValue = Callable[[Node], Any]


def node_value(body: BodyView, node: Node, gather: FrameGather) -> Any:
    """The node's value at this body."""

    def get(n: Node) -> Any:
        return body.record[f"n{n.number}"]

    if isinstance(node, Leaf):
        return _leaf(body, node.letter)
    if isinstance(node, Sum):
        return linear_combination([(c, get(n)) for c, n in node.terms])
    if isinstance(node, (BodyForce, FrameMotion)):
        # base to tip: w, w', v' of the body from its parent's; then M φ*(H* u + a) + b, or d/dt of
        # B* V at its frames
        u = [0.0] * len(body.H) if node.u is None else get(node.u)
        if isinstance(node, BodyForce):
            return required_force(body, u, f"motion{node.number}")
        return frame_sweeps.frame_accelerations(
            body, node.letter, body_motion(body, u, f"motion{node.number}")
        )
    if isinstance(node, Dot):
        return _dot(body, node, get)
    if isinstance(node, Causal):
        return _causal(body, node, get)
    if isinstance(node, Anticausal):
        return _anticausal(body, node, get)
    # multilinear forms of vectors at this body
    if isinstance(node, MultilinearNode):
        return apply_form(
            node.letter, FormBody(body), [get(n) for n in node.filled], get(node.argument)
        )
    assert isinstance(node, Apply)
    return _applied(
        body,
        node,
        gather.value(body, node.argument) if node in gather.readers else get(node.argument),
    )


# vectors of the state: their steps read V(k), which the first sweep from base to tip stored
STATE_VECTOR_STEPS: dict[Letter, Callable] = {
    A: bias_acceleration,
    B: bias_force,
    A_LOCAL: local_acceleration,
    B_LOCAL: local_force,
    COUPLE: couple,
    GRAVITY: gravity,
}


def _leaf(body: BodyView, x: Letter) -> Any:
    if x in STATE_VECTOR_STEPS:
        return STATE_VECTOR_STEPS[x](body)
    assert isinstance(x, VectorLetter)
    if x.space == "frame":
        return frame_sweeps.frame_inputs_here(body, x.word)
    if x.space == "joint":
        return body.joint_input(x.word)
    # vectors over links are inputs in public link axes: x(k) in working axes is φ or φ* of the
    # gauge on it
    return frame_sweeps.to_working_axes(
        body, body.link_input(x.word), x.space if x.space in SIDES else FORCE
    )


def _dot(body: BodyView, node: Dot, get: GetValue) -> list:
    """Tip to base: the sum of x* y over this body and all bodies that it carries."""
    # x* y = sum over k of x(k)* y(k): partial sums go to the base, and the world has the whole
    name, here = f"n{node.number}", [inner_product(get(node.x), get(node.y))]
    below = body.children.get(name)
    # a cluster receives one sum per member
    value = here if below is None else [sum(below[1:], start=below[0]) + here[0]]
    body.send(**{name: value})
    return value


def _causal(body: BodyView, node: Causal, get: GetValue) -> list:
    """Tip to base, with psi (or phi in its place):

    z(k) = w(k) + sum_c [psi(k, c) z(c) + phi(k, c) (G x(c) + y(c))]
    """
    name = f"n{node.number}"
    z = body.children.get(name)
    if node.w is not None:
        z = get(node.w) if z is None else add(z, get(node.w))
    z = [0.0] * body.link.size if z is None else z
    # The message is phi z+ with z+ = tau_bar z + G x + y. The filter update tau_bar z + G x = z + G
    # (x - H z) needs no 6 x 6 matrix psi.
    passed = z
    if node.x is not None and node.kind == "psi":
        x, gain = get(node.x), body.record["gain"]
        passed = gain.update(z, x, subtract(x, LOCAL["H"](body, z)))
    elif node.kind == "psi":
        passed = body.record["gain"].project(body.H, z)
    elif node.x is not None:
        passed = add(z, LOCAL["G"](body, get(node.x)))
    passed = passed if node.y is None else add(passed, get(node.y))
    body.send(**{name: force(body.path, passed)})
    return z


def _anticausal(body: BodyView, node: Anticausal, get: GetValue) -> list:
    """Base to tip: y(k) = psi*(p, k) y(p) + H* u + w, or with phi* for psi*."""
    above = motion(body.path, body.parent[f"n{node.number}"])
    u = get(node.u) if node.u is not None else None
    # psi* y = tau_bar* phi* y = phi* y - H* (G* phi* y): both terms with H* are one product
    if node.kind == "psi*":
        below = body.record["gain"].adjoint(above)
        u = [-x for x in below] if u is None else subtract(u, below)
    value = above if u is None else add(above, adjoint_map(body.H, u))
    return value if node.w is None else add(value, get(node.w))


def _applied(body: BodyView, node: Apply, x: Any) -> Any:
    letter, name = node.letter, f"n{node.number}"
    # block diagonal letters need only the value of body k
    if letter in LOCAL:
        return LOCAL[letter](body, x)
    # ℰ₀ x goes to the base as a force, and only the world reads it; ℰ₀* y starts at the roots
    if world_body.is_world_sum(node):
        world_body.send_inward(body, f"{name} at world", x)
        return x
    if world_body.reads_world(node):
        return world_body.root_motion(body, letter, x)
    if isinstance(letter, FrameLetter):
        return frame_sweeps.apply_frame_letter(body, letter, x)
    # K = E_phi G and similar letters: one message from child to parent
    if letter in FROM_CHILDREN:
        body.send(**{name: force(body.path, FROM_CHILDREN[letter](body, x))})
        return body.children.get(name, [0.0] * body.link.size)
    # their adjoints read the parent
    return FROM_PARENT[letter](body, motion(body.path, body.parent[f"n{node.argument.number}"]))


# E_X = E_phi X: X at the child, then phi to its parent; the adjoint applies X* at the child to phi*
# of the parent's value
FROM_CHILDREN: dict[str, Callable] = {
    "K": LOCAL["G"],
    "E_phi": lambda s, x: x,
    "E_psi": LOCAL["tau_bar"],
}
FROM_PARENT: dict[str, Callable] = {
    "K*": LOCAL["G*"],
    "E_phi*": lambda s, x: x,
    "E_psi*": LOCAL["tau_bar*"],
}
# letters that sweeps can apply
SWEEP_LETTERS = {
    *LOCAL,
    *FROM_CHILDREN,
    *FROM_PARENT,
    *world_body.TO_WORLD,
    *world_body.FROM_WORLD,
    "phi",
    "psi",
    "phi*",
    "psi*",
}


def has_sweeps(x: Letter) -> bool:
    """Whether a sweep can apply the letter. None can apply the row x* of a vector, which sums over
    all bodies."""
    return (
        x == U
        or x in SWEEP_LETTERS
        or isinstance(x, (FrameLetter, FormLetter))
        or (isinstance(x, VectorLetter) and not x.starred)
    )


def write_result(body: BodyView, name: str, space: str, value: list | FrameVector) -> None:
    """Write a result at this body."""
    # joints have slices of v, frames the numbers of their letter B, links their public axes
    if space == "joint":
        assert isinstance(value, list)
        body.write_joint(name, value)
    elif space.startswith("frame"):
        assert isinstance(value, dict)
        for i, part in value.items():
            body.write(name, 6 * i, part)
    else:
        assert isinstance(value, list)
        body.write_link(name, frame_sweeps.to_public_axes(body, value, space))
