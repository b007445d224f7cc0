"""Frames in sweeps: B maps wrenches on frames to their bodies, B* maps motions of bodies to frames,
in world axes or in the axes of the frames.

A value in frame space is {frame number: six scalars} at the bodies that carry frames. `body.data`
lists the frames of each letter B on this body: (number, rotation, origin) in the working axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter, Letter
from psiphi.algebra.expressions.terms import Word
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.recursions.body_step import EYE3, ZERO3, gauges
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import add, cross, subtract
from psiphi.model.spatial.small_matrices import body_part

FrameVector = dict[int, list]  # {frame number: six scalars}


def frame_data(tree: Tree, letters: list[FrameLetter]) -> dict[int, tuple]:
    """The program's `body_data`, with an entry for every body on the path to a frame.

        {body: ((letter, world axes?, ((number, R, p, index), ...)), ...)}

    `index` is the number of the frame's body within a cluster.
    """
    data: dict[int, dict] = {}
    for letter in letters:
        world = letter.axes == "world"
        for number, name in enumerate(letter.frames):
            frame = tree.model.frame(name)
            if frame.body == WORLD:
                continue
            # the bodies inboard propagate poses; the link that carries the frame lists it
            for k in tree.path_to(frame.body):
                data.setdefault(k, {}).setdefault((letter, world), [])
            pose = tree.working_pose(frame.body, frame.pose)
            link, index = tree.link_of(frame.body)
            R, p = tuple(map(tuple, pose.rotation.tolist())), tuple(pose.translation.tolist())
            data[link][letter, world].append((number, R, p, index))
    return {
        k: tuple((*key, tuple(frames)) for key, frames in letters.items())
        for k, letters in data.items()
    }


def store_pose(body: BodyView) -> None:
    """Base to tip: store the pose of the body's axes in the world, on the paths to frames."""
    if body.data:
        R, p = pose(body.path, body.parent["R"], body.parent["p"])
        body.store(R=R, p=p)


def frames_here(body: BodyView, letter: FrameLetter) -> Iterator[tuple[int, bool, Any, Any, int]]:
    """The frames of a letter on this link: (number, world axes?, R, p, index of the body)."""
    # frames of several letters B can be on one body; numbers belong to the letter
    for name, world, frames in body.data:
        if name == letter:
            for number, R, p, index in frames:
                yield number, world, R, p, index


def send_frame_poses(body: BodyView, letter: FrameLetter) -> None:
    """Tip to base: the pose in the world of each frame outboard."""
    name = f"pose {letter}"
    poses = FramePoses(body.children.get(name, {}))
    for number, world, R, p, index in frames_here(body, letter):
        poses[number] = (*frame_pose_in_world(body, world, R, p, index), index)
    if poses:
        body.store(**{name: poses})
        sent = {number: (axes, origin, 0) for number, (axes, origin, _) in poses.items()}
        body.send(**{name: FramePoses(sent)})


def world_columns(body: BodyView, letter: FrameLetter) -> Iterator[tuple[int, list]]:
    """The columns of phi(0, k) B, (number, six scalars), for the frames of this body.

    A wrench [n; F] on a frame is [R n + p x R F; R F] at the world's origin.
    """
    for number, world, R, p, index in frames_here(body, letter.plain):
        axes, origin = frame_pose_in_world(body, world, R, p, index)
        # a unit moment stays a moment; a unit force has the lever p about the world's origin
        for i, along in enumerate(small_matrices.transpose(axes)):
            yield 6 * number + i, along + ZERO3
            yield 6 * number + 3 + i, cross(origin, along) + along


def frame_pose_in_world(
    body: BodyView, world: bool, R: list, p: list, index: int
) -> tuple[list, list]:
    """The rotation to a frame's axes and its origin, in the world: (R_k, p_k)(R, p)."""
    # wrenches and motions in world axes need no rotation at the frame
    R_k, p_k = body_part(body.record["R"], index, 3), body_part(body.record["p"], index, 3)
    axes = EYE3 if world else small_matrices.product(R_k, R)
    return axes, add(p_k, small_matrices.apply(R_k, p))


def pose_from_entries(
    read: Callable[[str, int], Any], number: int, count: int
) -> tuple[list, list]:
    """R and p of one of `count` frames, from the entries read(result, index) of `frame_places`."""

    def entry(name: str, i: int, j: int) -> Any:
        return read(name, 6 * (count * i + number) + j)

    R = [[entry("R", 3 + i, 3 + j) for j in range(3)] for i in range(3)]
    return R, [entry("p", 2, 4), entry("p", 0, 5), entry("p", 1, 3)]


class FramePoses(dict):
    """{frame number: (rotation to its axes, origin, index of its body in this link)}.

    Children do not share frames.
    """

    def insert_body(self, index: int, count: int) -> FramePoses:
        return FramePoses(
            {number: (axes, origin, index) for number, (axes, origin, _) in self.items()}
        )

    def __add__(self, other: FramePoses) -> FramePoses:
        return FramePoses({**self, **other})


def jacobian_entries(body: BodyView, letter: Letter, left: Word) -> Iterator[tuple[int, int, Any]]:
    """(row, column, entry) of H phi(k, frame) B: the joint's screw at the frames outboard, in their
    axes.

        [w; v + w x (p_frame - p_k)]        [w; v] = H* e_i in world axes
    """
    # e_i* H φ(k, f) B is the screw of coordinate i, moved to the frame: a closed form of poses
    rows = body.H if left == ("H",) else None
    assert rows is not None, "only H reads frames in closed form"
    start, poses = body.slices["v"].start, body.record.get(f"pose {letter}", {})
    for i, row in enumerate(rows if poses else ()):
        for number, (axes, origin, index) in poses.items():
            R, h = body_part(body.record["R"], index, 3), body_part(row, index)
            w, v = small_matrices.apply(R, h[:3]), small_matrices.apply(R, h[3:])
            arm = subtract(origin, body_part(body.record["p"], index, 3))
            A = small_matrices.transpose(axes)
            column = small_matrices.apply(A, w) + small_matrices.apply(A, add(v, cross(w, arm)))
            for r, value in enumerate(column):
                yield start + i, 6 * number + r, value


def frame_inputs_here(body: BodyView, name: str) -> FrameVector:
    """The part of an input over frames that belongs to the frames of this body."""
    # six numbers per frame, in the order of the letter
    numbers = {number for _, _, frames in body.data for number, *_ in frames}
    return {i: body.inputs[name][6 * i : 6 * i + 6] for i in numbers}


def frame_inputs(body: BodyView, name: str) -> FrameVector:
    """An input over frames, frame by frame."""
    values = body.inputs[name]
    return {i: values[6 * i : 6 * i + 6] for i in range(len(values) // 6)}


def maps_to_frames(letter: Letter) -> bool:
    """Whether the letter is B* or Ḃ*: motions of links to motions of frames."""
    return isinstance(letter, FrameLetter) and letter.starred


def apply_frame_letter(
    body: BodyView, letter: FrameLetter, x: list | FrameVector
) -> list | FrameVector:
    """B, B*, Ḃ or Ḃ* at this body."""
    if letter.starred:
        assert isinstance(x, list)
        return frame_velocities(body, letter, x)
    assert isinstance(x, dict)
    return spread_wrenches(body, letter, x)


def _rotation_to_body(body: BodyView, world: bool, R: list, index: int) -> list:
    """The rotation from the axes of a wrench or motion to those of the body."""
    return small_matrices.transpose(body_part(body.record["R"], index, 3)) if world else R


def spread_wrenches(body: BodyView, letter: FrameLetter, wrenches: FrameVector) -> list:
    """B x: the sum of the wrenches on the body's frames, about the body's origin; Ḃ x for the rate
    of B."""
    total = [[0.0] * 6 for _ in body.links]
    for p, index, n, F in wrenches_here(body, letter, wrenches):
        # d/dt of R* x for a wrench x that is constant in the world: (R* x) x w
        if letter.rate:
            w = body_part(body.record["V"], index)[:3]
            n, F = cross(n, w), cross(F, w)
        total[index] = add(total[index], add(n, cross(p, F)) + F)
    return [x for own in total for x in own]


def wrenches_here(
    body: BodyView, letter: FrameLetter, wrenches: FrameVector
) -> Iterator[tuple[list, int, list, list]]:
    """(origin, index of the body, moment, force) of the wrenches on frames of this link, in body
    axes."""
    for number, world, R, p, index in frames_here(body, letter.plain):
        # wrenches are in world axes or in those of the frame
        if number in wrenches:  # missing entries are zero: frames of the world
            A, x = _rotation_to_body(body, world, R, index), wrenches[number]
            yield p, index, small_matrices.apply(A, x[:3]), small_matrices.apply(A, x[3:])


def frame_velocities(body: BodyView, letter: FrameLetter, V: list) -> FrameVector:
    """B* V: the motion of each frame of this body; Ḃ* V for the rate of B*."""
    out = {}
    for number, world, R, p, index in frames_here(body, letter.plain):
        A, own = (
            small_matrices.transpose(_rotation_to_body(body, world, R, index)),
            body_part(V, index),
        )
        # v + w x p at the frame's origin; d/dt of R y in body axes is w x y
        turn, move = own[:3], add(own[3:], cross(own[:3], p))
        if letter.rate:
            w = body_part(body.record["V"], index)[:3]
            turn, move = cross(w, turn), cross(w, move)
        out[number] = small_matrices.apply(A, turn) + small_matrices.apply(A, move)
    return out


def frame_accelerations(body: BodyView, letter: FrameLetter, motion: tuple) -> FrameVector:
    """[w'; v' + U r] of each frame of B* on this body, in world axes."""
    out = {}
    # d/dt of (v + w x r), r fixed in the body: v' + (w'~ + w~ w~) r
    for number, world, R, p, index in frames_here(body, letter.plain):
        _, wd, vd, U = (body_part(x, index, 3) for x in motion)
        A = small_matrices.transpose(_rotation_to_body(body, world, R, index))
        out[number] = small_matrices.apply(A, wd) + small_matrices.apply(
            A, add(vd, small_matrices.apply(U, p))
        )
    return out


def to_public_axes(body: BodyView, value: list, kind: str) -> list:
    """A link motion or force, from working axes to the public link frame."""
    if body.gauge is None:  # public axes already, or a filter stage of any size
        return value
    return [
        y
        for index, gauge in enumerate(gauges(body))
        for y in _change_axes(body_part(value, index), gauge, kind)
    ]


def to_working_axes(body: BodyView, value: list, kind: str) -> list:
    """A link motion or force, from the public link frame to working axes."""
    if body.gauge is None:
        return value
    own = [
        y
        for index, gauge in enumerate(gauges(body))
        for y in _change_axes(body_part(value, index), gauge and gauge.inv, kind)
    ]
    return own + [0.0] * (body.link.size - len(own))


def _change_axes(value: list, pose: Pose | None, kind: str) -> list:
    """A vector in the axes of a pose, expressed in the axes in which the pose is given."""
    if pose is None:
        return value
    R, r = pose.rotation.tolist(), pose.translation.tolist()
    # w of a motion and F of a force rotate; v and n also get the lever
    head, tail = small_matrices.apply(R, value[:3]), small_matrices.apply(R, value[3:])
    return (
        head + add(tail, cross(r, head)) if kind == "motion" else add(head, cross(r, tail)) + tail
    )
