"""Between the passes: programs and tapes that break their language's rules are found."""

import pytest

from psiphi.algebra.expressions.letters import letter
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.type_checks import check_words
from psiphi.compiler import passes
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.link_loops import trace_loops
from psiphi.compiler.sweeps.program_checks import CheckedRun, IllegalProgram, check_loops
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    Program,
    ProgramStage,
    Sweep,
)
from psiphi.compiler.sweeps.tree_loop import run_program
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_checks import InvalidTape, check_tape
from psiphi.robot.catalogue.catalogue import quantity_program
from tests import zoo

TREE = frame_tree(zoo.chain("arm", ["revolute", "prismatic", "revolute"], seed=4))


OUTPUTS = (Argument("y", (3,), "v"),)


def run(step, direction=BASE_TO_TIP, outputs=OUTPUTS, **options):
    program = Program(
        "trial", (Argument("q", (3,), "q"),), outputs, (Sweep(direction, step),), **options
    )
    return run_program(program, TREE, {"q": [0.1, 0.2, 0.3]}, CheckedRun)


def test_tests_compile_with_checks():
    assert passes.VERIFY_PASSES


def test_tapes_of_loops_are_looked_at():
    long = frame_tree(zoo.chain("long", ["revolute"] * 70, seed=4))
    loops = trace_loops(quantity_program("gravity", long), long)
    check_loops(loops)
    loops.sweeps[0].classes[0].tape.leaf("elsewhere", 0)
    with pytest.raises(InvalidTape, match="LEAF of 'elsewhere'"):
        check_loops(loops)


def test_a_legal_program():
    assert len(run(lambda body: body.write_joint("y", [2.0]))) == 3


@pytest.mark.parametrize(
    ("step", "direction", "why"),
    [
        (lambda body: body.children.get("z"), BASE_TO_TIP, "children"),
        (lambda body: body.parent["z"], TIP_TO_BASE, "parent"),
        (lambda body: "z" in body.parent, TIP_TO_BASE, "parent"),
        (lambda body: body.send(z=[1.0]), BASE_TO_TIP, "sends z"),
        (lambda body: body.write("y", 0, [1.0]), BASE_TO_TIP, "written twice"),
        (lambda body: body.write("y", 3, [1.0]), BASE_TO_TIP, "not an entry"),
        (lambda body: body.write("x", 0, [1.0]), TIP_TO_BASE, "not an entry"),
    ],
)
def test_steps_that_break_the_rules(step, direction, why):
    with pytest.raises(IllegalProgram, match=why):
        run(step, direction)


def staged(*stages, size=3):
    program = Program(
        "trial", (Argument("q", (3,), "q"),), (Argument("y", (size,)),), (), stages=stages
    )
    found = run_program(program, TREE, {"q": [0.1, 0.2, 0.3]}, CheckedRun)
    return [found["y", i] for i in range(size)]


def test_stages_hand_on_what_they_make():
    """Sweeps and rules by turns; inputs and results under other names, and inputs of a stage's
    own."""
    each = Sweep(
        TIP_TO_BASE,
        lambda body: body.write_joint("z", [body.joint_input("q")[0] * body.inputs["c"][0]]),
    )
    sweeps = Program(
        "inner",
        (Argument("q", (3,), "q"), Argument("c", (1,))),
        (Argument("z", (3,), "v"),),
        (each,),
    )
    plus = ProgramStage(
        "sum",
        lambda places: {"y": [a + b for a, b in zip(places["once"], places["z"], strict=True)]},
    )
    doubled = ProgramStage("twice", sweeps, {"q": "once"}, {"c": [2.0]})
    assert staged(
        ProgramStage("once", sweeps, {"z": "once"}, {"c": [1.0]}), doubled, plus
    ) == pytest.approx([0.3, 0.6, 0.9])


def test_stages_that_break_the_rules():
    reads = Sweep(BASE_TO_TIP, lambda body: body.children.get("z"))
    with pytest.raises(IllegalProgram, match="children"):  # a stage's sweeps are watched, too
        staged(ProgramStage("inner", Program("inner", (), (Argument("y", (3,)),), (reads,))))
    with pytest.raises(ValueError):
        staged(ProgramStage("short", lambda places: {"y": [1.0, 2.0]}))
    with pytest.raises(KeyError):
        staged(ProgramStage("nothing", lambda places: {}))


def test_arguments_and_body_data():
    with pytest.raises(IllegalProgram, match="share a name"):
        run(lambda body: None, outputs=(Argument("y", (3,)), Argument("y", (2,))))
    with pytest.raises(IllegalProgram, match="no sweep visits"):
        run(lambda body: None, bodies=[0, 1], body_data={2: ()})


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ((Op.ADD, 0, 7), "ADD"),
        ((Op.LEAF, "1", 0), "LEAF"),
        ((Op.CONST, "x", None), "CONST"),
        ((Op.LEAF, "0", 0), "twice"),
    ],
)
def test_tapes_that_mean_nothing(node, why):
    tape = Tape()
    x = tape.leaf("0", 0)
    check_tape(tape, [tape.operand(x * x)], [1])
    tape.nodes.append(node)
    with pytest.raises(InvalidTape, match=why):
        check_tape(tape, [0], [1])
    with pytest.raises(InvalidTape, match="not a node"):
        check_tape(Tape(), [0], [])


def test_words_that_are_no_products():
    s = Operators()
    mass = s.H @ s.phi @ s.M @ s.phi.T @ s.H.T
    check_words(mass.poly(), mass)
    for word in (("H", "H"), ("phi",), ("H", "phi")):
        with pytest.raises(AssertionError, match="is not a word"):
            check_words({tuple(map(letter, word)): 1}, mass)
