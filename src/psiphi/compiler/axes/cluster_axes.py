"""A cluster of bodies in their working axes, as a body with one joint (docs/embedding.md).

With the bodies stacked, S = (1, .., r), φ_S the transmission among them, C that of those which hang outside,

    H(S) = X* H_S φ_S      φ(p, S) = C φ_S      M(S) = diag M(j)

so that V(S) = φ*(p, S) V(p) + H*(S) β is what all of them do. P(S) = diag P(j), and D(S) = X* (H_S φ_S P φ_S* H_S*) X.

A rotor J of a joint whose rate is a varying multiple of the free ones, β_c = X_c β, stands in the stack as a body, too: a mass
J that slides by β_c, hangs on nothing and weighs nothing. So X_c* J X_c is in D, and X_c* J (dX_c/dt) β in the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from psiphi.compiler.axes.link import Link
from psiphi.compiler.axes.link_axes import Tree
from psiphi.model.components import way_to
from psiphi.model.flexible.modal_cluster import laws_of
from psiphi.model.loops.cluster_kinematics import EYE3, ZERO3, ClusterKinematics
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial.body_stacks import DenseSquare, ReducedInertia, StackedInertia
from psiphi.model.spatial.screw_paths import force, inertia, motion, pose, unrotate
from psiphi.model.spatial.screws import Inertia, add, dot, rigid
from psiphi.model.spatial.small_matrices import apply, flat, part, transpose


@dataclass(frozen=True)
class ClusterTransform:
    """φ(p, S): from the body outside to all bodies of a cluster, at one configuration. A displacement as a path has them."""

    paths: list
    hangs: tuple[int, ...]
    rotors: int = 0  # that stand behind the bodies, and hang on nothing

    def outward(self, step: Any, x: Any, join: Any) -> list:
        """Base to tip: what each body makes of its parent's value."""
        found: list = []
        for path, on in zip(self.paths, self.hangs, strict=True):
            found.append(step(path, x if on == OUTSIDE else found[on]))
        return join(found) + [0.0] * (self.rotors * len(found[0]))

    def inward(self, step: Any, values: list) -> Any:
        """Tip to base: each body's value, and what its children hand it, summed at the body outside."""
        values, total = list(values), None
        for k in reversed(range(len(self.paths))):
            sent, on = step(self.paths[k], values[k]), self.hangs[k]
            if on != OUTSIDE:
                values[on] = _sum(values[on], sent)
            else:
                total = sent if total is None else _sum(total, sent)
        return total

    def motion(self, V: list) -> list:
        return self.outward(motion, V, flat)

    def force(self, f: list) -> list:
        return self.inward(force, [part(f, k) for k in range(len(self.paths))])

    def unrotate(self, x: list) -> list:
        return self.outward(unrotate, x, flat)

    def inertia(self, P: StackedInertia | ReducedInertia) -> Inertia:
        """φ P φ*: composite bodies; less (φ g) (φ u)* where a joint has taken its part."""
        whole = P.P if isinstance(P, ReducedInertia) else P
        total: Inertia = self.inward(inertia, whole.blocks)
        if not isinstance(P, ReducedInertia):
            return total
        G, U = ([self.force(column) for column in columns] for columns in (P.G, P.U))
        entry = {}
        for r in range(6):
            for c in range(r, 6):
                value = total.entry(r, c)
                for g, u in zip(G, U, strict=True):
                    value = value - g[r] * u[c]
                entry[r, c] = entry[c, r] = value
        return Inertia.from_entries(entry)

    def coinertia(self, X: Any) -> DenseSquare:
        """φ* X φ."""
        n = 6 * (len(self.paths) + self.rotors)
        units = ([1.0 if i == j else 0.0 for j in range(n)] for i in range(n))
        return DenseSquare([self.motion(X @ self.force(e)) for e in units])

    def pose(self, R: list, p: list) -> tuple[list, list]:
        """The bodies' poses, rows under rows and places end to end."""
        found: list = []
        for path, on in zip(self.paths, self.hangs, strict=True):
            found.append(pose(path, *((R, p) if on == OUTSIDE else found[on])))
        found += [(EYE3, ZERO3)] * self.rotors
        return flat([R for R, _ in found]), flat([p for _, p in found])


def _sum(a: Any, b: Any) -> Any:
    return add(a, b) if isinstance(a, list) else a + b


@dataclass(frozen=True)
class RotorLink:
    """A rotor in the stack, as a body: a mass at its own origin."""

    mass: float
    moment = ZERO3
    pseudo = (ZERO3, ZERO3, ZERO3)

    @property
    def inertia(self) -> Inertia:
        return rigid(self.mass, self.moment, self.pseudo)


@dataclass
class ClusterLink:
    """The bodies of a cluster as one link, number `index` of its tree; `parent` is the body it hangs on."""

    index: int
    parent: int
    links: tuple[Link, ...]
    laws: ClusterKinematics
    rotors: tuple[int, ...] = ()  # coordinates whose rotors stand in the stack
    kind: str = "compound"

    @property
    def cluster(self) -> Cluster:
        return self.laws.cluster

    @property
    def size(self) -> int:
        return 6 * (len(self.links) + len(self.rotors))

    @property
    def armature(self) -> list:
        """Of all coordinates: of those that are free as their joints have it, who may have it as an input."""
        found = list(self.cluster.armature)
        if not self.cluster.modes:
            own = (x for link in self.links for x in link.armature)
            for c, x in zip(sorted(self.cluster.free), own, strict=True):
                found[c] = x
        return found

    @property
    def parts(self) -> tuple:
        """The bodies, and the rotors that stand behind them."""
        return (*self.links, *(RotorLink(self.cluster.armature[c]) for c in self.rotors))

    @property
    def inertia(self) -> StackedInertia:
        return StackedInertia([body.inertia for body in self.parts])

    def path(self, q: list) -> list:
        own = self.laws.of_q(q)
        paths = [link.path(x) for link, x in zip(self.links, own, strict=True)]
        return [ClusterTransform(paths, self.cluster.hangs, len(self.rotors))]

    def maps(self, q: list) -> list[list]:
        """H(j), body by body."""
        return [link.H(x) for link, x in zip(self.links, self.laws.of_q(q), strict=True)]

    def H(self, q: list) -> list:
        """X* H_S φ_S, one row a free coordinate: what its unit rate does to all bodies."""
        X, maps = transpose(self.laws.X(q)), self.maps(q)
        (junction,) = self.path(q)
        rows = []
        for x in X:
            own = [apply(transpose(h), b) for h, b in zip(maps, self.laws.of_v(x), strict=True)]
            rows.append(self.spread(junction, own) + self.spun(x))
        return rows

    def spun(self, rates: list) -> list:
        """[0; β, 0, 0] of the rotors in the stack, for the rates of all joints."""
        return [x for c in self.rotors for x in (0.0, 0.0, 0.0, rates[c], 0.0, 0.0)]

    def spread(self, junction: ClusterTransform, own: list[list]) -> list:
        """φ_S* x: each body's own motion, and those of the bodies it hangs on."""
        found: list = []
        for path, on, x in zip(junction.paths, junction.hangs, own, strict=True):
            found.append(x if on == OUTSIDE else add(motion(path, found[on]), x))
        return flat(found)

    def gathered(self, junction: ClusterTransform, x: list) -> list:
        """φ_S x: each body's own force, and those of the bodies that hang on it."""
        found = [part(x, k) for k in range(len(self.links))]
        for k in reversed(range(len(found))):
            on = junction.hangs[k]
            if on != OUTSIDE:
                found[on] = add(found[on], force(junction.paths[k], found[k]))
        return flat(found) + x[6 * len(found) :]

    def rotor(self, q: list) -> list:
        """X* J_m X of the rotors that do not stand in the stack."""
        J = [0.0 if c in self.rotors else J for c, J in enumerate(self.armature)]
        if all(isinstance(j, float) and j == 0.0 for j in J):
            return [[0.0] * len(self.cluster.free) for _ in self.cluster.free]
        X = transpose(self.laws.X(q))
        return [[dot([j * x for j, x in zip(J, one, strict=True)], two) for two in X] for one in X]


@dataclass(frozen=True)
class ClusteredTree(Tree):
    """A tree some of whose links are clusters; `spanning` is the tree body by body."""

    spanning: Tree = field(kw_only=True)
    runs: tuple[range, ...] = field(kw_only=True)  # the bodies of each link

    @property
    def open(self) -> Tree:
        return self.spanning

    @cached_property
    def _homes(self) -> dict[int, tuple[int, int]]:
        return {body: (k, at) for k, run in enumerate(self.runs) for at, body in enumerate(run)} | {
            WORLD: (WORLD, 0)
        }

    def home(self, body: int) -> tuple[int, int]:
        return self._homes[body]

    @cached_property
    def parent(self) -> tuple[int, ...]:
        return tuple(self.home(link.parent)[0] for link in self.links)

    def seat(self, k: int) -> tuple[int, int] | None:
        outer, at = self.home(self.links[k].parent)
        return (
            (at, self.links[outer].size // 6)
            if outer != WORLD and isinstance(self.links[outer], ClusterLink)
            else None
        )

    def slices(self, k: int) -> dict[str, slice]:
        first, last = (self.model.joints[body] for body in (self.runs[k][0], self.runs[k][-1]))
        run = self.runs[k]
        return {
            "q": slice(first.q_slice.start, last.q_slice.stop),
            "v": slice(first.v_slice.start, last.v_slice.stop),
            "x": slice(6 * run[0], 6 * run[-1] + 6),
        }

    def place(self, body: int, pose: Pose) -> Pose:
        return self.spanning.place(body, pose)

    def at(self, parameters: Sequence[Any]) -> Tree:
        return self if self.freed is None else clustered(self.spanning.at(parameters))

    def path_to(self, body: int) -> list[int]:
        return way_to(self.parent, self.home(body)[0])


def clustered(tree: Tree) -> ClusteredTree:
    """A framed spanning tree with its clusters as links."""
    model = tree.model
    assert model.embedding is not None
    first = {cluster.first: cluster for cluster in model.embedding.clusters}
    links: list[Any] = []
    runs: list[range] = []
    body = 0
    while body < len(tree.links):
        cluster = first.get(body)
        run = range(body, body + 1) if cluster is None else cluster.bodies
        runs.append(run)
        links.append(tree.links[body] if cluster is None else _compound(tree, cluster, len(links)))
        body = run.stop
    gauge = tuple(
        [tree.gauge[k] for k in run] if run[0] in first else tree.gauge[run[0]] for run in runs
    )
    return ClusteredTree(
        model,
        tuple(links),
        (),
        gauge,
        tree.freed,
        tree.moves,
        spanning=tree,
        runs=tuple(runs),  # type: ignore[arg-type]
    )  # type: ignore[arg-type]


def _compound(tree: Tree, cluster: Cluster, index: int) -> ClusterLink:
    links = tuple(tree.links[k] for k in cluster.bodies)
    spots = [
        (_working(tree, cluster, tie.first), _working(tree, cluster, tie.second))
        for tie in cluster.ties
    ]
    return ClusterLink(
        index, cluster.parent, links, laws_of(cluster, links, spots), cluster.varying_rotors
    )


def _working(tree: Tree, cluster: Cluster, spot: ClusterFrame) -> ClusterFrame:
    body = cluster.parent if spot.body == OUTSIDE else cluster.first + spot.body
    place = tree.place(body, Pose(spot.rotation, spot.origin))
    return ClusterFrame(spot.body, place.rotation, place.translation)
