"""Displacements against dense 6x6 matrices: phi = [[R, l~ R], [0, R]] and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi.compiler.axes.axial_screws import SHIFT_COST, TURN_COST
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.model import Pose
from psiphi.model.spatial import screw_paths, screws
from psiphi.model.spatial.screws import Inertia, Screw, Shift, Turn
from tests import zoo
from tests.oracles.reference import axis_rotation, phi, quaternion_rotation, skew

AXES = dict(zip("xyz", np.eye(3), strict=True))
SEEDS = st.integers(0, 2**32 - 1)


def random_step(rng: np.random.Generator) -> tuple[object, Pose]:
    """A displacement, and its pose by other means."""
    kind, axis, angle, length = (
        rng.integers(6),
        str(rng.choice(list("xyz"))),
        rng.uniform(-4, 4),
        rng.uniform(-2, 2),
    )
    R, l, q = axis_rotation(AXES[axis], angle), rng.uniform(-2, 2, 3), rng.standard_normal(4)
    if kind == 0:
        return Screw(axis, angle, length), Pose(R, length * AXES[axis])
    if kind == 1:
        return Screw(axis, None, length), Pose(np.eye(3), length * AXES[axis])
    if kind == 2:
        return Screw(axis, (np.cos(angle), np.sin(angle)), 0.0), Pose(R, np.zeros(3))
    if kind == 3:
        return Shift(l.tolist()), Pose(np.eye(3), l)
    if kind == 4:
        return Turn.from_quaternion(q.tolist()), Pose(quaternion_rotation(q), np.zeros(3))
    Q = zoo.random_rotation(rng)
    return Turn(Q.tolist()), Pose(Q, np.zeros(3))


def random_path(seed: int) -> tuple[list, Pose, np.random.Generator]:
    rng = np.random.default_rng(seed)
    steps = [random_step(rng) for _ in range(rng.integers(1, 5))]
    place = Pose(np.eye(3), np.zeros(3))
    for _, pose in steps:
        place = place @ pose
    return [step for step, _ in steps], place, rng


def random_symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.standard_normal((n, n))
    return A + A.T


def blocks(A: np.ndarray) -> Inertia:
    return Inertia(A[:3, :3].tolist(), A[:3, 3:].tolist(), A[3:, 3:].tolist())


def dense(P: Inertia) -> np.ndarray:
    return np.array([[P.entry(r, c) for c in range(6)] for r in range(6)])


def close(ours, theirs, law: str) -> None:
    np.testing.assert_allclose(
        np.array(ours, dtype=float), theirs, rtol=1e-12, atol=1e-11, err_msg=law
    )


@given(SEEDS)
def test_paths_are_phi(seed):
    path, place, rng = random_path(seed)
    X, x = phi(place), rng.standard_normal(3)
    V, f, P, S = (
        rng.standard_normal(6),
        rng.standard_normal(6),
        random_symmetric(rng, 6),
        random_symmetric(rng, 3),
    )
    close(screw_paths.motion(path, V.tolist()), X.T @ V, "V_inner = phi* V_outer")
    close(screw_paths.force(path, f.tolist()), X @ f, "f_outer = phi f_inner")
    close(dense(screw_paths.inertia(path, blocks(P))), X @ P @ X.T, "P_outer = phi P phi*")
    close(dense(screw_paths.coinertia(path, blocks(P))), X.T @ P @ X, "X_inner = phi* X phi")
    close(
        screw_paths.second_moment(path, S.tolist()),
        place.rotation @ S @ place.rotation.T,
        "J_outer = R J R*",
    )
    close(screw_paths.rotate(path, x.tolist()), place.rotation @ x, "free vectors turn out")
    close(screw_paths.unrotate(path, x.tolist()), place.rotation.T @ x, "free vectors turn in")


@given(SEEDS)
def test_phi_and_its_adjoint(seed):
    """<phi f, V> = <f, phi* V>: the power of a force does not depend on where it is looked at."""
    path, _, rng = random_path(seed)
    V, f = rng.standard_normal(6).tolist(), rng.standard_normal(6).tolist()
    assert np.dot(screw_paths.force(path, f), V) == pytest.approx(
        np.dot(f, screw_paths.motion(path, V)), rel=1e-12, abs=1e-11
    )


@given(SEEDS)
def test_poses_compose(seed):
    path, place, rng = random_path(seed)
    start = Pose(zoo.random_rotation(rng), rng.standard_normal(3))
    R, p = screw_paths.pose(path, start.rotation.tolist(), start.translation.tolist())
    end = start @ place
    close(R, end.rotation, "rotation")
    close(p, end.translation, "translation")


@given(SEEDS)
def test_inverse_undoes(seed):
    path, _, rng = random_path(seed)
    round_trip = [*path, *(inverse for step in reversed(path) for inverse in step.inverse())]
    V, P = rng.standard_normal(6).tolist(), random_symmetric(rng, 6)
    close(screw_paths.motion(round_trip, V), V, "motion")
    close(screw_paths.force(round_trip, V), V, "force")
    close(dense(screw_paths.inertia(round_trip, blocks(P))), P, "inertia")
    R, p = screw_paths.pose(round_trip, np.eye(3).tolist(), [0.0] * 3)
    close(np.column_stack([R, p]), np.eye(3, 4), "pose")


@given(SEEDS)
def test_symmetric_blocks_stay_symmetric(seed):
    """To the last bit: steps read either half."""
    path, _, rng = random_path(seed)
    P = blocks(random_symmetric(rng, 6))
    for Q in (
        screw_paths.inertia(path, P),
        screw_paths.coinertia(path, P),
        P + screw_paths.inertia(path, P),
    ):
        assert np.array_equal(Q.I, np.transpose(Q.I)) and np.array_equal(Q.M, np.transpose(Q.M))


@given(SEEDS)
def test_the_same_on_arrays_and_on_a_tape(seed):
    """A step is a function of scalars of any kind: 3 floats, an array of 3, a tape run on it."""
    rng = np.random.default_rng(seed)
    angles, lengths, quats = (
        rng.uniform(-4, 4, 3),
        rng.uniform(-2, 2, 3),
        rng.standard_normal((4, 3)),
    )
    V, P = rng.standard_normal((6, 3)), random_symmetric(rng, 6)

    def result(angle, length, quat, V):
        path = [
            Screw("y", angle, length),
            Turn.from_quaternion(quat),
            Shift([length, 0.0, -length]),
            Screw("x", angle, 0.0),
        ]
        Q = screw_paths.inertia(path, blocks(P))
        R, p = screw_paths.pose(path, np.eye(3).tolist(), [0.0] * 3)
        return [
            *screw_paths.motion(path, V),
            *screw_paths.force(path, V),
            *Q.column(1),
            *Q.column(4),
            *R[0],
            *p,
        ]

    alone = [
        result(float(angles[i]), float(lengths[i]), quats[:, i].tolist(), V[:, i].tolist())
        for i in range(3)
    ]
    together = result(angles, lengths, list(quats), list(V))
    tape = Tape()
    leaves = {"a": [angles], "l": [lengths], "q": quats, "V": V}
    handles = result(
        tape.leaf("a", 0),
        tape.leaf("l", 0),
        [tape.leaf("q", i) for i in range(4)],
        [tape.leaf("V", i) for i in range(6)],
    )
    taped = evaluate(tape, [tape.operand(h) for h in handles], lambda space, i: leaves[space][i])
    expected = np.transpose(alone)
    close([np.broadcast_to(x, 3) for x in together], expected, "arrays")
    close([np.broadcast_to(x, 3) for x in taped], expected, "tape")


def test_inertia_is_a_symmetric_matrix(rng):
    A, B, x = random_symmetric(rng, 6), random_symmetric(rng, 6), rng.standard_normal(6)
    P, Q = blocks(A), blocks(B)
    close(dense(P), A, "entries")
    close(dense(P + Q), A + B, "sum")
    close(P @ x.tolist(), A @ x, "product")
    close([P.column(c) for c in range(6)], A, "columns")
    close(
        dense(Inertia.from_entries({(r, c): A[r, c] for r in range(6) for c in range(6)})),
        A,
        "from entries",
    )


def test_small_vector_functions(rng):
    a, b = rng.standard_normal(3), rng.standard_normal(3)
    close(screws.cross(a, b), np.cross(a, b), "cross")
    close(screws.cross(a, b), skew(a) @ b, "a x b = a~ b")
    close(screws.dot(a, b), a @ b, "dot")
    close(screws.add(a, b), a + b, "add")
    assert (screws.cosine(0.3), screws.sine(0.3), screws.square_root(0.3)) == (
        np.cos(0.3),
        np.sin(0.3),
        np.sqrt(0.3),
    )


@pytest.mark.parametrize("size", [1e-3, 1.0, 7.0])
def test_a_quaternion_of_any_length_turns_rigidly(size, rng):
    q = rng.standard_normal(4)
    R = np.array(Turn.from_quaternion((size * q / np.linalg.norm(q)).tolist()).R)
    close(R @ R.T, np.eye(3), "orthogonal")
    close(R, quaternion_rotation(q), "whatever its length")


def cost(path, what: str) -> int:
    """Flops of a path on a general articulated inertia or spatial vector, sines and cosines
    given."""
    tape = Tape()
    x = [tape.leaf("x", i) for i in range(36)]
    if what == "inertia":
        A = [[x[6 * min(r, c) + max(r, c)] for c in range(6)] for r in range(6)]
        P = screw_paths.inertia(
            path(tape),
            Inertia(
                [A[r][:3] for r in range(3)],
                [A[r][3:] for r in range(3)],
                [A[r][3:] for r in (3, 4, 5)],
            ),
        )
        outputs = [P.entry(r, c) for r in range(6) for c in range(r, 6)]
    else:
        outputs = getattr(screw_paths, what)(path(tape), x[:6])
    return tape.count([tape.operand(y) for y in outputs]).flops


COSTS = {
    "turn by a variable": (
        lambda t: [Screw("x", (t.leaf("c", 0), t.leaf("s", 0)), 0.0)],
        dict(motion=12, force=12, inertia=54),
    ),
    "turn by a constant": (
        lambda t: [Screw("x", (0.6, 0.8), 0.0)],
        dict(motion=12, force=12, inertia=TURN_COST),
    ),
    "shift by a variable": (
        lambda t: [Screw("x", None, t.leaf("l", 0))],
        dict(motion=4, force=4, inertia=SHIFT_COST),
    ),
    "shift by a constant": (
        lambda t: [Screw("x", None, 0.7)],
        dict(motion=4, force=4, inertia=SHIFT_COST),
    ),
    "nothing": (lambda t: [Screw("x", None, 0.0)], dict(motion=0, force=0, inertia=0)),
    "quarter turn": (lambda t: [Screw("z", (0.0, 1.0), 0.0)], dict(motion=0, force=0)),
    "half turn": (lambda t: [Screw("z", (-1.0, 0.0), 0.0)], dict(motion=0, force=0)),
}


@pytest.mark.parametrize("name", COSTS)
def test_cost_of_an_axial_screw(name):
    """The counts by which `framing` chooses axes: an axial screw is cheap, and zeros and ones in it
    are free."""
    path, costs = COSTS[name]
    assert {what: cost(path, what) for what in costs} == costs
