"""From a model back to what a builder collects: every link and joint by itself, so that it can be changed and built again."""

from __future__ import annotations

from psiphi._util.errors import ModelError
from psiphi.model.builder.records import Description
from psiphi.model.model import Model


def description(model: Model) -> Description:
    """What the model was built from, or a ModelError where nothing is known or the model was changed since."""
    known = model.description
    if model.embedding is not None and model.embedding.loops:
        remedy = "change it by its own verbs (robot.lock, robot.attach, ...), or change the tree and pp.embed that"
        raise ModelError(
            f"the loops of {model.name} are embedded, and a pp.Builder knows trees", remedy
        )
    if known is None:
        raise ModelError(
            f"{model.name} was not built link by link: it was joined from several mechanisms, or made from a pp.Model's fields",
            "change the robots it was made of, then join them again",
        )
    if any(joint.child == "world" for joint in known.joints):
        raise ModelError(
            f'{model.name}: its root link is called "world" and moves, so "world" has two meanings',
            'rename that link in the file, or load it with base="fixed" and let it fly by robot.with_base("free")',
        )
    return known


def spanning(model: Model) -> Model:
    """The tree that a robot was before its loops were embedded, which its verbs change; any other robot itself."""
    origin = None if model.embedding is None else model.embedding.origin
    return model if origin is None else origin.robot


def postures_by_joint(model: Model) -> dict[str, dict[str, tuple[float, ...]]]:
    """Each posture as coordinates by joint."""
    return {
        name: {joint.name: tuple(q[joint.q_slice].tolist()) for joint in model.joints}
        for name, q in model.postures.items()
    }
