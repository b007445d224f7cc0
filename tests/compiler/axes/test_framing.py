"""Frames are a gauge: axes and inertias may move, what the robot does may not."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from psiphi.compiler.axes import axial_screws, link_axes
from psiphi.compiler.axes.link_axes import ROD_DEPTH, frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.tree_loop import trace_tape
from psiphi.model.builder.builder import Builder
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial.screw_paths import pose as pose_along
from tests import zoo
from tests.compiler.sweeps.runs import program_of
from tests.oracles import reference

ROBOTS = pytest.mark.parametrize(
    "make", [thunk for _, thunk in zoo.ZOO], ids=[name for name, _ in zoo.ZOO]
)
ANGLES = [
    0.0,
    1e-15,
    1e-14,
    1e-12,
    1e-9,
    1e-8,
    1e-7,
    1e-6,
    1e-4,
    1e-3,
    0.049,
    0.051,
    1.0,
    math.pi / 2,
]
SHIFTS = {
    "apart": ((0.3, -0.2, 0.1), (0.2, 0.3, -0.1)),
    "coincident": ((0, 0, 0), (0, 0, 0)),
    "along the axis": ((0, 0, 0.4), (0, 0, -0.3)),
    "intersecting": ((0, 0, 0.4), (0.1, 0, 0)),
}


def arm(angle: float, shifts, kinds=("revolute", "revolute", "revolute"), flip: bool = False):
    """Three joints whose axes are `angle` from parallel (or, flipped, from antiparallel)."""
    rng, builder = np.random.default_rng(1), Builder("arm")
    for k, (kind, xyz) in enumerate(zip(kinds, [(0, 0, 0), *shifts], strict=True)):
        zoo.random_body(builder, rng, f"b{k}")
        turn = reference.axis_rotation(
            np.array([0.6, 0.8, 0.0]), angle + (math.pi if flip and k == 1 else 0.0)
        )
        spin = reference.axis_rotation(np.array([0.0, 0.0, 1.0]), 0.7)
        builder.joint(
            f"j{k}", kind, f"b{k - 1}" if k else "world", f"b{k}", xyz=xyz, rotation=turn @ spin
        )
    return zoo.with_frames(builder, rng, ["b0", "b1", "b2"]).build()


def close(ours, theirs, law, tolerance: float = 1e-12) -> None:
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale, err_msg=str(law))


def check_dynamics(model, tree, tolerance: float = 1e-12) -> None:
    """Forward and inverse dynamics on the tree are those of the model, by the plain reference."""
    q, v, a, tau = zoo.random_state(model, 3, (2,))
    fd, id_ = (
        program_of(tree, (name, (), "world")) for name in ("forward_dynamics", "inverse_dynamics")
    )
    (torque,), (acceleration,) = interpret(id_, tree, q, v, a), interpret(fd, tree, q, v, tau)
    for i in range(2):
        close(
            torque[i],
            reference.inverse_dynamics(model, q[i], v[i], a[i]),
            "inverse dynamics",
            tolerance,
        )
        expected = reference.forward_dynamics(model, q[i], v[i], tau[i])
        close(
            acceleration[i],
            expected,
            "forward dynamics",
            tolerance * np.linalg.cond(reference.mass_matrix(model, q[i])),
        )


# -- the axes --------------------------------------------------------------------------------------


def check_axes(model) -> None:
    """parent's axes -> child's axes along the link's screws = the same through the public link
    frames, at any q."""
    tree = frame_tree(model)
    q = model.random(seed=2)
    for link, joint in zip(tree.links, model.joints, strict=True):
        own = q[joint.q_slice]
        R, p = pose_along(link.path(own.tolist()), np.eye(3).tolist(), [0.0] * 3)
        moved = (
            joint.pose
            @ reference.joint_motion(joint, own, np.zeros(joint.row.nv)).pose
            @ tree.gauge[link.index]
        )
        meant = tree.working_pose(joint.parent, moved)
        close(
            Pose(np.array(R, dtype=float), np.array(p, dtype=float)).matrix,
            meant.matrix,
            joint.name,
            1e-13,
        )


@ROBOTS
def test_axes_are_those_of_the_links(make):
    check_axes(make())


@settings(max_examples=15, phases=[Phase.generate])
@given(model=zoo.trees(max_bodies=6))
def test_axes_of_random_trees(model):
    check_axes(model)


@ROBOTS
def test_inertias_are_those_of_the_bodies(make):
    """Without rods: M in working axes = phi M phi* of the public link frame."""
    model = make()
    tree = frame_tree(model, movable_inertia=False)
    for link, M, gauge in zip(tree.links, reference.inertias(model), tree.gauge, strict=True):
        X = reference.phi(gauge.inv)
        ours = [[link.inertia.entry(r, c) for c in range(6)] for r in range(6)]
        close(ours, X @ M @ X.T, "inertia", 1e-13)


def test_the_tree_is_the_models():
    model = zoo.random_tree(5, 9, branching=0.7, forest=True)
    tree = frame_tree(model)
    assert tree.parent == model.parent and model.parent.count(WORLD) > 1
    for k, children in enumerate(tree.children):
        assert list(children) == [j for j in range(9) if model.parent[j] == k]
    path = tree.path_to(8)
    assert path[-1] == 8 and model.parent[path[0]] == WORLD
    assert all(model.parent[b] == a for a, b in pairwise(path))
    assert tree.working_pose(WORLD, model.joints[0].pose) is model.joints[0].pose


def test_numbers_go_out_and_come_back():
    for link in frame_tree(dict(zoo.ZOO)["rotors"]()).links:
        numbers = link.numbers()
        assert link.with_numbers(numbers).numbers() == numbers
        doubled = link.with_numbers([2 * x for x in numbers])
        assert doubled.numbers() == [2 * x for x in numbers]
        assert (doubled.kind, doubled.axes, doubled.index, doubled.parent) == (
            link.kind,
            link.axes,
            link.index,
            link.parent,
        )
        assert np.array_equal(doubled.pseudo, np.transpose(doubled.pseudo))


# -- dynamics do not see them ----------------------------------------------------------------------


@ROBOTS
@pytest.mark.parametrize("rods", [True, False], ids=["rods", "no rods"])
def test_dynamics_do_not_see_the_axes(make, rods):
    model = make()
    check_dynamics(model, frame_tree(model, rods))


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("flip", [False, True], ids=["parallel", "antiparallel"])
@pytest.mark.parametrize("angle", ANGLES)
def test_no_angle_between_axes_costs_digits(angle, flip, shifts):
    model = arm(angle, shifts, flip=flip)
    tree = frame_tree(model)
    check_dynamics(model, tree, 4e-13)  # below 1e-14 axes count as parallel
    distance = sum(np.linalg.norm(s) for s in shifts)
    assert all(
        abs(x) <= distance / axial_screws.PARALLEL_SINE
        for link in tree.links
        for x in (*link.fixed[2::3], link.offset[1])
    )


@pytest.mark.parametrize(
    "kinds",
    [("prismatic", "revolute", "prismatic"), ("helical", "cylindrical", "helical")],
    ids="-".join,
)
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1.0])
def test_nor_with_sliding_joints(kinds, angle):
    for shifts in SHIFTS.values():
        model = arm(angle, shifts, kinds)
        check_axes(model)
        check_dynamics(model, frame_tree(model), 4e-13)


@ROBOTS
def test_denavit_hartenberg_is_only_a_saving(make, monkeypatch):
    """With plain shifts and turns everywhere the robot is the same."""
    monkeypatch.setattr(axial_screws, "denavit_hartenberg", lambda pose, ahead: None)
    model = make()
    check_axes(model)
    check_dynamics(model, frame_tree(model))


def test_axes_and_rods_save_operations(monkeypatch):
    """426N - 576 flops of forward dynamics, 174N - 134 of inverse: general serial arm of revolute
    joints."""
    from psiphi.robot.bundled_robots import chain

    for n in (6, 9):
        tree = frame_tree(chain(n, seed=2))
        flops = [
            trace_tape(program_of(tree, (f"{x}_dynamics", (), "world")), tree).count.flops
            for x in ("forward", "inverse")
        ]
        assert flops[0] <= 426 * n - 576 and flops[1] <= 174 * n - 134
        plain = frame_tree(chain(n, seed=2), movable_inertia=False)
        assert (
            trace_tape(program_of(plain, ("forward_dynamics", (), "world")), plain).count.flops
            > flops[0]
        )


# -- rods ------------------------------------------------------------------------------------------

BLIND = {
    "revolute": 7,
    "continuous": 7,
    "prismatic": 4,
    "spherical": 9,
    "helical": 10,
    "cylindrical": 10,
    "free": 10,
}


@pytest.mark.parametrize("kind", BLIND)
def test_a_joint_keeps_what_it_feels(kind):
    """Of mass, first and second moment (10 numbers) a joint's body keeps those that its joint can
    feel."""
    link = frame_tree(zoo.chain(kind, [kind], seed=7)).links[0]
    numbers = [link.mass, *link.moment, *(link.pseudo[r][c] for r in range(3) for c in range(r, 3))]
    assert sum(x != 0.0 for x in numbers) == BLIND[kind]


def test_what_is_not_felt_goes_to_the_parent():
    """Mass is conserved inside the tree; a root's blind mass goes into the ground."""
    model = zoo.chain("arm", ["free", "revolute", "spherical", "revolute"], seed=3)
    tree = frame_tree(model)
    assert sum(link.mass for link in tree.links) == pytest.approx(
        sum(body.mass for body in model.bodies), rel=1e-14
    )
    assert [link.mass for link in tree.links[1:]] == [0.0] * 3
    check_dynamics(model, tree)


def test_long_chains_keep_their_inertias():
    """Piled-up rods would cost digits: beyond ROD_DEPTH links nothing moves."""
    for n, moved in ((ROD_DEPTH, True), (ROD_DEPTH + 1, False)):
        links = frame_tree(zoo.chain("long", ["revolute"] * n, seed=1)).links
        assert (links[-1].mass == 0.0) == moved
    wide = Builder("wide")
    for k in range(ROD_DEPTH + 10):
        zoo.random_body(wide, np.random.default_rng(k), f"b{k}")
        wide.joint(f"j{k}", "revolute", "world", f"b{k}")
    assert frame_tree(wide.build()).links[-1].mass == 0.0, "depth counts, not size"


def test_z_screw():
    c, s = math.cos(0.3), math.sin(0.3)
    pose = link_axes.z_screw((c, s, 0.7))
    close(pose.rotation, reference.axis_rotation(np.array([0, 0, 1.0]), 0.3), "turn", 1e-15)
    assert pose.translation.tolist() == [0, 0, 0.7]
