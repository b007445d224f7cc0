"""Flexible bodies from finite elements, in files, and what is wrong with them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import psiphi as pp

L, W, H, E, DENSITY = 1.2, 0.04, 0.01, 70e9, 2700.0


def beam_elements(count: int = 24) -> dict:
    """A beam along x of elements by Euler and Bernoulli, six rows a node, mass lumped at the
    nodes."""
    l, A, Iy, Iz, J = L / count, W * H, W * H**3 / 12, H * W**3 / 12, 0.3 * W * H**3
    K = np.zeros((6 * count + 6, 6 * count + 6))
    for k in range(count):
        for stiff, (u, t), sign in ((E * Iz, (1, 5), 1.0), (E * Iy, (2, 4), -1.0)):
            rows = [6 * k + u, 6 * k + t, 6 * k + 6 + u, 6 * k + 6 + t]
            s = np.array([1.0, sign, 1.0, sign])
            B = np.array([[12, 6 * l, -12, 6 * l], [6 * l, 4 * l * l, -6 * l, 2 * l * l]])
            full = np.vstack([B, [-12, -6 * l, 12, -6 * l], [6 * l, 2 * l * l, -6 * l, 4 * l * l]])
            K[np.ix_(rows, rows)] += stiff / l**3 * full * np.outer(s, s)
        for stiff, c in ((E * A, 0), (E / 2.6 * J, 3)):
            rows = [6 * k + c, 6 * k + 6 + c]
            K[np.ix_(rows, rows)] += stiff / l * np.array([[1.0, -1.0], [-1.0, 1.0]])
    nodes = np.zeros((count + 1, 3))
    nodes[:, 0] = np.linspace(0.0, L, count + 1)
    mass = np.full(count + 1, DENSITY * A * l)
    mass[[0, -1]] /= 2.0
    return dict(nodes=nodes, mass=mass, stiffness=K, root=0, interface={"tip": count})


@pytest.fixture(scope="module")
def body() -> pp.FlexibleBody:
    return pp.FlexibleBody.craig_bampton(
        **beam_elements(), modes=4, rotary=1e-9 * np.tile(np.eye(3), (25, 1, 1))
    )


def boom(body: pp.FlexibleBody) -> pp.Robot:
    b = pp.Builder("boom")
    b.body("boom")
    b.joint("hinge", "revolute", "world", "boom", axis=(0, 1, 0))
    b.flexible("boom", body)
    b.body("load", mass=0.5, inertia=1e-3 * np.eye(3))
    b.joint("weld", "fixed", "boom_tip", "load")
    return b.build()


def test_finite_elements_beside_the_beam(body):
    """Frequencies by beam theory to 0.2 % (masses are lumped); a static load bends both alike."""
    beam = pp.Beam(L, (W, H), dict(E=E, density=DENSITY), modes=4)
    np.testing.assert_allclose(body.frequencies[:2], beam.frequencies[:2], rtol=2e-3)
    assert np.isclose(body.mass, DENSITY * W * H * L)
    found = []
    for one in (body, beam):
        robot = boom(one)
        J = robot.jacobian(robot.neutral(), "boom_tip")[:, 1:]
        found.append(J[3:] @ np.diag(1.0 / np.asarray(one.stiffness)) @ J[3:].T)
    np.testing.assert_allclose(
        np.diag(found[0])[1:],
        [L**3 / (3 * E * H * W**3 / 12), L**3 / (3 * E * W * H**3 / 12)],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        found[0][1:, 1:], found[1][1:, 1:], rtol=0, atol=1e-6 * found[1].max()
    )


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_files_come_back(body, ending, tmp_path):
    body.save(tmp_path / f"boom.{ending}")
    again = pp.FlexibleBody.load(tmp_path / f"boom.{ending}")
    np.testing.assert_allclose(again.frequencies, body.frequencies, rtol=1e-12)
    assert boom(again).digest == boom(body).digest


def test_matrices_in_a_file(tmp_path):
    data = beam_elements(6) | {"modes": 0, "rotary": 1e-6 * np.tile(np.eye(3), (7, 1, 1))}
    plain = {
        name: np.asarray(x).tolist() if isinstance(x, np.ndarray) else x for name, x in data.items()
    }
    (tmp_path / "fe.json").write_text(json.dumps(plain), encoding="utf-8")
    rest = {name: x for name, x in data.items() if name != "interface"}
    np.savez(tmp_path / "fe.npz", **rest, interface_names=["tip"], interface_nodes=[6])
    for name in ("fe.json", "fe.npz"):
        assert len(pp.FlexibleBody.load(tmp_path / name).stiffness) == 6


def test_many_nodes_and_few_points_are_the_same_body():
    """A consistent mass matrix, too: a thousand numbers, and a few points of mass."""
    rng = np.random.default_rng(0)
    N, n = 40, 2
    r, U, A = (
        rng.standard_normal((N, 3)),
        rng.standard_normal((N, 3, n)),
        rng.standard_normal((N, N)),
    )
    m = A @ A.T / N + np.eye(N)
    body = pp.FlexibleBody(r, m, U, np.eye(n))
    lumps = [place for place in body.places if place.mass]
    assert len(lumps) <= 4 + 3 * n
    at, V = np.array([p.position for p in lumps]), np.array([p.shape.U for p in lumps])
    mass = np.array([p.mass for p in lumps])
    own = U @ body.basis
    for got, want in (
        (mass.sum(), m.sum()),
        (np.einsum("k,ki,kj->ij", mass, at, at), r.T @ m @ r),
        (np.einsum("k,ki,kcj->icj", mass, at, V), np.einsum("ki,kl,lcj->icj", r, m, own)),
        (np.einsum("k,kci,kdj->cidj", mass, V, V), np.einsum("kci,kl,ldj->cidj", own, m, own)),
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


ONE = dict(
    nodes=[[1, 0, 0], [2, 0, 0]],
    mass=[1, 1],
    shapes=[[[0], [0], [1]], [[0], [0], [2]]],
    stiffness=[[5.0]],
)
TWO = [[[0, 0], [0, 0], [1, 2]], [[0, 0], [0, 0], [2, 4]]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(stiffness=[[-1.0]]), "stiffness is not positive definite"),
        (dict(stiffness=[[1.0, 2.0]]), "shape"),
        (dict(shapes=TWO, stiffness=[[2, 1], [0, 2]]), "not symmetric"),
        (
            dict(shapes=TWO, stiffness=np.eye(2)),
            "modal mass of the shapes is not positive definite",
        ),
        (dict(shapes=np.ones((2, 3, 7)), stiffness=np.eye(7)), "at most 6 shapes"),
        (dict(mass=[1, -1]), "negative"),
        (dict(mass=[[1, 2], [0, 1]]), "mass is not symmetric"),
        (dict(mass=[1, 1, 1]), "mass has shape"),
        (dict(modal_mass=[[9.0]]), "differs"),
        (
            dict(shapes=TWO, stiffness=np.eye(2), modal_mass=[[1, 5], [5, 1]]),
            "not positive definite",
        ),
        (dict(interface={"tip": 1}), "without turns"),
        (dict(interface={"tip": 2}, turns=np.zeros((2, 3, 1))), "expected a node from 0 to 1"),
        (dict(interface=["tip"]), "expected names and nodes"),
        (dict(damping=-0.1), "ratio of 0 or more"),
        (dict(nodes=[[np.nan, 0, 0], [2, 0, 0]]), "finite"),
        (dict(drawn=[5]), "nodes from 0 to 1"),
        (dict(mass=[[1, 2], [2, 1]]), "mass is negative"),
        (dict(mass=np.eye(2), turns=np.ones((2, 3, 1)), rotary=[np.eye(3)] * 2), "lump the masses"),
        (dict(rotary=[-np.eye(3)] * 2), "rotary inertia is not symmetric, or negative"),
        (dict(interface={"root": 1}, turns=np.zeros((2, 3, 1))), "other than 'root'"),
    ],
)
def test_bad_data_is_named(change, words):
    with pytest.raises(pp.Error, match=words):
        pp.FlexibleBody(**(ONE | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(modes=500), "modes with mass"),
        (dict(root=[]), "root is empty"),
        (dict(root=6), "clamped and an interface node"),
        (dict(stiffness=np.eye(5)), "expected"),
        (dict(stiffness=np.zeros((42, 42))), "singular"),
    ],
)
def test_bad_matrices_are_named(change, words):
    with pytest.raises(pp.Error, match=words):
        pp.FlexibleBody.craig_bampton(**(beam_elements(6) | dict(modes=1) | change))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pp.Beam(-1.0, 0.01, "steel"), "length is -1"),
        (lambda: pp.Beam(1.0, (0.01, 0.0), "steel"), "section"),
        (lambda: pp.Beam(1.0, 0.01, "stel"), "no material"),
        (lambda: pp.Beam(1.0, 0.01, dict(E=1e9)), "no density"),
        (lambda: pp.Beam(1.0, dict(area=1.0), "steel"), "no Iy"),
        (lambda: pp.Beam(1.0, 0.01, "steel", modes=0), "no shapes"),
        (lambda: pp.Beam(1.0, 0.01, "steel", tip="loose"), "tip"),
        (lambda: pp.Beam(1.0, 0.01, "steel", planes="xy"), "planes"),
        (lambda: pp.FlexibleBody.load("boom.txt"), "not an .npz or .json"),
        (lambda: pp.FlexibleBody.load("nothing.npz"), "cannot be read"),
        (
            lambda: pp.load("ur5").with_flexible("forearm", pp.Beam(1.0, 0.01, "steel")),
            "no link 'forearm'",
        ),
        (lambda: pp.load("ur5").with_flexible("forearm_link", 3), "expected a flexible body"),
        (
            lambda: pp.load("ur5").with_flexible(
                "forearm_link", pp.Beam(1.0, 0.01, "steel"), hang={"x": "tip"}
            ),
            "hang has",
        ),
    ],
)
def test_beams_and_doors_say_what_is_wrong(call, words):
    with pytest.raises(pp.Error, match=words):
        call()
