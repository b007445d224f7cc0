"""A body that bends by a few shapes: nodes with masses, shapes at the nodes, and the stiffness of the shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi.arguments import Numbers, real
from psiphi.errors import ModelError
from psiphi.flexible.craig_bampton import reduced
from psiphi.flexible.lumping import few_points
from psiphi.flexible.modal_files import read_modal, write_modal
from psiphi.model.bending import BendingBody, BodyPlace
from psiphi.model.mode_shapes import ModeShape
from psiphi.wording import counted, shown

SYMMETRIC = 1e-8  # how far from symmetry rounded matrices may be, of their largest entry
FIT = 0.02  # how far the modal mass of a file may be from what its nodes have
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
        r, U = _array("nodes", nodes, 2), _array("shapes", shapes, 3)
        N, n = len(r), U.shape[2]
        _fits("nodes", r, (N, 3))
        _fits("shapes", U, (N, 3, n))
        if not N or not n:
            raise ModelError(f"there are {N} nodes and {n} shapes, expected one of each at least", "give nodes and shapes")
        m = _array("mass", mass, None)
        m = _symmetric("mass", m, (N, N)) if m.ndim == 2 else _fits("mass", m, (N,))
        T = np.zeros_like(U) if turns is None else _fits("turns", _array("turns", turns, 3), (N, 3, n))
        J = np.zeros((N, 3, 3)) if rotary is None else _fits("rotary", _array("rotary", rotary, 3), (N, 3, 3))
        Q = None if shortening is None else _fits("shortening", _array("shortening", shortening, 4), (N, 3, n, n))
        K = _symmetric("stiffness", _array("stiffness", stiffness, 2), (n, n))
        if (np.diagonal(m) if m.ndim == 2 else m).min() < 0.0 or not np.sum(m) > 0.0:
            raise ModelError("a mass is negative, or there is none", "give masses of 0 or more, and one that is more")
        ends = _ends(interface, N)
        if ends and turns is None:
            raise ModelError(
                "interface nodes came without turns", "give the shapes' rotations at the nodes; zeros where they do not turn"
            )
        modal = _modal_mass(m, U, T, J)
        _positive("the modal mass of the shapes", modal, _too_many(n, N))
        _positive("stiffness", K, "clamp the body at its root: each shape needs stiffness")
        if modal_mass is not None:
            _agree(_symmetric("modal_mass", _array("modal_mass", modal_mass, 2), (n, n)), modal)
        ratios = real("damping", damping, (), "give a ratio, one or one a mode")
        if ratios.shape not in ((), (n,)) or not ((ratios >= 0.0) & (ratios < 1e3)).all():
            raise ModelError(f"damping is {shown(damping)}, expected a ratio of 0 or more, or {n} of them", "0.01 is usual")

        w, basis = _own_modes(K, modal)
        U, T = U @ basis, T @ basis
        size = np.maximum(np.abs(U).max(axis=(0, 1)), 0.0)
        size = np.where(size > 1e-9 * np.abs(T).max(axis=(0, 1)), size, np.abs(T).max(axis=(0, 1)))
        basis, U, T = basis / size, U / size, T / size
        Q = None if Q is None else np.einsum("kcij,ia,jb->kcab", Q, basis, basis)
        extent = max(float(np.abs(r).max()), 1e-9)
        generalised = np.einsum("ia,ij,ja->a", basis, modal, basis)
        places = _places(r, m, U, T, J, Q, ends, _seen(drawn, r))
        super().__init__(
            places,
            tuple((w * w * generalised).tolist()),
            tuple((2.0 * ratios * w * generalised).tolist()),
            (REACH * extent,) * n,
        )
        object.__setattr__(self, "frequencies", w)
        object.__setattr__(self, "basis", basis)
        kept = dict(nodes=nodes, mass=mass, shapes=shapes, stiffness=stiffness, interface=dict(interface or {}), turns=turns)
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
        r, K = _array("nodes", nodes, 2), _array("stiffness", stiffness, 2)
        N = len(r)
        per = len(K) // N if N else 0
        if per not in (3, 6) or K.shape != (per * N, per * N):
            raise ModelError(
                f"stiffness has shape {K.shape}, expected {(6 * N,) * 2} or {(3 * N,) * 2}", "give six rows a node"
            )
        K, m = _symmetric("stiffness", K, K.shape), _array("mass", mass, None)
        m = _symmetric("mass", m, (N, N)) if m.ndim == 2 else np.diag(_fits("mass", m, (N,)))
        J = np.zeros((N, 3, 3)) if rotary is None else _fits("rotary", _array("rotary", rotary, 3), (N, 3, 3))
        ends = _ends(interface, N)
        if ends and per == 3:
            raise ModelError("nodes with three rows do not turn, and others hang on them", "give six rows a node")
        shapes, turns, small = reduced(m, J, K, per, _clamped(root, N), list(ends.values()), modes)
        return FlexibleBody(r, mass, shapes, small, interface=ends, turns=turns, rotary=rotary, damping=damping)


def _places(r: np.ndarray, m: np.ndarray, U: np.ndarray, T: np.ndarray, J: np.ndarray, Q: Any, ends: dict, drawn: Any) -> tuple:
    """Lumps of mass, places to be seen, and the nodes that others hang on."""
    part = lambda k, turns, seen=False: ModeShape.of(U[k], T[k] if turns else None, None if Q is None else Q[k], seen)  # noqa: E731
    still = not any(J[k].any() and T[k].any() for k in range(len(r)))  # the nodes' own inertias stay as the root is
    mass, cut = few_points(m, r, U, *(() if Q is None else (Q,)))
    if still and (m.ndim == 2 or len(mass) < np.count_nonzero(m)):
        own = [J.sum(axis=0), *(np.zeros((3, 3)) for _ in mass[1:])]
        rest = zip(mass, cut[0], cut[1], own, cut[2] if Q is not None else [None] * len(mass), strict=True)
        lumps = [BodyPlace("~", _vector(x), ModeShape.of(u, None, q), float(w), _six(j)) for w, x, u, j, q in rest]
    else:
        heavy = [k for k in range(len(r)) if np.ravel(m[k]).any() or J[k].any()]
        lumps = [BodyPlace("~", _vector(r[k]), part(k, J[k].any()), float(m[k]), _six(J[k])) for k in heavy]
    seen = [BodyPlace("", _vector(r[k]), part(k, True, True)) for k in drawn]
    return (*lumps, *seen, *(BodyPlace(name, _vector(r[k]), part(k, True)) for name, k in ends.items()))


def _modal_mass(m: np.ndarray, U: np.ndarray, T: np.ndarray, J: np.ndarray) -> np.ndarray:
    weighed = m[:, None, None] * U if m.ndim == 1 else np.einsum("kl,lcj->kcj", m, U)
    return np.einsum("kci,kcj->ij", U, weighed) + np.einsum("kai,kab,kbj->ij", T, J, T)


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


def _array(what: str, given: Any, ndim: int | None) -> np.ndarray:
    x = real(what, given, (), "give an array of numbers")
    if (ndim is not None and x.ndim != ndim) or (ndim is None and x.ndim not in (1, 2)) or not np.isfinite(x).all():
        axes = f"{ndim} axes" if ndim is not None else "one or two axes"
        raise ModelError(f"{what} has shape {x.shape}, expected finite numbers with {axes}", "docs/flexible.md says which")
    return x.astype(float)


def _fits(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if x.shape != shape:
        raise ModelError(f"{what} has shape {x.shape}, expected {shape}", "docs/flexible.md says which")
    return x


def _symmetric(what: str, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    _fits(what, x, shape)
    off = np.abs(x - x.T).max(initial=0.0)
    if off > SYMMETRIC * np.abs(x).max(initial=0.0):
        raise ModelError(f"{what} is not symmetric: entries differ by {off:.3g}", "look at how it was written")
    return 0.5 * (x + x.T)


def _positive(what: str, x: np.ndarray, remedy: str) -> None:
    scale = np.sqrt(np.maximum(np.diagonal(x), 1e-300))
    least = np.linalg.eigvalsh(x / np.outer(scale, scale))[0]
    if not (least > 1e-12 and np.diagonal(x).min() > 0.0):
        raise ModelError(f"{what} is not positive definite (smallest eigenvalue {least:.3g}, diagonal scaled to 1)", remedy)


def _too_many(n: int, N: int) -> str:
    many = f"{n} shapes are more than {N} nodes with three coordinates each can tell apart" if n > 3 * N else ""
    return many or "leave out shapes that others make up, or that move no mass (what twists alone needs rotary=)"


def _agree(given: np.ndarray, own: np.ndarray) -> None:
    _positive("modal_mass", given, "look at how it was written")
    off = np.abs(given - own).max() / np.abs(own).max()
    if off > FIT:
        cause = f"modal_mass differs from what the nodes' masses and shapes have by {off:.1%}"
        raise ModelError(cause, "give the masses that the shapes were computed with")


def _ends(interface: Any, N: int) -> dict[str, int]:
    if interface is None:
        return {}
    if not isinstance(interface, Mapping):
        raise ModelError(f"interface is {shown(interface)}, expected names and nodes", 'give interface={"tip": 12}')
    for name, k in interface.items():
        if not isinstance(name, str) or not name.strip() or name.startswith("~"):
            raise ModelError(f"interface has the name {shown(name)}, expected text", 'give interface={"tip": 12}')
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < N:
            raise ModelError(f"interface node {shown(name)} is {shown(k)}, expected a node from 0 to {N - 1}", "correct it")
    return {name: int(k) for name, k in interface.items()}


def _seen(drawn: Any, r: np.ndarray) -> list[int]:
    """The nodes that pictures show: those named, else some of all, from near the root to far."""
    if drawn is not None:
        return _numbers("drawn", drawn, len(r))
    far = np.argsort(np.linalg.norm(r, axis=1), kind="stable")
    return [int(far[i]) for i in np.unique(np.linspace(0, len(r) - 1, STATIONS).round().astype(int))]


def _numbers(what: str, given: Any, N: int) -> list[int]:
    each = np.atleast_1d(real(what, given, (), "give numbers of nodes"))
    if each.ndim != 1 or not np.isfinite(each).all() or (each != each.round()).any() or (each < 0).any() or (each >= N).any():
        raise ModelError(f"{what} is {shown(given)}, expected nodes from 0 to {N - 1}", "correct it")
    return [int(k) for k in each]


def _clamped(root: Any, N: int) -> list[int]:
    each = _numbers("root", root, N)
    if not each:
        raise ModelError("root is empty", "name the nodes that are clamped")
    return each
