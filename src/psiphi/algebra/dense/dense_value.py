"""The matrix of an expression at a state: the definition that compiled code is tested against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import one_of
from psiphi.algebra.dense.dense_inverse import inverse_or_error
from psiphi.algebra.dense.dense_letter_rates import t
from psiphi.algebra.dense.dense_letters import DenseLetters
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.letters import FormLetter, Letter, SymbolLetter, VectorLetter
from psiphi.algebra.expressions.notation import UNICODE
from psiphi.algebra.expressions.spaces import FRAME, JOINT, LINK, ONE, size
from psiphi.algebra.expressions.terms import Term
from psiphi.model.body_matrices import joint_map_rate, stack_scalars
from psiphi.model.loops.cluster_joints import ClusterJoint
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import entries

# a matrix (..., r, c); or a Fraction c: c I, of a size that is not known yet
Value: TypeAlias = np.ndarray | Fraction
AXES = ("link", "world")
Inverse: TypeAlias = Callable[[np.ndarray], np.ndarray]


def evaluate(
    term: Term,
    model: Model,
    q: Numbers,
    v: Numbers | None,
    vectors: Mapping[str, Numbers],
    inverse: Inverse = inverse_or_error,
    axes: str = "link",
) -> np.ndarray:
    """The matrix (..., rows, cols) of a term; (..., rows) for a column, (..., cols) for a row.

    `inverse` computes inverses of matrices. `axes` are those of rows and columns over links.
    """
    one_of("axes", axes, AXES, "leave it out for link axes")
    if model.freed is not None:
        text = UNICODE.text(term)
        cause = f"{text}: {model.name} has free parameters, which `dense` does not support"
        raise StateError(
            cause,
            "use the operators of the robot without free parameters; "
            "or pp.function, for expressions that are computed by sweeps",
        )
    q = model.check_nonzero_quaternions("dense", model.state_array("q", q, model.nq))
    rates = np.zeros(model.nv) if v is None else model.state_array("v", v, model.nv)
    values = dict(vectors) if v is None else {"v": rates, **vectors}
    _check_names(term, values, v is not None)
    letters = DenseLetters(model, q, rates)
    value = _value(term, letters, values, inverse)
    if isinstance(value, Fraction):
        raise StateError(
            f"{UNICODE.text(term)} has no space of its own",
            "multiply it by an operator first",
        )
    value = _in_world_axes(term, value, letters) if axes == "world" else value
    rows, cols = terms.spaces(term)
    if cols == ONE:
        value = value[..., 0]
        return value[..., 0] if rows == ONE else value
    return value[..., 0, :] if rows == ONE else value


def _in_world_axes(term: Term, value: np.ndarray, letters: DenseLetters) -> np.ndarray:
    """A X A*, with A = diag(R, R) of each link over links: about link origins, in world axes."""
    mixed = sorted({x.bare for x in terms.letters(term) if x.row.mixed_axes})
    if mixed:
        raise StateError(
            f"{mixed[0]} maps between the axes of a body and of its parent, and cannot be written "
            "in world axes",
            "write E_phi, E_psi or K, or leave out axes",
        )
    A = letters.diagonal([R for R in letters.rotations for _ in range(2)])
    rows, cols = terms.spaces(term)
    value = A @ value if rows == LINK else value
    return value @ t(A) if cols == LINK else value


def _value(
    term: Term, letters: DenseLetters, vectors: Mapping[str, Numbers], inverse: Inverse
) -> Value:
    if term.op == "letter":
        x = term.args[0]
        return (
            _form_value(x, letters, vectors, inverse)
            if isinstance(x, FormLetter)
            else _letter_value(x, letters, vectors)
        )
    inner = [
        x if isinstance(x, Fraction) else _value(x, letters, vectors, inverse) for x in term.args
    ]
    if term.op == "inverse":
        return 1 / inner[0] if isinstance(inner[0], Fraction) else inverse(inner[0])
    return OPERATIONS[term.op](*inner)


def _letter_value(x: Letter, letters: DenseLetters, vectors: Mapping[str, Numbers]) -> Value:
    plain = x.bare
    if plain == "I":
        return Fraction(1)
    if isinstance(plain, VectorLetter) and plain.is_input:
        value = _vector_value(plain.word, plain.space, letters.model, vectors)[..., None]
    elif isinstance(plain, SymbolLetter):
        value = _symbol_value(plain.word, plain.space, letters, vectors)
    else:
        value = letters[plain]
    return t(value) if x.starred else value


def _form_value(
    x: FormLetter, letters: DenseLetters, vectors: Mapping[str, Numbers], inverse: Inverse
) -> np.ndarray:
    """Block diagonal: the columns are the letter times unit vectors, at each body or frame."""
    filled = {
        slot: np.asarray(_value(inner, letters, vectors, inverse))[..., 0]
        for slot, inner in x.filled
    }
    takes, gives = x.open_slots
    lead = np.broadcast_shapes(letters.lead, *(value.shape[:-1] for value in filled.values()))
    blocks = []
    for joint, rows in _form_domains(x, letters, next(iter(filled.values())).shape[-1]):

        def part(slot: str, joint=joint, rows=rows) -> slice:
            return joint.v_slice if x.form.slots[slot].space == JOINT else rows

        slot_values = {
            slot: list(np.moveaxis(value[..., part(slot)], -1, 0)) for slot, value in filled.items()
        }
        width, height = (part(slot).stop - part(slot).start for slot in (takes, gives))
        columns = [
            x.form.value(DensePlace(joint, letters.q), x, slot_values, row)
            for row in np.eye(width).tolist()
        ]
        blocks.append(
            np.swapaxes(stack_scalars(columns, lead), -1, -2)
            if columns
            else np.zeros((*lead, height, 0))
        )
    return letters.diagonal(blocks, lead)


def _form_domains(x: FormLetter, letters: DenseLetters, size: int) -> list[tuple[Any, slice]]:
    """The (joint, rows over links) at which a form acts.

    For forms with joint slots, the joints of bodies and clusters; for others, all bodies or frames.
    """
    if any(slot.space == JOINT for slot in x.form.slots.values()):
        return [
            (joint, unit.rows)
            for joint, unit in zip(letters.model.units, letters.units, strict=True)
        ]
    return [(None, slice(i, i + 6)) for i in range(0, size, 6)]


class DensePlace(NamedTuple):
    """A body in its public axes: the `FormPlace` of dense matrices."""

    joint: Any
    q: np.ndarray
    origin: list = [0.0, 0.0, 0.0]  # noqa: RUF012

    def joint_map_derivative(self, *along: list) -> list | None:
        if isinstance(self.joint, ClusterJoint):
            kinematics, n = self.joint.kinematics, 6 * len(self.joint.kinematics.members)
            q = entries(self.q[..., self.joint.q_slice])
            flat = kinematics.joint_map_derivative(
                lambda q: [y for row in kinematics.H(q) for y in row], q, *along
            )
            return [flat[i : i + n] for i in range(0, len(flat), n)]
        shape = np.broadcast_shapes(*(np.shape(x) for values in along for x in values))
        vectors = [stack_scalars(values, shape) for values in along]
        changed = joint_map_rate(self.joint, self.q[..., self.joint.motion_slice], *vectors)
        return (
            None
            if changed is None
            else [[changed[..., r, i] for r in range(6)] for i in range(changed.shape[-1])]
        )


def _vector_value(
    name: str, space: str, model: Model, vectors: Mapping[str, Numbers]
) -> np.ndarray:
    where = {"joint": JOINT, "frame": FRAME()}.get(space, LINK)
    array = np.asarray(vectors[name], dtype=float)
    expected = size(where, model)
    if array.ndim == 0 or (expected is not None and array.shape[-1] != expected):
        raise StateError(
            f"{name} has shape {array.shape}, expected (..., {expected or '6 per frame'})",
            f"pass one number per {space} coordinate",
        )
    return array


def _symbol_value(
    name: str, space: str, letters: DenseLetters, vectors: Mapping[str, Numbers]
) -> np.ndarray:
    """The diagonal blocks of the matrix (..., n, n) that was passed."""
    sizes = [6 if space == "link" else j.row.nv for j in letters.model.joints]
    array = np.asarray(vectors[name], dtype=float)
    n = sum(sizes)
    if array.shape[-2:] != (n, n):
        raise StateError(
            f"{name} has shape {array.shape}, expected (..., {n}, {n})",
            "pass a matrix of this shape; only its diagonal blocks are used",
        )
    starts = np.cumsum([0, *sizes])
    return letters.diagonal([array[..., a:b, a:b] for a, b in pairwise(starts)])


def _times(a: Value, b: Value) -> Value:
    return _scale(a, b) if isinstance(a, Fraction) or isinstance(b, Fraction) else a @ b


def _scale(a: Value, b: Value) -> Value:
    if isinstance(a, Fraction):
        return a * b if isinstance(b, Fraction) else float(a) * b
    return a * float(b)


def _plus(a: Value, b: Value) -> Value:
    if isinstance(a, Fraction):
        return a + b if isinstance(b, Fraction) else _plus(b, a)
    return a + float(b) * np.eye(a.shape[-1]) if isinstance(b, Fraction) else a + b


OPERATIONS = {
    "product": lambda *values: reduce(_times, values),
    "sum": lambda *values: reduce(_plus, values),
    "scale": _scale,
    "adjoint": lambda x: x if isinstance(x, Fraction) else t(x),
}


def _check_names(term: Term, vectors: Mapping[str, Numbers], has_velocity: bool) -> None:
    """Check that exactly the vectors of the term were passed."""
    letters = set(terms.letters(term))
    needed = {
        x.word
        for x in letters
        if isinstance(x, SymbolLetter) or (isinstance(x, VectorLetter) and x.is_input)
    }
    if missing := sorted(needed - set(vectors)):
        names = ", ".join(missing)
        raise StateError(
            f"{UNICODE.text(term)} needs {names}", f"pass it by name: dense(q, {missing[0]}=...)"
        )
    if unknown := sorted(set(vectors) - needed - {"v"}):
        raise StateError(
            f"{UNICODE.text(term)} has no vector {unknown[0]!r}",
            nearest(unknown[0], sorted(needed) or ["none"]),
        )
    if not has_velocity and any(x.needs_velocity for x in letters):
        raise StateError(f"{UNICODE.text(term)} depends on the velocity", "pass v: dense(q, v)")
