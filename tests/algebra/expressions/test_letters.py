"""Every letter of the table has its matrix, its rate and its step, or there is a reason; a new one
is a row and three lines."""

import shutil

import pytest

import psiphi as pp
from psiphi.algebra.dense.dense_letters import MATRICES
from psiphi.algebra.derivatives.time_derivative import RATES
from psiphi.algebra.expressions.letters import LETTERS, STATE_VECTORS, Letter
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.rewriting.rule_sets import rules
from psiphi.compiler.lower.node_value import SWEEP_LETTERS
from tests.children import SRC, python

s = Operators()
EACH = pytest.mark.parametrize("x", LETTERS.values(), ids=list(LETTERS))
ONLY_DENSE = {
    "Om",
    "Om_dot",
}  # blocks of ψ* H* D⁻¹ H ψ: sweeps make its entries (`operational_compliance`), not the letter


@EACH
def test_a_letter_is_its_own_adjoint_s_adjoint(x):
    assert x.T.T is x and x.bare is x and x.T.bare is x
    assert (x.T is x) == x.row.self_adjoint
    assert (x.T.rows, x.T.cols) == (x.cols, x.rows)


@EACH
def test_every_letter_has_a_matrix(x):
    assert x == "I" or x in MATRICES


@EACH
def test_every_letter_has_a_rate_or_is_made_of_velocities(x):
    """ℰ_c is about a point that moves along: it says so."""
    assert (x in RATES) != (x.needs_velocity or x == "E_c")
    if x not in RATES:
        with pytest.raises(pp.StateError, match="derivative"):
            getattr(s, x).dot()


@EACH
def test_every_letter_has_a_step_or_is_rewritten_away(x):
    """What stands between two bodies' axes has none; alone it is evaluated densely, in a product it
    is rewritten."""
    for side in (x, x.T):
        steps = set(SWEEP_LETTERS) | {"I", "U"}
        away = all(y in steps for word in rules(True).reduce({(side,): 1}) for y in word)
        assert side in steps or away or x.row.mixed_axes or x in ONLY_DENSE, side
    assert not (x in ONLY_DENSE and x in SWEEP_LETTERS)


def test_steps_and_matrices_are_of_letters():
    names = {str(y) for x in (*LETTERS.values(), *STATE_VECTORS) for y in (x, x.T)}
    assert set(map(str, MATRICES)) <= names and set(map(str, SWEEP_LETTERS)) <= names
    assert all(
        isinstance(x, Letter)
        for x in (s.phi @ s.B("tool") @ s.vector("f", "frame") - s.symbol("r") @ s.a).letters
    )


# -- docs/extending.md: a letter is one row, its matrix, its step and its rate ---------------------

RECIPE = {
    "algebra/expressions/letters.py": (
        "ROWS = (\n",
        '    _row("Y", LINK, LINK, "Y", "Y", MEMORYLESS, MOTION, FORCE, "compliance of '
        'each joint", True, depends_on=P_),\n',
    ),
    "algebra/dense/dense_letters.py": (
        "BUILD = {\n",
        '    "Y": lambda s: t(s["H"]) @ s["D_inv"] @ s["H"],\n',
    ),
    "algebra/derivatives/time_derivative.py": (
        "RATES: dict[str, Rate] = {\n",
        '    "Y": Rate(H_dot.T @ D.inv @ H + H.T @ D.inv @ H_dot - H.T @ D.inv @ D_DOT @ '
        'D.inv @ H, "d/dt H* D⁻¹ H"),\n',
    ),
    "compiler/recursions/body_step.py": (
        "LOCAL: dict[str, Callable] = {\n",
        '    "Y": lambda s, x: adjoint_map(s.H, '
        's.record["gain"].solve(small_matrices.apply(s.H, x))),\n',
    ),
    "algebra/rewriting/identities.py": (
        "IDENTITIES: tuple[Identity, ...] = (\n",
        '    row(_s.Y, H.T @ D.inv @ H, "by definition", AXIOM),\n',
    ),
}
TRIED = """
import numpy as np
import psiphi as pp

robot = pp.load("ur5")
s, q = robot.operators, robot.random(seed=0)
J, B, x = s.J("tool"), s.B("tool"), pp.vector("x")
e = B.T @ s.psi.T @ s.Y @ s.psi @ B
assert pp.prove(e, J @ s.mass.inv @ J.T) and not pp.prove(e, 2 * e)
f, g = pp.function(e), pp.function(J @ s.mass.inv @ J.T)
assert not f.dense and "Y" in g.explain()
np.testing.assert_allclose(f(q), e.dense(q), atol=1e-11)
np.testing.assert_allclose(f(q), g(q), atol=1e-11)
y = pp.function(s.H @ s.M @ s.Y @ s.M @ s.H.T @ x)
assert not y.dense
np.testing.assert_allclose(y(q, np.ones(6)), y.expression.dense(q, x=np.ones(6)), atol=1e-11)
v, h = np.ones(6), 1e-6
slope = (s.Y.dense(robot.integrate(q, h * v)) - s.Y.dense(robot.integrate(q, -h * v))) / (2 * h)
np.testing.assert_allclose(s.Y.dot().dense(q, v), slope, atol=1e-6)
assert "compliance of each joint" in s.glossary
print("a letter")
"""


def test_the_recipe_for_a_letter(tmp_path):
    """On a copy of the sources: the row, its matrix, its rate, its step, and what it is by
    definition; nothing else."""
    shutil.copytree(
        SRC / "psiphi", tmp_path / "psiphi", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, (anchor, line) in RECIPE.items():
        path = tmp_path / "psiphi" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(anchor) == 1, f"{name} no longer has {anchor!r}"
        path.write_text(text.replace(anchor, anchor + line), encoding="utf-8")
    done = python("-c", TRIED, PYTHONPATH=str(tmp_path), PSIPHI_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0 and done.stdout.strip() == "a letter", done.stderr
