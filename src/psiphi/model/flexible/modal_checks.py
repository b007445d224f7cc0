"""What the data of a flexible body must be: shapes of arrays, symmetry, definiteness; else a ModelError that names it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import real

SYMMETRIC = 1e-8  # how far from symmetry rounded matrices may be, of their largest entry
FIT = 0.02  # how far the modal mass of a file may be from what its nodes have


def array(what: str, given: Any, ndim: int | None) -> np.ndarray:
    x = real(what, given, (), "give an array of numbers")
    if (
        (ndim is not None and x.ndim != ndim)
        or (ndim is None and x.ndim not in (1, 2))
        or not np.isfinite(x).all()
    ):
        axes = f"{ndim} axes" if ndim is not None else "one or two axes"
        raise ModelError(
            f"{what} has shape {x.shape}, expected finite numbers with {axes}",
            "docs/flexible.md says which",
        )
    return x.astype(float)


def fits(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if x.shape != shape:
        raise ModelError(
            f"{what} has shape {x.shape}, expected {shape}", "docs/flexible.md says which"
        )
    return x


def symmetric(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    fits(what, x, shape)
    off = np.abs(x - x.T).max(initial=0.0)
    if off > SYMMETRIC * np.abs(x).max(initial=0.0):
        raise ModelError(
            f"{what} is not symmetric: entries differ by {off:.3g}", "look at how it was written"
        )
    return 0.5 * (x + x.T)


def positive(what: str, x: np.ndarray, remedy: str) -> None:
    scale = np.sqrt(np.maximum(np.diagonal(x), 1e-300))
    least = np.linalg.eigvalsh(x / np.outer(scale, scale))[0]
    if not (least > 1e-12 and np.diagonal(x).min() > 0.0):
        raise ModelError(
            f"{what} is not positive definite (smallest eigenvalue {least:.3g}, diagonal scaled to 1)",
            remedy,
        )


def known(
    what: str, given: Collection[str], names: Collection[str], needed: Collection[str]
) -> None:
    """Names that there are, and none that is needed missing."""
    for name in given:
        if name not in names:
            raise ModelError(
                f"{what} has {shown(name)}, which is not known",
                f"{nearest(name, names)} ({', '.join(names)})",
            )
    for name in needed:
        if name not in given:
            raise ModelError(f"{what} has no {name}", f"give {', '.join(needed)}")


def too_many(n: int, N: int) -> str:
    many = (
        f"{n} shapes are more than {N} nodes with three coordinates each can tell apart"
        if n > 3 * N
        else ""
    )
    return (
        many
        or "leave out shapes that others make up, or that move no mass (what twists alone needs rotary=)"
    )


def agree(given: np.ndarray, own: np.ndarray) -> None:
    positive("modal_mass", given, "look at how it was written")
    off = np.abs(given - own).max() / np.abs(own).max()
    if off > FIT:
        cause = f"modal_mass differs from what the nodes' masses and shapes have by {off:.1%}"
        raise ModelError(cause, "give the masses that the shapes were computed with")


def ends_of(interface: Any, N: int) -> dict[str, int]:
    if interface is None:
        return {}
    if not isinstance(interface, Mapping):
        raise ModelError(
            f"interface is {shown(interface)}, expected names and nodes",
            'give interface={"tip": 12}',
        )
    for name, k in interface.items():
        if not isinstance(name, str) or not name.strip() or name.startswith("~") or name == "root":
            raise ModelError(
                f"interface has the name {shown(name)}, expected text, not 'root' or '~..'",
                'give interface={"tip": 12}',
            )
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < N:
            raise ModelError(
                f"interface node {shown(name)} is {shown(k)}, expected a node from 0 to {N - 1}",
                "correct it",
            )
    return {name: int(k) for name, k in interface.items()}


def node_numbers(what: str, given: Any, N: int) -> list[int]:
    each = np.atleast_1d(real(what, given, (), "give numbers of nodes"))
    if (
        each.ndim != 1
        or not np.isfinite(each).all()
        or (each != each.round()).any()
        or (each < 0).any()
        or (each >= N).any()
    ):
        raise ModelError(
            f"{what} is {shown(given)}, expected nodes from 0 to {N - 1}", "correct it"
        )
    return [int(k) for k in each]


def clamped(root: Any, N: int) -> list[int]:
    each = node_numbers("root", root, N)
    if not each:
        raise ModelError("root is empty", "name the nodes that are clamped")
    return each


def check_masses(m: np.ndarray, J: np.ndarray) -> None:
    """Masses and inertias that bodies can have."""
    least = m.min() if m.ndim == 1 else np.linalg.eigvalsh(m)[0]
    if least < -1e-10 * np.abs(m).max() or not np.sum(m) > 0.0:
        raise ModelError(
            "a mass is negative, or there is none", "give masses of 0 or more, and one that is more"
        )
    skew = np.abs(J - np.swapaxes(J, 1, 2)).max()
    if skew > SYMMETRIC * np.abs(J).max() or np.linalg.eigvalsh(J).min() < -1e-10 * np.abs(J).max():
        raise ModelError(
            "a rotary inertia is not symmetric, or negative", "look at how it was written"
        )
