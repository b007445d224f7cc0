"""Every letter and its adjoint, applied to a vector: compiled to sweeps, and right. A step that is
lost or bent shows here."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.equations import Equation
from psiphi.compiler.passes import frame, moves_inertia, program
from psiphi.compiler.sweeps.interpreter import interpret
from tests.soundness import robots
from tests.soundness.examine import Case, examine, values, widths
from tests.soundness.oracle import LETTER_SPACES, dual
from tests.soundness.recipes import Node, frames, letter, read, text, vector, walk
from tests.soundness.robots import Joint, Spec

TREE = Spec(
    (
        Joint("universal", -1, True),
        Joint("prismatic", 0),
        Joint("helical", 0, True),
        Joint("spherical", 1),
    ),
    8,
)
INNER = Spec(
    (Joint("revolute"), Joint("universal", 0, True), Joint("prismatic", 1), Joint("universal", 1)),
    10,
)
HINGES = Spec(
    (Joint("revolute"), Joint("revolute", 0), Joint("prismatic", 1), Joint("revolute", 1)), 9
)
DENSE = {
    "Om",
    "Om_dot",
    "S",
    "Delta_phi",
    "Delta_psi",
    "Phi",
    "Psi",
    "L",
}  # between the axes of two bodies, or off a diagonal
RATES = {
    "couple",
    "P_dot",
    "lambda_dot",
    "U_ring",
    "D_rate",
    "Pi",
    "P",
    "D_half",
}  # steps with a shorter way for hinges


def applied() -> list[Node]:
    """X y and X* y for every letter X, y on the side that X takes."""
    out = []
    for name, (rows, cols) in LETTER_SPACES.items():
        node = letter(name.removesuffix("_inv")).inv if name.endswith("_inv") else letter(name)
        if cols == "one":
            out.append(node)
            continue
        back = "frame" if rows.startswith("frame") else dual(rows)
        out += [node @ vector("y", cols), node.T @ vector("y", back)]
    for axes in ("world", "frame"):
        B = frames("B", "tool", "elbow", "mark", axes=axes)
        out += [
            B @ vector("y", "frame"),
            B.T @ vector("y", "motion"),
            B.dot() @ vector("y", "frame"),
        ]
        out += [B.dot().T @ vector("y", "motion")]
    return out


def check(node: Node, spec: Spec, swept: bool) -> None:
    outcome = examine(Case(spec, node))
    assert outcome.kind == "right" or (outcome.kind == "dense" and not swept), (
        f"{outcome.kind}: {outcome.detail}"
    )


def letters_of(node: Node) -> set[str]:
    return {x.args[0] for x in walk(node) if x.op == "letter"}


@pytest.mark.parametrize("node", applied(), ids=text)
def test_a_letter_applied(node):
    check(node, TREE, swept=not letters_of(node) & DENSE)


@pytest.mark.parametrize(
    "spec", [HINGES, INNER], ids=["hinges", "universal joints on a body that moves"]
)
@pytest.mark.parametrize("node", [node for node in applied() if letters_of(node) & RATES], ids=text)
def test_a_letter_made_of_rates(node, spec):
    check(node, spec, swept=True)


@pytest.mark.parametrize(
    "node", [node for node in applied() if not letters_of(node) & DENSE], ids=text
)
def test_a_letter_has_a_step_of_its_own(node):
    """As written, rewritten to nothing else: the sweeps of that one word, on numbers."""
    robot = robots.build(*TREE)
    e = eval(text(node), {"s": robot.operators, "pp": pp})
    equation = Equation({"y": e}, robot.model, forms=("as written",))
    q, v = robots.state(robot, 3, 1)
    given = {"q": q[0], "v": v[0]} | {
        name: x[0] for name, x in values(node, widths(robot, node), 3).items()
    }
    framed = frame(robot.model, moves_inertia(equation))
    sweeps = program(equation, framed)
    (got,) = interpret(sweeps, framed, *(given[arg.name] for arg in sweeps.inputs))
    vectors = {name: x for name, x in given.items() if name not in ("q", "v")}
    want = e.dense(given["q"], given["v"], **vectors)
    assert np.abs(got - want).max() <= 1e-9 * (1.0 + np.abs(want).max())


WORDS = [
    "s.phi @ s.K @ s.H @ pp.vector('y', 'force')",
    "s.psi.T @ s.H.T @ s.D.inv @ s.H @ s.psi @ pp.vector('y', 'force')",
    "s.phi @ s.M @ s.phi.T @ pp.vector('y', 'motion')",
    "s.psi @ (s.K @ pp.vector('x', 'joint') + s.b + s.P @ s.a)",
    "s.mass",
    "s.mass.inv",
    "s.coriolis",
    "s.J('tool', 'elbow') @ s.J('tool').T",
    "s.J('tool').T @ s.J('elbow')",
    "s.J('tool', axes='frame') @ s.mass.inv @ s.J('elbow').T",
    "s.J('tool') - s.J('elbow')",
    "s.J('tool').dot()",
    "s.mass.dot()",
    "s.I + s.H @ s.phi @ s.K",
    "s.mass_half",
]
MATRICES = [
    "s.phi",
    "s.psi",
    "s.H @ s.phi",
    "pp.vector('x', 'joint').T @ s.mass @ pp.vector('x', 'joint')",
]


@pytest.mark.parametrize("spec", [TREE, HINGES], ids=["tree", "hinges"])
@pytest.mark.parametrize("source", WORDS)
def test_a_word(source, spec):
    check(read(source), spec, swept=True)


@pytest.mark.parametrize("source", MATRICES)
def test_a_matrix_over_links(source):
    check(read(source), TREE, swept=False)
