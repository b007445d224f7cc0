"""Closed chains of long arms: their stages are loops over the links, with straight lines between
them."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler import passes
from psiphi.compiler.equations import Equation
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.simulation.compiled_rollout import constraint_blocks
from tests.compiler.sweeps.runs import run_staged, run_tape

FEW = 3  # bodies: whatever has more is large here


@pytest.fixture
def small_is_large(monkeypatch, tmp_path):
    monkeypatch.setattr(passes, "UNROLL_LIMIT", FEW)
    monkeypatch.setattr(passes, "STAGE_UNROLL_LIMIT", FEW)
    monkeypatch.setenv(
        "PSIPHI_CACHE", str(tmp_path)
    )  # names of code do not tell how large is large


def shifted(x: float) -> np.ndarray:
    place = np.eye(4)
    place[0, 3] = x
    return place


def ring(n: int) -> pp.System:
    """Two arms of n links, their tips on one ball."""
    arm = pp.robots.chain(n)
    return pp.connect(
        {"one": arm, "two": (arm, shifted(1.0))}, [pp.Loop("ball", "one/tool", "two/tool")]
    )


def held(n: int) -> pp.System:
    """A box in the hands of two arms."""
    arm = pp.robots.chain(n)
    hands = [(arm, np.eye(4), "tool"), (arm, shifted(1.0), "tool")]
    return pp.grasp(hands, pp.Body.box(2.0, (0.1, 0.2, 0.3), "box"), [shifted(-0.3), shifted(0.3)])


def states(system: pp.System, count: int = 2) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return system.robot.random(seed=1, size=count), *(
        rng.standard_normal((count, system.nv)) for _ in range(2)
    )


def staged(circuit) -> StagedCode:
    made = passes.code(circuit)
    assert isinstance(made, StagedCode)
    return made


@pytest.mark.parametrize("make", [ring, held], ids=["ring", "held"])
def test_stages_in_loops_mean_what_the_program_means(make, small_is_large):
    system = make(4)
    q, v, tau = states(system)
    algebra, method = system.algebra, system.chosen_method().method
    rows = np.random.default_rng(1).standard_normal((2, system.nc))
    added = np.abs(v)
    asked = {
        "dynamics": (system_stages.dynamics(algebra, method), (q, v, tau)),
        "redundant": (system_stages.dynamics(algebra, "free", redundant=True), (q, v, tau)),
        "paper's": (system_stages.dynamics(algebra, "RCCFD3"), (q, v, tau)),
        "heavier": (
            system_stages.added_inertia_dynamics(system.closure, method),
            (q, v, tau, added),
        ),
        "terms": (system_stages.terms(algebra), (q, v, tau)),
        "omega": (system_stages.omega(algebra), (q,)),
        "correction": (system_stages.correction(algebra), (q, rows)),
        "projection": (system_stages.projection(algebra, method), (q, v)),
        "motions": (system_stages.motions(algebra), (q, v, tau)),
        "residual": (system_stages.residual(algebra), (q, v)),
    }
    for name in asked if make is ring else ("dynamics", "heavier", "projection"):
        circuit, arrays = asked[name]
        made, tree = staged(circuit), passes.tree_of(circuit)
        meant = interpret(circuit.program(tree), tree, *arrays)
        for arg, x, y in zip(made.program.outputs, run_staged(made, *arrays), meant, strict=True):
            np.testing.assert_allclose(
                x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(), err_msg=f"{name}: {arg.name}"
            )


def test_a_ring_runs_in_loops(small_is_large, monkeypatch):
    monkeypatch.setattr(passes, "VERIFY_PASSES", True)
    system = ring(5)
    q, v, tau = states(system, 9)
    dense = system.forward_dynamics(q, v, tau, method="KKT")
    np.testing.assert_allclose(system.forward_dynamics(q, v, tau), dense, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        system.forward_dynamics(q[0], v[0], tau[0]), dense[0], rtol=1e-8, atol=1e-8
    )


def size(code: StraightCode | LinkLoops) -> list:
    return (
        [len(stage.classes) for stage in code.sweeps]
        if isinstance(code, LinkLoops)
        else [code.count]
    )


def test_code_of_longer_arms_is_no_longer(small_is_large):
    """Classes of links and lines between loops are as many, and each further link costs the
    same."""
    made = [staged(system_stages.dynamics(ring(n).algebra, "free")) for n in (7, 8, 9)]
    sizes = [
        [size(code) for _, code, _ in x.blocks[:-1]] for x in made
    ]  # the last lines add up two vectors
    assert sizes[0] == sizes[1] == sizes[2]
    one, two, three = (x.count.flops for x in made)
    assert three - two == two - one > 0
    assert all(x.count.flops < 2.5 * x.straight.count.flops for x in made)


def test_a_matrix_of_frames_is_loops(small_is_large):
    """Compliances are one program of loops, of one frame or of several bodies; other matrices are
    columns in stages."""
    robot = pp.robots.chain(6)
    s, q = robot.operators, robot.random(seed=0)
    J, one = s.J("tool", robot.joints[2].name), s.J("tool")
    compliance = J @ s.mass.inv @ J.T
    inertia = J @ s.mass @ J.T
    made = staged(Equation({"X": inertia}, robot))
    np.testing.assert_allclose(
        run_staged(made, q[None])[0][0], inertia.dense(q), rtol=1e-9, atol=1e-9
    )
    assert isinstance(passes.code(Equation({"X": compliance}, robot)), LinkLoops)
    for e in (compliance, one @ s.mass.inv @ one.T, one @ one.T):
        np.testing.assert_allclose(pp.function(e)(q), e.dense(q), rtol=1e-9, atol=1e-9)


def test_stages_are_written_out_for_those_without_loops(small_is_large):
    """Rollouts and graphics cards take one tape."""
    system = ring(4)
    q, v, tau = states(system)
    code = constraint_blocks.select_outputs(
        system.redundant_dynamics_function, "a", "ill_conditioning"
    )
    a, ill_conditioning = run_tape(code, q, v, tau)
    np.testing.assert_allclose(
        a,
        run_staged(staged(system.redundant_dynamics_function.source.request), q, v, tau)[0],
        rtol=1e-9,
        atol=1e-9,
    )
    assert (ill_conditioning < 1e6).all()
