"""Statements about blocks, φ(k,j) and sums along the path: proved by induction, and what is false
is not."""

import re

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.blocks.block_values import BlockNumbers
from psiphi.algebra.expressions.operators import Operators

s = Operators()
i, j, k, m, a = s.bodies("i j k m a")
phi, psi, H, L, G, D, Om, S, K = s.phi, s.psi, s.H, s.L, s.G, s.D, s.Om, s.S, s.K
W = s.I - H @ psi @ K
inner = s.Delta_phi[k].T @ Om[k + 1] @ s.Delta_phi[k]  # Λ⁺ of S2
c = D.inv[k] + G[k].T @ inner @ G[k]
d = G[k].T @ inner - c @ H[k]
moved = s.tau_bar[k] @ s.P[k]  # P⁺
by_force, by_acceleration = (
    -s.mass.inv @ H @ phi,
    -s.mass.inv @ H @ phi @ s.M @ phi.T,
)  # of ξ and of η in (10.1)
inward = L[j].T @ psi[k, j + 1].T
felt = H[i].T @ D.inv[i] @ H[i]
T_1 = (psi[k, i + 1] @ phi[i + 1, j] - psi[k, i] @ phi[i, j]).over(i, j, k)
T_2 = (phi[k, i + 1] @ psi[i + 1, j] - phi[k, i] @ psi[i, j]).over(i, j, k)

STATEMENTS = {
    "S0 (a.19), (a.20)": (T_1, phi[k, j] - psi[k, j], k > j),
    "S0 (a.21)": (T_1, (psi[k, i + 1] @ L[i] @ H[i] @ phi[i, j]).over(i, j, k), k > j),
    "S0 (a.18) by blocks": (
        phi[k, j] - psi[k, j],
        (psi[k, i + 1] @ L[i] @ H[i] @ phi[i, j]).over(i, j, k),
        k >= j,
    ),
    "S0 (a.29), (a.30)": (T_2, psi[k, j] - phi[k, j], k > j),
    "S0 (a.31)": (T_2, -(phi[k, i + 1] @ L[i] @ H[i] @ psi[i, j]).over(i, j, k), k > j),
    "S0 (a.18), the block of the operators": (
        (psi @ S @ L @ H @ phi)[k, j],
        (phi - psi)[k, j],
        k > j,
    ),
    "S0 (a.6)": (s.Phi[k, j], phi[k, j + 1], k > j),
    "φ(k,j) = φ(k,m) φ(m,j)": (phi[k, j], phi[k, m] @ phi[m, j], (k >= m, m >= j)),
    "S2 (10.13)": (psi[k, j], psi[k, m] @ psi[m, j], (k > m, m > j)),
    "S2 (10.19)": (psi[k + 1, k], s.Delta_phi[k] @ (s.I - G @ H)[k], ()),
    "S2 (10.29)": (Om[k + 1], (psi[i, k + 1].T @ felt @ psi[i, k + 1]).over(i, k + 1), ()),
    "S2 (10.31)": (Om[k], s.tau_bar[k].T @ inner @ s.tau_bar[k] + H[k].T @ D.inv[k] @ H[k], ()),
    "S3 (20) by blocks": ((psi.T @ H.T @ D.inv @ H @ psi)[k, j], Om[k] @ psi[k, j], k >= j),
    "S3 (20) on other branches": (
        (psi.T @ H.T @ D.inv @ H @ psi)[k, j],
        psi[a, k].T @ Om[a] @ psi[a, j],
        k.meets(j, a),
    ),
    "S2 (10.3), (k,k) of the inverse": (s.mass.inv[k], c, ()),
    "S2 (10.2), (k,j)": (s.mass.inv[k, j], d @ psi[k, j + 1] @ L[j], k > j),
    "S2 (10.2), (j,k)": (s.mass.inv[j, k], L[j].T @ psi[k, j + 1].T @ d.T, k > j),
    "the inverse on other branches": (
        s.mass.inv[k, j],
        L[k].T @ psi[a, k + 1].T @ Om[a] @ psi[a, j + 1] @ L[j],
        k.meets(j, a),
    ),
    "S2 (10.2), bias forces of k": (by_force[k], d, ()),
    "S2 (10.2), bias forces outboard": (by_force[k, j], d @ psi[k, j], k > j),
    "S2 (10.2), bias forces inboard": (by_force[j, k], inward @ Om[k], k > j),
    "bias forces on other branches": (
        by_force[k, j],
        L[k].T @ psi[a, k + 1].T @ Om[a] @ psi[a, j],
        k.meets(j, a),
    ),
    "S2 (10.2), bias accelerations of k": (by_acceleration[k], G[k].T @ inner @ moved - G[k].T, ()),
    "S2 (10.2), bias accelerations outboard": (
        by_acceleration[k, j],
        d @ psi[k, j + 1] @ s.Delta_phi[j] @ s.tau_bar[j] @ s.P[j],
        k > j,
    ),
    "S2 (10.2), bias accelerations inboard": (
        by_acceleration[j, k],
        inward @ s.tau_bar[k].T @ inner @ moved - inward @ s.tau_bar[k].T,
        k > j,
    ),
    "bias accelerations on other branches": (
        by_acceleration[k, j],
        L[k].T @ psi[a, k + 1].T @ Om[a] @ psi[a, j] @ s.P[j],
        k.meets(j, a),
    ),
    "the whitening filter": (W[k, j], -H[k] @ psi[k, j + 1] @ L[j], k > j),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(name):
    left, right, where = STATEMENTS[name]
    proof = pp.prove(left, right, where=where)
    assert proof, proof
    assert proof.counterexample == ""


def slips(left, right):
    """Each term of the right side with its sign turned, doubled or left out."""
    for word, factor in right.poly.items():
        for other in (-factor, 2 * factor, 0):
            poly = {w: f for w, f in right.poly.items() if w != word} | (
                {word: other} if other else {}
            )
            yield left, type(right)(poly, right.rows, right.cols, right.model)


@pytest.mark.parametrize("name", STATEMENTS)
def test_slips_are_not_proved(name):
    """Neither by rewriting, which knows no numbers, nor by numbers."""
    left, right, where = STATEMENTS[name]
    for one, other in slips(left, right):
        proof = pp.prove(one, other, where=where)
        assert any(stage.rest for stage in proof.stages), f"rewriting proved {one} = {other}"
        assert proof.counterexample and not proof


WRONG = {
    "S2 (10.31) without projections": (Om[k], inner + H[k].T @ D.inv[k] @ H[k], ()),
    "φ for ψ": (
        phi[k, j] - psi[k, j],
        (phi[k, i + 1] @ L[i] @ H[i] @ phi[i, j]).over(i, j, k),
        k > j,
    ),
    "one body too many": (
        phi[k, j] - psi[k, j],
        (psi[k, i + 1] @ L[i] @ H[i] @ phi[i, j]).over(i, j + 1, k),
        k > j,
    ),
    "the two inverted": (
        psi[k, j] - phi[k, j],
        (psi[k, i + 1] @ L[i] @ H[i] @ phi[i, j]).over(i, j, k),
        k > j,
    ),
    "ψ is not φ": (psi[k, j], phi[k, j], k > j),
    "the step of another body": (phi[k, j], phi[k, j + 1] @ s.Delta_psi[j], k > j),
    "P moves inward as itself": (phi[k, j] @ s.P[j], s.P[k] @ phi[k, j], k > j),
    "no transmission": ((s.mass.inv)[k, j], d @ phi[k, j + 1] @ L[j], k > j),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_false_is_not_proved(name):
    left, right, where = WRONG[name]
    proof = pp.prove(left, right, where=where)
    assert any(stage.rest for stage in proof.stages) and proof.counterexample and not proof
    assert "not proved" in str(proof) and "counter-example" in str(proof)


def test_on_a_robot_of_its_own():
    """Without rotors, with one joint of every kind, or on a chain: as of any robot."""
    for robot in (pp.load("ur5"), pp.robots.random_tree(7, 3)):
        o = robot.operators
        assert pp.prove(o.H[k] @ o.G[k], o.D[k] @ o.D.inv[k])
        assert pp.prove(
            (o.mass.inv @ o.mass)[k, j], 0 * o.D[k] @ o.H[k] @ o.psi[k, j] @ o.H[j].T, where=k > j
        )
    assert not pp.prove(H[k] @ G[k], D[k] @ D.inv[k]), "rotors"


def test_values_are_blocks_of_the_matrices():
    """Every block of the inverse of a random tree's mass matrix, from (10.2), against numpy."""
    robot = pp.robots.random_tree(8, 5, "revolute")
    q, o = robot.random(seed=1), robot.operators
    want, numbers = np.linalg.inv(robot.mass_matrix(q)), BlockNumbers(robot, q)
    for name, (_, right, where) in STATEMENTS.items():
        if re.search(r"inverse|\(k,j\)", name) and "S0" not in name and "φ" not in name:
            right = type(right)(right.poly, right.rows, right.cols, o.mass.model)
            for at in bodies_where(robot, where):
                value = numbers.value(right.poly, at, right.rows, right.cols)
                np.testing.assert_allclose(
                    value.item(),
                    want[at["k"], at.get("j", at["k"])],
                    atol=1e-9 * np.abs(want).max(),
                )


ONE_STEP = {
    "ℰ_φ": (s.E_phi[k + 1, k], s.Delta_phi[k]),
    "ℰ_ψ*": (s.E_psi.T[k, k + 1], s.Delta_psi[k].T),
    "K": (s.K[k + 1, k], L[k]),
    "a product": ((psi @ s.K)[k + 1, j], psi[k + 1, j + 1] @ L[j]),
}


@pytest.mark.parametrize("name", ONE_STEP)
def test_blocks_of_one_step_reach_the_base(name):
    """k+1 may be the base: what is proved must not be refuted there."""
    left, right = ONE_STEP[name]
    where = k > j if name == "a product" else ()
    proof = pp.prove(left, right, where=where)
    assert proof and not proof.counterexample
    assert pp.prove(left, 2 * right, where=where).counterexample


def test_a_value_by_names():
    robot = pp.load("ur5")
    o, q = robot.operators, robot.random(seed=0)
    value = o.psi[k, j].value(q, {"k": "upper_arm_link", "j": "wrist_1_link"})
    np.testing.assert_array_equal(value, o.psi.blocks(q)["upper_arm_link", "wrist_1_link"])


def bodies_where(robot, where):
    line = [[x] for x in range(len(robot.bodies))]
    for way in line:
        while robot.parent[way[-1]] >= 0:
            way.append(robot.parent[way[-1]])
    for x in range(len(line)):
        if where == ():
            yield {"k": x}
        for y in range(len(line)):
            if isinstance(where, type(k > j)) and x in line[y][1:]:
                yield {"k": x, "j": y}
            common = [z for z in line[x] if z in line[y]]
            if isinstance(where, type(k.meets(j, a))) and common and common[0] not in (x, y):
                yield {"k": x, "j": y, "a": common[0]}


def test_the_proof_is_told():
    proof = pp.prove(*STATEMENTS["S0 (a.18) by blocks"][:2], where=k >= j)
    text, tex = str(proof), proof.latex()
    assert (
        "proved, for k ≥ j" in text
        and "given" in text
        and "Σ[j ≤ i < k] ψ(k,i+1) L(i) H(i) φ(i,j)" in text
    )
    assert tex.count("\\\\") == len(text.splitlines()) - 1 and r"\sum_{j \le i < k}" in tex
    assert "<table" in proof._repr_html_()


REFUSED = {
    "the order of k and j": lambda: pp.prove(phi[k, j], psi[k, j]),
    "the second gives links of j": lambda: phi[k, m] @ psi[j, i],
    "between different bodies": lambda: phi[k, j] + phi[j, k],
    "letters": lambda: phi["k", "j"],
    "no blocks": lambda: s.B("tool")[k, j],
    "its own ancestor": lambda: pp.prove(phi[k, j], phi[k, j], where=(k > j, j > k)),
    "two letters for one body": lambda: pp.prove(phi[k, j], phi[k, j], where=(k >= j, j >= k)),
    "without a truth value": lambda: j < i < k,
    "sum over another letter": lambda: phi[k, i].over(i, j, k),
    "nested sums": lambda: T_1.over(m, j, k),
    "k + 1 is the parent": lambda: phi[k, j + -1],
    "all descendants of k": lambda: pp.prove((phi @ s.M @ phi.T)[k], s.M[k]),
    "it is for blocks": lambda: pp.prove(phi, phi, where=k > j),
    "expected blocks": lambda: pp.prove(phi[k, j], phi, where=k > j),
    "is not a body": lambda: k > 3,
    "takes joints of i, the second gives joints of k": lambda: (
        H[i].T @ D.inv[k]
    ),  # S2 (10.29) as it is printed
    "different letters": lambda: s.bodies("k k"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(pp.Error, match=re.escape(words)):
        REFUSED[words]()


def test_operators_are_no_sequences():
    with pytest.raises(TypeError):
        list(phi)
