"""Normal forms are the algorithms of the papers; derivations say how; what is not known is said."""

import time

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.algebra.expressions.notation import show_poly
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.terms import accumulate, add, two_sided_product
from psiphi.algebra.rewriting import normal_form as normal
from psiphi.algebra.rewriting.normal_form import normal_form, normalizer
from psiphi.algebra.rewriting.proof import prove
from tests.zoo import random_tree

PLAIN, ROTORS = (Operators(random_tree(2, 6, armature=armature)) for armature in (False, True))
both = pytest.mark.parametrize("s", [PLAIN, ROTORS], ids=["plain", "rotors"])
tau = vector("tau")


def form(e):
    return {" ".join(word) or "I": c for word, c in normal_form(e)[0].items()}


@both
def test_operational_space_inertia(s):
    J, B = s.J("tool", "elbow"), "B[tool,elbow]"
    assert form(J @ s.mass.inv @ J.T) == {f"{B}* psi* H* D_inv H psi {B}": 1}
    assert form(J @ s.mass.inv) == {f"{B}* psi* H* D_inv": 1, f"{B}* psi* H* D_inv H psi K": -1}


@both
def test_forward_dynamics(s):
    qdd = s.mass.inv @ (tau - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b))
    nu = {"tau": "D_inv ", "K": "D_inv H psi K ", "P": "D_inv H psi P ", "b": "D_inv H psi "}
    T, a, b = "vec:tau@joint", "vec:a@link", "vec:b@link"
    innovation = {nu["tau"] + T: 1, nu["K"] + T: -1, nu["P"] + a: -1, nu["b"] + b: -1}
    back = {"K* psi* H* " + word: -c for word, c in innovation.items()}
    assert form(qdd) == innovation | back | {f"K* psi* {a}": -1}
    alpha = s.phi.T @ (s.H.T @ qdd + s.a)
    assert form(alpha) == {"psi* H* " + word: c for word, c in innovation.items()} | {
        f"psi* {a}": 1
    }


@both
def test_mass_operator(s):
    F, W = s.I + s.H @ s.phi @ s.K, s.I - s.H @ s.psi @ s.K
    assert form(s.mass) == form(F @ s.D @ F.T)
    assert form(s.mass) == {"H phi M phi* H*": 1} | ({"rotor": 1} if s is ROTORS else {})
    assert form(s.mass.inv) == form(W.T @ s.D.inv @ W)
    assert form(s.mass_half.inv @ tau) == {
        "D_half_inv vec:tau@joint": 1,
        "D_half_inv H psi K vec:tau@joint": -1,
    }
    assert form(s.mass_half @ tau) == {"D_half vec:tau@joint": 1, "H phi K D_half vec:tau@joint": 1}


@both
def test_inverses_are_recognised_by_proof(s):
    F, W = s.I + s.H @ s.phi @ s.K, s.I - s.H @ s.psi @ s.K
    for e, expected in (
        ((F @ s.D @ F.T).inv, s.mass.inv),
        ((2 * s.mass + s.mass).inv, s.mass.inv / 3),
        ((W.T @ s.D.inv @ W).inv, s.mass),
        (F.T.inv, W.T),
        ((s.H @ s.Phi @ s.L + s.I).inv, s.I - s.H @ s.Psi @ s.L),
        (s.psi.T.inv, s.I - s.E_psi.T),
        ((s.phi @ s.psi).inv, s.psi.inv @ s.phi.inv),
        ((s.D @ F).inv, W @ s.D.inv),
        ((s.phi.inv + s.K @ s.H).inv, s.psi),
        ((s.H @ s.P @ s.H.T + s.rotor).inv, s.D.inv),
        ((3 * s.I).inv @ s.phi, s.phi / 3),
        (s.mass.inv.inv, s.mass),
        ((s.mass_half @ s.mass_half.T).inv, s.mass.inv),
        ((s.phi @ s.phi.inv).inv @ s.phi, s.phi),
    ):
        p, derivation = normal_form(e)
        assert not derivation.inverses, str(derivation)
        assert p == normal_form(expected)[0], str(e)


def test_unknown_inverses_stay_letters():
    s = PLAIN
    J = s.J("tool")
    compliance = J @ s.mass.inv @ J.T
    p, derivation = normal_form(J.T @ compliance.inv @ J)
    assert p == {("H", "phi", "B[tool]", "inv:1", "B[tool]*", "phi*", "H*"): 1}
    assert derivation.inverses == {"inv:1": compliance}
    assert "evaluated densely" in str(derivation)
    Lambda = compliance.inv
    assert prove(Lambda @ compliance, s.I) and prove(compliance @ Lambda, s.I)
    assert prove(Lambda.T, Lambda) and prove((2 * compliance).inv, Lambda / 2)
    null = s.I - s.mass.inv @ J.T @ Lambda @ J  # the projector onto motions the tool does not feel
    assert prove(null @ null, null) and prove(J @ null, 0)
    assert prove((s.psi @ s.M).inv @ s.psi @ s.M, s.I)
    assert not prove(Lambda, compliance)


def test_equal_inverses_get_one_letter():
    s = PLAIN
    W = s.I - s.H @ s.psi @ s.K
    a, b = s.M.inv, (s.P - s.E_psi @ s.P @ s.E_phi.T).inv
    assert prove(a, b) and prove(s.phi.T @ a, s.phi.T @ b)
    assert prove(
        (s.J("tool") @ s.mass.inv @ s.J("tool").T).inv,
        (s.J("tool") @ W.T @ s.D.inv @ W @ s.J("tool").T).inv,
    )
    assert prove((s.psi @ s.P).inv.T, (s.P @ s.psi.T).inv)


def test_links_without_rotors_are_not_the_mass_operator():
    s = ROTORS
    links = s.H @ s.phi @ s.M @ s.phi.T @ s.H.T
    _, derivation = normal_form(links.inv)
    assert derivation.inverses == {"inv:0": links}
    assert "has rotor inertia" in str(derivation)
    assert not normal_form(s.mass.inv)[1].notes


def test_a_derivation_reads_as_in_the_paper():
    s = PLAIN
    text = str(normal_form(s.J("tool") @ s.mass.inv @ s.J("tool").T)[1])
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "B(tool)* φ* H* (H φ M φ* H*)⁻¹ H φ B(tool)",
        "= B(tool)* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B(tool) S3 Lemma 3 (13)",
        "= B(tool)* φ* H* (I - H ψ K)* D⁻¹ H ψ B(tool) S3 Lemma 4 (16)",
        "= B(tool)* ψ* H* D⁻¹ H ψ B(tool) S3 Lemma 4 (16)",
    ]


@both
def test_steps_and_certificates(s):
    F = s.I + s.H @ s.phi @ s.K
    proof = prove(s.mass, F @ s.D @ F.T)
    assert proof and proof.steps
    for step in proof.steps:
        assert (
            step.source
            and str(step)
            and step.before != step.after
            and step.position >= 0
            and str(step.rule)
        )
    total = {}
    for (left, axiom, right), c in proof.certificate.items():
        accumulate(total, two_sided_product(left, axiom.poly, right), c)
    assert total == add(s.mass.poly(), (F @ s.D @ F.T).poly(), -1)


def test_failures_say_what_they_know():
    s = PLAIN
    wrong = prove(s.psi, s.phi)
    assert (
        not wrong and "counter-example: on tree_6 at q" in str(wrong) and "not proved" in str(wrong)
    )
    label = wrong.counterexample.labels
    assert len(label) == 2 and set(label) <= {body.name for body in s.model.bodies}
    single = Operators(random_tree(0, 1))
    unclear = prove(single.psi, single.phi)  # one body: both are the identity, which no axiom says
    assert (
        not unclear
        and unclear.counterexample is None
        and "it may hold for this robot" in str(unclear)
    )
    nobody = Operators()  # a claim about all robots: one robot refutes it
    assert "counter-example: on small robot" in str(prove(nobody.psi, nobody.phi))
    assert prove(nobody.J("hand") @ nobody.mass, nobody.J("hand")).counterexample is not None
    v = vector("v")
    for wrong in (prove(tau.T @ v, 2 * v.T @ tau), prove(v.T @ tau, tau.T @ v + 1e-9 * v.T @ v)):
        assert not wrong and wrong.counterexample is not None
    assert prove(tau.T @ v, v.T @ tau).counterexample is None
    assert "the value is" in str(prove(tau.T @ s.D @ tau, 2 * tau.T @ s.D @ tau))


@pytest.mark.parametrize("rotors", [False, True])
def test_inverses_cancel_before_they_are_multiplied_out(rotors):
    """Projections of closed chains, for Jc = J1 - J2 and Pi = M^-1 Jc* (Jc M^-1 Jc*)^-1 Jc M^-1:
    Pi M Pi = Pi, S4 (6.21); (W M F)^-1 = W M^-1 F with F = W^-1."""
    s = Operators(random_tree(3, 8, armature=rotors, forest=True))
    J, M_inv = s.J("tool") - s.J("elbow"), s.mass.inv
    X = J @ M_inv @ J.T
    Pi, N = M_inv @ J.T @ X.inv @ J @ M_inv, s.I - M_inv @ J.T @ X.inv @ J
    W, F = s.I - s.H @ s.psi @ s.K, s.I + s.H @ s.phi @ s.K
    start = time.process_time()
    proof = prove(Pi @ s.mass @ Pi, Pi)
    assert proof and proof.assumes and "X⁻¹ X = I" in str(proof)
    assert prove(N @ N, N) and prove(J @ N, 0) and prove(N @ Pi, 0)
    assert prove((W @ s.mass @ F).inv, W @ M_inv @ F)
    wrong = prove(Pi @ s.mass @ Pi, 2 * Pi), prove((W @ s.mass @ F).inv, F @ M_inv @ W)
    assert not any(wrong) and all(proof.counterexample for proof in wrong)
    assert time.process_time() - start < 10.0


def test_prove_checks_what_it_gets():
    s = PLAIN
    with pytest.raises(StateError, match="phi = H: phi maps"):
        prove(s.phi, s.H)
    with pytest.raises(StateError, match="is not an operator"):
        prove(s.phi, 1)
    with pytest.raises(StateError, match="belongs to robot"):
        prove(s.phi, ROTORS.phi)
    assert prove(s.H @ s.P @ s.tau_bar.T, 0)
    assert prove(s.phi @ s.phi.inv, s.I)


def test_long_products_are_shortened_on_the_way(monkeypatch):
    s = PLAIN
    W, F = s.I - s.H @ s.psi @ s.K, s.I + s.H @ s.phi @ s.K
    power = F
    for _ in range(9):
        power = power @ (s.I + s.H @ s.psi @ s.K)
    monkeypatch.setattr(normal, "MAX_WORDS", 8)
    assert show_poly(normal_form(power @ s.D)[0]) and prove(power, power)
    assert prove((W @ F) @ power, power)


INVERSES = {  # what stands under the inverse sign: where its inverse is written
    "mass": (lambda s: s.mass, "S3 Lemma 3 (13)"),
    "F": (lambda s: s.I + s.H @ s.phi @ s.K, "S3 Lemma 2 (12)"),
    "F D^½": (lambda s: s.mass_half, "S3 Lemma 2 (12), section 6"),
    "I + K H φ": (lambda s: s.I + s.K @ s.H @ s.phi, "S3 Lemma 5"),
    "I + φ K H": (lambda s: s.I + s.phi @ s.K @ s.H, "S3 Lemma 5"),
    "D": (lambda s: s.H @ s.P @ s.H.T + s.rotor, "S0 (4.6)"),
    "D D^-½*": (lambda s: s.D @ s.D_half.inv.T, "S1 (26)"),
}


@pytest.mark.parametrize("name", INVERSES)
def test_an_inverse_is_known_by_its_own_row(name):
    """It is resolved, by the row that states it, and the answer is the inverse: of numbers too."""
    robot = pp.load("panda")
    write, source = INVERSES[name]
    e = write(robot.operators)
    rules = normalizer(e.inv, proving=False)
    assert [known for _, known in rules.known.values()] == [source] and not rules.opaque
    q = robot.random(seed=1)
    answer = Expression(next(iter(rules.known.values()))[0], robot)
    assert np.allclose(answer.dense(q) @ e.dense(q), np.eye(len(e.dense(q))), atol=1e-7)


def test_what_holds_where_every_joint_has_one_coordinate():
    """D is diagonal there: of what moves, its root and its rate are their own adjoints. A free base
    has neither."""
    arm, body = pp.load("panda").operators, pp.load("g1").operators
    claims = lambda s: [(s.D_half.T @ s.D_rate, s.D_half @ s.D_rate), (s.D_rate.T, s.D_rate)]  # noqa: E731
    assert all(pp.prove(*claim).proved for claim in claims(arm))
    assert not any(pp.prove(*claim).proved for claim in claims(body))


MOVES = {  # a product as the papers write it: what it is, and where that is written
    "W H φ": (
        lambda s: (s.I - s.H @ s.psi @ s.K) @ s.H @ s.phi,
        lambda s: s.H @ s.psi,
        "S3 Lemma 4 (16)",
    ),
    "W_L H φ": (
        lambda s: (s.I - s.H @ s.Psi @ s.L) @ s.H @ s.phi,
        lambda s: s.H @ s.psi,
        "S0 Identity 5.1 (5.4)",
    ),
    "F H ψ": (
        lambda s: (s.I + s.H @ s.phi @ s.K) @ s.H @ s.psi,
        lambda s: s.H @ s.phi,
        "S0 A.4 (a.32)",
    ),
    "F_L H ψ": (
        lambda s: (s.I + s.H @ s.Phi @ s.L) @ s.H @ s.psi,
        lambda s: s.H @ s.phi,
        "S0 A.4 (a.32)",
    ),
    "F W": (
        lambda s: (s.I + s.H @ s.phi @ s.K) @ (s.I - s.H @ s.psi @ s.K),
        lambda s: s.I,
        "S3 Lemma 2 (12)",
    ),
    "W F": (
        lambda s: (s.I - s.H @ s.psi @ s.K) @ (s.I + s.H @ s.phi @ s.K),
        lambda s: s.I,
        "S3 Lemma 2 (12)",
    ),
    "F_L W_L": (
        lambda s: (s.I + s.H @ s.Phi @ s.L) @ (s.I - s.H @ s.Psi @ s.L),
        lambda s: s.I,
        "S0 Fact 4.2 (4.14)",
    ),
    "W_L F_L": (
        lambda s: (s.I - s.H @ s.Psi @ s.L) @ (s.I + s.H @ s.Phi @ s.L),
        lambda s: s.I,
        "S0 Fact 4.2 (4.14)",
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_move_is_made_in_one_step(name):
    """Where the papers go from product to product, so does the derivation, and says where it is
    written."""
    s = pp.load("panda").operators
    write, answer, source = MOVES[name]
    e = write(s) @ s.D if answer(s) == s.I else write(s)
    made = normalizer(e).chain(e).factored_steps
    assert [move.source for move in made] == [source]
    assert made[-1].after == (s.D if answer(s) == s.I else answer(s))
