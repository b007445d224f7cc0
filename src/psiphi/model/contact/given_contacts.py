"""`pp.GivenContacts`: contacts that a library of collisions, or a user's own code, finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import is_list, read_array
from psiphi.model.contact.ground import Ground

NUMBERS = 7  # of a contact: point, normal, gap
UNIT_TOLERANCE = 1e-6  # of the length of a normal
PAIRS_REMEDY = 'give a list of two frames each, such as [("hand", "box"), ("foot", "world")]'


class Found(NamedTuple):
    """Contacts of one configuration or of a batch: (..., c, 7) point, normal and gap, and the
    friction (..., c), if it is given."""

    numbers: np.ndarray
    friction: np.ndarray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class GivenContacts(Ground):
    """Contacts whose points, normals and gaps come from outside, with the laws of a `pp.Ground`.

    pairs   for each contact the names of two frames, of which "world" may be one. The force is on
            the link of the first; the opposite force on the link of the second
    find    q (..., nq) -> points, normals, gaps, a function of q alone: (..., c, 3), (..., c, 3)
            and (..., c) in m and world axes. A normal points from the second link to the first; a
            gap is negative if they overlap; one that is not there has a gap such as 1.0

    Without `find`, `at` gives them for one step. Shapes of `robot.with_contacts` act as well, on
    the ground and on each other; their contacts come first in forces, gaps and friction.

    >>> import numpy as np, psiphi as pp
    >>> ball = pp.Builder("ball")
    >>> ball.body("ball", mass=1.0, inertia=0.004 * np.eye(3))
    >>> ball.joint("base", "free", "world", "ball")
    >>> robot = ball.build()
    >>> touch = pp.GivenContacts(pairs=[("ball", "world")], friction=0.5)
    >>> below = touch.at(points=[[0, 0, -0.1]], normals=[[0, 0, 1]], gaps=[0.0])
    >>> q, v, contact = robot.step(robot.neutral(), np.zeros(6), np.zeros(6), 1e-3, contacts=below)
    >>> contact.forces.round(6).tolist()
    [[0.0, 0.0, 9.81]]
    """

    pairs: Sequence[tuple[str, str]] = ()
    find: Callable[[np.ndarray], tuple[Numbers, Numbers, Numbers]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_list(self.pairs) or not tuple(self.pairs):
            raise ModelError(f"pairs is {shown(self.pairs)}", PAIRS_REMEDY)
        for pair in self.pairs:
            names = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
            if not names or not all(isinstance(name, str) for name in pair):
                raise ModelError(f"pairs has {shown(pair)}", PAIRS_REMEDY)
        if self.find is not None and not callable(self.find):
            raise ModelError(f"find is {shown(self.find)}", "give a function of q")

    @property
    def contact_names(self) -> list[str]:
        """ "hand|box", and "hand" for a contact with the world; "hand#2" for the second."""
        plain = ["|".join(name for name in pair if name != "world") for pair in self.pairs]
        seen: Counter[str] = Counter()
        names = []
        for name in plain:
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        return names

    @property
    def plain_ground(self) -> Ground:
        """The ground and its laws, without the contacts."""
        return Ground(**{field.name: getattr(self, field.name) for field in fields(Ground)})

    @property
    def is_function(self) -> bool:
        """Whether the contacts are known for any q."""
        return self.find is not None and "_found" not in self.__dict__

    @property
    def origin(self) -> GivenContacts:
        """What `at` was called on."""
        return self.__dict__.get("_origin", self)

    def at(
        self, points: Numbers, normals: Numbers, gaps: Numbers, friction: Numbers | None = None
    ) -> GivenContacts:
        """The same with the contacts of one step: points and normals (..., c, 3), gaps (..., c),
        and friction (..., c) of all contacts of the robot, if it differs from step to step.

        >>> import psiphi as pp
        >>> b = pp.Builder("ball")
        >>> b.body("ball", mass=2.0, inertia=(1.0, 1.0, 1.0))
        >>> b.joint("base", "free", "world", "ball")
        >>> ball, contacts = b.build(), GivenContacts(pairs=[("ball", "world")])
        >>> touch = contacts.at([[0.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]], [0.0])
        >>> zero = [0.0] * 6
        >>> q, v, contact = ball.step(ball.neutral(), zero, zero, 1e-3, contacts=touch)
        >>> contact.forces.round(2).tolist()
        [[0.0, 0.0, 19.62]]
        """
        found = self._read("at", points, normals, gaps)
        if friction is not None:
            mu, fault = read_array(friction, None)
            if fault or not ((mu >= 0.0) & (mu < 1e50)).all():
                raise ModelError(
                    f"at: friction is {shown(friction)}", "give finite numbers of at least 0"
                )
            found = found._replace(friction=mu.astype(float))
        known = copy(self)
        known.__dict__.update(_origin=self.origin, _found=found)
        return known

    def found(self, q: np.ndarray) -> Found:
        """(Internal use only) The contacts at q (..., nq)."""
        known: Found | None = self.__dict__.get("_found")
        if known is not None:
            return known
        if self.find is None:
            raise StateError(
                "given contacts have no points, normals and gaps",
                "give contacts.at(points, normals, gaps) to robot.step, or find=, a function of q",
            )
        values = self.find(np.array(q))
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 3:
            raise StateError(f"find returned {shown(values)}", "return points, normals, gaps")
        numbers = self._read("find", *values).numbers
        lead = q.shape[:-1]
        if numbers.shape[:-2] not in (lead, ()):
            raise StateError(
                f"find: its contacts have batch axes {numbers.shape[:-2]}, and q {lead}",
                "return an entry for each motion",
            )
        return Found(numbers)

    def _read(self, of: str, points: Numbers, normals: Numbers, gaps: Numbers) -> Found:
        count = len(self.pairs)
        remedy = f"give arrays (..., {count}, 3), (..., {count}, 3) and (..., {count})"
        arrays = []
        for name, value, core in (
            ("points", points, (count, 3)),
            ("normals", normals, (count, 3)),
            ("gaps", gaps, (count,)),
        ):
            array, fault = read_array(value, None)
            if fault or array.shape[array.ndim - len(core) :] != core:
                given = shown(value) if fault else f"of shape {array.shape}"
                raise StateError(f"{of}: {name} is {given}", remedy)
            if not np.isfinite(array.astype(float)).all():
                raise StateError(f"{of}: {name} has entries that are not finite", remedy)
            arrays.append(array.astype(float))
        lengths = np.linalg.norm(arrays[1], axis=-1, keepdims=True)
        if (np.abs(lengths - 1.0) > UNIT_TOLERANCE).any():
            worst = lengths.flat[np.abs(lengths - 1.0).argmax()]
            raise StateError(f"{of}: a normal has the length {worst:.6g}", "give unit vectors")
        arrays[1] = arrays[1] / lengths
        try:
            lead = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in zip(arrays, (2, 2, 1))))  # noqa: B905
        except ValueError:
            shapes = ", ".join(str(x.shape) for x in arrays)
            raise StateError(f"{of}: shapes do not fit together: {shapes}", remedy) from None
        full = [np.broadcast_to(x, (*lead, count, 3)) for x in arrays[:2]]
        full.append(np.broadcast_to(arrays[2], (*lead, count))[..., None])
        return Found(np.concatenate(full, axis=-1))

    def __repr__(self) -> str:
        law = repr(self.plain_ground).removeprefix("Ground(")
        return f"GivenContacts(pairs={list(map(tuple, self.pairs))!r}, {law}"
