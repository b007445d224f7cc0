"""Random legal expressions, as users write them: built towards a goal (rows, cols), so that nearly
all of them fit.

Spaces are "joint", "force" and "motion" (the two sides of link space), "frame1", "frame2", ... and
"one". `pick(sequence)` makes every choice, whoever stands behind it: hypothesis, or a random
generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import psiphi as pp
from tests.soundness.oracle import DUAL, LETTER_SPACES, MOVING, dual
from tests.soundness.recipes import Node, frames, letter, vector, walk

Pick = Callable[[Sequence[Any]], Any]

NAMES = [
    "tau",
    "x",
    "v",
    "y",
    "f_ext",
    "out",
    "column",
    "V",
    "alpha",
    "body",
    "lambda",
    "n0",
    "f",
    "u",
    "T",
    "qdd",
    "z",
    "a_",
    "w",
]
SCALARS = [2, -1, 3, 0.5, -0.25, Fraction(1, 3), 1.5, 7, 0.001, 0]
TAKEN = {
    "motion": {"a", "b", "a_local", "b_local", "g"},
    "force": {"a", "b", "a_local", "b_local", "g"},
    "joint": {"couple"},
}


def _knows_sides() -> bool:
    """Does `pp.vector` know motions and forces?"""
    try:
        pp.vector("x", "motion")
    except pp.Error:
        return False
    return True


SIDES = _knows_sides()

I, H, phi, psi, M, P, D, G, K, E_phi, E_psi = map(
    letter, ("I", "H", "phi", "psi", "M", "P", "D", "G", "K", "E_phi", "E_psi")
)
mass, coriolis, a, b, Om, tau_bar = map(letter, ("mass", "coriolis", "a", "b", "Om", "tau_bar"))
W, J_TOOL = I - H @ psi @ K, frames("J", "tool")


def _table() -> dict[tuple[str, str], list[Node]]:
    """Every letter, straight and starred, by its spaces."""
    out: dict[tuple[str, str], list[Node]] = {}
    for name, (rows, cols) in LETTER_SPACES.items():
        node = letter(name.removesuffix("_inv")).inv if name.endswith("_inv") else letter(name)
        out.setdefault((rows, cols), []).append(node)
        if cols != "one":
            out.setdefault((dual(cols), dual(rows)), []).append(node.T)
    return out


LETTERS = _table()
WAYS = {  # how one gets from a space to another where no letter leads
    ("joint", "motion"): [H @ M, H @ phi @ M @ phi.T],
    ("motion", "force"): [phi.T @ H.T @ D.inv @ H @ phi, H.T @ D.inv @ H],
    ("motion", "joint"): [phi.T @ H.T, psi.T @ H.T],
    ("joint", "force"): [H @ phi, H @ psi],
    ("force", "force"): [phi @ K @ H, I - K @ H @ psi, phi - psi],
    ("joint", "joint"): [W, I + H @ phi @ K, W.T @ D.inv @ W, H @ phi @ M @ phi.T @ H.T],
}


@dataclass
class Writer:
    """Writes expressions for one robot; remembers which names stand for what."""

    pick: Pick
    names: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # name -> (space as declared, space as meant)
    still: bool = False  # inside .dot(): nothing that velocities make
    most: int = 2  # frames in one Jacobian

    def often(self, *options: tuple[int, Any]) -> Any:
        """One of the options, by weight."""
        return self.pick([x for weight, x in options for _ in range(weight)])

    # -- leaves ------------------------------------------------------------------------------------

    def frames(self, kind: str, count: int) -> Node:
        names = [
            self.often((5, "tool"), (3, "elbow"), (1, "mark"), (1, "world")) for _ in range(count)
        ]
        return frames(kind, *names, axes=self.pick(["world", "world", "frame"]))

    def J(self, count: int) -> Node:
        return self.frames("J", count)

    def vector(self, space: str) -> Node:
        """A vector of this space: one that is there already, or a new one."""
        known = [(name, said) for name, (said, meant) in self.names.items() if meant == space]
        if known and self.pick([True, False]):
            return vector(*self.pick(known))
        said = "frame" if space.startswith("frame") else space
        if space in DUAL:
            said = self.pick([space, "link"]) if SIDES else "link"
        free = [x for x in NAMES if x not in self.names and x not in TAKEN.get(space, ())]
        free = (
            [x for x in free if x != "v" or space == "joint"]
            if not self.still
            else [x for x in free if x != "v"]
        )
        name = self.pick(free)
        self.names[name] = said, space
        return vector(name, said)

    def leaf(self, rows: str, cols: str) -> Node:
        """One letter, or the shortest way."""
        if cols == "one":
            own = [x for x in LETTERS.get((rows, cols), []) if not self.still]
            return (
                self.pick([*own, None, None]) or self.vector(rows)
                if rows != "one"
                else self.scalar()
            )
        if rows == "one":
            return self.leaf(dual(cols), "one").T
        options = [*LETTERS.get((rows, cols), []), *WAYS.get((rows, cols), [])]
        options = [x for x in options if not (self.still and is_moving(x))]
        if rows == cols:
            options.append(I)
        if rows.startswith("frame") or cols.startswith("frame"):
            options += self.at_frames(rows, cols)
        return self.pick(options)

    def scalar(self) -> Node:
        """One number: u* X u, f* V, ..."""
        space = self.pick(["joint", "joint", "motion", "frame1"])
        return self.vector(dual(space)).T @ self.vector(space)

    def at_frames(self, rows: str, cols: str) -> list[Node]:
        """Ways from or to frames; only a frame's own are offered."""
        out: list[Node] = []
        if rows.startswith("frame"):
            n = int(rows[5:])
            B = self.frames("B", n)
            out += {
                "joint": [self.J(n)],
                "motion": [B.T, B.T @ phi.T, B.T @ psi.T],
                "force": [B.T @ Om, B.T @ psi.T @ H.T @ D.inv @ H],
            }.get(cols, [])
            if n == 1:
                at = self.pick(
                    [letter("E_0"), letter("E_c")] if not self.still else [letter("E_0")]
                )
                out += {
                    "joint": [at @ phi @ M @ phi.T @ H.T],
                    "motion": [at @ phi @ M, at @ phi @ M @ phi.T],
                    "force": [at @ phi, at @ psi],
                    "frame1": [at @ phi @ M @ phi.T @ at.T],
                }.get(cols, [])
            if cols.startswith("frame"):
                J = self.J(n)
                out += [J @ self.J(int(cols[5:])).T, J @ mass.inv @ self.J(int(cols[5:])).T]
        elif cols.startswith("frame"):
            out += [x.T for x in self.at_frames(cols, dual(rows))]
        return out

    # -- what users write --------------------------------------------------------------------------

    def phrase(self, rows: str, cols: str) -> Node | None:
        """A phrase of the trade with these spaces, or None."""
        n = int(rows[5:]) if rows.startswith("frame") else 1
        J, J2 = self.J(n), self.J(n)
        bias = H @ phi @ (M @ phi.T @ a + b)
        options: list[Callable[[], Node]] = []
        if (rows, cols) == ("joint", "joint"):
            Lambda = (J @ mass.inv @ J.T).inv
            options = [
                lambda: mass,
                lambda: mass.inv,
                lambda: J.T @ J2,
                lambda: J.T @ J,
                lambda: I - mass.inv @ J.T @ Lambda @ J,
                lambda: mass @ self.pick([mass, mass.inv, J.T @ J]),
                lambda: (mass + J.T @ J).inv,
                lambda: mass.inv + 0.5 * J.T @ J,
                lambda: coriolis if not self.still else mass,
                lambda: mass.dot() - 2 * coriolis if not self.still else mass,
                lambda: letter("mass_half").T if not self.still else mass,
                lambda: (I + 0.1 * J.T @ J).inv,
            ]
        elif rows.startswith("frame") and cols == "joint":
            options = [
                lambda: J,
                lambda: J - J2,
                lambda: J + J2,
                lambda: J.dot() if not self.still else J,
                lambda: (J @ mass.inv @ J.T).inv @ J @ mass.inv,
                lambda: J @ mass,
                lambda: J @ mass.inv,
                lambda: 2 * J - J2 @ mass,
            ]
        elif rows == cols and rows.startswith("frame"):
            options = [
                lambda: J @ J.T,
                lambda: J @ J2.T,
                lambda: J @ mass.inv @ J.T,
                lambda: (J @ mass.inv @ J.T).inv,
                lambda: (J @ J.T).inv,
                lambda: (I + J @ J.T).inv,
                lambda: I + J @ mass.inv @ J2.T,
                lambda: 2 * I - J @ J.T,
            ]
        elif (rows, cols) == ("one", "one"):
            x = self.vector("joint")
            options = [
                lambda: x.T @ mass @ x,
                lambda: x.T @ self.vector("joint"),
                lambda: (J @ x).T @ (J2 @ x),
                lambda: 0.5 * x.T @ mass @ x,
                lambda: 0.5 * x.T @ mass @ x + letter("U"),
                lambda: letter("U") - self.vector("joint").T @ x,
                lambda: self.vector("frame1").T @ J @ x,
                lambda: self.vector("joint").T @ mass.inv @ x,
            ]
        elif cols == "one" and rows != "one":
            x = self.vector("joint")
            options = {
                "joint": [
                    lambda: mass.inv @ x if self.still else mass.inv @ (x - bias),
                    lambda: mass @ x if self.still else mass @ x + bias,
                    lambda: x if self.still else coriolis @ x,
                    lambda: J.T @ self.vector("frame1"),
                    lambda: mass.inv @ J.T @ (J @ mass.inv @ J.T).inv @ self.vector("frame1"),
                    lambda: mass.inv @ x,
                    lambda: (I - J.T @ (J @ J.T).inv @ J) @ x,
                    lambda: K.T @ self.vector("motion"),
                ],
                "motion": [
                    lambda: phi.T @ H.T @ x,
                    lambda: phi.T.inv @ self.vector("motion"),
                    lambda: psi.T @ (H.T @ x + self.vector("motion")),
                    lambda: (I + self.pick([tau_bar, E_phi, phi, psi])).T @ self.vector("motion"),
                ],
                "force": [
                    lambda: phi @ self.vector("force"),
                    lambda: psi @ (K @ x + P @ self.vector("motion")),
                ],
            }.get(
                rows,
                [
                    lambda: J @ x,
                    lambda: J @ x - J2 @ x,
                    lambda: J.dot() @ x if not self.still else J @ x,
                ],
            )
        return self.pick(options)() if options else None

    # -- everything --------------------------------------------------------------------------------

    def write(self, rows: str, cols: str, depth: int) -> Node:
        """An expression from `cols` to `rows`, at most `depth` deep."""
        if depth <= 0:
            return self.leaf(rows, cols)
        how = self.often(
            (2, "leaf"),
            (4, "phrase"),
            (5, "product"),
            (3, "sum"),
            (1, "scale"),
            (1, "T"),
            (2, "inv"),
            (1, "dot"),
        )
        if how == "phrase" and (found := self.phrase(rows, cols)) is not None:
            return found
        if how == "product":
            return self.product(rows, cols, depth)
        if how == "sum":
            left, right = self.write(rows, cols, depth - 1), self.write(rows, cols, depth - 1)
            return left + right if self.pick([True, False]) else left - right
        if how == "scale":
            return self.pick(SCALARS) * self.write(rows, cols, depth - 1)
        if how == "T":
            return self.write(dual(cols), dual(rows), depth - 1).T
        if how == "inv" and cols != "one" and _same(rows, cols):
            return self.inverse(rows, cols, depth)
        if how == "dot" and not self.still:
            self.still = True
            node = self.write(rows, cols, depth - 1).dot(self.often((4, "local"), (1, "inertial")))
            self.still = False
            return node
        return self.leaf(rows, cols)

    def product(self, rows: str, cols: str, depth: int) -> Node:
        middle = self.often(
            (4, "joint"), (3, "force"), (3, "motion"), (2, "frame1"), (1, f"frame{self.most}")
        )
        if self.often((30, False), (1, True)):
            middle = "one"
        return self.write(rows, middle, depth - 1) @ self.write(middle, cols, depth - 1)

    def inverse(self, rows: str, cols: str, depth: int) -> Node:
        """(X: cols <- rows)⁻¹, most often of something that has one."""
        X = self.write(cols, rows, depth - 1)
        if rows != cols:
            return self.pick(
                [X, letter("P") if cols == "force" else X, M if cols == "force" else X]
            ).inv
        return self.pick([(I + X @ X.T) if rows not in DUAL else I + X, I + X, I - 0.1 * X, X]).inv


def _same(rows: str, cols: str) -> bool:
    return rows == cols or {rows, cols} == {"force", "motion"}


def is_moving(node: Node) -> bool:
    """Is it made of velocities?"""
    if node.op == "letter":
        return node.args[0] in MOVING
    return any(is_moving(x) for x in node.args if isinstance(x, Node))


GOALS = [
    *[("joint", "one")] * 5,
    *[("joint", "joint")] * 4,
    *[("frame1", "joint")] * 3,
    *[("frame1", "frame1")] * 3,
    *[("frame1", "one")] * 2,
    *[("one", "one")] * 2,
    ("frame2", "joint"),
    ("frame2", "frame2"),
    ("frame1", "frame2"),
    ("joint", "frame1"),
    ("joint", "frame2"),
    ("motion", "one"),
    ("motion", "one"),
    ("force", "one"),
    ("force", "one"),
    ("frame2", "one"),
    ("one", "joint"),
    ("one", "frame1"),
    ("one", "force"),
    ("force", "force"),
    ("motion", "joint"),
    ("joint", "force"),
    ("force", "motion"),
    ("frame1", "motion"),
]


def draw_recipe(pick: Pick, depth: int = 3) -> Node:
    """A random expression of a robot: one with some operator in it."""
    rows, cols = pick(GOALS)
    node = Writer(pick).write(rows, cols, pick([1, 2, 2, 3][: depth + 1]))
    return (
        node
        if any(x.op == "frames" or (x.op == "letter" and x != I) for x in walk(node))
        else mass @ J_TOOL.T @ J_TOOL
    )
