"""Derivations in LaTeX: a line a step, with its source."""

import re

import pytest

import psiphi as pp

PUMA = pp.load("puma560")
s = PUMA.operators
W = s.I - s.H @ s.psi @ s.K


def lines(text: str) -> list[str]:
    first, *middle, last = text.split("\n")
    assert (first, last) == (r"\begin{aligned}", r"\end{aligned}")
    assert all(line.endswith(r" \\") for line in middle[:-1]) and not middle[-1].endswith("\\")
    assert text.count("{") == text.count("}") and text.count(r"\left(") == text.count(r"\right)")
    return [line.removesuffix(r" \\") for line in middle]


def test_a_proof_is_set_line_by_line():
    proof = pp.prove(s.mass.inv, W.T @ s.D.inv @ W)
    said = lines(proof.latex())
    assert said[0] == f"& {s.mass.inv.latex()}" and said[-1] == r"& \text{proved}"
    assert (
        r"&= \left(I - H\, \psi\, K\right)^*\, D^{-1}\, \left(I - H\, \psi\, K\right) && "
        r"\text{S3 Lemma 3 (13)}" in said
    )
    assert pp.prove(s.phi, s.psi).latex().endswith("\\text{not proved}\n\\end{aligned}")


def test_a_function_is_set_from_what_was_written_to_what_runs():
    made = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)
    said = lines(made.latex())
    assert said[0] == f"& {made.expression.latex()}"
    assert said[-1].startswith(
        r"&= B_{\text{tool}}^*\, \psi^*\, H^*\, D^{-1}\, H\, \psi\, B_{\text{tool}} && \text{"
    )
    steps = [step.source for step in made.derivation.steps]
    assert re.findall(r"&& \\text\{(.*?)\}", made.latex())[-len(steps) :] == steps


@pytest.mark.parametrize(
    "e",
    [s.phi @ s.M @ s.phi.T, (s.phi @ s.M @ s.phi.T + s.P).inv, s.mass @ pp.vector("x")],
    ids=str,
)
def test_every_function_has_its_latex(e):
    assert lines(pp.function(e).latex())[0] == f"& {e.latex()}"


def test_assumptions_are_set():
    x = pp.Expression((s.phi + s.psi).term, s.phi.model)
    proof = pp.prove(x.inv @ x, s.I)
    assert proof and r"\text{, assuming}\ " in proof.latex() and proof.latex().isascii()
