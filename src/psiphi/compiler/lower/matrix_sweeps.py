"""Matrix-valued expressions: columns move to the base, rows read them on the way, and compliances
join them where paths meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

from psiphi.algebra.expressions.letters import ARTICULATED, BODIES, FrameLetter, Letter
from psiphi.algebra.expressions.terms import Poly, Word, adjoint_word
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.frame_sweeps import FrameVector
from psiphi.compiler.lower.word_shapes import (
    ColumnFamily,
    ColumnSweep,
    Compliance,
    Composite,
    Diagonal,
    Grounded,
    WholeMatrix,
    WordShape,
    shape_of,
)
from psiphi.compiler.recursions.body_step import LOCAL, articulate, store_world_pose
from psiphi.compiler.recursions.newton_euler import Rigid
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    BodyView,
    ColumnMessage,
    Program,
    Sweep,
)
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.body_stacks import DenseSquare
from psiphi.model.spatial.screw_paths import coinertia, force
from psiphi.model.spatial.screws import Inertia, dot


@dataclass(frozen=True)
class Column:
    """A spatial vector on its way to the base, and the name of the child that sent it (None: it
    starts here)."""

    value: list
    child: int | tuple[int, int] | None


class LoweredMatrix:
    """Words with their shapes: `program` fills a rows x columns matrix in at most three sweeps."""

    def __init__(self, polys: dict[str, Poly], spaces: tuple[str, str], model: Model):
        self.spaces = spaces
        self.words = [
            (name, c, word, shape_of(word))
            for name, poly in polys.items()
            for word, c in poly.items()
            if c
        ]
        self.complete = all(shape is not None for *_, shape in self.words)
        shapes = [shape for *_, shape in self.words]
        self.families = list(dict.fromkeys(f for shape in shapes for f in _families(shape)))
        self.jacobian_letters = list(
            dict.fromkeys(shape.family.frame_letter for shape in shapes if is_frame_jacobian(shape))
        )
        self.pose_families = list(
            dict.fromkeys(shape.family for shape in shapes if is_frame_pose(shape))
        )
        letters = {x for _, _, word, _ in self.words for x in word}
        self.frames = sorted({x.plain for x in letters if isinstance(x, FrameLetter)})
        # what is needed before columns: poses for world axes, P for psi, r for phi M phi*
        self.needs_poses = bool(self.jacobian_letters or self.pose_families) or any(
            x.axes == "world" for x in self.frames
        )
        self.needs_articulation = any(ARTICULATED in x.depends_on for x in letters)
        self.needs_center_of_mass = any(x.bare == world_body.AT_CENTER for x in letters)
        self.needs_composites = (
            self.needs_center_of_mass
            or any(f.composite for f in self.families)
            or any(isinstance(x, WholeMatrix) for x in shapes)
        )
        self.reads_world = bool(letters & {*world_body.TO_WORLD, *world_body.FROM_WORLD})
        self.at_frames = self._is_at_frames(model)
        # the columns of a family: those of frames on bodies
        self.family_sizes = {
            f: 6 * len(_frame_bodies([f], model)) for f in self.families if self.at_frames
        }
        self.columns_move = len(set(_frame_bodies(self.families, model))) > 1 or not self.at_frames
        # one Om for each middle word and kind of path
        self.middles = list(
            dict.fromkeys((s.middle, s.right.kind) for s in shapes if isinstance(s, Compliance))
        )

    @property
    def movable_inertia(self) -> bool:
        """Whether inertia may move across joints: if M occurs only inside H phi M phi* H*."""
        letters = {x for _, _, word, shape in self.words for x in word if not _is_mass(shape)}
        return not any(BODIES in x.depends_on for x in letters)

    @property
    def sweeps(self) -> list:
        if self.only_frame_poses:
            return [BASE_TO_TIP]
        return (
            ([BASE_TO_TIP] if self.needs_poses else [])
            + ([TIP_TO_BASE] if self.moves_inward else [])
            + ([BASE_TO_TIP] if self.middles else [])
        )

    @property
    def moves_inward(self) -> bool:
        """Whether there is a sweep from tip to base. Frames of one body need no columns."""
        return self.needs_articulation or self.columns_move

    @property
    def only_jacobians(self) -> bool:
        """Whether all words are Jacobians: one body writes each entry, once, so the sweeps can run
        as loops."""
        return self._one_word_each and all(
            is_frame_jacobian(s) and s.transposed for *_, s in self.words
        )

    @property
    def only_frame_poses(self) -> bool:
        """Whether all words are poses of frames: the body of a frame writes it, so the sweep can
        run as a loop."""
        return self._one_word_each and all(
            is_frame_pose(s) and s.letter == world_body.AT_ORIGIN for *_, s in self.words
        )

    @property
    def can_loop(self) -> bool:
        """Whether the sweeps can run as loops over the links."""
        return self.is_whole_robot or self.only_frame_poses or self.only_jacobians or self.at_frames

    def _is_at_frames(self, model: Model) -> bool:
        """Whether all words are compliances between frames, or c I over frames on bodies, and one
        body writes each entry: that where the paths of its two frames meet."""
        frames: dict[str, set[tuple[Letter, Letter]]] = {}  # of rows and columns, by result
        with_identity: set[str] = set()
        for name, _, _, shape in self.words:
            if isinstance(shape, Compliance):
                pair = shape.left.letters[-1], shape.right.letters[-1]
                frames.setdefault(name, set()).add(pair)
            elif isinstance(shape, Diagonal) and not shape.letters:
                with_identity.add(name)
            else:
                return False
        # entries of other pairs of frames, in one sum, would be written where these meet
        if not frames or any(len(pairs) > 1 for pairs in frames.values()):
            return False
        letters = {letter for pairs in frames.values() for pair in pairs for letter in pair}
        if not all(isinstance(letter, FrameLetter) for letter in letters):
            return False
        # c I is written at the bodies of the frames: those of its rows are those of its columns
        return not with_identity or (
            with_identity <= set(frames)
            and all(left == right for name in with_identity for left, right in frames[name])
            and len(letters) == 1
            and all(
                model.frame(name).body != WORLD
                for letter in letters
                if isinstance(letter, FrameLetter)
                for name in letter.frames
            )
        )

    @property
    def _one_word_each(self) -> bool:
        """Whether each result is one word."""
        return bool(self.words) and len({name for name, *_ in self.words}) == len(self.words)

    @property
    def is_whole_robot(self) -> bool:
        """Whether all words are inertias of the whole robot, whose messages have a fixed size,
        unlike columns."""
        return all(isinstance(shape, WholeMatrix) for *_, shape in self.words)

    def _jacobian_program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """H phi B: poses base to tip; tip to base, the columns of each joint in closed form."""

        def step(body: BodyView) -> None:
            for letter in self.jacobian_letters:
                frame_sweeps.send_frame_poses(body, letter)
            start = body.slices["v"].start
            for result, c, _, shape in self.words:
                assert isinstance(shape, ColumnSweep)
                letter = shape.family.frame_letter
                for i, j, value in frame_sweeps.jacobian_entries(body, letter, shape.left):
                    body.write_joint(result, [float(c) * value], j * body.nv + i - start)

        sweeps = (Sweep(BASE_TO_TIP, frame_sweeps.store_pose), Sweep(TIP_TO_BASE, step))
        return Program(
            name,
            inputs,
            outputs,
            sweeps,
            store_world_pose,
            body_data=frame_sweeps.frame_data(tree, self.frames),
        )

    def _frame_pose_program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """E_0 phi B: base to tip, the pose of each frame."""
        widths = {arg.name: arg.shape[-1] for arg in outputs}

        def step(body: BodyView) -> None:
            frame_sweeps.store_pose(body)
            for result, c, _, shape in self.words:
                assert isinstance(shape, Grounded)
                for j, values in frame_sweeps.world_columns(body, shape.family.frame_letter):
                    for i, value in enumerate(values):
                        row, column = (j, i) if shape.transposed else (i, j)
                        body.write(result, row * widths[result] + column, [float(c) * value])

        # φ(0, k) B is known at body k
        frames = frame_sweeps.frame_data(tree, self.frames)
        return Program(
            name,
            inputs,
            outputs,
            (Sweep(BASE_TO_TIP, step),),
            store_world_pose,
            bodies=sorted(frames),
            body_data=frames,
        )

    def _frames_program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """B* c* X c B for frames. Base to tip: poses, if needed; tip to base: P and the columns of
        frames on different bodies, until they meet; base to tip: Om on the paths to the frames."""
        run = _MatrixRun(self, {arg.name: arg.shape[-1] for arg in outputs})
        poses = [Sweep(BASE_TO_TIP, frame_sweeps.store_pose)] if self.needs_poses else []
        inward = [Sweep(TIP_TO_BASE, run.columns_of_frames)] if self.moves_inward else []
        return Program(
            name,
            inputs,
            outputs,
            (*poses, *inward, Sweep(BASE_TO_TIP, run.compliance_at_frames)),
            store_world_pose,
            body_data=frame_sweeps.frame_data(tree, self.frames),
        )

    def program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """The sweeps that fill the matrices `outputs`."""
        if self.at_frames:
            return self._frames_program(name, tree, inputs, outputs)
        if self.only_jacobians:
            return self._jacobian_program(name, tree, inputs, outputs)
        if self.only_frame_poses:
            return self._frame_pose_program(name, tree, inputs, outputs)
        run = _MatrixRun(self, {arg.name: arg.shape[-1] for arg in outputs})
        # base to tip: poses, if needed; tip to base: columns; base to tip: compliances
        sweeps = []
        if self.needs_poses:
            sweeps.append(Sweep(BASE_TO_TIP, frame_sweeps.store_pose))
        sweeps.append(Sweep(TIP_TO_BASE, run.inward))
        if self.middles:
            sweeps.append(Sweep(BASE_TO_TIP, run.outward))
        return Program(
            name,
            inputs,
            outputs,
            tuple(sweeps),
            run.start,
            run.finish,
            body_data=frame_sweeps.frame_data(tree, self.frames),
            can_loop=self.is_whole_robot,
        )


def _is_mass(shape: WordShape | None) -> bool:
    """Whether the shape is L H phi M phi* H* R."""
    return (
        isinstance(shape, Composite)
        and shape.left[-1:] == ("H",)
        and shape.right.letters[:1] == ("H*",)
    )


def _families(shape: WordShape | None) -> list[ColumnFamily]:
    """The columns that a shape needs."""
    if isinstance(shape, ColumnSweep):
        return [] if is_frame_jacobian(shape) else [shape.family]
    if isinstance(shape, Composite):
        return [shape.right, shape.mirror]
    if isinstance(shape, Grounded):
        return [] if is_frame_pose(shape) else [shape.family]
    return [shape.left, shape.right] if isinstance(shape, Compliance) else []


class _MatrixRun:
    """One run of the program: entries are summed in `total`, and `finish` writes them."""

    def __init__(self, lowered: LoweredMatrix, widths: dict[str, int]):
        self.lowered, self.widths = lowered, widths
        self.total: dict[tuple[str, int, int], Any] = {}
        # the columns that the roots sent to the world
        self.world_columns: dict[ColumnFamily, ColumnMessage] = {}

    def start(self, body: BodyView) -> None:
        self.total.clear()
        self.world_columns.clear()
        store_world_pose(body)

    def add_entry(self, name: str, row: int, column: int, c: Fraction, value: Any) -> None:
        scaled = value if c == 1 else -value if c == -1 else float(c) * value
        key = (name, row, column)
        self.total[key] = scaled if key not in self.total else self.total[key] + scaled

    def finish(self, body: BodyView) -> None:
        for name, c, word, _ in self.lowered.words if self.lowered.spaces[1] == "frame" else ():
            # c I over frames does not depend on bodies
            for i in range(self.widths[name]) if not word else ():
                self.add_entry(name, i, i, c, 1.0)
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Grounded):
                self._world_entries(name, c, shape, world_body.whole_robot(body))
            elif isinstance(shape, WholeMatrix):
                self._whole_matrix(name, c, shape, world_body.whole_robot(body))
        for (name, row, column), value in self.total.items():
            body.write(name, row * self.widths[name] + column, [value])

    def _world_entries(self, name: str, c: Fraction, shape: Grounded, robot: Rigid | None) -> None:
        # column j of E_0 c R is the sum over roots of φ(0, k) x_j(k)
        for j, column in self.world_columns.get(shape.family, {}).items():
            for i, value in enumerate(_about_point(shape.letter, column.value, robot)):
                self.add_entry(name, *((j, i) if shape.transposed else (i, j)), c, value)

    def _whole_matrix(
        self, name: str, c: Fraction, shape: WholeMatrix, robot: Rigid | None
    ) -> None:
        if robot is None:
            return
        inertia = robot.inertia
        # E φ M φ* E*: columns first, then rows, each moved to the point of its letter (E_c may be
        # on one side only)
        columns = [
            _about_point(shape.left, [inertia.entry(i, j) for i in range(6)], robot)
            for j in range(6)
        ]
        for i, row in enumerate(zip(*columns, strict=True)):
            for j, value in enumerate(_about_point(shape.right, list(row), robot)):
                self.add_entry(name, i, j, c, value)

    def inward(self, body: BodyView) -> None:
        """Tip to base: P, composite inertias and columns; then the entries of all shapes but
        compliances."""
        # Jacobians need the poses of frames only, not columns
        for letter in self.lowered.jacobian_letters:
            frame_sweeps.send_frame_poses(body, letter)
        # P and r of this body come first: columns that start or pass here need them
        if self.lowered.needs_articulation:
            articulate(body)
        if self.lowered.needs_composites:
            world_body.sum_masses(body)
        for f in self.lowered.families:
            self._propagate(body, f)
        # E_0 phi B: the columns at the world follow from the poses of the frames
        for f in self.lowered.pose_families:
            columns = {
                j: Column(x, None) for j, x in frame_sweeps.world_columns(body, f.frame_letter)
            }
            self._add_world_columns(f, columns)
        if body.at_root:
            self._send_to_world(body)
        # entry (i, j) is computed at body i if it is body j or one of its ancestors
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Diagonal) and (shape.letters or self.lowered.spaces[1] == "joint"):
                for j, e in _unit_columns(body, shape.letters):
                    for i, value in _rows(body, apply_word(body, shape.letters, e)):
                        self.add_entry(name, i, j, c, value)
            elif isinstance(shape, ColumnSweep) and is_frame_jacobian(shape):
                letter = shape.family.frame_letter
                for i, j, value in frame_sweeps.jacobian_entries(body, letter, shape.left):
                    self.add_entry(name, *((j, i) if shape.transposed else (i, j)), c, value)
            elif isinstance(shape, ColumnSweep):
                for j, column in body.record[shape.family].items():
                    for i, value in _rows(body, apply_word(body, shape.left, column.value)):
                        self.add_entry(name, *((j, i) if shape.transposed else (i, j)), c, value)
            elif isinstance(shape, Composite):
                self._composite_entries(body, name, c, shape)

    def _send_to_world(self, body: BodyView) -> None:
        """At a root: move its columns to the world by φ."""
        for f in self.lowered.families if self.lowered.reads_world else ():
            columns = {
                j: Column(force(body.path, x.value), body.link.index)
                for j, x in body.record[f].items()
            }
            self._add_world_columns(f, columns)

    def _add_world_columns(self, f: ColumnFamily, columns: dict[int, Column]) -> None:
        self.world_columns[f] = self.world_columns.get(f, ColumnMessage()) + ColumnMessage(columns)

    def _propagate(self, body: BodyView, f: ColumnFamily) -> None:
        """The columns of a family at this body, and the message to the parent."""
        here = ColumnMessage(body.children.get(f, {})) + self._own_columns(body, f)
        body.record[f] = here
        sent = self._moved(body, f, body.link.index)
        # K = E_phi G starts at the parent: this body only sends the column
        if f.shifted:
            for j, e in _unit_columns(body, f.letters):
                sent[j] = Column(
                    force(body.path, LOCAL["G"](body, apply_word(body, f.letters[1:], e))), None
                )
        body.sent[f] = sent

    def _own_columns(self, body: BodyView, f: ColumnFamily) -> ColumnMessage:
        """The columns that start at this body, at its joint or frames: the letters behind phi or
        psi on unit vectors (times r for composites)."""
        own = ColumnMessage()
        for j, e in _unit_columns(body, f.letters) if not f.shifted else ():
            start = apply_word(body, f.letters, e)
            own[j] = Column(body.record["r"] @ start if f.composite else start, None)
        return own

    def _moved(
        self, body: BodyView, f: ColumnFamily, child: int | tuple[int, int]
    ) -> ColumnMessage:
        """The columns at the parent: phi(p, k) tau_bar x(k) for psi, phi(p, k) x(k) for phi."""
        sent = ColumnMessage()
        for j, column in body.record[f].items():
            passed = (
                body.record["gain"].project(body.H, column.value)
                if f.kind == "psi"
                else column.value
            )
            sent[j] = Column(force(body.path, passed), child)
        return sent

    def _composite_entries(self, body: BodyView, name: str, c: Fraction, shape: Composite) -> None:
        """Rows of this body times columns from here and outboard, and the transposed entries from
        the columns of the left side."""
        right = body.record[shape.right]
        for j, column in right.items():
            for i, value in _rows(body, apply_word(body, shape.left, column.value)):
                # for a symmetric matrix, half of the entries of this body's own block are enough
                own = column.child is None and shape.mirror == shape.right
                if own and i > j:
                    continue
                self.add_entry(name, i, j, c, value)
                if shape.mirror == shape.right and i != j:
                    self.add_entry(name, j, i, c, value)
        if shape.mirror != shape.right:
            for i, column in body.record[shape.mirror].items():
                for j, value in _rows(
                    body, apply_word(body, adjoint_word(shape.right.letters), column.value)
                ):
                    if column.child is not None:
                        self.add_entry(name, i, j, c, value)

    def outward(self, body: BodyView) -> None:
        """Base to tip: Om, and the entries of pairs whose paths meet at this body.

        Om(k) = X(k) + c(p,k)* Om(p) c(p,k)
        """
        for middle, kind in self.lowered.middles:
            key = (middle, kind)
            body.record[key] = compliance(body, body.parent.get(key), middle, kind)
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Compliance):
                self._compliance_entries(body, name, c, shape)

    def columns_of_frames(self, body: BodyView) -> None:
        """Tip to base: P, and the columns of frames, which stop where all of them have met."""
        if self.lowered.needs_articulation:
            articulate(body)
        if not (body.data and self.lowered.columns_move):
            return
        families = self.lowered.families
        for f in families:
            body.record[f] = ColumnMessage(body.children.get(f, {})) + self._own_columns(body, f)
        columns = [(i, j) for i, f in enumerate(families) for j in body.record[f]]
        if len(columns) in (0, sum(self.lowered.family_sizes.values())):
            return  # all have met, here or further out
        # the first column that a child sends is its name: links of a class share their step
        child = min(columns)
        for f in families:
            body.sent[f] = self._moved(body, f, child)

    def compliance_at_frames(self, body: BodyView) -> None:
        """Base to tip: Om on the paths to the frames, and the entries of pairs that meet here."""
        if not body.data:
            return
        self.total.clear()
        if not self.lowered.columns_move:
            for f in self.lowered.families:
                body.record[f] = self._own_columns(body, f)
        self.outward(body)
        here = {i: x for f in self.lowered.families[:1] for i, x in body.record[f].items()}
        for name, c, word, _ in self.lowered.words:
            # c I over frames
            for i, x in here.items() if not word else ():
                if x.child is None:
                    self.add_entry(name, i, i, c, 1.0)
        for (name, row, column), value in self.total.items():
            body.write(name, row * self.widths[name] + column, [value])

    def _compliance_entries(
        self, body: BodyView, name: str, c: Fraction, shape: Compliance
    ) -> None:
        """y_i* Om x_j for all pairs that did not come through one child; Om is applied to as few
        columns as possible."""
        # the sum of y_i* c*(a, i) X c(a, j) x_j over all common ancestors a; Om(k) has the sum up
        # to the nearest one, k
        Om = body.record[shape.middle, shape.right.kind]
        left, right = body.record[shape.left], body.record[shape.right]
        if shape.left != shape.right:
            if len(right) <= len(left):
                self._pair_entries(name, c, Om, right, left, False)
            else:
                self._pair_entries(name, c, Om, left, right, True)
            return
        # Each pair of a symmetric matrix is computed once. Pairs of columns from one child met
        # further out. The columns of the child with most of them need no product Om @ x here,
        # because their partners here come from elsewhere.
        count = Counter(x.child for x in right.values() if x.child is not None)
        largest = max(count, key=count.__getitem__) if count else None
        done: set[int] = set()
        for j, x in right.items():
            if x.child is not None and x.child == largest:
                continue
            z = Om @ x.value
            for i, y in right.items():
                if i not in done and _meet_here(x, y):
                    value = dot(y.value, z)
                    self.add_entry(name, i, j, c, value)
                    if i != j:
                        self.add_entry(name, j, i, c, value)
            done.add(j)

    def _pair_entries(
        self,
        name: str,
        c: Fraction,
        Om: Inertia,
        near: ColumnMessage,
        far: ColumnMessage,
        transposed: bool,
    ) -> None:
        # Om is applied to the side with fewer columns
        for j, x in near.items():
            partners = [(i, y) for i, y in far.items() if _meet_here(x, y)]
            z = Om @ x.value if partners else []
            for i, y in partners:
                self.add_entry(name, *((j, i) if transposed else (i, j)), c, dot(y.value, z))


def _about_point(letter: Letter, f: list, robot: Rigid | None) -> list:
    """A force at the world's origin; for E_c, about the centre of mass."""
    return (
        f
        if letter.bare == world_body.AT_ORIGIN
        else world_body.about_center(f, world_body.center_of_mass(robot))
    )


def _frame_bodies(families: list[ColumnFamily], model: Model) -> list[int]:
    """The body of each frame of the families, without frames of the world."""
    last = [f.letters[-1] for f in families if f.letters]
    names = [name for x in last if isinstance(x, FrameLetter) for name in x.frames]
    return [body for body in (model.frame(name).body for name in names) if body != WORLD]


def is_frame_jacobian(shape: WordShape | None) -> TypeGuard[ColumnSweep]:
    """Whether the shape is H phi B.

    phi(k, frame) follows from the poses of body and frame, without columns.
    """
    return isinstance(shape, ColumnSweep) and _is_frame_family(shape.family)


def is_frame_pose(shape: WordShape | None) -> TypeGuard[Grounded]:
    """Whether the shape is E_0 phi B.

    phi(world, frame) is the pose of the frame, [R, p~ R; 0, R].
    """
    return (
        isinstance(shape, Grounded)
        and not shape.family.composite
        and _is_frame_family(shape.family)
    )


def _is_frame_family(f: ColumnFamily) -> bool:
    """Whether the columns are phi B: wrenches on frames."""
    return f.kind == "phi" and len(f.letters) == 1 and isinstance(f.letters[0], FrameLetter)


def _meet_here(x: Column, y: Column) -> bool:
    """Whether this body is where two columns meet: one starts here, or they came through different
    children."""
    return x.child is None or y.child is None or x.child != y.child


def apply_word(body: BodyView, letters: Word, x: list | FrameVector) -> Any:
    """A word of local letters applied to a value at this body."""
    # the last letter acts first
    for letter in reversed(letters):
        x = (
            frame_sweeps.apply_frame_letter(body, letter, x)
            if isinstance(letter, FrameLetter)
            else LOCAL[letter](body, x)
        )
    return x


def _unit_columns(body: BodyView, letters: Word) -> Iterator[tuple[int, list | FrameVector]]:
    """(column number, unit vector) of the columns that start at this body: those of its joint or
    frames."""
    last = letters[-1] if letters else None
    if isinstance(last, FrameLetter):
        for number, *_ in frame_sweeps.frames_here(body, last):
            for i in range(6):
                unit = [1.0 if i == j else 0.0 for j in range(6)]
                yield (
                    6 * number + i,
                    {
                        n: unit if n == number else [0.0] * 6
                        for n, *_ in frame_sweeps.frames_here(body, last)
                    },
                )
        return
    # n columns for a joint of n coordinates, numbered as v
    own = body.slices["v"]
    for i in range(own.start, own.stop):
        yield i, [1.0 if own.start + j == i else 0.0 for j in range(own.stop - own.start)]


def _rows(body: BodyView, value: list | FrameVector) -> list[tuple[int, Any]]:
    """(row number, scalar) of a value in joint or frame space at this body."""
    if isinstance(value, dict):
        return [(6 * number + i, x) for number, part in value.items() for i, x in enumerate(part)]
    start = body.slices["v"].start
    return [(start + i, x) for i, x in enumerate(value)]


def compliance(
    body: BodyView, above: Inertia | None, middle: Word, kind: str
) -> Inertia | DenseSquare:
    """X + c* Om(p) c, with X the compliance of the joint itself.

    psi:  tau_bar* LamP tau_bar = LamP - H* (LamP G)* - (LamP G) H + H* (G* LamP G) H
    """
    size = body.link.size
    # X = H* D^-1 H, the compliance of the joint itself; entries below the diagonal are copied
    X = [
        apply_word(body, middle, [1.0 if i == j else 0.0 for j in range(size)]) for i in range(size)
    ]
    entry = {(r, c): X[min(r, c)][max(r, c)] for r in range(size) for c in range(size)}
    if above is None:
        return _square(entry, size)
    # LamP = phi* Om(p) phi, the compliance of the parent at this body, with its joint locked
    lam, H = coinertia(body.path, above), body.H
    n = len(H) if kind == "psi" else 0
    g = [list(column) for column in zip(*body.record["gain"].G, strict=True)] if n else []
    LG = [lam @ x for x in g]
    c = [[dot(g[i], LG[j]) for j in range(n)] for i in range(n)]
    # the upper half of X + tau_bar* LamP tau_bar: both terms are symmetric
    for r in range(size):
        for s in range(r, size):
            value = lam.entry(r, s)
            for i in range(n):
                value = value - LG[i][r] * H[i][s] - H[i][r] * LG[i][s]
                value = value + H[i][r] * dot(c[i], [H[m][s] for m in range(n)])
            entry[r, s] = entry[s, r] = value + entry[r, s]
    return _square(entry, size)


def _square(entry: dict[tuple[int, int], Any], size: int) -> Inertia | DenseSquare:
    if size == 6:
        return Inertia.from_entries(entry)
    return DenseSquare([[entry[r, c] for r in range(size)] for c in range(size)])
