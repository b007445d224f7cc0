"""A lowered expression as the papers' pseudo-code: one loop per sweep, one line per node."""

from __future__ import annotations

from psiphi.algebra.expressions.letters import A_LOCAL, B_LOCAL, COUPLE, GRAVITY, Letter
from psiphi.algebra.expressions.notation import result_names, show_word
from psiphi.algebra.expressions.terms import adjoint_word
from psiphi.compiler.lower import world_body
from psiphi.compiler.lower.horner_graph import (
    Anticausal,
    Apply,
    BodyForce,
    Causal,
    Dot,
    FrameMotion,
    Leaf,
    MultilinearNode,
    Node,
    Sum,
    U,
)
from psiphi.compiler.lower.matrix_sweeps import LoweredMatrix
from psiphi.compiler.lower.vector_sweeps import Lowered
from psiphi.compiler.lower.word_shapes import (
    ColumnFamily,
    ColumnSweep,
    Compliance,
    Composite,
    Diagonal,
    Grounded,
    WholeMatrix,
    WordShape,
)
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP


class Names:
    """Short names of nodes: inputs by name, z for forces summed tip to base, α for motions base to
    tip, f for body forces, e for others."""

    def __init__(self, lowered: Lowered):
        self._names: dict[int, str] = {}
        # names of inputs and results are reserved
        reserved = {node.letter.symbol for node in lowered.nodes if isinstance(node, Leaf)} | {"V"}
        result_name = result_names({result.name: result.poly for result in lowered.results})
        reserved |= set(result_name.values())
        counts = {"z": 0, "α": 0, "f": 0, "e": 0}
        for node in lowered.nodes:
            if isinstance(node, Leaf):
                self._names[node.number] = node.letter.symbol
                continue
            stem = "z" if isinstance(node, Causal) else "α" if isinstance(node, Anticausal) else "e"
            stem = "f" if isinstance(node, BodyForce) else stem
            self._names[node.number] = self._next(stem, counts, reserved)
        self._names |= {node.number: name for node, name in lowered.velocities.items()}
        # a number that is one dot has the name of its result
        for name, terms in lowered.sums.items():
            if len(terms) == 1 and isinstance(terms[0][1], Dot):
                self._names[terms[0][1].number] = result_name[name]
        # so has the node of a result, unless it is an input
        for result, root in zip(lowered.results, lowered.roots, strict=True):
            if root is not None and not isinstance(root, Leaf):
                self._names[root.number] = result_name[result.name]

    @staticmethod
    def _next(stem: str, counts: dict[str, int], reserved: set[str]) -> str:
        """The next unused name with this stem."""
        while True:
            counts[stem] += 1
            name = stem + ("" if counts[stem] == 1 else str(counts[stem]))
            if name not in reserved:
                return name

    def __call__(self, node: Node) -> str:
        return self._names[node.number]


def pseudocode(lowered: Lowered | LoweredMatrix) -> list[str]:
    """The sweeps, as text."""
    if isinstance(lowered, LoweredMatrix):
        return _matrix_loops(lowered)
    name, lines = Names(lowered), []
    for stage, direction in enumerate(lowered.schedule.directions):
        lines.append(
            "for k = base .. tips:" if direction is BASE_TO_TIP else "for k = tips .. base:"
        )
        # first what the nodes of the sweep may read: P, its rate, masses, velocities
        if stage == lowered.schedule.articulate:
            lines += ARTICULATE
        if stage == lowered.schedule.differentiate:
            lines += DIFFERENTIATE
        if stage == lowered.schedule.sum_masses:
            lines.append(SUM_MASSES)
        if lowered.computes_velocities and stage == lowered.first_outward:
            lines.append(VELOCITIES)
        work = [line for node in lowered.schedule.stages[stage] for line in _lines(node, name)]
        lines += [f"    {line}" for line in work]
    return lines


ARTICULATE = [
    "    P(k) = M(k) + Σ_c φ(k,c) P⁺(c) φ*(k,c)",
    "    D(k) = H P H* (+ J_m),  G(k) = P H* D⁻¹,  P⁺(k) = P - G H P",
]
SUM_MASSES = "    m(k), m c(k): mass and first moment of body k and the bodies outboard"
VELOCITIES = "    V(k) = φ*(p,k) V(p) + H* v(k)"
DIFFERENTIATE = [
    "    Ṗ(k) = Σ_c φ(k,c) {Ṗ⁺(c) + Ω_δ P⁺ + P⁺ Ω_δ*} φ*(k,c)",
    "    Ḋ(k) = H Ṗ H* (+ Ḣ P H* + H P Ḣ*),  Ṗ⁺(k) = Ṗ - W G* - G W*,  W = Ṗ H* + P Ḣ* - G Ḋ / 2",
]


DEFINITIONS: dict[Letter, str] = {  # vectors of the state and their definitions
    A_LOCAL: "a_local(k) = V × H* v + Ḣ* v",
    B_LOCAL: "b_local(k) = V ×* M V - M g",
    COUPLE: "couple(k) = (H V×* - Ḣ) P⁺ φ*(p,k) V(p)",
    GRAVITY: "g(k) = gravity in the axes of k",
    U: "U = - g·(m c) of the world",
}


def _lines(node: Node, name: Names) -> list[str]:
    # one line per node, in the order of the step: k is the body, p its parent, c its children
    own = name(node)
    if isinstance(node, Leaf):
        return [DEFINITIONS[node.letter]] if node.letter in DEFINITIONS else []
    if isinstance(node, Sum):
        return [f"{own}(k) = {_sum_text(node, name)}"]
    # the Newton-Euler equations as one line
    if isinstance(node, BodyForce):
        u = f"H* {name(node.u)} + a" if node.u is not None else "a"
        return [
            f"{own}(k) = M φ*({u}) + b        (Newton-Euler of body k, from the parent's motion)"
        ]
    if isinstance(node, FrameMotion):
        u = f"H* {name(node.u)} + a_local" if node.u is not None else "a_local"
        less = f" - {node.letter.symbol} g" if node.with_gravity else ""
        return [
            f"{own}(k) = d/dt of {node.letter.symbol} V{less}, with φ*({u}) from the parent's "
            f"motion"
        ]
    # recursions tip to base, forms, sums, recursions base to tip
    if isinstance(node, Causal):
        return [_causal_text(node, name)]
    if isinstance(node, MultilinearNode):
        return [f"{own}(k) = {_form_text(node, name)} {name(node.argument)}(k)"]
    if isinstance(node, Dot):
        return [f"{own} += {name(node.x)}*(k) {name(node.y)}(k)"]
    if isinstance(node, Anticausal):
        inside = [] if node.u is None else [f"H* {name(node.u)}(k)"]
        inside += [] if node.w is None else [f"{name(node.w)}(k)"]
        return [f"{own}(k) = {node.kind.symbol}(p,k) {own}(p)" + "".join(f" + {x}" for x in inside)]
    assert isinstance(node, Apply)
    # shifted letters: the value at k is of its parent, or of its children
    if node.letter in ("K*", "E_phi*", "E_psi*"):
        op = {"K*": "G* φ*(p,k)", "E_phi*": "φ*(p,k)", "E_psi*": "ψ*(p,k)"}[node.letter]
        return [f"{own}(k) = {op} {name(node.argument)}(p)"]
    if node.letter in ("K", "E_phi", "E_psi"):
        op = {"K": "φ(k,c) G", "E_phi": "φ(k,c)", "E_psi": "ψ(k,c)"}[node.letter]
        return [f"{own}(k) = Σ_c {op} {name(node.argument)}(c)"]
    # ℰ₀ and ℰ₀*: between the roots and the world
    if world_body.is_world_sum(node):
        about = ", about the centre of mass" if world_body.needs_center_of_mass(node) else ""
        return [f"{own} += φ(0,k) {name(node.argument)}(k)        at roots{about}"]
    if world_body.reads_world(node):
        return [f"{own}(k) = {node.letter.symbol} {name(node.argument)}        at roots"]
    return [f"{own}(k) = {node.letter.symbol} {name(node.argument)}(k)"]


def _form_text(node: MultilinearNode, name: Names) -> str:
    """A multilinear form with the names of the vectors in its slots."""
    x = node.letter
    plain, _ = x.form.notations[x.inp, x.out]
    text = plain.format(
        **{slot: f"{name(n)}(k)" for (slot, _), n in zip(x.filled, node.filled, strict=True)}
    )
    return text + "*" * x.starred


def _causal_text(node: Causal, name: Names) -> str:
    own = name(node)
    # z(k) = w(k) + Σ_c [ψ z(c) + φ (G x(c) + y(c))], as in `node_value._causal`
    w = f"{name(node.w)}(k) + " if node.w is not None else ""
    x = f" + φ(k,c) G {name(node.x)}(c)" if node.x is not None else ""
    y = f" + φ(k,c) {name(node.y)}(c)" if node.y is not None else ""
    return f"{own}(k) = {w}Σ_c [{node.kind.symbol}(k,c) {own}(c){x}{y}]"


def _sum_text(node: Sum, name: Names) -> str:
    # no factor 1, and the sign before the term
    parts = []
    for c, n in node.terms:
        size = "" if abs(c) == 1 else f"{abs(c)} "
        sign = "-" if c < 0 else "+"
        parts.append(f"{sign} {size}{name(n)}(k)")
    text = " ".join(parts)
    return text[2:] if text.startswith("+ ") else text


def _matrix_loops(lowered: LoweredMatrix) -> list[str]:
    lines = []
    # base to tip: poses; tip to base: columns and the entries at rows; base to tip: compliances
    if lowered.needs_poses:
        lines += ["for k = base .. tips:", "    R(k), p(k): the body's axes in the world"]
    lines += [f"    {_frame_column_text(f)}" for f in lowered.pose_families]
    ends = [
        _world_text(shape)
        for *_, shape in lowered.words
        if isinstance(shape, (Grounded, WholeMatrix))
    ]
    if lowered.only_frame_poses:
        return lines + ends
    lines += ["for k = tips .. base:"] if lowered.moves_inward else []
    if lowered.needs_articulation:
        lines += ARTICULATE
    if lowered.needs_composites:
        lines.append("    r(k) = M(k) + Σ_c φ(k,c) r(c) φ*(k,c)")
    moving = lowered.families if lowered.columns_move else []
    lines += [f"    {_family_text(f)}" for f in moving]
    lines += [
        f"    {_entry_text(shape)}"
        for *_, shape in lowered.words
        if isinstance(shape, (Diagonal, ColumnSweep, Composite))
    ]
    lines += ends
    if lowered.middles:
        lines.append("for k = base .. tips:")
        for middle, kind in lowered.middles:
            c = kind.symbol
            lines.append(f"    Ω(k) = {show_word(middle)} + {c}*(p,k) Ω(p) {c}(p,k)")
        text = _entry_text if lowered.columns_move else _local_compliance_text
        lines += [
            f"    {text(shape)}" for *_, shape in lowered.words if isinstance(shape, Compliance)
        ]
    return lines


def _family_text(f: ColumnFamily) -> str:
    # columns of r R for L φ M φ* R: the bodies outboard move as one rigid body
    start = f"r {show_word(f.letters)}" if f.composite else show_word(f.letters)
    return f"y_j(k) = {f.kind.symbol}(k,c) y_j(c), starting from the columns of {start}"


def _frame_column_text(f: ColumnFamily) -> str:
    return f"y_j(0) = φ(0,k) {show_word(f.letters)}: [R p~R; 0 R] of the frames of k"


def _world_text(shape: Grounded | WholeMatrix) -> str:
    """What the world computes, last."""
    # φ(0,k) moves all columns to the world's origin; ℰ_c moves the sum to the centre of mass
    letter = shape.letter if isinstance(shape, Grounded) else shape.left
    about = " about the centre of mass" if letter == world_body.AT_CENTER else ""
    if isinstance(shape, WholeMatrix):
        return f"at the world: out = Σ φ(0,k) r(k) φ*(0,k) over roots k{about}"
    return f"at the world: out(:,j){'*' if shape.transposed else ''} += y_j(0){about}"


def _local_compliance_text(shape: Compliance) -> str:
    left, right = (show_word(x) for x in (adjoint_word(shape.left.letters), shape.right.letters))
    return f"out += {left} Ω(k) {right}  at the body k of the frames"


def _entry_text(shape: WordShape | None) -> str:
    if isinstance(shape, Diagonal):
        return f"out(k,k) += {show_word(shape.letters)}"
    if isinstance(shape, ColumnSweep):
        return f"out(k,j){'*' if shape.transposed else ''} += {show_word(shape.left)} y_j(k)"
    if isinstance(shape, Composite):
        return f"out(k,j), out(j,k)* += {show_word(shape.left)} y_j(k)"
    return "out(i,j) += y_i*(k) Ω(k) y_j(k)  where k is the nearest common ancestor of i and j"
