"""Rank check: an inverse of a term that is singular at every state raises an error when written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.algebra.dense import dense_value
from psiphi.algebra.dense.dense_inverse import NOISE, RCOND, reciprocal_condition
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import ALPHABET, SymbolLetter
from psiphi.algebra.expressions.notation import UNICODE
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model
from psiphi.model.parameters.free_parameters import nominal_model

STATES = 3  # random states at which the rank is computed
MAX_BODIES_WHEN_WRITTEN = 40  # robots up to this size are checked when the inverse is written,
MAX_BODIES = 150  # up to this size by `pp.function` and `pp.prove`
TINY_ENTRY = 1e-6  # matrices with smaller entries may consist of rounding errors

_LINKS = tuple(map(terms.letter_term, ("H", "phi", "M", "phi*", "H*")))
REGULAR = {terms.letter_term(x) for x in ALPHABET.values() if x.row.regular}
REGULAR |= {
    Term("product", _LINKS),
    Term("sum", (Term("product", _LINKS), terms.letter_term("rotor"))),
}


def check_invertible(
    term: Term, model: Model | None, max_bodies: int = MAX_BODIES_WHEN_WRITTEN
) -> None:
    """Raise a StateError for t⁻¹ if t is singular at a few random states of the robot."""
    if model is None or len(model.bodies) > max_bodies or term in REGULAR:
        return
    rank = _rank_deficiency(term, nominal_model(model))
    if rank is not None:
        text = UNICODE.text(term)
        raise StateError(
            f"({text})⁻¹: {text} is singular at every tested state of {model.name} "
            f"(rank {rank[0]} of {rank[1]})",
            "use fewer frames, or an operator of full rank; "
            "operational_space_inertia has options for singular J M⁻¹ J*",
        )


@lru_cache(maxsize=1024)
def _rank_deficiency(term: Term, model: Model) -> tuple[int, int] | None:
    """(rank, size) if the term is singular at all tried states; None otherwise, or if unknown."""
    rng = np.random.default_rng(20)
    try:
        q, values = random_inputs(term, model, rng, (STATES,))
        A = dense_value.evaluate(
            term, model, q, values.get("v"), {name: x for name, x in values.items() if name != "v"}
        )
    except (SingularError, StateError):
        return None
    if (
        A.size
        and (size := np.abs(A).max()) < TINY_ENTRY
        and size <= NOISE * entry_bound(term, model, q, values)
    ):
        return 0, A.shape[-1]  # zero up to rounding
    ratio = reciprocal_condition(A)
    if not len(ratio) or np.isnan(ratio).any() or (ratio > RCOND).any():
        return None
    singular = np.linalg.svd(A, compute_uv=False)
    return int((singular > NOISE * singular[..., :1]).sum(axis=-1).max()), A.shape[-1]


def entry_bound(term: Term, model: Model, q: np.ndarray, values: Mapping[str, np.ndarray]) -> float:
    """A bound of the entries of a term, by those of its letters; far smaller ones are rounding."""
    if term.op == "letter" and term.args[0] == "I":
        return 1.0
    if term.op in ("letter", "inverse"):
        names = {name for name, _, _ in ends(term).vectors} | {"v"}
        inputs = {name: x for name, x in values.items() if name in names}
        return float(
            np.abs(dense_value.evaluate(term, model, q, inputs.pop("v", None), inputs)).max(
                initial=0.0
            )
        )
    inner = [entry_bound(x, model, q, values) for x in term.args if isinstance(x, Term)]
    return (
        prod(inner)
        if term.op == "product"
        else sum(inner) * (abs(float(term.args[0])) if term.op == "scale" else 1.0)
    )


def random_inputs(
    term: Term, model: Model, rng: np.random.Generator, lead: tuple[int, ...] = ()
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A random q, and random values of the vectors and symbols of the term, and of v if needed."""
    q = model.random(rng) if lead == () else np.stack([model.random(rng) for _ in range(lead[0])])
    length = {"joint": model.nv, "link": 6 * len(model.bodies)}
    found = ends(term)
    values: dict[str, np.ndarray] = {}
    for name, space, end in found.vectors:
        if space.startswith("symbol"):
            continue
        count = found.value(end)
        values[name] = rng.standard_normal(
            (*lead, length.get(space) or 6 * (count if isinstance(count, int) and count else 1))
        )
    for x in {x.bare for x in terms.letters(term)}:
        if isinstance(x, SymbolLetter):
            values[x.word] = rng.standard_normal((*lead, length[x.space], length[x.space]))
        elif x.needs_velocity and "v" not in values:
            values["v"] = rng.standard_normal((*lead, model.nv))
    return q, values
