"""What may be written, what is refused and with which words, and how expressions print."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from psiphi._util.errors import StateError
from psiphi.algebra.expressions.expression import symbol, vector
from psiphi.algebra.expressions.letters import LETTERS, STATE_VECTORS, frame_letter
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.spaces import ANY, FRAME, JOINT, LINK, ONE
from psiphi.model.builder.builder import Builder
from tests.zoo import random_tree

MODEL = random_tree(0, 5)
s = Operators(MODEL)
W = s.I - s.H @ s.psi @ s.K

EXPRESSIONS = [
    s.mass,
    s.mass.inv,
    s.mass_half.inv,
    s.J("tool", "elbow") @ s.mass.inv @ s.J("tool", axes="frame").T,
    W.T @ s.D.inv @ W,
    (s.I + s.H @ s.phi @ s.K).inv.T @ s.D_half.inv.T,
    s.mass.inv @ (vector("tau") - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)),
    vector("tau").T @ s.D.inv @ vector("tau"),
    -2 * s.phi + s.psi / 3 - 0.1 * s.P @ s.Om + 1.5 * s.I,
    2 * (s.phi + s.psi) @ -s.K,
    -(s.phi - s.psi) - (s.I - s.E_phi),
    (3 * s.phi @ s.psi).inv,
    s.psi @ symbol("X") @ s.phi.T,
    s.J("tool", "elbow").dot() @ vector("v"),
    s.H @ s.phi @ (s.b_local - s.M @ s.g) + s.couple,
    s.phi.T @ vector("alpha", "motion") + vector("y", "link"),
    s.I,
    -s.I / 7,
    vector("f", "frame"),
]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
def test_repr_evaluates_back(e):
    assert eval(repr(e), {"s": s}) == e
    assert hash(eval(repr(e), {"s": s})) == hash(e)


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
def test_the_adjoint_of_the_adjoint(e):
    assert e == e.T.T
    assert (e.T.rows, e.T.cols) == (e.cols, e.rows)
    assert eval(repr(e.T), {"s": s}) == e.T


def test_copies_are_equal():
    assert copy.deepcopy(s.mass) == s.mass == pickle.loads(pickle.dumps(s.mass))


@pytest.mark.parametrize(
    ("e", "text", "latex"),
    [
        (s.mass, "H φ M φ* H*", r"$H\, \phi\, M\, \phi^*\, H^*$"),
        (s.mass.inv, "(H φ M φ* H*)⁻¹", r"$\left(H\, \phi\, M\, \phi^*\, H^*\right)^{-1}$"),
        (W.T @ s.D.inv, "(I - H ψ K)* D⁻¹", r"$\left(I - H\, \psi\, K\right)^*\, D^{-1}$"),
        (s.E_psi @ s.tau_bar - s.S @ s.Delta_phi / 2, "ℰ_ψ τ̄ - 1/2 S Δ_φ", None),
        (s.J("tool").T, "H φ B(tool)", r"$H\, \phi\, B_{\text{tool}}$"),
        (s.D_half.inv.T, "(D^-½)*", r"$\left(D^{-\frac12}\right)^*$"),
        (s.phi.inv.T @ s.a, "φ*⁻¹ a", r"$\left(\phi^*\right)^{-1}\, a$"),
        (-2 * s.rotor, "-2 J_m", None),
        (vector("tau"), "tau", r"$\tau$"),
    ],
    ids=str,
)
def test_printing(e, text, latex):
    assert str(e) == text
    assert latex in (None, e._repr_latex_())


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
def test_latex_can_be_set(e):
    """By matplotlib's own reader of formulas, which refuses what it does not know."""
    mathtext = pytest.importorskip("matplotlib.mathtext")
    known = (
        e.latex()
        .replace(r"\tfrac", r"\frac")
        .replace(r"\text{", r"\mathrm{")
        .replace(r"\frac12", r"\frac{1}{2}")
    )
    mathtext.MathTextParser("path").parse(f"${known}$")
    assert e._repr_latex_() == f"${e.latex()}$" and e.latex().count("{") == e.latex().count("}")


def test_latex_of_the_names_of_frames():
    builder = Builder("odd")
    builder.body("rod", mass=1.0, com=(0.5, 0, 0))
    builder.joint("hinge", "revolute", parent="world", child="rod")
    builder.frame(r"a_b{50%}$\x^&", "rod")
    written = Operators(builder.build()).B(r"a_b{50%}$\x^&").latex()
    assert written == r"B_{\text{a\_b\{50\%\}\$\textbackslash{}x\textasciicircum{}\&}}"


def test_spaces():
    assert (s.H.rows, s.H.cols, s.I.rows) == (JOINT, LINK, ANY)
    assert s.H.shape == (MODEL.nv, 30)
    assert (s.I + s.H @ s.phi @ s.K).rows == JOINT
    assert s.B("tool", "elbow").cols == FRAME(2)
    assert (s.B("tool", "elbow") @ vector("f", "frame")).cols == ONE
    assert vector("f", "link").model is None
    assert (s.phi @ vector("f", "link")).model is MODEL


LINKS, NV = "link space (6·5 = 30)", f"joint space (nv = {MODEL.nv})"


@pytest.mark.parametrize(
    ("write", "cause", "remedy"),
    [
        (
            lambda: s.phi @ vector("v"),
            f"phi @ v: phi takes link forces, in {LINKS}, v holds joint rates, in {NV}",
            "did you mean phi.T @ H.T @ v?",
        ),
        (
            lambda: s.M @ vector("x"),
            f"M @ x: M takes link motions, in {LINKS}, x holds {NV}",
            "did you mean M @ H.T @ x?",
        ),
        (
            lambda: s.H @ s.B("tool").T,
            "B('tool').T gives frame velocities, in frame space (6·1 = 6)",
            "H @ B('tool')?",
        ),
        (
            lambda: s.D @ s.H.T,
            "D takes joint rates",
            "did you mean D @ G.T @ H.T or D @ K.T @ H.T?",
        ),
        (lambda: s.K @ s.K, "K @ K: K takes joint torques", "did you mean K @ H @ K?"),
        (lambda: s.psi.T @ s.D.inv, "D.inv gives joint rates", "did you mean psi.T @ H.T @ D.inv?"),
        (
            lambda: W.T @ s.D.inv @ s.psi @ s.B("tool"),
            "psi gives link forces",
            "did you mean",
        ),  # S4 (6.5a): H missing
        (lambda: s.H.T @ s.D.inv @ s.H.T, "H.T", "did you mean H.T @ D.inv @ H?"),  # S4 (6.9b)
        (lambda: s.H + s.phi, "H + phi: H maps", "compare .rows"),
        (lambda: s.H + s.K, "H + K", "did you mean H + K.T or H.T + K?"),
        (lambda: s.I + s.H, "I is square", ""),
        (lambda: s.phi + 1, "1 is not an operator", "write c * I"),
        (lambda: 1 - s.phi, "1 is not an operator", "write c * I"),
        (lambda: s.H.inv, "only a square operator has an inverse", "(J @ mass.inv @ J.T).inv"),
        (lambda: vector("x").inv, "only a square operator", ""),
        (lambda: s.phi @ np.ones(30), "an array of shape (30,)", "vector('x')"),
        (lambda: np.ones((3, 30)) @ s.phi, "an array of shape (3, 30)", "expr.dense(q)"),
        (lambda: s.phi @ "x", "'x' is not an operator", ""),
        (lambda: s.phi * s.psi, "* takes a number", "use @"),
        (lambda: s.phi * float("nan"), "expected a finite number", ""),
        (lambda: s.phi / 0, "/ 0", ""),
        (lambda: s.B("tol"), "no frame 'tol'", "'tool'"),
        (lambda: s.B(), "needs a frame", ""),
        (lambda: s.B("tool", axes="body"), "axes is 'body'", ""),
        (lambda: s.Phy, "no operator 'Phy'", "'Phi'"),
        (lambda: vector("two words"), "is not a name", ""),
        (lambda: vector("q"), "'q' is the name of an argument", ""),
        (lambda: vector("x", "joints"), "no space 'joints'", "'joint'"),
        (lambda: s.H @ Operators(random_tree(1, 3)).phi, "belongs to robot 'tree_5'", "one robot"),
    ],
)
def test_refusals(write, cause, remedy):
    with pytest.raises(StateError) as error:
        write()
    assert cause in error.value.cause
    assert remedy in error.value.remedy


def test_what_is_meant_can_be_written():
    operators = [x for x in LETTERS if x != "U"]  # a number stands among numbers
    for letter in operators:
        for other in operators:
            a, b = getattr(s, letter), getattr(s, other)
            try:
                a @ b
            except StateError as error:
                for meant in (
                    error.remedy.removeprefix("did you mean ").removesuffix("?").split(" or ")
                ):
                    eval(meant, {name: getattr(s, name) for name in LETTERS})


def test_equal_robots_may_mix():
    assert (s.H @ Operators(random_tree(0, 5)).phi).model is MODEL


def test_scalars():
    assert (
        s.phi * 2
        == 2 * s.phi
        == 2.0 * s.phi
        == np.float64(2) * s.phi
        == np.int64(2) * s.phi
        == Fraction(2) * s.phi
    )
    assert s.phi / 3 == Fraction(1, 3) * s.phi
    assert sum([s.phi, s.psi]) == s.phi + s.psi
    assert (0 - s.phi) == -s.phi
    assert (2 * s.phi).inv == s.phi.inv / 2
    assert s.I @ s.phi @ s.I == s.phi


def test_tidy():
    assert s.mass == s.mass.T and s.mass.inv == s.mass.inv.T and s.mass.inv.inv == s.mass
    assert s.D.inv.inv == s.D and str(s.D_half.inv.T.inv) == "(D^½)*"
    assert (s.phi + s.psi) + s.K @ s.H == s.phi + (s.psi + s.K @ s.H)


def test_polynomials():
    assert (2 * s.H @ (s.phi - s.psi)).poly() == {("H", "phi"): 2, ("H", "psi"): -2}
    assert (s.phi - s.phi).poly() == {}
    nested = (s.phi @ s.psi.inv).inv @ s.psi.inv
    assert nested.inverses == (s.psi, s.phi @ s.psi.inv)
    assert nested.poly() == {("inv:1", "inv:0"): 1}


@pytest.mark.parametrize(
    ("frames", "axes"),
    [(("tool",), "frame"), (("a,b", "c|frame"), "world"), ((r"\]", "x]"), "frame")],
)
def test_frame_letters_hold_any_name(frames, axes):
    B = frame_letter(frames, axes)
    assert (B.frames, B.axes) == (B.T.frames, B.T.axes) == (frames, axes)
    split = frame_letter(tuple(part for frame in frames for part in frame.split(",")), axes)
    assert (split == B) == (split.frames == frames), "spelled alike when they are alike"


def test_the_glossary_names_every_letter():
    first = [line.split()[0] for line in s.glossary.splitlines()]
    assert {*LETTERS, *(x.word for x in STATE_VECTORS), "B(...)", "mass"} <= set(first)
    assert all(hasattr(s, name.removesuffix("(...)")) for name in first)
