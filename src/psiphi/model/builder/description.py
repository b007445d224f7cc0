"""From a model back to the records it was built from, so that it can be edited and built again."""

from __future__ import annotations

from psiphi._util.errors import ModelError
from psiphi.model.builder.records import Description
from psiphi.model.model import Model


def model_description(model: Model) -> Description:
    """The records a model was built from, or a ModelError if they are unknown or do not suffice."""
    records = model.description
    if model.has_loops:
        raise ModelError(
            f"the loops of {model.name} are embedded, but a pp.Builder represents trees only",
            "edit it with methods (robot.lock, robot.attach, ...), or edit the tree and call "
            "pp.embed again",
        )
    if records is None:
        raise ModelError(
            f"{model.name} was not built link by link: it was joined from several mechanisms, or "
            "made from a pp.Model's fields",
            "change the robots it was made of, then join them again",
        )
    if any(joint.child == "world" for joint in records.joints):
        raise ModelError(
            f'{model.name}: its root link is called "world" and moves, so "world" is ambiguous',
            'rename that link in the file, or load it with base="fixed" and call '
            'robot.with_base("free")',
        )
    return records


def spanning_tree(model: Model) -> Model:
    """The tree of a robot before its loops were embedded; any other robot itself."""
    origin = None if model.embedding is None else model.embedding.origin
    return model if origin is None else origin.robot


def postures_by_joint(model: Model) -> dict[str, dict[str, tuple[float, ...]]]:
    """The postures as {posture: {joint: coordinates}}."""
    return {
        name: {joint.name: tuple(q[joint.q_slice].tolist()) for joint in model.joints}
        for name, q in model.postures.items()
    }
