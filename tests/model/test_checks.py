"""The policy of model_checks.py: projections, tolerances, and D(k) > 0 decided as a dense mass
matrix decides it."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi._util.errors import ModelError, SingularError
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.mobility_check import check_movable
from psiphi.model.inertias import inertia_matrices, nearest_inertia, rotate_inertia
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import Model
from tests.oracles import reference
from tests.zoo import ZOO, random_axis, random_inertia, random_rotation


def alone(mass=1.0, inertia=(1, 0, 0, 1, 0, 1), com=(0, 0, 0), kind="free", **options) -> Model:
    b = Builder("alone")
    b.body("a", mass, com, inertia)
    b.joint("j", kind, "world", "a", **options)
    return b.build()


def possible(I: np.ndarray) -> bool:
    """The second moments of mass are those of a mass distribution: tr(I)/2 - I >= 0."""
    return np.linalg.eigvalsh(np.trace(I) / 2 * np.eye(3) - I)[0] >= -1e-12 * np.abs(I).max()


@given(st.integers(0, 2**32 - 1))
def test_projection_is_possible_and_leaves_the_possible_alone(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, 3))
    six = tuple((A + A.T)[np.triu_indices(3)])
    assert possible(inertia_matrices(nearest_inertia(six))[0])
    good = random_inertia(rng, 1.0)[np.triu_indices(3)]
    np.testing.assert_allclose(nearest_inertia(tuple(good)), good, atol=1e-13)
    R = random_rotation(rng)
    np.testing.assert_allclose(
        inertia_matrices(rotate_inertia(tuple(R.ravel()), six))[0],
        R @ inertia_matrices(six)[0] @ R.T,
        atol=1e-13,
    )


def test_tolerances():
    assert alone(inertia=(1, 0, 0, 1, 0, 2)).report == (), "a flat plate is on the edge"
    assert alone(inertia=(1, 0, 0, 1, 0, 2 + 1e-10)).report == ()
    assert "by 0.01%" in alone(inertia=(1, 0, 0, 1, 0, 2.0002)).report[0]
    assert (
        alone(kind="revolute", com=(1, 0, 0), inertia=(-1e-20, 0, 0, 0, 0, 1e-20)).report == ()
    ), "a printed point mass"
    with pytest.raises(ModelError, match="principal moments -1e-06"):
        alone(inertia=(1, 0, 0, 1, 0, -1e-6))


def test_a_negative_inertia_may_hide_in_a_weld():
    b = Builder("weld")
    b.body("a", 1.0, inertia=np.eye(3))
    b.body("speck", 1e-6, inertia=(1e-8, 2e-8, 0, 1e-8, 0, 1e-8))
    b.joint("j", "free", "world", "a")
    b.joint("w", "fixed", "a", "speck")
    assert "one is negative" in b.build().report[0]
    b.body("hole", 1e-6, inertia=(0, 5, 0, 0, 0, 0))
    b.joint("w2", "fixed", "a", "hole")
    with pytest.raises(ModelError, match="link 'a': the moving body"):
        b.build()


def test_massless_is_legal_when_D_stays_positive():
    """A massless universal cross (two hinges at right angles), or any massless body with
    armature."""
    for armature, axis, fine in [
        (None, (1, 0, 0), True),
        (None, (0, 0, 1), False),
        (0.1, (0, 0, 1), True),
    ]:
        b = Builder("cross")
        b.body("ring")
        b.body("head", 1.0, inertia=np.eye(3))
        b.joint("outer", "revolute", "world", "ring", axis=(0, 0, 1), armature=armature)
        b.joint("inner", "revolute", "ring", "head", axis=axis)
        if fine:
            assert b.build().nv == 2
        else:
            with pytest.raises(SingularError, match="joint 'outer'"):
                b.build()


@pytest.mark.parametrize(
    ("kind", "options", "fine"),
    [
        ("revolute", dict(com=(1, 0, 0)), True),
        ("revolute", dict(com=(0, 0, 1)), False),
        ("prismatic", {}, True),
        ("helical", dict(pitch=0.1), True),
        ("helical", dict(pitch=0.0), False),
        ("cylindrical", dict(com=(1, 0, 0)), True),
        ("cylindrical", dict(com=(0, 0, 1)), False),
        ("spherical", dict(com=(1, 1, 1)), False),
        ("spherical", dict(com=(1, 1, 1), armature=0.1), True),
        ("planar", dict(com=(0, 0, 1)), False),
        ("planar", dict(com=(1, 0, 0)), False),
        ("universal", dict(com=(1, 1, 1)), True),
        ("free", {}, False),
    ],
)
def test_point_masses(kind, options, fine):
    com = options.pop("com", (0, 0, 0))
    if fine:
        assert alone(inertia=None, com=com, kind=kind, **options).nv == JOINTS[kind].nv
    else:
        with pytest.raises(SingularError):
            alone(inertia=None, com=com, kind=kind, **options)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_movable_is_what_the_mass_matrix_says(seed, n):
    """Random trees with massless bodies, rods and point masses: refused exactly when the dense mass
    matrix is singular."""
    rng = np.random.default_rng(seed)
    b = Builder("random")
    for k in range(n):
        mass, inertia = _odd_body(rng)
        b.body(f"l{k}", mass, rng.integers(-1, 2, 3).astype(float), inertia)
        parent = "world" if k == 0 else f"l{rng.integers(k)}"
        axis = random_axis(rng) if rng.random() < 0.3 else np.eye(3)[rng.integers(3)]
        armature = 0.3 if rng.random() < 0.1 else None
        b.joint(
            f"j{k}",
            rng.choice(list(JOINTS)),
            parent,
            f"l{k}",
            rng.integers(0, 2, 3),
            axis=axis,
            pitch=0.2,
            armature=armature,
        )
    try:
        model = b.build()
        refused = False
    except SingularError:
        model, refused = _with_armature(b), True
    M = reference.mass_matrix(model, model.random(rng)) - (
        1e-3 * np.eye(model.nv) if refused else 0.0
    )
    size = np.sqrt(np.maximum(np.diag(M), 1e-12))
    smallest = np.linalg.eigvalsh(M / np.outer(size, size))[0]
    assert refused == (smallest < 1e-9), smallest


def _odd_body(rng):
    """Nothing, a point mass, a thin rod, or a full body."""
    case = rng.integers(4)
    rod = np.diag([0.0, 1.0, 1.0])
    return (0.0 if case == 0 else 1.0), [None, None, rod, 0.1 * np.eye(3)][case]


def _with_armature(b: Builder) -> Model:
    for joint in list(b.joints.values()):
        b.joints[joint.name] = replace(joint, armature=tuple(x + 1e-3 for x in joint.armature))
    return b.build()


def test_the_zoo_is_movable():
    for _, make in ZOO:
        check_movable(make())


def test_mimic_chains_may_be_long():
    b = Builder("mimics")
    for k in range(3000):
        b.body(f"l{k}", 1.0, inertia=np.eye(3))
        b.joint(f"j{k}", "revolute", "world", f"l{k}", mimic=f"j{(k + 1) % 3000}" if k else None)
    start = time.perf_counter()
    assert (
        len(b.build().mimics) == 2999 and time.perf_counter() - start < 60.0
    )  # it ends; speed is measured in benchmarks
    b.joints["j0"] = replace(b.joints["j0"], mimic=b.joints["j1"].mimic)
    with pytest.raises(ModelError, match="cycle"):
        b.build()


def test_a_rope_of_beads():
    """Point masses on universal joints: every D(k) needs the sweep, and it is linear."""
    b = Builder("beads")
    for k in range(2000):
        b.body(f"l{k}", 1.0, (0, 0, -1.0))
        b.joint(
            f"j{k}",
            "universal",
            "world" if k == 0 else f"l{k - 1}",
            f"l{k}",
            (0, 0, -1),
            axis=(1, 0, 0),
        )
    start = time.perf_counter()
    assert (
        b.build().nv == 4000 and time.perf_counter() - start < 60.0
    )  # it ends; speed is measured in benchmarks
