"""The operators of one robot: `s = robot.operators`, then s.H @ s.phi @ s.M @ s.phi.T @ s.H.T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.blocks.body_indices import bodies
from psiphi.algebra.expressions import terms, type_checks
from psiphi.algebra.expressions.expression import Expression, symbol, vector
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import LETTERS, SIDES, STATE_VECTORS, Letter, frame_letter
from psiphi.algebra.expressions.multilinear_forms import FORMS
from psiphi.algebra.expressions.spaces import ONE, compatible
from psiphi.model.model import Model


class Operators:
    """The operators of a robot, with the letters of the papers; `glossary` lists them.

    H phi psi M P D G K E_phi E_psi E_0 E_c tau_bar rotor S Delta_phi Delta_psi L Phi Psi Om U I,
    vectors a b, frames B(...). With `model` None they belong to no particular robot.
    """

    names: ClassVar = (  # of the letters
        *(x for x in LETTERS if not LETTERS[x].row.code),
        *(x.word for x in STATE_VECTORS),
    )

    def __init__(self, model: Model | None = None):
        self.model = model
        for name, x in (*LETTERS.items(), *((x.word, x) for x in STATE_VECTORS)):
            setattr(self, name, self._letter(x))

    def _letter(self, name: Letter) -> Expression:
        return Expression(terms.letter_term(name), self.model)

    def B(self, *frames: str, axes: str = "world") -> Expression:
        """Wrenches at frames, in world or frame axes -> forces on links; B* maps velocities."""
        if not frames:
            raise StateError("B() needs a frame", "pass one or more frame names: B('tool')")
        if axes not in ("world", "frame"):
            raise StateError(
                f"axes is {axes!r}, expected 'world' or 'frame'", "leave it out for world axes"
            )
        names = frames if self.model is None else [self.model.frame(name).name for name in frames]
        return self._letter(frame_letter(names, axes))

    def J(self, *frames: str, axes: str = "world") -> Expression:
        """J = B* φ* H*: joint rates -> velocities of the frames."""
        return self.B(*frames, axes=axes).T @ self.phi.T @ self.H.T

    def cross(self, u: Expression) -> Expression:
        """u×: the cross product of a link motion with link motions; its adjoint acts on forces."""
        return self.form("cross", "y", "f", u=u)

    def form(self, name: str, takes: str, gives: str, **vectors: Expression) -> Expression:
        """The operator of a multilinear form between two slots; the other slots get vectors.

        See `multilinear_forms.py`.
        """
        if name not in FORMS:
            raise StateError(f"no multilinear form {shown(name)}", nearest(name, tuple(FORMS)))
        form = FORMS[name]
        if sorted(map(str, (takes, gives, *vectors))) != sorted(form.slots):
            raise StateError(
                f"form {name!r} from {shown(takes)} to {shown(gives)} with vectors for "
                f"{', '.join(vectors) or 'no slot'}",
                f"its slots are {', '.join(form.slots)}: name two, and pass vectors for the others",
            )
        for slot, x in vectors.items():
            if (
                not isinstance(x, Expression)
                or x.cols != ONE
                or not compatible(x.rows, form.slots[slot].space)
            ):
                raise StateError(
                    f"{slot} of the form {name!r} is {shown(x)}",
                    f"pass a {form.slots[slot].space.name} vector",
                )
            found = ends(x.term)
            if (
                found.value(found.gives) in SIDES
                and found.value(found.gives) != form.slots[slot].side
            ):
                raise StateError(
                    f"{slot} of the form {name!r} is {x}, of link {found.value(found.gives)}s",
                    f"pass link {form.slots[slot].side}s",
                )
        model = next((x.model for x in vectors.values() if x.model is not None), self.model)
        result = Expression(
            form.operator(takes, gives, {slot: x.term for slot, x in vectors.items()}), model
        )
        type_checks.check_product(result.term, terms.IDENTITY, model)
        return result

    @cached_property
    def mass(self) -> Expression:
        """H φ M φ* H*, plus rotor inertia if the robot has any."""
        links = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        return links + self.rotor if self.model is None or has_rotors(self.model) else links

    @cached_property
    def coriolis(self) -> Expression:
        """C = H φ (M φ* ((V×) H* + Ḣ*) + B_V φ* H*).

        C v = H φ (M φ* a + b) at zero gravity, and dM/dt - 2 C is skew.
        """
        out = (
            self.M @ self.phi.T @ (self.spin @ self.H.T + self.H_dot.T)
            + self.gyro @ self.phi.T @ self.H.T
        )
        return self.H @ self.phi @ out

    @cached_property
    def mass_half(self) -> Expression:
        """m = (I + H φ K) D^½; m m* = mass."""
        return (self.I + self.H @ self.phi @ self.K) @ self.D_half

    bodies = staticmethod(bodies)
    vector = staticmethod(vector)
    symbol = staticmethod(symbol)

    @property
    def glossary(self) -> str:
        """The letters and vectors, one per line, and what is made of them."""
        letters = [(x, x.symbol, x.row.meaning) for x in LETTERS.values()]
        vectors = [(x.word, x.symbol, x.row.meaning) for x in STATE_VECTORS]
        return "\n".join(f"{a:12} {b:6} {c}" for a, b, c in (*letters, *vectors, *NAMED))

    def __getattr__(self, name: str) -> Expression:
        if name.endswith("_dot") and name.removesuffix("_dot") in (
            *LETTERS,
            *DERIVED,
        ):  # s.phi_dot, s.mass_half_dot, ...
            return getattr(self, name.removesuffix("_dot")).dot()
        raise StateAttributeError(
            f"no operator {name!r}", nearest(name, [*LETTERS, "B", "J", "mass", "a", "b", "vector"])
        )

    def __repr__(self) -> str:
        return (
            f"<operators of {self.model.name!r}>"
            if self.model is not None
            else "<operators without a robot>"
        )


DERIVED = ("mass", "mass_half")
NAMED = (  # methods and properties, for the glossary
    ("B(...)", "B", "wrenches on frames -> forces on links; B* maps velocities"),
    ("J(...)", "J", "B* φ* H*: the Jacobian of frames"),
    ("mass", "ℳ", "H φ M φ* H* + rotor inertia: the mass matrix"),
    ("mass_half", "m", "m m* = ℳ"),
    ("coriolis", "C", "the Coriolis matrix: dℳ/dt - 2 C is skew"),
)


class StateAttributeError(StateError, AttributeError):
    """A wrong operator name; also an AttributeError, as `hasattr` expects."""


def has_rotors(model: Model) -> bool:
    """True if any joint has rotor inertia."""
    return any(joint.armature.any() for joint in model.joints) or any(
        any(cluster.armature) for cluster in model.clusters
    )


def has_constant_maps(model: Model) -> bool:
    """True if H is constant in body axes; False for embedded loops."""
    return model.embedding is None and all(joint.row.Hdot is None for joint in model.joints)


def has_single_joints(model: Model) -> bool:
    """True if every joint has one coordinate."""
    return model.embedding is None and all(joint.row.nv == 1 for joint in model.joints)


def with_rotors(model: Model) -> Model:
    """The robot with a rotor at every joint: its rules also hold if inertia is added to D."""
    return replace(
        model,
        joints=tuple(
            replace(joint, armature=np.ones_like(joint.armature)) for joint in model.joints
        ),
    )


def is_chain(model: Model) -> bool:
    """True if every body has at most one child."""
    inner = [parent for parent in model.parent if parent >= 0]
    return model.embedding is None and len(inner) == len(set(inner))


def frame_poses(s: Operators, frames: Sequence[str]) -> dict[str, Expression]:
    """Poses of frames: E_0 phi B is [R, p~ R; 0, R] in frame axes, [1, p~; 0, 1] in world axes."""
    return {"R": s.E_0 @ s.phi @ s.B(*frames, axes="frame"), "p": s.E_0 @ s.phi @ s.B(*frames)}
