"""The functions of a closed system as programs: sweeps over the forest in stages, with small dense algebra between them.

Every stage runs on the same scalars; on a tape, what stages share (articulated inertias, poses, gains) is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from psiphi.closed.constraints import Closure
from psiphi.closed.coupling import Algebra, Coupling, evaluate
from psiphi.closed.methods import METHODS, run
from psiphi.compiler.passes import code
from psiphi.compiler.source import Function, Request
from psiphi.framing.framing import Tree
from psiphi.model.model import Model
from psiphi.sweeps.program import ADDED, Argument, Program, Site
from psiphi.tape.tape import Count

Fill = Callable[[Coupling], dict[str, list]]


@dataclass(frozen=True, eq=False)
class Circuit:
    """A function of a closed system: what goes in, what comes out, and the stages between."""

    name: str
    equation: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    algebra: Algebra
    fill: Fill
    rods: bool = True
    columns: str = ""

    @property
    def model(self) -> Model:
        return self.algebra.closure.model

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        return self.inputs, self.outputs

    def program(self, tree: Tree) -> Program:
        def finish(site: Site) -> None:
            inputs = {name: list(values) for name, values in site.inputs.items()}
            for name, values in self.fill(Coupling(self.algebra, tree, inputs)).items():
                site.write(name, 0, values)

        return Program(self.name, self.inputs, self.outputs, (), finish=finish, local=False)

    def compiled(self) -> Function:
        """The gufunc; the constraints are part of its name, and so of its key in the cache."""
        request = Request(self.name, (self.algebra.closure.key,))
        return Function(request, self)

    @property
    def count(self) -> Count:
        return code(self).count

    @property
    def flops(self) -> int:
        return self.count.flops


def arguments(algebra: Algebra, *names: str) -> tuple[Argument, ...]:
    model, m = algebra.closure.model, algebra.closure.size
    known = {"q": Argument("q", (model.nq,), "q"), "lam": Argument("lam", (m,))}
    return tuple(known.get(name) or Argument(name, (model.nv,), "v") for name in names)


def given(algebra: Algebra, frames: tuple[str, ...]) -> tuple[Argument, ...]:
    """q, v, tau, and wrenches on frames where there are any."""
    return arguments(algebra, "q", "v", "tau") + ((Argument("f_ext", (len(frames), 6)),) if frames else ())


def _wrenches(closure: Closure) -> Argument:
    """Contact forces; a system of joints that follow has none, and NumPy no empty results: one row of zeros."""
    return Argument("forces", (max(len(closure.constraints), 1), 6))


def dynamics(
    algebra: Algebra, method: str, frames: tuple[str, ...] = (), axes: str = "world", redundant: bool = False
) -> Circuit:
    """a, the multipliers, the contact forces and the strain, by one of METHODS; `redundant` leaves out rows that follow."""
    closure = algebra.closure
    stages = METHODS[method](algebra, frames, axes)
    outputs = (
        Argument("a", (closure.model.nv,), "v"),
        Argument("lam", (closure.size,)),
        _wrenches(closure),
        Argument("strain", ()),
    )
    name = f"closed dynamics {method} {axes} {','.join(frames)}" + " redundant" * redundant
    fill = lambda c: run(method, stages, c, redundant)  # noqa: E731
    return Circuit(name, "Omega lambda = -(Jc a_f + bias)", given(algebra, frames), outputs, algebra, fill)


def heavier_dynamics(closure: Closure, method: str) -> Circuit:
    """`dynamics` with D + X in place of D, the diagonal X an input: (M + X) a - Jc* lambda = tau - C v - g, Jc a + bias = 0."""
    circuit = dynamics(Algebra(closure, added=True), method, redundant=True)
    inputs = (*circuit.inputs, Argument(ADDED, (closure.model.nv,), "v"))
    return replace(circuit, name=f"{circuit.name} heavier", inputs=inputs)


def terms(algebra: Algebra, frames: tuple[str, ...] = (), axes: str = "world") -> Circuit:
    """Free accelerations, Omega, and c' under them: for states where Omega has no inverse."""
    closure = algebra.closure
    stage = METHODS["free"](algebra, frames, axes)[0]

    def fill(c: Coupling) -> dict[str, list]:
        values = evaluate(stage, c.tree, c.inputs)
        gap = [x + y for x, y in zip(c.sense(values.get("A", []), values["a"]), c.bias, strict=True)]
        return {"a": values["a"], "Omega": [x for row in c.omega for x in row], "gap": gap}

    m, nv = closure.size, closure.model.nv
    outputs = (Argument("a", (nv,), "v"), Argument("Omega", (m, m)), Argument("gap", (m,)))
    name = f"closed terms {axes} {','.join(frames)}"
    return Circuit(name, "Omega = Jc M^-1 Jc*", given(algebra, frames), outputs, algebra, fill)


def omega(algebra: Algebra) -> Circuit:
    """Omega = Jc M^-1 Jc*."""
    m = algebra.closure.size
    fill = lambda c: {"Omega": [x for row in c.omega for x in row]}  # noqa: E731
    outputs = (Argument("Omega", (m, m)),)
    return Circuit("closed omega", "Omega = Jc M^-1 Jc*", arguments(algebra, "q"), outputs, algebra, fill)


def correction(algebra: Algebra) -> Circuit:
    """M^-1 Jc* lambda, and the contact forces of lambda."""

    def fill(c: Coupling) -> dict[str, list]:
        spread = c.spread(c.inputs["lam"])
        return {"a": evaluate(algebra.correction, c.tree, c.inputs | spread)["a"], "forces": c.forces(c.inputs["lam"])}

    closure = algebra.closure
    outputs = (Argument("a", (closure.model.nv,), "v"), _wrenches(closure))
    return Circuit("closed correction", "M^-1 Jc* lambda", arguments(algebra, "q", "lam"), outputs, algebra, fill)


def residual(algebra: Algebra) -> Circuit:
    """How far every row is open, and how fast it opens."""
    outputs = (Argument("residual", (2, algebra.closure.size)),)
    fill = lambda c: {"residual": c.errors() + c.rates()}  # noqa: E731
    return Circuit("closed residual", "[e(q); Jc v]", arguments(algebra, "q", "v"), outputs, algebra, fill)


def bias(algebra: Algebra) -> Circuit:
    """dJc/dt v: what c' would be under a = 0."""
    outputs = (Argument("bias", (algebra.closure.size,)),)
    fill = lambda c: {"bias": c.bias}  # noqa: E731
    return Circuit("closed bias", "dJc/dt v", arguments(algebra, "q", "v"), outputs, algebra, fill)


def motions(algebra: Algebra) -> Circuit:
    """[w; v] and [w'; v'] of each first frame seen from its second: W and W' of S4, and what is zero beside them."""

    def fill(c: Coupling) -> dict[str, list]:
        rates = [x for meeting in c.meetings for x in (*meeting.at.w, *meeting.at.v)]
        return {"rates": rates, "accelerations": [x for meeting in c.meetings for x in (*meeting.wd, *meeting.vd)]}

    shape = _wrenches(algebra.closure).shape
    outputs = (Argument("rates", shape), Argument("accelerations", shape))
    return Circuit("closed motions", "W, W'", arguments(algebra, "q", "v", "a"), outputs, algebra, fill)


def projection(algebra: Algebra, redundant: bool = False) -> Circuit:
    """One Newton step onto the constraints, least in the metric of the mass matrix:

    dq = -M^-1 Jc* Omega^-1 e(q)        dv = -M^-1 Jc* Omega^-1 Jc v
    """

    def fill(c: Coupling) -> dict[str, list]:
        values: dict[str, list] = {}
        for name, rows in (("dq", c.errors()), ("dv", c.rates())):
            multipliers, strain = c.solve([-x for x in rows], redundant)
            values[name] = evaluate(algebra.correction, c.tree, c.inputs | c.spread(multipliers))["a"]
            values["strain"] = [strain]
        return values

    nv = algebra.closure.model.nv
    outputs = (Argument("dq", (nv,), "v"), Argument("dv", (nv,), "v"), Argument("strain", ()))
    name = "closed projection" + " redundant" * redundant
    return Circuit(name, "-M^-1 Jc* Omega^-1 [e, Jc v]", arguments(algebra, "q", "v"), outputs, algebra, fill)


def motion_rows(algebra: Algebra) -> Callable[[Coupling], list[list]]:
    """The rows of Jc, as lists."""
    closure = algebra.closure
    motions = algebra.equation(J=algebra.J) if closure.frames else None

    def rows(c: Coupling) -> list[list]:
        nv = closure.model.nv
        J = evaluate(motions, c.tree, c.inputs)["J"] if motions is not None else []
        columns = []
        for i in range(nv):
            unit = [1.0 if i == j else 0.0 for j in range(nv)]
            columns.append(c.sense([J[r * nv + i] for r in range(6 * len(closure.frames))], unit))
        return [[column[r] for column in columns] for r in range(closure.size)]

    return rows


def jacobian(algebra: Algebra) -> Circuit:
    """Jc: the constraint rows' Jacobian (m, nv)."""
    closure, rows = algebra.closure, motion_rows(algebra)
    outputs = (Argument("Jc", (closure.size, closure.model.nv)),)
    fill = lambda c: {"Jc": [x for row in rows(c) for x in row]}  # noqa: E731
    return Circuit("closed jacobian", "Jc = Z [J; F]", arguments(algebra, "q"), outputs, algebra, fill)
