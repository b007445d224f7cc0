"""What an expression means: its matrix at a state. Every lowering is tested against this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest
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

Value = Any  # a matrix (..., r, c), or a Fraction: that multiple of an identity whose size is still open


def evaluate(
    term: Term,
    model: Model,
    q,
    v,
    vectors: Mapping[str, Any],
    inverse: Callable[[np.ndarray], np.ndarray] = inverse_or_error,
) -> np.ndarray:
    """The matrix (..., rows, cols) of a term; a missing column or row side is left out. `inverse` says what A⁻¹ is."""
    if model.freed is not None:
        cause = f"{UNICODE.text(term)}: numbers of {model.name} are inputs, and matrices by definition do not know them"
        raise StateError(
            cause,
            "write it with the robot before `free`, or as something that has sweeps: pp.function takes them",
        )
    q = model.check_quaternions("dense", model._state("q", q, model.nq))
    rates = np.zeros(model.nv) if v is None else model._state("v", v, model.nv)
    given = dict(vectors) if v is None else {"v": rates, **vectors}
    _check_names(term, given, v is not None)
    value = _value(term, DenseLetters(model, q, rates), given, inverse)
    if isinstance(value, Fraction):
        raise StateError(
            f"{UNICODE.text(term)} has no space of its own", "multiply it with an operator first"
        )
    rows, cols = terms.spaces(term)
    value = value[..., 0] if cols == ONE else value
    return (
        value[..., 0] if rows == ONE and cols == ONE else value[..., 0, :] if rows == ONE else value
    )


def _value(term: Term, atoms: DenseLetters, given: Mapping[str, Any], inverse: Callable) -> Value:
    if term.op == "letter":
        x = term.args[0]
        return (
            _form_value(x, atoms, given, inverse)
            if isinstance(x, FormLetter)
            else _letter_value(x, atoms, given)
        )
    inner = [x if isinstance(x, Fraction) else _value(x, atoms, given, inverse) for x in term.args]
    if term.op == "inverse":
        return 1 / inner[0] if isinstance(inner[0], Fraction) else inverse(inner[0])
    return OPERATIONS[term.op](*inner)


def _letter_value(x: Letter, atoms: DenseLetters, given: Mapping[str, Any]) -> Value:
    if x == "I":
        return Fraction(1)
    if x.starred:
        return t(_letter_value(x.T, atoms, given))
    if isinstance(x, VectorLetter) and x.is_input:
        return _vector_value(x.word, x.space, atoms.model, given)[..., None]
    if isinstance(x, SymbolLetter):
        return _symbol_value(x.word, x.space, atoms, given)
    return atoms[x]


def _form_value(
    x: FormLetter, atoms: DenseLetters, given: Mapping[str, Any], inverse: Callable
) -> np.ndarray:
    """Block diagonal: at each body, joint or frame what the letter makes of the unit vectors."""
    filled = {slot: _value(inner, atoms, given, inverse)[..., 0] for slot, inner in x.filled}
    takes, gives = x.open_slots
    lead = np.broadcast_shapes(atoms.lead, *(value.shape[:-1] for value in filled.values()))
    blocks = []
    for joint, rows in _form_domains(x, atoms, next(iter(filled.values())).shape[-1]):

        def part(slot, joint=joint, rows=rows):
            return joint.v_slice if x.form.slots[slot].space == JOINT else rows

        own = {
            slot: list(np.moveaxis(value[..., part(slot)], -1, 0)) for slot, value in filled.items()
        }
        width, height = (part(slot).stop - part(slot).start for slot in (takes, gives))
        columns = [
            x.form.value(DensePlace(joint, atoms.q), x, own, row) for row in np.eye(width).tolist()
        ]
        blocks.append(
            np.swapaxes(stack_scalars(columns, lead), -1, -2)
            if columns
            else np.zeros((*lead, height, 0))
        )
    return atoms.diagonal(blocks, lead)


def _form_domains(x: FormLetter, atoms: DenseLetters, size: int) -> list[tuple[Any, slice]]:
    """Where a form acts: a joint, of one body or of a cluster, and its rows over links; where no joint is asked, every body."""
    if any(slot.space == JOINT for slot in x.form.slots.values()):
        return [
            (joint, unit.rows) for joint, unit in zip(atoms.model.units, atoms.units, strict=True)
        ]
    return [(None, slice(i, i + 6)) for i in range(0, size, 6)]


class DensePlace(NamedTuple):
    """A body in its public axes, as `forms` see it."""

    joint: Any
    q: np.ndarray
    origin: list = [0.0, 0.0, 0.0]  # noqa: RUF012

    def joint_map_derivative(self, *along: list) -> list | None:
        if isinstance(self.joint, ClusterJoint):
            laws, q = self.joint.kinematics, entries(self.q[..., self.joint.q_slice])
            flat, n = (
                laws.joint_map_derivative(
                    lambda q: [y for row in laws.H(q) for y in row], q, *along
                ),
                6 * len(laws.members),
            )
            return [flat[i : i + n] for i in range(0, len(flat), n)]
        shape = np.broadcast_shapes(*(np.shape(x) for values in along for x in values))
        vectors = [stack_scalars(values, shape) for values in along]
        changed = joint_map_rate(self.joint, self.q[..., self.joint.q_read], *vectors)
        return (
            None
            if changed is None
            else [[changed[..., r, i] for r in range(6)] for i in range(changed.shape[-1])]
        )


def _vector_value(name: str, space: str, model: Model, given: Mapping[str, Any]) -> np.ndarray:
    where = {"joint": JOINT, "frame": FRAME()}.get(space, LINK)
    array = np.asarray(given[name], dtype=float)
    expected = size(where, model)
    if array.ndim == 0 or (expected is not None and array.shape[-1] != expected):
        raise StateError(
            f"{name} has shape {array.shape}, expected (..., {expected or '6 a frame'})",
            f"give one number a {space} coordinate",
        )
    return array


def _symbol_value(
    name: str, space: str, atoms: DenseLetters, given: Mapping[str, Any]
) -> np.ndarray:
    """A whole matrix (..., n, n); only its diagonal blocks count."""
    sizes = [6 if space == "link" else j.row.nv for j in atoms.model.joints]
    array = np.asarray(given[name], dtype=float)
    n = sum(sizes)
    if array.shape[-2:] != (n, n):
        raise StateError(
            f"{name} has shape {array.shape}, expected (..., {n}, {n})",
            "give its blocks on the diagonal",
        )
    starts = np.cumsum([0, *sizes])
    return atoms.diagonal([array[..., a:b, a:b] for a, b in pairwise(starts)])


def _times(a: Value, b: Value) -> Value:
    return _scale(a, b) if isinstance(a, Fraction) or isinstance(b, Fraction) else a @ b


def _scale(a: Value, b: Value) -> Value:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return float(a) * b if isinstance(a, Fraction) else a * float(b)


def _plus(a: Value, b: Value) -> Value:
    if isinstance(a, Fraction) == isinstance(b, Fraction):
        return a + b
    c, X = (a, b) if isinstance(a, Fraction) else (b, a)
    return X + float(c) * np.eye(X.shape[-1])


OPERATIONS = {
    "product": lambda *values: reduce(_times, values),
    "sum": lambda *values: reduce(_plus, values),
    "scale": _scale,
    "adjoint": lambda x: x if isinstance(x, Fraction) else t(x),
}


def _check_names(term: Term, given: Mapping[str, Any], moving: bool) -> None:
    """Every vector of the term must be given, and nothing else."""
    letters = set(terms.letters(term))
    needed = {
        x.word
        for x in letters
        if isinstance(x, SymbolLetter) or (isinstance(x, VectorLetter) and x.is_input)
    }
    if missing := sorted(needed - set(given)):
        names = ", ".join(missing)
        raise StateError(
            f"{UNICODE.text(term)} needs {names}", f"give it by name: dense(q, {missing[0]}=...)"
        )
    if strange := sorted(set(given) - needed - {"v"}):
        raise StateError(
            f"{UNICODE.text(term)} has no vector {strange[0]!r}",
            nearest(strange[0], sorted(needed) or ["none"]),
        )
    if not moving and any(x.needs_velocity for x in letters):
        raise StateError(f"{UNICODE.text(term)} depends on the velocity", "give v: dense(q, v)")
