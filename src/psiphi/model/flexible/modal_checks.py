"""Checks of the data of a flexible body: array shapes, symmetry, definiteness."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import real_array

SYMMETRY_TOLERANCE = 1e-8  # relative to the largest entry
MODAL_MASS_TOLERANCE = 0.02  # relative difference of modal_mass and the mass of the nodes


def finite_array(what: str, value: Numbers, ndim: int | None) -> np.ndarray:
    """`value` as a finite float array with `ndim` axes; None means one or two."""
    x = real_array(what, value, (), "give an array of numbers")
    if (
        (ndim is not None and x.ndim != ndim)
        or (ndim is None and x.ndim not in (1, 2))
        or not np.isfinite(x).all()
    ):
        axes = f"{ndim} axes" if ndim is not None else "one or two axes"
        raise ModelError(
            f"{what} has shape {x.shape}, expected finite numbers with {axes}",
            "docs/flexible.md lists the shapes",
        )
    return x.astype(float)


def check_shape(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """x, or a ModelError if its shape differs."""
    if x.shape != shape:
        raise ModelError(
            f"{what} has shape {x.shape}, expected {shape}", "docs/flexible.md lists the shapes"
        )
    return x


def check_symmetric(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """x symmetrized, or a ModelError if it is not symmetric up to rounding."""
    check_shape(what, x, shape)
    off = np.abs(x - x.T).max(initial=0.0)
    if off > SYMMETRY_TOLERANCE * np.abs(x).max(initial=0.0):
        raise ModelError(
            f"{what} is not symmetric: entries differ by {off:.3g}",
            "check how the matrix was exported",
        )
    return 0.5 * (x + x.T)


def check_positive_definite(what: str, x: np.ndarray, remedy: str) -> None:
    """Raise a ModelError unless x, scaled to unit diagonal, is positive definite."""
    scale = np.sqrt(np.maximum(np.diagonal(x), 1e-300))
    least = np.linalg.eigvalsh(x / np.outer(scale, scale))[0]
    if not (least > 1e-12 and np.diagonal(x).min() > 0.0):
        raise ModelError(
            f"{what} is not positive definite "
            f"(smallest eigenvalue {least:.3g}, diagonal scaled to 1)",
            remedy,
        )


def check_names(
    what: str, names: Collection[str], known: Collection[str], needed: Collection[str]
) -> None:
    """Raise a ModelError for an unknown name, or if a needed name is missing."""
    for name in names:
        if name not in known:
            raise ModelError(
                f"{what} has the unknown name {shown(name)}",
                f"{nearest(name, known)} ({', '.join(known)})",
            )
    for name in needed:
        if name not in names:
            raise ModelError(f"{what} has no {name}", f"give {', '.join(needed)}")


def indefinite_mass_remedy(n: int, N: int) -> str:
    """The remedy if the modal mass of n shapes at N nodes is singular."""
    if n > 3 * N:
        return f"give at most {3 * N} shapes: {N} nodes have three coordinates each"
    return (
        "leave out shapes that depend linearly on others or move no mass "
        "(torsion needs rotary inertias, rotary=)"
    )


def check_modal_mass(given: np.ndarray, computed: np.ndarray) -> None:
    """Raise a ModelError if a given modal mass differs from that of the nodes."""
    check_positive_definite("modal_mass", given, "check how the matrix was exported")
    off = np.abs(given - computed).max() / np.abs(computed).max()
    if off > MODAL_MASS_TOLERANCE:
        cause = f"modal_mass differs by {off:.1%} from the modal mass of the nodes and shapes"
        raise ModelError(cause, "give the masses with which the shapes were computed")


def interface_nodes(interface: Mapping[str, int] | None, N: int) -> dict[str, int]:
    """The checked interface: names and node indices."""
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
                f"interface has the name {shown(name)}, expected text other than 'root' and '~...'",
                'give interface={"tip": 12}',
            )
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < N:
            raise ModelError(
                f"interface node {shown(name)} is {shown(k)}, expected a node from 0 to {N - 1}",
                "give the index of a node",
            )
    return {name: int(k) for name, k in interface.items()}


def node_indices(what: str, value: Numbers, N: int) -> list[int]:
    """`value` as a list of node indices."""
    each = np.atleast_1d(real_array(what, value, (), "give indices of nodes"))
    if (
        each.ndim != 1
        or not np.isfinite(each).all()
        or (each != each.round()).any()
        or (each < 0).any()
        or (each >= N).any()
    ):
        raise ModelError(
            f"{what} is {shown(value)}, expected nodes from 0 to {N - 1}", "give indices of nodes"
        )
    return [int(k) for k in each]


def root_nodes(root: Numbers, N: int) -> list[int]:
    """The indices of the clamped nodes, at least one."""
    each = node_indices("root", root, N)
    if not each:
        raise ModelError("root is empty", "give the nodes that are clamped")
    return each


def check_masses(m: np.ndarray, J: np.ndarray) -> None:
    """Raise a ModelError unless masses and rotary inertias are physical."""
    least = m.min() if m.ndim == 1 else np.linalg.eigvalsh(m)[0]
    if least < -1e-10 * np.abs(m).max() or not np.sum(m) > 0.0:
        raise ModelError(
            "a mass is negative, or all are zero", "give masses >= 0, at least one > 0"
        )
    skew = np.abs(J - np.swapaxes(J, 1, 2)).max()
    if (
        skew > SYMMETRY_TOLERANCE * np.abs(J).max()
        or np.linalg.eigvalsh(J).min() < -1e-10 * np.abs(J).max()
    ):
        raise ModelError(
            "a rotary inertia is not symmetric, or negative", "check how it was exported"
        )
