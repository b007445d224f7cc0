"""`pp.FlexibleBody`: nodes with masses, mode shapes at the nodes, stiffness of the shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import count_of
from psiphi._util.validate import broadcast_row
from psiphi.model.flexible.craig_bampton import reduce_matrices
from psiphi.model.flexible.flexible_link import BendingBody, BodyPlace
from psiphi.model.flexible.lumped_masses import equivalent_points
from psiphi.model.flexible.modal_checks import (
    check_masses,
    check_modal_mass,
    check_positive_definite,
    check_shape,
    check_symmetric,
    finite_array,
    indefinite_mass_remedy,
    interface_nodes,
    node_indices,
    root_nodes,
)
from psiphi.model.flexible.modal_files import read_modal, write_modal
from psiphi.model.inertias import ZERO_INERTIA
from psiphi.model.mode_shapes import ModeShape

# Limits of the amplitudes, within which the linear shapes hold.
MAX_DEFLECTION = 0.1  # relative to the extent of the body
MAX_TWIST = 0.35  # rad, for modes that only twist
DRAWN_NODES = 8  # nodes that pictures show by default


class FlexibleBody(BendingBody):
    """A clamped body with n shapes: mass (N,), nodes (N, 3), shapes (N, 3, n), stiffness (n, n).

    All data are in axes of the root, where the body is clamped; the root is the origin, and all
    shapes are zero there. `mass` is lumped at the nodes, or a matrix (N, N) for each of x, y and z.
    `interface` names nodes to which other links may be attached; there the rotations of the shapes,
    `turns` (N, 3, n), are needed. `rotary` (N, 3, 3) are inertias of the nodes, `shortening`
    (N, 3, n, n) the quadratic displacements of the nodes. `damping` is a damping ratio, one for all
    modes or one per mode. `modal_mass` (n, n) is optional and only checked. `drawn` are the nodes
    that pictures connect, root to tip; the default is a selection.

    The shapes are replaced by the normal modes of the body, in order of rising frequency, so that
    stiffness and damping are diagonal. A mode is normalized to 1 m where it moves most.
    `frequencies` are those of the clamped body without attached links, in rad/s.

    >>> body = FlexibleBody(
    ...     nodes=[[1, 0, 0]],
    ...     mass=[2.0],
    ...     shapes=[[[0], [0], [1]]],
    ...     stiffness=[[50.0]],
    ...     interface={"tip": 0},
    ...     turns=[[[0], [-1.5], [0]]],
    ... )
    >>> body.frequencies
    array([5.])
    """

    frequencies: np.ndarray
    basis: np.ndarray  # (n, n): the normal modes in terms of the given shapes, by columns
    data: dict[str, Any]

    def __init__(
        self,
        nodes: Numbers,
        mass: Numbers,
        shapes: Numbers,
        stiffness: Numbers,
        *,
        interface: Mapping[str, int] | None = None,
        turns: Numbers | None = None,
        rotary: Numbers | None = None,
        shortening: Numbers | None = None,
        damping: Numbers = 0.0,
        modal_mass: Numbers | None = None,
        drawn: Numbers | None = None,
    ):
        r, U = finite_array("nodes", nodes, 2), finite_array("shapes", shapes, 3)
        N, n = len(r), U.shape[2]
        check_shape("nodes", r, (N, 3))
        check_shape("shapes", U, (N, 3, n))
        if not N or not n:
            raise ModelError(
                f"there are {N} nodes and {n} shapes, expected at least one of each",
                "give nodes and shapes",
            )
        m = finite_array("mass", mass, None)
        m = check_symmetric("mass", m, (N, N)) if m.ndim == 2 else check_shape("mass", m, (N,))
        T = (
            np.zeros_like(U)
            if turns is None
            else check_shape("turns", finite_array("turns", turns, 3), (N, 3, n))
        )
        J = (
            np.zeros((N, 3, 3))
            if rotary is None
            else check_shape("rotary", finite_array("rotary", rotary, 3), (N, 3, 3))
        )
        Q = (
            None
            if shortening is None
            else check_shape("shortening", finite_array("shortening", shortening, 4), (N, 3, n, n))
        )
        K = check_symmetric("stiffness", finite_array("stiffness", stiffness, 2), (n, n))
        Q = None if Q is None else 0.5 * (Q + np.swapaxes(Q, 2, 3))  # does not change eta* Q eta
        check_masses(m, J)
        ends = interface_nodes(interface, N)
        if ends and turns is None:
            raise ModelError(
                "interface nodes came without turns",
                "give the rotations of the shapes at the nodes; zeros if they do not rotate",
            )
        modal = _modal_mass(m, U, T, J)
        check_positive_definite("the modal mass of the shapes", modal, indefinite_mass_remedy(n, N))
        check_positive_definite(
            "stiffness", K, "clamp the body at its root; each shape needs stiffness"
        )
        if modal_mass is not None:
            check_modal_mass(
                check_symmetric("modal_mass", finite_array("modal_mass", modal_mass, 2), (n, n)),
                modal,
            )
        ratios = _ratios(damping, n)

        w, basis = _natural_modes(K, modal)
        basis, displaces = _normalized(basis, U, T)
        U, T = U @ basis, T @ basis
        Q = None if Q is None else np.einsum("kcij,ia,jb->kcab", Q, basis, basis)
        extent = max(float(np.abs(r).max()), 1e-9)
        generalised = np.einsum("ia,ij,ja->a", basis, modal, basis)
        super().__init__(
            _body_places(r, m, U, T, J, Q, ends, _drawn_nodes(drawn, r)),
            tuple((w * w * generalised).tolist()),
            tuple((2.0 * ratios * w * generalised).tolist()),
            tuple(np.where(displaces, MAX_DEFLECTION * extent, MAX_TWIST).tolist()),
        )
        object.__setattr__(self, "frequencies", w)
        object.__setattr__(self, "basis", basis)
        given = dict(
            nodes=nodes,
            mass=mass,
            shapes=shapes,
            stiffness=stiffness,
            interface=dict(interface or {}),
            turns=turns,
        )
        given |= dict(rotary=rotary, shortening=shortening, damping=damping, drawn=drawn)
        object.__setattr__(self, "data", {name: x for name, x in given.items() if x is not None})

    @property
    def mass(self) -> float:
        """The total mass in kg."""
        return sum(place.mass for place in self.places)

    def __repr__(self) -> str:
        modes = ", ".join(f"{w / (2.0 * np.pi):.4g}" for w in self.frequencies[:4])
        more = ", ..." if len(self.frequencies) > 4 else ""
        count = count_of(len(self.stiffness), "mode")
        return f"<{type(self).__name__}: {count}, {self.mass:.4g} kg, {modes}{more} Hz>"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FlexibleBody:
        """Read a body from an .npz or .json file; docs/flexible.md describes the format.

        >>> import psiphi as pp
        >>> pp.Beam(1.0, 0.01, "steel", modes=1).save(folder / "rod.npz")  # doctest: +SKIP
        >>> pp.FlexibleBody.load(folder / "rod.npz").mass  # doctest: +SKIP
        0.6165375582669103
        """
        data = read_modal(path)
        return FlexibleBody.craig_bampton(**data) if "root" in data else FlexibleBody(**data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the body to an .npz or .json file, which `load` reads.

        >>> import psiphi as pp
        >>> pp.Beam(1.0, 0.01, "steel", modes=1).save(folder / "rod.json")  # doctest: +SKIP
        """
        write_modal(path, self.data)

    @classmethod
    def craig_bampton(
        cls,
        nodes: Numbers,
        mass: Numbers,
        stiffness: Numbers,
        *,
        root: Numbers,
        interface: Mapping[str, int],
        modes: int,
        rotary: Numbers | None = None,
        damping: Numbers = 0.0,
    ) -> FlexibleBody:
        """Reduce the matrices of a finite-element program.

        `stiffness` is (6 N, 6 N), or (3 N, 3 N) for nodes without rotations. The nodes `root` are
        clamped. The shapes are the static ones, for a unit motion of each coordinate of the
        interface nodes, and the `modes` lowest modes with fixed interface nodes (Craig-Bampton).
        `mass` (N,) is lumped, or a matrix (N, N) for each of x, y and z; `rotary` (N, 3, 3) are
        inertias of the nodes.

        >>> import numpy as np, psiphi as pp
        >>> between = np.diag([1e6, 1e4, 1e4, 1e2, 1e3, 1e3])
        >>> spring = np.kron([[1.0, -1.0], [-1.0, 1.0]], between)
        >>> inertias = 0.01 * np.tile(np.eye(3), (2, 1, 1))
        >>> pp.FlexibleBody.craig_bampton(
        ...     [[0, 0, 0], [1, 0, 0]],
        ...     [1, 1],
        ...     spring,
        ...     root=0,
        ...     interface={"tip": 1},
        ...     modes=0,
        ...     rotary=inertias,
        ... )
        <FlexibleBody: 6 modes, 2 kg, 15.92, 15.92, 15.92, 50.33, ... Hz>
        """
        r, K = finite_array("nodes", nodes, 2), finite_array("stiffness", stiffness, 2)
        N = len(r)
        per = len(K) // N if N else 0
        if per not in (3, 6) or K.shape != (per * N, per * N):
            raise ModelError(
                f"stiffness has shape {K.shape}, expected {(6 * N,) * 2} or {(3 * N,) * 2}",
                "give six rows per node",
            )
        K, m = check_symmetric("stiffness", K, K.shape), finite_array("mass", mass, None)
        m = (
            check_symmetric("mass", m, (N, N))
            if m.ndim == 2
            else np.diag(check_shape("mass", m, (N,)))
        )
        J = (
            np.zeros((N, 3, 3))
            if rotary is None
            else check_shape("rotary", finite_array("rotary", rotary, 3), (N, 3, 3))
        )
        ends = interface_nodes(interface, N)
        if ends and per == 3:
            raise ModelError(
                "interface nodes need rotations, but stiffness has three rows per node",
                "give six rows per node",
            )
        shapes, turns, small = reduce_matrices(
            m, J, K, per, root_nodes(root, N), list(ends.values()), modes
        )
        return FlexibleBody(
            r, mass, shapes, small, interface=ends, turns=turns, rotary=rotary, damping=damping
        )


def _body_places(
    r: np.ndarray,
    m: np.ndarray,
    U: np.ndarray,
    T: np.ndarray,
    J: np.ndarray,
    Q: np.ndarray | None,
    ends: dict[str, int],
    drawn: list[int],
) -> tuple[BodyPlace, ...]:
    """The lumped masses, drawn nodes and interface nodes.

    Nodes whose rotary inertia rotates with the shapes do not change. All others become a few
    equivalent points; the first has the sum of the rotary inertias that do not rotate.
    """

    def shape(k: int, turns: bool, is_drawn: bool = False) -> ModeShape:
        return ModeShape.of(U[k], T[k] if turns else None, None if Q is None else Q[k], is_drawn)

    rotating = [k for k in range(len(r)) if J[k].any() and T[k].any()]
    if rotating and m.ndim == 2:
        raise ModelError(
            "mass is a matrix, and nodes with rotary inertias rotate",
            "lump the masses: one number per node",
        )
    lumps = [
        BodyPlace("~", _vector(r[k]), shape(k, True), float(m[k]), _inertia_tuple(J[k]))
        for k in rotating
    ]
    rest = [k for k in range(len(r)) if k not in set(rotating)]
    rest_mass = m[rest] if m.ndim == 1 else m
    if rest_mass.any():
        values = [r[rest], U[rest], *([] if Q is None else [Q[rest]])]
        mass, points = equivalent_points(rest_mass, *values)
        if rest_mass.ndim == 1 and len(mass) >= np.count_nonzero(rest_mass):
            heavy = np.flatnonzero(rest_mass)
            mass, points = rest_mass[heavy], [x[heavy] for x in values]
        fixed = J[rest].sum(axis=0)
        for i, (weight, x, u) in enumerate(zip(mass, points[0], points[1], strict=True)):
            mode_shape = ModeShape.of(u, None, points[2][i] if Q is not None else None)
            lumps.append(
                BodyPlace(
                    "~",
                    _vector(x),
                    mode_shape,
                    float(weight),
                    _inertia_tuple(fixed) if i == 0 else ZERO_INERTIA,
                )
            )
    visible = [BodyPlace("", _vector(r[k]), shape(k, True, True)) for k in drawn]
    return (
        *lumps,
        *visible,
        *(BodyPlace(name, _vector(r[k]), shape(k, True)) for name, k in ends.items()),
    )


def _modal_mass(m: np.ndarray, U: np.ndarray, T: np.ndarray, J: np.ndarray) -> np.ndarray:
    weighted = m[:, None, None] * U if m.ndim == 1 else np.einsum("kl,lcj->kcj", m, U)
    return np.einsum("kci,kcj->ij", U, weighted) + np.einsum("kai,kab,kbj->ij", T, J, T)


def _ratios(value: Numbers, n: int) -> np.ndarray:
    """The damping ratio of each mode."""
    return broadcast_row(
        "damping",
        value,
        n,
        (0.0, 1e3),
        f"a ratio of 0 or more, or {n} of them",
        "a usual value is 0.01",
        ModelError,
    )


def _normalized(basis: np.ndarray, U: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The modes normalized to 1 m, or 1 rad if they only rotate; whether each displaces nodes."""
    displacement, rotation = (np.abs(x @ basis).max(axis=(0, 1)) for x in (U, T))
    displaces = displacement > 1e-9 * rotation
    return basis / np.where(displaces, displacement, rotation), displaces


def _natural_modes(K: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ω and φ of K φ = ω² M φ, in order of rising frequency."""
    L = np.linalg.cholesky(M)
    inner = np.linalg.solve(L, np.linalg.solve(L, K).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    return np.sqrt(values), np.linalg.solve(L.T, vectors)


def _vector(x: np.ndarray) -> tuple[float, float, float]:
    return float(x[0]), float(x[1]), float(x[2])


def _inertia_tuple(J: np.ndarray) -> tuple[float, float, float, float, float, float]:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = J.tolist()
    return xx, xy, xz, yy, yz, zz


def _drawn_nodes(drawn: Numbers | None, r: np.ndarray) -> list[int]:
    """The nodes that pictures show: `drawn`, or a selection in order of distance from the root."""
    if drawn is not None:
        return node_indices("drawn", drawn, len(r))
    by_distance = np.argsort(np.linalg.norm(r, axis=1), kind="stable")
    return [
        int(by_distance[i])
        for i in np.unique(np.linspace(0, len(r) - 1, DRAWN_NODES).round().astype(int))
    ]
