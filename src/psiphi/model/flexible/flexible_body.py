"""A body that bends by a few shapes: nodes with masses, shapes at the nodes, and the stiffness of the shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import counted
from psiphi._util.validate import one_or_each
from psiphi.model.flexible.craig_bampton import reduced
from psiphi.model.flexible.flexible_link import BendingBody, BodyPlace
from psiphi.model.flexible.lumped_masses import few_points
from psiphi.model.flexible.modal_checks import (
    agree,
    array,
    check_masses,
    clamped,
    ends_of,
    fits,
    node_numbers,
    positive,
    symmetric,
    too_many,
)
from psiphi.model.flexible.modal_files import read_modal, write_modal
from psiphi.model.inertias import NONE
from psiphi.model.mode_shapes import ModeShape

TURN = 0.35  # rad: the same, of what twists
REACH = 0.1  # of the extent: beyond it shapes are no straight lines any more
STATIONS = 8  # places that pictures show, where nothing is said


class FlexibleBody(BendingBody):
    """A clamped body that bends by n shapes: mass (N,) at nodes (N, 3), shapes (N, 3, n), stiffness (n, n).

    Everything is in the axes of the root, where the body is clamped: at its origin, where every shape is zero. `mass` is
    lumped at the nodes, or a matrix (N, N), the same for x, y and z. `interface` names nodes that others may hang on; `turns`
    (N, 3, n) are the rotations of the shapes at the nodes, needed there. `rotary` (N, 3, 3) are inertias of the nodes
    themselves, `shortening` (N, 3, n, n) what the shapes draw the nodes in by. `damping` is a ratio, one or one a mode;
    `modal_mass` (n, n) is not needed, and checked where it is given. `drawn` are the nodes that pictures join, root to tip; a
    few of all when left out.

    The shapes are changed for the body's own modes, by rising frequency: stiffness and damping are numbers a mode, and a unit
    of a mode is a metre where it moves most. `frequencies` are those of the clamped body alone, in rad/s.

    >>> body = FlexibleBody([[1, 0, 0]], [2.0], [[[0], [0], [1]]], [[50.0]], interface={"tip": 0}, turns=[[[0], [-1.5], [0]]])
    >>> body.frequencies
    array([5.])
    """

    frequencies: np.ndarray
    basis: np.ndarray  # (n, n): the modes in the shapes that were given, by columns
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
        r, U = array("nodes", nodes, 2), array("shapes", shapes, 3)
        N, n = len(r), U.shape[2]
        fits("nodes", r, (N, 3))
        fits("shapes", U, (N, 3, n))
        if not N or not n:
            raise ModelError(
                f"there are {N} nodes and {n} shapes, expected one of each at least",
                "give nodes and shapes",
            )
        m = array("mass", mass, None)
        m = symmetric("mass", m, (N, N)) if m.ndim == 2 else fits("mass", m, (N,))
        T = (
            np.zeros_like(U)
            if turns is None
            else fits("turns", array("turns", turns, 3), (N, 3, n))
        )
        J = (
            np.zeros((N, 3, 3))
            if rotary is None
            else fits("rotary", array("rotary", rotary, 3), (N, 3, 3))
        )
        Q = (
            None
            if shortening is None
            else fits("shortening", array("shortening", shortening, 4), (N, 3, n, n))
        )
        K = symmetric("stiffness", array("stiffness", stiffness, 2), (n, n))
        Q = None if Q is None else 0.5 * (Q + np.swapaxes(Q, 2, 3))  # eta* Q eta is the same
        check_masses(m, J)
        ends = ends_of(interface, N)
        if ends and turns is None:
            raise ModelError(
                "interface nodes came without turns",
                "give the shapes' rotations at the nodes; zeros where they do not turn",
            )
        modal = _modal_mass(m, U, T, J)
        positive("the modal mass of the shapes", modal, too_many(n, N))
        positive("stiffness", K, "clamp the body at its root: each shape needs stiffness")
        if modal_mass is not None:
            agree(symmetric("modal_mass", array("modal_mass", modal_mass, 2), (n, n)), modal)
        ratios = _ratios(damping, n)

        w, basis = _own_modes(K, modal)
        basis, shifts = _in_units(basis, U, T)
        U, T = U @ basis, T @ basis
        Q = None if Q is None else np.einsum("kcij,ia,jb->kcab", Q, basis, basis)
        extent = max(float(np.abs(r).max()), 1e-9)
        generalised = np.einsum("ia,ij,ja->a", basis, modal, basis)
        places = _places(r, m, U, T, J, Q, ends, _seen(drawn, r))
        super().__init__(
            places,
            tuple((w * w * generalised).tolist()),
            tuple((2.0 * ratios * w * generalised).tolist()),
            tuple(np.where(shifts, REACH * extent, TURN).tolist()),
        )
        object.__setattr__(self, "frequencies", w)
        object.__setattr__(self, "basis", basis)
        kept = dict(
            nodes=nodes,
            mass=mass,
            shapes=shapes,
            stiffness=stiffness,
            interface=dict(interface or {}),
            turns=turns,
        )
        kept |= dict(rotary=rotary, shortening=shortening, damping=damping, drawn=drawn)
        object.__setattr__(self, "data", {name: x for name, x in kept.items() if x is not None})

    @property
    def mass(self) -> float:
        """Of the whole body."""
        return sum(place.mass for place in self.places)

    def __repr__(self) -> str:
        modes = ", ".join(f"{w / (2.0 * np.pi):.4g}" for w in self.frequencies[:4])
        more = ", ..." if len(self.frequencies) > 4 else ""
        count = counted(len(self.stiffness), "mode")
        return f"<{type(self).__name__}: {count}, {self.mass:.4g} kg, {modes}{more} Hz>"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FlexibleBody:
        """From an .npz or .json file: docs/flexible.md says what is in it.

        >>> import psiphi as pp
        >>> pp.Beam(1.0, 0.01, "steel", modes=1).save(folder / "rod.npz")  # doctest: +SKIP
        >>> pp.FlexibleBody.load(folder / "rod.npz").mass  # doctest: +SKIP
        0.6165375582669103
        """
        data = read_modal(path)
        return FlexibleBody.craig_bampton(**data) if "root" in data else FlexibleBody(**data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Into an .npz or .json file, which `load` reads.

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
        root: Any,
        interface: Mapping[str, int],
        modes: int,
        rotary: Numbers | None = None,
        damping: Numbers = 0.0,
    ) -> FlexibleBody:
        """From the matrices of a finite-element program: `stiffness` (6 N, 6 N), or (3 N, 3 N) of nodes that do not turn.

        The nodes `root` are clamped. Shapes are those of a unit motion of each coordinate of the interface nodes (static),
        and the `modes` slowest ones with the interface nodes held: Craig and Bampton's. `mass` (N,) is lumped, or a matrix
        (N, N), the same for x, y and z; `rotary` (N, 3, 3) are the nodes' own inertias.

        >>> import numpy as np, psiphi as pp
        >>> spring = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.diag([1e6, 1e4, 1e4, 1e2, 1e3, 1e3]))  # between two nodes
        >>> inertias = 0.01 * np.tile(np.eye(3), (2, 1, 1))
        >>> pp.FlexibleBody.craig_bampton(
        ...     [[0, 0, 0], [1, 0, 0]], [1, 1], spring, root=0, interface={"tip": 1}, modes=0, rotary=inertias
        ... )
        <FlexibleBody: 6 modes, 2 kg, 15.92, 15.92, 15.92, 50.33, ... Hz>
        """
        r, K = array("nodes", nodes, 2), array("stiffness", stiffness, 2)
        N = len(r)
        per = len(K) // N if N else 0
        if per not in (3, 6) or K.shape != (per * N, per * N):
            raise ModelError(
                f"stiffness has shape {K.shape}, expected {(6 * N,) * 2} or {(3 * N,) * 2}",
                "give six rows a node",
            )
        K, m = symmetric("stiffness", K, K.shape), array("mass", mass, None)
        m = symmetric("mass", m, (N, N)) if m.ndim == 2 else np.diag(fits("mass", m, (N,)))
        J = (
            np.zeros((N, 3, 3))
            if rotary is None
            else fits("rotary", array("rotary", rotary, 3), (N, 3, 3))
        )
        ends = ends_of(interface, N)
        if ends and per == 3:
            raise ModelError(
                "nodes with three rows do not turn, and others hang on them", "give six rows a node"
            )
        shapes, turns, small = reduced(m, J, K, per, clamped(root, N), list(ends.values()), modes)
        return FlexibleBody(
            r, mass, shapes, small, interface=ends, turns=turns, rotary=rotary, damping=damping
        )


def _places(
    r: np.ndarray,
    m: np.ndarray,
    U: np.ndarray,
    T: np.ndarray,
    J: np.ndarray,
    Q: Any,
    ends: dict,
    drawn: Any,
) -> tuple:
    """Lumps of mass, places to be seen, and the nodes that others hang on.

    Nodes whose own inertias turn with the shapes stay as they are; all others become few points, the first with what of
    inertia stays as the root is."""

    def part(k, turns, seen=False):
        return ModeShape.of(U[k], T[k] if turns else None, None if Q is None else Q[k], seen)

    turning = [k for k in range(len(r)) if J[k].any() and T[k].any()]
    if turning and m.ndim == 2:
        raise ModelError(
            "mass is a matrix, and nodes with rotary inertias turn",
            "lump the masses: one number a node",
        )
    lumps = [BodyPlace("~", _vector(r[k]), part(k, True), float(m[k]), _six(J[k])) for k in turning]
    rest = [k for k in range(len(r)) if k not in set(turning)]
    own = m[rest] if m.ndim == 1 else m
    if own.any():
        at, shapes, drawn_in = r[rest], U[rest], None if Q is None else Q[rest]
        mass, cut = few_points(own, at, shapes, *(() if drawn_in is None else (drawn_in,)))
        if own.ndim == 1 and len(mass) >= np.count_nonzero(own):
            heavy = np.flatnonzero(own)
            mass, cut = (
                own[heavy],
                [at[heavy], shapes[heavy], *([] if drawn_in is None else [drawn_in[heavy]])],
            )
        still = J[rest].sum(axis=0)
        for i, (weight, x, u) in enumerate(zip(mass, cut[0], cut[1], strict=True)):
            shape = ModeShape.of(u, None, cut[2][i] if Q is not None else None)
            lumps.append(
                BodyPlace("~", _vector(x), shape, float(weight), _six(still) if i == 0 else NONE)
            )
    seen = [BodyPlace("", _vector(r[k]), part(k, True, True)) for k in drawn]
    return (
        *lumps,
        *seen,
        *(BodyPlace(name, _vector(r[k]), part(k, True)) for name, k in ends.items()),
    )


def _modal_mass(m: np.ndarray, U: np.ndarray, T: np.ndarray, J: np.ndarray) -> np.ndarray:
    weighed = m[:, None, None] * U if m.ndim == 1 else np.einsum("kl,lcj->kcj", m, U)
    return np.einsum("kci,kcj->ij", U, weighed) + np.einsum("kai,kab,kbj->ij", T, J, T)


def _ratios(given: Numbers, n: int) -> np.ndarray:
    """Damping ratios: one, or one a mode."""
    return one_or_each(
        "damping",
        given,
        n,
        (0.0, 1e3),
        f"a ratio of 0 or more, or {n} of them",
        "0.01 is usual",
        ModelError,
    )


def _in_units(basis: np.ndarray, U: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The modes in units of a metre where they move most, or of a radian of what twists alone; and which of them shift."""
    far, wide = (np.abs(x @ basis).max(axis=(0, 1)) for x in (U, T))
    shifts = far > 1e-9 * wide
    return basis / np.where(shifts, far, wide), shifts


def _own_modes(K: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ω and φ of K φ = ω² M φ, by rising frequency."""
    L = np.linalg.cholesky(M)
    inner = np.linalg.solve(L, np.linalg.solve(L, K).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    return np.sqrt(values), np.linalg.solve(L.T, vectors)


def _vector(x: np.ndarray) -> tuple[float, float, float]:
    return float(x[0]), float(x[1]), float(x[2])


def _six(J: np.ndarray) -> tuple[float, float, float, float, float, float]:
    return tuple(float(J[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))  # type: ignore[return-value]


def _seen(drawn: Any, r: np.ndarray) -> list[int]:
    """The nodes that pictures show: those named, else some of all, from near the root to far."""
    if drawn is not None:
        return node_numbers("drawn", drawn, len(r))
    far = np.argsort(np.linalg.norm(r, axis=1), kind="stable")
    return [
        int(far[i]) for i in np.unique(np.linspace(0, len(r) - 1, STATIONS).round().astype(int))
    ]
