"""A cluster of bodies in working axes, as one link with one joint (docs/embedding.md).

The bodies S = (1, .., r) are stacked. φ_S is the transmission among them, C that of the bodies
whose parent is outside of the cluster:

    H(S) = X* H_S φ_S      φ(p, S) = C φ_S      M(S) = diag M(j)

Then V(S) = φ*(p, S) V(p) + H*(S) β is the motion of all bodies, P(S) = diag P(j), and
D(S) = X* (H_S φ_S P φ_S* H_S*) X.

If the rate of a joint is a varying multiple of the free rates, β_c = X_c β, its rotor inertia J is
a body of the stack, too: a mass J that slides by β_c, without a parent and without weight. Then D
contains X_c* J X_c, and the bias X_c* J (dX_c/dt) β.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.axes.link import Link
from psiphi.compiler.axes.link_axes import Tree
from psiphi.model.components import path_to_body
from psiphi.model.flexible.modal_cluster import make_kinematics
from psiphi.model.loops.cluster_kinematics import EYE3, ZERO3, ClusterKinematics
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial.body_stacks import DenseSquare, ReducedInertia, StackedInertia
from psiphi.model.spatial.screw_paths import force, inertia, motion, pose, unrotate
from psiphi.model.spatial.screws import Inertia, add, dot, rigid_inertia
from psiphi.model.spatial.small_matrices import apply, body_part, flatten, transpose


@dataclass(frozen=True)
class ClusterTransform:
    """φ(p, S): from the parent body outside to all bodies of a cluster, at one configuration.

    It stands in a path like any displacement.
    """

    paths: list
    parents: tuple[int, ...]  # the parent of each body in the cluster
    rotors: int = 0  # rotors behind the bodies in the stack; they have no parent

    def base_to_tip(
        self, step: Callable[[list, list], list], x: list, join: Callable[[list], list]
    ) -> list:
        """values[k] = step(path(k), values[parent(k)]), x at the body outside; joined."""
        values: list = []
        for path, parent in zip(self.paths, self.parents, strict=True):
            values.append(step(path, x if parent == OUTSIDE else values[parent]))
        return join(values) + [0.0] * (self.rotors * len(values[0]))

    def tip_to_base(self, step: Callable[[list, Any], Any], values: list) -> Any:
        """values[parent(k)] += step(path(k), values[k]); the sum at the body outside."""
        values, total = list(values), None
        for k in reversed(range(len(self.paths))):
            sent, parent = step(self.paths[k], values[k]), self.parents[k]
            if parent != OUTSIDE:
                values[parent] = _sum(values[parent], sent)
            else:
                total = sent if total is None else _sum(total, sent)
        return total

    def motion(self, V: list) -> list:
        return self.base_to_tip(motion, V, flatten)

    def force(self, f: list) -> list:
        return self.tip_to_base(force, [body_part(f, k) for k in range(len(self.paths))])

    def unrotate(self, x: list) -> list:
        return self.base_to_tip(unrotate, x, flatten)

    def inertia(self, P: StackedInertia | ReducedInertia) -> Inertia:
        """φ P φ* of composite bodies; of a reduced inertia P - Σ g u*, minus Σ (φ g) (φ u)*."""
        whole = P.P if isinstance(P, ReducedInertia) else P
        total: Inertia = self.tip_to_base(inertia, whole.blocks)
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

    def coinertia(self, X: Inertia | DenseSquare) -> DenseSquare:
        """φ* X φ."""
        n = 6 * (len(self.paths) + self.rotors)
        units = ([1.0 if i == j else 0.0 for j in range(n)] for i in range(n))
        return DenseSquare([self.motion(X @ self.force(e)) for e in units])

    def pose(self, R: list, p: list) -> tuple[list, list]:
        """The poses of all bodies: their rotations below each other, their origins in a row."""
        poses: list = []
        for path, parent in zip(self.paths, self.parents, strict=True):
            poses.append(pose(path, *((R, p) if parent == OUTSIDE else poses[parent])))
        poses += [(EYE3, ZERO3)] * self.rotors
        return flatten([R for R, _ in poses]), flatten([p for _, p in poses])


def _sum(a: Any, b: Any) -> Any:
    """The sum of two vectors or two inertias."""
    return add(a, b) if isinstance(a, list) else a + b


@dataclass(frozen=True)
class RotorLink:
    """A rotor as a body of the stack: a point mass at its own origin."""

    mass: float
    moment = ZERO3
    pseudo = (ZERO3, ZERO3, ZERO3)

    @property
    def inertia(self) -> Inertia:
        return rigid_inertia(self.mass, self.moment, self.pseudo)


@dataclass
class ClusterLink:
    """The bodies of a cluster as one link, number `index` of its tree; `parent` is a body."""

    index: int
    parent: int
    links: tuple[Link, ...]
    kinematics: ClusterKinematics
    rotors: tuple[int, ...] = ()  # coordinates whose rotors are bodies of the stack
    kind: str = "compound"

    @property
    def cluster(self) -> Cluster:
        return self.kinematics.cluster

    @property
    def size(self) -> int:
        return 6 * (len(self.links) + len(self.rotors))

    @property
    def armature(self) -> list:
        """Of all coordinates of the cluster. That of the free ones is read from their joints,
        where it may be a free parameter."""
        armature = list(self.cluster.armature)
        if not self.cluster.modes:
            of_joints = (x for link in self.links for x in link.armature)
            for c, x in zip(sorted(self.cluster.free), of_joints, strict=True):
                armature[c] = x
        return armature

    @property
    def parts(self) -> tuple:
        """The stack: the bodies, then the rotors."""
        return (*self.links, *(RotorLink(self.cluster.armature[c]) for c in self.rotors))

    @property
    def inertia(self) -> StackedInertia:
        return StackedInertia([body.inertia for body in self.parts])

    def path(self, q: list) -> list:
        coordinates = self.kinematics.split_q(q)
        paths = [link.path(x) for link, x in zip(self.links, coordinates, strict=True)]
        return [ClusterTransform(paths, self.cluster.parents, len(self.rotors))]

    def maps(self, q: list) -> list[list]:
        """H(j) of each body."""
        return [link.H(x) for link, x in zip(self.links, self.kinematics.split_q(q), strict=True)]

    def H(self, q: list) -> list:
        """X* H_S φ_S, one row per free coordinate: the motion of all bodies at its unit rate."""
        X, maps = transpose(self.kinematics.X(q)), self.maps(q)
        (transform,) = self.path(q)
        rows = []
        for x in X:
            motions = [
                apply(transpose(h), b)
                for h, b in zip(maps, self.kinematics.split_v(x), strict=True)
            ]
            rows.append(self.accumulate_motion(transform, motions) + self.rotor_motion(x))
        return rows

    def rotor_motion(self, rates: list) -> list:
        """[0; β, 0, 0] of the rotors in the stack, for the rates of all joints."""
        return [x for c in self.rotors for x in (0.0, 0.0, 0.0, rates[c], 0.0, 0.0)]

    def accumulate_motion(self, transform: ClusterTransform, motions: list[list]) -> list:
        """φ_S* x: the motion of each body, plus those of its ancestors in the cluster."""
        total: list = []
        for path, parent, x in zip(transform.paths, transform.parents, motions, strict=True):
            total.append(x if parent == OUTSIDE else add(motion(path, total[parent]), x))
        return flatten(total)

    def accumulate_force(self, transform: ClusterTransform, x: list) -> list:
        """φ_S x: the force on each body, plus those of its descendants in the cluster."""
        total = [body_part(x, k) for k in range(len(self.links))]
        for k in reversed(range(len(total))):
            parent = transform.parents[k]
            if parent != OUTSIDE:
                total[parent] = add(total[parent], force(transform.paths[k], total[k]))
        return flatten(total) + x[6 * len(total) :]

    def rotor_inertia(self, q: list) -> list:
        """X* J_m X of the rotors that are not bodies of the stack."""
        J = [0.0 if c in self.rotors else J for c, J in enumerate(self.armature)]
        if all(isinstance(j, float) and j == 0.0 for j in J):
            return [[0.0] * len(self.cluster.free) for _ in self.cluster.free]
        X = transpose(self.kinematics.X(q))
        return [[dot([j * x for j, x in zip(J, one, strict=True)], two) for two in X] for one in X]


@dataclass(frozen=True)
class ClusteredTree(Tree):
    """A tree with clusters among its links; `spanning` is the tree with one link per body."""

    spanning: Tree = field(kw_only=True)
    runs: tuple[range, ...] = field(kw_only=True)  # the bodies of each link

    @property
    def spanning_tree(self) -> Tree:
        return self.spanning

    @cached_property
    def _link_of(self) -> dict[int, tuple[int, int]]:
        return {body: (k, i) for k, run in enumerate(self.runs) for i, body in enumerate(run)} | {
            WORLD: (WORLD, 0)
        }

    def link_of(self, body: int) -> tuple[int, int]:
        return self._link_of[body]

    @cached_property
    def _parents(self) -> tuple[int, ...]:
        return tuple(self.link_of(link.parent)[0] for link in self.links)

    @property
    def parent(self) -> tuple[int, ...]:
        return self._parents

    def parent_slot(self, k: int) -> tuple[int, int] | None:
        parent, i = self.link_of(self.links[k].parent)
        return (
            (i, self.links[parent].size // 6)
            if parent != WORLD and isinstance(self.links[parent], ClusterLink)
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

    def working_pose(self, body: int, pose: Pose) -> Pose:
        return self.spanning.working_pose(body, pose)

    def with_parameters(self, parameters: Sequence[AnyScalar] | np.ndarray) -> Tree:
        return (
            self if self.freed is None else cluster_tree(self.spanning.with_parameters(parameters))
        )

    def path_to(self, body: int) -> list[int]:
        return path_to_body(self.parent, self.link_of(body)[0])


def cluster_tree(tree: Tree) -> ClusteredTree:
    """The tree whose links are the clusters of a spanning tree, and its other bodies."""
    model = tree.model
    first = {cluster.first: cluster for cluster in model.clusters}
    links: list[Any] = []  # Link or ClusterLink, which sweeps do not distinguish
    runs: list[range] = []
    body = 0
    while body < len(tree.links):
        cluster = first.get(body)
        run = range(body, body + 1) if cluster is None else cluster.bodies
        runs.append(run)
        links.append(
            tree.links[body] if cluster is None else _cluster_link(tree, cluster, len(links))
        )
        body = run.stop
    gauge = tuple(
        [tree.gauge[k] for k in run] if run[0] in first else tree.gauge[run[0]] for run in runs
    )
    return ClusteredTree(
        model,
        tuple(links),
        (),
        gauge,  # type: ignore[arg-type]  # of a cluster one pose per body
        tree.freed,
        tree.moves_inertia,
        spanning=tree,
        runs=tuple(runs),
    )


def _cluster_link(tree: Tree, cluster: Cluster, index: int) -> ClusterLink:
    links = tuple(tree.links[k] for k in cluster.bodies)
    spots = [
        (_working_frame(tree, cluster, tie.first), _working_frame(tree, cluster, tie.second))
        for tie in cluster.ties
    ]
    return ClusterLink(
        index, cluster.parent, links, make_kinematics(cluster, links, spots), cluster.varying_rotors
    )


def _working_frame(tree: Tree, cluster: Cluster, spot: ClusterFrame) -> ClusterFrame:
    body = cluster.parent if spot.body == OUTSIDE else cluster.first + spot.body
    place = tree.working_pose(body, Pose(spot.rotation, spot.origin))
    return ClusterFrame(spot.body, place.rotation, place.translation)
