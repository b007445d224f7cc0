"""A failing case made small: fewer nodes, then fewer bodies, as long as it fails in the same
way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.soundness.examine import Case, Outcome, examine
from tests.soundness.recipes import Node, size
from tests.soundness.robots import Joint, Spec


def smaller(node: Node) -> Iterator[Node]:
    """The node with one piece left out, largest cuts first."""
    op, args = node
    inner = [x for x in args if isinstance(x, Node)]
    yield from inner
    for i, x in enumerate(args):
        if isinstance(x, Node):
            for y in smaller(x):
                yield Node(op, (*args[:i], y, *args[i + 1 :]))
    if op == "scale" and args[0] not in (2, 0):
        yield Node(op, (2, args[1]))
    if op == "frames":
        kind, names, axes = args
        if len(names) > 1:
            yield Node(op, (kind, names[:1], axes))
        if axes != "world":
            yield Node(op, (kind, names, "world"))
    if op in ("sum", "difference") and op == "difference":
        yield Node("sum", args)


def smaller_robots(spec: Spec) -> Iterator[Spec]:
    """One body less (its children move to its parent), plainer joints, no rotor."""
    joints = spec.joints
    for k in reversed(range(len(joints))):
        if len(joints) > 1:
            rest = [
                Joint(
                    j.kind,
                    joints[k].parent if j.parent == k else j.parent - (j.parent > k),
                    j.rotor,
                )
                for i, j in enumerate(joints)
                if i != k
            ]
            yield Spec(tuple(rest), spec.seed)
    for k, joint in enumerate(joints):
        for plain in (
            Joint("revolute", joint.parent, joint.rotor),
            Joint(joint.kind, joint.parent),
        ):
            if plain != joint:
                yield Spec((*joints[:k], plain, *joints[k + 1 :]), spec.seed)


def shrink(case: Case, trials: int = 200, how: Callable[[Case], Outcome] = examine) -> Case:
    """The smallest case found that fails as this one does."""
    left, kind = trials, how(case).kind if trials else ""

    def fails(other: Case) -> bool:
        nonlocal left
        left -= 1
        try:
            return how(other).kind == kind
        except Exception:
            return False

    changed = True
    while changed and left > 0:
        changed = False
        for node in sorted(smaller(case.node), key=size):
            if (
                left > 0
                and size(node) < size(case.node) + (node.op != case.node.op)
                and fails(Case(case.robot, node))
            ):
                case, changed = Case(case.robot, node), True
                break
        if changed:
            continue
        for spec in smaller_robots(case.robot):
            if left > 0 and fails(Case(spec, case.node)):
                case, changed = Case(spec, case.node), True
                break
    return case
