"""What a recipe is worth: NumPy from first principles, one state at a time. Shares no code with
psiphi.

It reads the raw data of a model (bodies, joints, frames, gravity) and nothing else of the library:

    X(k)           [[R, p~ R], [0, R]] of link k's pose: forces from link k to the world's origin
    φ(i, j)        X(i)⁻¹ X(j), for i on the path from j to the base, without inverting (I - ℰ_φ)
    P(k)           r(k) - F (mass of the joints beyond k)⁻¹ F*, without a Riccati recursion
    ψ(i, j)        the product of φ(p, k) τ̄(k) along the path
    rates          complex steps: every letter is an analytic function of q, and q(t) = q + i h q̇

An oracle can be blurred: every number it reads and every operation it does is off by about BLUR, at
random. The spread of a few blurred values says how much an inverse of a nearly singular matrix, or
a difference of equal numbers, may lose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tests.soundness.recipes import Node

STEP = 1e-30  # of the complex step
BLUR = 1e-11  # relative
SINGULAR = 1e-13  # smallest by largest singular value: below this a matrix has no inverse
WORLD = -1
MOVING = {
    "spin",
    "gyro",
    "H_dot",
    "Omega_d",
    "omega",
    "P_dot",
    "lambda_dot",
    "Pi",
    "U_ring",
    "D_rate",
    "Om_dot",
}
MOVING |= {"a", "b", "a_local", "b_local", "couple", "coriolis"}  # letters made of velocities
MOVING |= {"E_c"}  # whose point moves: it has no rate


class NoValue(Exception):
    """The recipe has no value here: singular, or a rate of what velocities make."""


class Singular(NoValue):
    """A matrix under .inv is singular, to rounding."""


Blur = np.random.Generator | None


def blurred(m: np.ndarray, size: np.ndarray, blur: Blur) -> np.ndarray:
    """m, off by BLUR times `size` (real part: of the value; imaginary part: of the rate)."""
    if blur is None:
        return m
    noise = BLUR * size.real * blur.standard_normal(m.shape)
    return (
        m + noise + 1j * BLUR * size.imag * blur.standard_normal(m.shape)
        if np.iscomplexobj(m)
        else m + noise
    )


def sizes(m: np.ndarray) -> np.ndarray:
    """|m|, of value and rate apart."""
    return np.abs(m.real) + 1j * np.abs(m.imag) if np.iscomplexobj(m) else np.abs(m)


@dataclass(frozen=True)
class Value:
    """A matrix; its imaginary part is STEP times its rate."""

    m: np.ndarray
    blur: Blur = None

    def __add__(self, other: Value) -> Value:
        return Value(
            blurred(self.m + other.m, sizes(self.m) + sizes(other.m), self.blur), self.blur
        )

    def __sub__(self, other: Value) -> Value:
        return self + other.scaled(-1.0)

    def __matmul__(self, other: Value) -> Value:
        return Value(
            blurred(self.m @ other.m, sizes(self.m) @ sizes(other.m), self.blur), self.blur
        )

    def scaled(self, c: float) -> Value:
        return Value(c * self.m, self.blur)

    @property
    def T(self) -> Value:
        return Value(self.m.T, self.blur)

    @property
    def condition(self) -> float:
        """Smallest by largest singular value."""
        if not self.m.size:
            return 1.0
        s = np.linalg.svd(self.m.real, compute_uv=False)
        return float(s[-1] / s[0]) if s[0] > 0.0 else 0.0

    @property
    def inv(self) -> Value:
        if self.condition < SINGULAR:
            raise Singular(f"condition {self.condition:.1g}")
        return Value(np.linalg.inv(blurred(self.m, sizes(self.m), self.blur)), self.blur)

    @property
    def rate(self) -> Value:
        """Its derivative in time."""
        return Value(
            self.m.imag / STEP if np.iscomplexobj(self.m) else np.zeros(self.m.shape), self.blur
        )

    def kept(self, where: np.ndarray) -> Value:
        """Zero elsewhere."""
        return Value(np.where(where, self.m, 0.0), self.blur)


# -- one joint, from its data ----------------------------------------------------------------------


def skew(x) -> np.ndarray:
    zero = 0.0 * x[0]
    return np.array([[zero, -x[2], x[1]], [x[2], zero, -x[0]], [-x[1], x[0], zero]])


def about(axis, angle) -> np.ndarray:
    """Rodrigues' formula."""
    n = np.asarray(axis)
    return (
        np.cos(angle) * np.eye(3) + np.sin(angle) * skew(n) + (1.0 - np.cos(angle)) * np.outer(n, n)
    )


def quaternion(x) -> np.ndarray:
    """x, y, z, w of any length (analytic: no modulus is taken)."""
    u, w = np.asarray(x[:3]), x[3]
    n = u @ u + w * w
    return np.eye(3) + 2.0 * (w * skew(u) + skew(u) @ skew(u)) / n


def carried(R, p) -> np.ndarray:
    """X = [[R, p~ R], [0, R]]: forces seen in an inner frame -> in the outer one."""
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def plane(joint) -> np.ndarray:
    """Columns x, y, normal of a planar joint."""
    return np.column_stack([joint.axis2, np.cross(joint.axis, joint.axis2), joint.axis])


def displacement(joint, q) -> tuple[np.ndarray, np.ndarray]:
    """(R, p) of the link in the joint's frame."""
    n, zero = np.asarray(joint.axis), np.zeros(3)
    return {
        "revolute": lambda: (about(n, q[0]), zero),
        "continuous": lambda: (about(n, q[0]), zero),
        "prismatic": lambda: (np.eye(3), q[0] * n),
        "helical": lambda: (about(n, q[0]), joint.pitch * q[0] * n),
        "cylindrical": lambda: (about(n, q[0]), q[1] * n),
        "universal": lambda: (about(n, q[0]) @ about(joint.axis2, q[1]), zero),
        "spherical": lambda: (quaternion(q), zero),
        "planar": lambda: (about(n, q[2]), plane(joint)[:, :2] @ q[:2]),
        "free": lambda: (quaternion(q[3:]), q[:3]),
    }[joint.kind]()


def joint_map(joint, q) -> np.ndarray:
    """H* (6, nv): the link's velocity in the joint, in link axes, for unit rates. Theory section
    1."""
    n, O = np.asarray(joint.axis), np.zeros(3)
    turn, slide = np.concatenate([n, O]), np.concatenate([O, n])
    eye = np.eye(6)
    return {
        "revolute": lambda: turn[:, None],
        "continuous": lambda: turn[:, None],
        "prismatic": lambda: slide[:, None],
        "helical": lambda: (turn + joint.pitch * slide)[:, None],
        "cylindrical": lambda: np.column_stack([turn, slide]),
        "universal": lambda: np.vstack(
            [np.column_stack([about(joint.axis2, -q[1]) @ n, joint.axis2]), np.zeros((3, 2))]
        ),
        "spherical": lambda: eye[:, :3],
        "planar": lambda: np.column_stack(
            [turn, *(np.concatenate([O, x]) for x in plane(joint).T[:2])]
        ),
        "free": lambda: eye,
    }[joint.kind]()


def quaternion_rate(x, w) -> np.ndarray:
    """q̇ = q (w, 0) / 2, for w in body axes."""
    return np.concatenate([0.5 * (x[3] * w + np.cross(x[:3], w)), [-0.5 * x[:3] @ w]])


def coordinate_rate(joint, q, v) -> np.ndarray:
    """q̇ of the joint for its rates v."""
    if joint.kind == "spherical":
        return quaternion_rate(q, v)
    if joint.kind == "free":
        return np.concatenate([quaternion(q[3:]) @ v[3:], quaternion_rate(q[3:], v[:3])])
    if joint.kind == "planar":
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]])
    return v


def cross(V) -> np.ndarray:
    """V× on motions: [[w~, 0], [v~, w~]]."""
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def cholesky(D: np.ndarray) -> np.ndarray:
    """Lower L with L L^T = D, analytic in D."""
    L = np.zeros_like(D)
    for j in range(len(D)):
        d = D[j, j] - L[j, :j] @ L[j, :j]
        if not d.real > 0.0:
            raise Singular("D is not positive definite")
        L[j, j] = np.sqrt(d)
        for i in range(j + 1, len(D)):
            L[i, j] = (D[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
    return L


# -- the letters -----------------------------------------------------------------------------------


@dataclass
class Oracle:
    """The letters of a model at a state. `given` holds vectors and symbols by name.

    `moving` is the same robot a complex step later; `conditions` collects those of what stood under
    .inv.
    """

    model: Any
    q: np.ndarray
    v: np.ndarray
    given: Mapping[str, np.ndarray] = field(default_factory=dict)
    blur: Blur = None
    moves: bool = False
    known: dict[str, Value] = field(default_factory=dict)
    conditions: list[float] = field(default_factory=list)

    @cached_property
    def moving(self) -> Oracle:
        if self.moves:
            raise NoValue("a rate of a rate needs accelerations")
        q = np.asarray(self.q, dtype=complex)
        for j in self.model.joints:
            q[j.q_slice] += 1j * STEP * coordinate_rate(j, self.q[j.q_slice], self.v[j.v_slice])
        given = {
            name: x + 1j * STEP * np.asarray(self.given[f"{name}_dot"])
            for name, x in self.given.items()
            if f"{name}_dot" in self.given
        }
        return Oracle(self.model, q, self.v, given, self.blur, True, {}, self.conditions)

    def __getitem__(self, name: str) -> Value:
        if name in MOVING and self.moves:
            raise NoValue(f"the rate of {name} needs accelerations")
        if name not in self.known:
            self.known[name] = BUILD[name](self)
        return self.known[name]

    def exactly(self, m) -> Value:
        """A matrix of data, or of a few operations on data."""
        m = np.asarray(m)
        size = sizes(m) + 1j * STEP * self.speed * np.abs(m.real) if self.moves else sizes(m)
        return Value(blurred(m, size, self.blur), self.blur)

    @property
    def speed(self) -> float:
        """How fast numbers may change: where rates cancel, their rounding does not."""
        return 1.0 + float(np.linalg.norm(self.v))

    @property
    def dtype(self):
        return complex if self.moves else float

    @cached_property
    def count(self) -> int:
        return len(self.model.bodies)

    @cached_property
    def above(self) -> list[list[int]]:
        """For each body, itself and the bodies that carry it, outward end first."""
        out: list[list[int]] = []
        for k, j in enumerate(self.model.joints):
            out.append([k] if j.parent == WORLD else [k, *out[j.parent]])
        return out

    def beyond(self, k: int) -> list[int]:
        """The bodies that k carries, without k."""
        return [j for j in range(self.count) if k in self.above[j] and j != k]

    @cached_property
    def poses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(R, p) of each link in the world."""
        out: list[tuple[np.ndarray, np.ndarray]] = []
        for j in self.model.joints:
            R, p = (np.eye(3), np.zeros(3)) if j.parent == WORLD else out[j.parent]
            R, p = R @ j.pose.rotation, R @ j.pose.translation + p
            turn, shift = displacement(j, self.q[j.q_slice])
            out.append((R @ turn, R @ shift + p))
        return out

    @cached_property
    def X(self) -> list[np.ndarray]:
        """Forces of link k -> at the world's origin, in world axes."""
        return [carried(R, p) for R, p in self.poses]

    def phi(self, i: int, j: int) -> np.ndarray:
        """φ(i, j); i is WORLD for the base."""
        return self.X[j] if i == WORLD else back(self.X[i]) @ self.X[j]

    @cached_property
    def maps(self) -> list[np.ndarray]:
        """H*(k)"""
        return [joint_map(j, self.q[j.q_slice]) for j in self.model.joints]

    @cached_property
    def V(self) -> list[np.ndarray]:
        """The links' velocities: sums along the path."""
        return [
            np.sum(
                [
                    self.phi(i, k).T @ self.maps[i] @ self.v[self.model.joints[i].v_slice]
                    for i in self.above[k]
                ],
                axis=0,
            )
            for k in range(self.count)
        ]

    def links(self, blocks: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
        """A matrix over links from its 6 x 6 blocks."""
        out = np.zeros((6 * self.count,) * 2, dtype=self.dtype)
        for (i, j), block in blocks.items():
            out[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = block
        return out

    def diagonal(self, make: Callable[[int], np.ndarray]) -> np.ndarray:
        return self.links({(k, k): make(k) for k in range(self.count)})

    def across(self, blocks: list[np.ndarray], joints: bool = False) -> np.ndarray:
        """From joints to links, or to joints: one block a body."""
        out = np.zeros(
            (self.model.nv if joints else 6 * self.count, self.model.nv), dtype=self.dtype
        )
        for k, (j, block) in enumerate(zip(self.model.joints, blocks, strict=True)):
            out[j.v_slice if joints else slice(6 * k, 6 * k + 6), j.v_slice] = block
        return out

    def part(self, value: Value, k: int) -> Value:
        """Block k of a block diagonal over links."""
        here = slice(6 * k, 6 * k + 6)
        return Value(value.m[here, here], self.blur)

    def inertia(self, k: int) -> np.ndarray:
        """M(k) about the link's origin."""
        body = self.model.bodies[k]
        c, m = skew(body.com), body.mass
        return np.block([[body.inertia + m * c @ c.T, m * c], [m * c.T, m * np.eye(3)]])

    def frame(self, name: str, axes: str) -> tuple[int, np.ndarray]:
        """(body, its 6 x 6 part of B): wrenches at the frame's origin -> forces on the body."""
        place = self.model.frames[name]
        R, p = (np.eye(3), np.zeros(3)) if place.body == WORLD else self.poses[place.body]
        here = carried(
            R @ place.pose.rotation if axes == "frame" else np.eye(3),
            R @ place.pose.translation + p,
        )
        return place.body, here if place.body == WORLD else back(self.X[place.body]) @ here

    def B(self, names: tuple[str, ...], axes: str) -> Value:
        out = np.zeros((6 * self.count, 6 * len(names)), dtype=self.dtype)
        for i, name in enumerate(names):
            body, block = self.frame(name, axes)
            if body != WORLD:
                out[6 * body : 6 * body + 6, 6 * i : 6 * i + 6] = block
        return self.exactly(out)

    def column(self, blocks: list[np.ndarray]) -> Value:
        """Blurred by more than its entries: they are sums that cancel."""
        m = np.concatenate([np.zeros(0), *blocks])[:, None]
        size = 10.0 * np.abs(m).max(initial=0.0) + self.speed**2
        return Value(blurred(m, np.full(m.shape, size), self.blur), self.blur)

    @property
    def where_blocks(self) -> np.ndarray:
        return self._blocks("link")

    # -- recipes -----------------------------------------------------------------------------------

    def value(self, node: Node) -> Value | float:
        """Its matrix; a number stands for that multiple of an identity whose size is open."""
        op, args = node
        if op == "letter":
            return 1.0 if args[0] == "I" else self[args[0]]
        if op == "frames":
            B = self.B(args[1], args[2])
            return B if args[0] == "B" else B.T @ self["phi"].T @ self["H"].T
        if op == "vector":
            return Value(np.asarray(self._given(args[0]))[:, None], self.blur)
        if op == "symbol":
            return Value(np.asarray(self._given(args[0])), self.blur).kept(self._blocks(args[1]))
        if op == "dot":
            return self._dot(*args)
        return OPERATIONS[op](
            self, *(self.value(x) if isinstance(x, Node) else float(x) for x in args)
        )

    def _given(self, name: str) -> np.ndarray:
        if name == "v" and "v" not in self.given and not self.moves:
            return self.v
        if name not in self.given:
            raise NoValue(f"{name} is not given" + (f", or not {name}_dot" if self.moves else ""))
        return self.given[name]

    def _blocks(self, space: str) -> np.ndarray:
        """Where a block diagonal may be nonzero."""
        widths = [
            6 if space == "link" else j.v_slice.stop - j.v_slice.start for j in self.model.joints
        ]
        owner = np.repeat(np.arange(self.count), widths)
        return owner[:, None] == owner[None, :]

    def _dot(self, node: Node, frame: str) -> Value | float:
        later = self.moving.value(node)
        if isinstance(later, float):
            return 0.0
        if frame == "local":
            return later.rate
        if node.op in ("sum", "difference") and not any(
            map(is_identity, node.args)
        ):  # each in axes of its own
            return OPERATIONS[node.op](self, *(self._dot(x, frame) for x in node.args))
        # inertial: the derivative of components in world axes, turned back into those of links and
        # frames
        axes = own_axes(node)
        rows, cols = (
            names or kind in (*DUAL, "link")
            for kind, names in zip(kinds_of(node), axes, strict=True)
        )
        later = self.moving._turns(axes[0]) @ later if rows else later
        rate = (later @ self.moving._turns(axes[1]).T if cols else later).rate
        rate = self._turns(axes[0]).T @ rate if rows else rate
        return rate @ self._turns(axes[1]) if cols else rate

    def _turns(self, names: tuple[str, ...]) -> Value:
        """From the axes of these frames, or of all links, to the world's."""
        if not names:
            return self.exactly(self.diagonal(lambda k: np.kron(np.eye(2), self.poses[k][0])))
        out = np.zeros((6 * len(names),) * 2, dtype=self.dtype)
        for i, place in enumerate(self.model.frames[name] for name in names):
            R = np.eye(3) if place.body == WORLD else self.poses[place.body][0]
            out[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = np.kron(np.eye(2), R @ place.pose.rotation)
        return self.exactly(out)


def back(X: np.ndarray) -> np.ndarray:
    """X⁻¹, in closed form: [[R*, -R* p~], [0, R*]]."""
    Rt = X[:3, :3].T
    return np.block([[Rt, -Rt @ X[:3, 3:] @ Rt], [np.zeros((3, 3)), Rt]])


DUAL = {"force": "motion", "motion": "force"}


def dual(space: str) -> str:
    return DUAL.get(space, space)


def kinds_of(node: Node) -> tuple[str, str]:
    """(rows, cols): "joint", "force", "motion", "frame1", ..., "one"; "link": of unknown side, "":
    open."""
    op, args = node
    if op == "letter":
        return LETTER_SPACES.get(args[0], ("", ""))
    if op == "frames":
        frames = f"frame{len(args[1])}"
        return ("force", frames) if args[0] == "B" else (frames, "joint")
    if op == "vector":
        return {"frame": ""}.get(args[1], args[1]), "one"
    if op == "symbol":
        return ("joint", "joint") if args[1] == "joint" else ("force", "motion")
    inner = [kinds_of(x) for x in args if isinstance(x, Node) and not is_identity(x)] or [("", "")]
    if op == "product":
        return inner[0][0], inner[-1][1]
    rows, cols = next((pair for pair in inner if all(pair)), inner[0])
    return {"T": (dual(cols), dual(rows)), "inv": (cols, rows)}.get(op, (rows, cols))


def own_axes(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(rows, cols): the frames in whose own axes these are; () where in others."""
    op, args = node
    if op == "frames":
        names = args[1] if args[2] == "frame" else ()
        return ((), names) if args[0] == "B" else (names, ())
    inner = [own_axes(x) for x in args if isinstance(x, Node) and not is_identity(x)] or [((), ())]
    if op == "product":
        return inner[0][0], inner[-1][1]
    if any(pair != inner[0] for pair in inner):
        raise NoValue("a sum of things in different axes is in none")
    return (inner[0][1], inner[0][0]) if op in ("T", "inv") else inner[0]


def is_identity(node: Node) -> bool:
    """A multiple of I, of no size of its own."""
    return node == Node("letter", ("I",)) or (
        node.op != "frames" and bool(node.args) and _all_identity(node)
    )


def _all_identity(node: Node) -> bool:
    inner = [x for x in node.args if isinstance(x, Node)]
    return bool(inner) and all(map(is_identity, inner))


def _product(o: Oracle, a, b):
    if isinstance(a, float) or isinstance(b, float):
        return (
            a * b
            if isinstance(a, float) and isinstance(b, float)
            else b.scaled(a)
            if isinstance(a, float)
            else a.scaled(b)
        )
    return a @ b


def _sum(o: Oracle, a, b):
    if isinstance(a, float):
        return a + b if isinstance(b, float) else _sum(o, b, a)
    return a + (Value(b * np.eye(len(a.m)), o.blur) if isinstance(b, float) else b)


def _inverse(o: Oracle, a):
    if isinstance(a, float):
        if a == 0.0:
            raise Singular("0 I")
        return 1.0 / a
    o.conditions.append(a.condition)
    return a.inv


OPERATIONS: dict[str, Callable[..., Any]] = {
    "product": _product,
    "scale": _product,
    "sum": _sum,
    "difference": lambda o, a, b: _sum(o, a, -b if isinstance(b, float) else b.scaled(-1.0)),
    "T": lambda o, a: a if isinstance(a, float) else a.T,
    "inv": _inverse,
}


def _parents(o: Oracle, block: Callable[[int], np.ndarray]) -> np.ndarray:
    """A block for each body at (parent, body)."""
    return o.links(
        {(j.parent, k): block(k) for k, j in enumerate(o.model.joints) if j.parent != WORLD}
    )


def _to_parent(o: Oracle, k: int) -> np.ndarray:
    return o.phi(o.model.joints[k].parent, k)


def _articulated(o: Oracle) -> Value:
    """P(k) = r(k) - F A⁻¹ F*, with A the mass matrix (rotors included) of the joints beyond k, k
    held."""
    r = [
        o.exactly(np.sum([_seen(o, i, j) for j in [i, *o.beyond(i)]], axis=0))
        for i in range(o.count)
    ]
    S = [o.exactly(x) for x in o.maps]
    blocks = {}
    for k in range(o.count):
        P, outer = r[k], o.beyond(k)
        if outer:
            F = Value(np.hstack([(o.exactly(o.phi(k, i)) @ r[i] @ S[i]).m for i in outer]), o.blur)
            A = Value(
                np.block([[_coupling(o, i, j, r, S).m for j in outer] for i in outer]), o.blur
            )
            P = P - F @ A.inv @ F.T
        blocks[k, k] = 0.5 * (P.m + P.m.T)
    return Value(o.links(blocks), o.blur)


def _seen(o: Oracle, i: int, j: int) -> np.ndarray:
    """M(j) seen from link i."""
    X = o.phi(i, j)
    return X @ o.inertia(j) @ X.T


def _coupling(o: Oracle, i: int, j: int, r: list[Value], S: list[Value]) -> Value:
    """The mass matrix's block of joints i, j: composite bodies."""
    if i == j:
        return S[i].T @ r[i] @ S[i] + o.exactly(np.diag(o.model.joints[i].armature))
    if i in o.above[j]:
        return S[i].T @ o.exactly(o.phi(i, j)) @ r[j] @ S[j]
    if j in o.above[i]:
        return _coupling(o, j, i, r, S).T
    return Value(np.zeros((S[i].m.shape[1], S[j].m.shape[1])), o.blur)


def _psi(o: Oracle) -> Value:
    """Products along paths."""
    blocks = {}
    for k in range(o.count):
        here, at = Value(np.eye(6), o.blur), k
        for i in o.above[k]:
            if i != at:
                here, at = o.exactly(o.phi(i, at)) @ o.part(o["tau_bar"], at) @ here, i
            blocks[i, k] = here.m
    return Value(o.links(blocks), o.blur)


def _half(o: Oracle) -> Value:
    """The Cholesky factor of each joint's block."""
    D = o["D"]
    blocks = [D.m[j.v_slice, j.v_slice] for j in o.model.joints]
    return Value(
        o.across([cholesky(blurred(x, sizes(x), o.blur)) for x in blocks], joints=True), o.blur
    )


def _Om(o: Oracle) -> Value:
    whole = o["psi"].T @ o["H"].T @ o["D_inv"] @ o["H"] @ o["psi"]
    return whole.kept(o.where_blocks)


def _spins(o: Oracle) -> Value:
    """V× from X alone: d/dt X = X V×*, V×* = -(V×)*."""
    return o.exactly(o.diagonal(lambda k: -(back(o.X[k]) @ o.moving.X[k].imag / STEP).T))


def _omega(o: Oracle) -> Value:
    """diag(w~, w~), w~ = R* dR/dt."""
    return o.exactly(
        o.diagonal(lambda k: np.kron(np.eye(2), o.poses[k][0].T @ o.moving.poses[k][0].imag / STEP))
    )


def _Omega_d(o: Oracle) -> Value:
    """V_d ×* = φ(p, k)⁻¹ d/dt φ(p, k), roots included."""
    blocks = o.diagonal(lambda k: back(_to_parent(o, k)) @ _to_parent(o.moving, k).imag / STEP)
    return Value(
        blurred(blocks, np.full(blocks.shape, np.abs(blocks).max(initial=0.0)), o.blur), o.blur
    )


def _lambda_dot(o: Oracle) -> Value:
    """φ⁻¹ d/dt (φ P φ*) φ⁻*: the rate of P for one who stands on the parent."""
    blocks = {}
    for k in range(o.count):
        to, now = o.moving.exactly(_to_parent(o.moving, k)), o.exactly(back(_to_parent(o, k)))
        blocks[k, k] = (now @ (to @ o.moving.part(o.moving["P"], k) @ to.T).rate @ now.T).m
    return Value(o.links(blocks), o.blur)


def _gyro(o: Oracle) -> Value:
    """B x = (V×* M x - M V× x + x×* M V) / 2, column by column; V×* = -(V×)*."""

    def block(k: int) -> np.ndarray:
        V, M = o.V[k], o.inertia(k)
        return (
            np.column_stack(
                [-cross(V).T @ M @ x - M @ cross(V) @ x - cross(x).T @ M @ V for x in np.eye(6)]
            )
            / 2.0
        )

    return o.exactly(o.diagonal(block))


def _Pi(o: Oracle) -> Value:
    """Π(k) = Σ ψ(k, p(m)) Y(m) ψ*(k, p(m)) over m beyond k, Y(m) = φ(p, m) P⁺ (Ω_δ* - Ḣ* G*) φ*(p,
    m): S1 (48)."""
    felt = (
        o["E_phi"] @ o["P_plus"] @ (o["Omega_d"].T - o["H_dot"].T @ o["G"].T) @ o["E_phi"].T
    )  # a parent's children summed
    whole = o["psi"] @ felt.kept(o.where_blocks) @ o["psi"].T
    return whole.kept(o.where_blocks)


def _U_ring(o: Oracle) -> Value:
    """d/dt (P H*) as the link moves: X⁻¹ d/dt (X P H*)."""
    later = o.moving
    to, now = (
        later.exactly(later.diagonal(lambda k: later.X[k])),
        o.exactly(o.diagonal(lambda k: back(o.X[k]))),
    )
    return now @ (to @ later["P"] @ later["H"].T).rate


def _momentum(o: Oracle, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In world axes: linear momentum, angular momentum about the link's origin, and that origin's
    velocity."""
    R, V, body = o.poses[k][0], o.V[k], o.model.bodies[k]
    w, v, c = R @ V[:3], R @ V[3:], R @ body.com
    linear = body.mass * (v + np.cross(w, c))
    return linear, R @ body.inertia @ R.T @ w + np.cross(c, linear), v


def _forces(o: Oracle) -> list[np.ndarray]:
    """Newton and Euler: what moves each link at constant joint rates, in link axes."""
    out = []
    for k in range(o.count):
        (p, _, v), (p1, L1, _), Rt = _momentum(o, k), _momentum(o.moving, k), o.poses[k][0].T
        out.append(np.concatenate([Rt @ (L1.imag / STEP + np.cross(v, p)), Rt @ p1.imag / STEP]))
    return out


def _accelerations(o: Oracle, inertial: bool) -> list[np.ndarray]:
    """d/dt V at constant joint rates: of components in world axes, seen in link axes (inertial), or
    in link axes."""
    out = []
    for (R, _), (R1, _), V in zip(o.poses, o.moving.poses, o.moving.V, strict=True):
        parts = [R.T @ (R1 @ x).imag for x in (V[:3], V[3:])] if inertial else [V.imag]
        out.append(np.concatenate(parts) / STEP)
    return out


def _a(o: Oracle, inertial: bool) -> Value:
    """α(k) - φ*(p, k) α(p), with the base's pseudo-acceleration -g in the inertial convention."""
    alpha, out = _accelerations(o, inertial), []
    base = np.concatenate([np.zeros(3), o.model.gravity_vector if inertial else np.zeros(3)])
    for k, j in enumerate(o.model.joints):
        out.append(alpha[k] - _to_parent(o, k).T @ (base if j.parent == WORLD else alpha[j.parent]))
    return o.column(out)


def _b(o: Oracle, inertial: bool) -> Value:
    """f(k) - M α(k), with the weight in the local convention."""
    alpha, f, pull = _accelerations(o, inertial), _forces(o), _pull(o)
    return o.column(
        [f[k] - o.inertia(k) @ (alpha[k] + (0.0 if inertial else pull[k])) for k in range(o.count)]
    )


def _pull(o: Oracle) -> list[np.ndarray]:
    return [np.concatenate([np.zeros(3), R.T @ o.model.gravity_vector]) for R, _ in o.poses]


def _couple(o: Oracle) -> Value:
    """(H V×* - Ḣ) P⁺ V⁺, V⁺ = V - H* v."""
    plus = o.column(o.V) - o["H"].T @ o.exactly(np.asarray(o.v)[:, None])
    return (o["H"].scaled(-1.0) @ o["spin"].T - o["H_dot"]) @ o["P_plus"] @ plus


def _coriolis(o: Oracle) -> Value:
    H, phi = o["H"], o["phi"]
    return H @ phi @ (o["M"] @ phi.T @ (o["spin"] @ H.T + o["H_dot"].T) + o["gyro"] @ phi.T @ H.T)


def _E_0(o: Oracle) -> Value:
    """Forces on roots -> at the world's origin."""
    blocks = [
        o.X[k] if j.parent == WORLD else np.zeros((6, 6)) for k, j in enumerate(o.model.joints)
    ]
    return o.exactly(np.hstack([np.zeros((6, 0)), *blocks]))


def _height(o: Oracle, k: int):
    """m g·c of body k."""
    (R, p), body = o.poses[k], o.model.bodies[k]
    return body.mass * o.model.gravity_vector @ (p + R @ body.com)


def _E_c(o: Oracle) -> Value:
    """The same about the centre of mass, found from the bodies' places."""
    bodies = o.model.bodies
    mass = sum(body.mass for body in bodies)
    if not bodies:
        return o["E_0"]
    if not mass > 0.0:
        raise Singular("no mass")
    c = (
        sum(body.mass * (p + R @ body.com) for body, (R, p) in zip(bodies, o.poses, strict=True))
        / mass
    )
    return o.exactly(carried(np.eye(3), -c)) @ o["E_0"]


def _eye(o: Oracle, n: int) -> Value:
    return Value(np.eye(n), o.blur)


BUILD: dict[str, Callable[[Oracle], Value]] = {
    "H": lambda o: o.exactly(o.across(o.maps)).T,
    "phi": lambda o: o.exactly(
        o.links({(i, k): o.phi(i, k) for k in range(o.count) for i in o.above[k]})
    ),
    "psi": _psi,
    "M": lambda o: o.exactly(o.diagonal(o.inertia)),
    "P": _articulated,
    "D": lambda o: o["H"] @ o["P"] @ o["H"].T + o["rotor"],
    "D_inv": lambda o: o["D"].inv,
    "D_half": _half,
    "D_half_inv": lambda o: o["D_half"].inv,
    "G": lambda o: o["P"] @ o["H"].T @ o["D_inv"],
    "K": lambda o: o["E_phi"] @ o["G"],
    "E_phi": lambda o: o.exactly(_parents(o, lambda k: _to_parent(o, k))),
    "E_psi": lambda o: o["E_phi"] @ o["tau_bar"],
    "E_0": _E_0,
    "U": lambda o: o.exactly([[-sum(_height(o, k) for k in range(o.count))]]),
    "E_c": _E_c,
    "tau_bar": lambda o: _eye(o, 6 * o.count) - o["G"] @ o["H"],
    "rotor": lambda o: o.exactly(
        o.across([np.diag(j.armature) for j in o.model.joints], joints=True)
    ),
    "S": lambda o: Value(_parents(o, lambda k: np.eye(6)), o.blur),
    "Delta_phi": lambda o: o.exactly(o.diagonal(lambda k: _to_parent(o, k))),
    "Delta_psi": lambda o: o["Delta_phi"] @ o["tau_bar"],
    "L": lambda o: o["Delta_phi"] @ o["G"],
    "Phi": lambda o: o["phi"] @ o["S"],
    "Psi": lambda o: o["psi"] @ o["S"],
    "P_plus": lambda o: o["P"] - o["G"] @ o["H"] @ o["P"],
    "Om": _Om,
    "H_dot": lambda o: o.moving["H"].rate,
    "spin": _spins,
    "omega": _omega,
    "Omega_d": _Omega_d,
    "gyro": _gyro,
    "P_dot": lambda o: o.moving["P"].rate,
    "Om_dot": lambda o: o.moving["Om"].rate,
    "lambda_dot": _lambda_dot,
    "Pi": _Pi,
    "U_ring": _U_ring,
    "D_rate": lambda o: o["D_half_inv"] @ o.moving["D_half"].rate,
    "a": lambda o: _a(o, inertial=True),
    "b": lambda o: _b(o, inertial=True),
    "a_local": lambda o: _a(o, inertial=False),
    "b_local": lambda o: _b(o, inertial=False),
    "g": lambda o: o.column(_pull(o)),
    "couple": _couple,
    "mass": lambda o: o["H"] @ o["phi"] @ o["M"] @ o["phi"].T @ o["H"].T + o["rotor"],
    "coriolis": _coriolis,
    "mass_half": lambda o: (_eye(o, o.model.nv) + o["H"] @ o["phi"] @ o["K"]) @ o["D_half"],
}

# rows and columns of every letter: "force" and "motion" are the two sides of link space
LETTER_SPACES: dict[str, tuple[str, str]] = {
    "H": ("joint", "force"),
    "H_dot": ("joint", "force"),
    **dict.fromkeys(
        ("phi", "psi", "E_phi", "E_psi", "tau_bar", "S", "Delta_phi", "Delta_psi"),
        ("force", "force"),
    ),
    **dict.fromkeys(("Phi", "Psi", "Omega_d", "omega"), ("force", "force")),
    **dict.fromkeys(("M", "P", "P_plus", "P_dot", "lambda_dot", "Pi", "gyro"), ("force", "motion")),
    **dict.fromkeys(("Om", "Om_dot"), ("motion", "force")),
    "spin": ("motion", "motion"),
    **dict.fromkeys(("E_0", "E_c"), ("frame1", "force")),
    **dict.fromkeys(("G", "K", "L", "U_ring"), ("force", "joint")),
    **dict.fromkeys(
        ("D", "D_inv", "D_half", "D_half_inv", "D_rate", "rotor", "mass"), ("joint", "joint")
    ),
    **dict.fromkeys(("coriolis", "mass_half"), ("joint", "joint")),
    **dict.fromkeys(("a", "a_local", "g"), ("motion", "one")),
    **dict.fromkeys(("b", "b_local"), ("force", "one")),
    "couple": ("joint", "one"),
    "U": ("one", "one"),
}
