"""The whole road on one page: a two-link arm, from the text of its URDF and an equation to a
number.

    URDF text -> Model                                      what the robot is
    equation  -> operators -> resolved -> rewritten         what is asked, in the algebra
              -> sweeps -> framed -> a tape                 body by body, then number by number
              -> C, LLVM IR -> machine code -> gufunc       what runs

Every language on the way has an interpreter, so every stage is checked against the one before it;
the first against the equations of a textbook. The passes are those of `psiphi.compiler.passes`, in
their order. Read from top to bottom.
"""

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.expressions.expression import vector
from psiphi.algebra.expressions.notation import show_poly
from psiphi.algebra.expressions.operators import Operators
from psiphi.backends.cpu.gufunc import gufunc
from psiphi.backends.cpu.gufunc_kernel import gufunc_module
from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.llvm import jit
from psiphi.backends.target import TARGETS
from psiphi.compiler import passes
from psiphi.compiler.equations import REWRITTEN, WHOLE, WRITTEN, Equation
from psiphi.compiler.explanation import explain, inverses, loops
from psiphi.compiler.ir.segments import split_segments
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.io.urdf.urdf import load_urdf

URDF = """
<robot name="two_link_arm">
  <link name="base"/>
  <joint name="shoulder" type="continuous">
    <parent link="base"/> <child link="upper"/> <axis xyz="0 1 0"/>
  </joint>
  <link name="upper">
    <inertial> <origin xyz="0.4 0 0"/> <mass value="3"/>
      <inertia ixx="0.01" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
  <joint name="elbow" type="continuous">
    <parent link="upper"/> <child link="lower"/> <origin xyz="1 0 0"/> <axis xyz="0 1 0"/>
  </joint>
  <link name="lower">
    <inertial> <origin xyz="0.3 0 0"/> <mass value="2"/>
      <inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/> </inertial>
  </link>
</robot>
"""

Q, V, A = (
    np.array([0.3, -0.7]),
    np.array([1.1, 0.4]),
    np.array([-0.6, 2.0]),
)  # a state and an acceleration


def textbook(q, v, a) -> np.ndarray:
    """tau = M a + C v + g of a planar arm in a vertical plane (x forward, z up, angles about y)."""
    (m1, c1, I1), (m2, c2, I2), l1, g = (3.0, 0.4, 0.2), (2.0, 0.3, 0.1), 1.0, 9.81
    coupling = m2 * l1 * c2 * np.cos(q[1])
    M12 = I2 + m2 * c2**2 + coupling
    M = np.array([[I1 + m1 * c1**2 + m2 * l1**2 + M12 + coupling, M12], [M12, I2 + m2 * c2**2]])
    h = -m2 * l1 * c2 * np.sin(q[1])
    C_v = np.array([h * (2 * v[0] * v[1] + v[1] ** 2), -h * v[0] ** 2])
    weight2 = m2 * c2 * g * np.cos(q[0] + q[1])
    return M @ a + C_v - np.array([(m1 * c1 + m2 * l1) * g * np.cos(q[0]) + weight2, weight2])


TAU = textbook(Q, V, A)
MODEL = load_urdf(URDF)
S = Operators(MODEL)
ACCELERATION = S.mass.inv @ (
    vector("tau") - S.H @ S.phi @ (S.M @ S.phi.T @ S.a + S.b)
)  # Newton, solved for a


@pytest.fixture(scope="module")
def equation() -> Equation:
    return Equation({"a": ACCELERATION}, MODEL, input_order=("tau",))


@pytest.fixture(scope="module")
def tree(equation):
    return passes.frame(MODEL, passes.moves_inertia(equation))


@pytest.fixture(scope="module")
def straight(equation, tree):
    return passes.trace(passes.program(equation, tree), tree)


def test_1_the_text_becomes_a_model():
    """What the robot is: bodies on joints, parents first, every number as written."""
    assert [j.name for j in MODEL.joints] == ["shoulder", "elbow"] and MODEL.parent == (-1, 0)
    assert (MODEL.nq, MODEL.nv) == (2, 2) and [b.mass for b in MODEL.bodies] == [3.0, 2.0]
    assert MODEL.joints[1].axis.tolist() == [0, 1, 0] and MODEL.joints[
        1
    ].pose.translation.tolist() == [1, 0, 0]


def test_2_the_model_becomes_operators():
    """Whole-robot matrices that mean what the textbook's do: M a + C v + g, in their words."""
    assert str(ACCELERATION) == "(H φ M φ* H*)⁻¹ (tau - H φ (M φ* a + b))"
    assert S.phi.dense(Q).shape == (12, 12) and S.H.dense(Q).shape == (2, 12), (
        "two links of six, two joints of one"
    )
    mass = S.H @ S.phi @ S.M @ S.phi.T @ S.H.T
    bias = S.H @ S.phi @ (S.M @ S.phi.T @ S.a + S.b)
    np.testing.assert_allclose(mass.dense(Q) @ A + bias.dense(Q, V), TAU, rtol=1e-14)
    with pytest.raises(pp.StateError, match=r"phi takes link forces"):
        S.phi @ vector("tau")


def test_3_write(equation):
    """What is asked has its arguments before anything is rewritten, and a meaning: dense
    matrices."""
    inputs, outputs = equation.arguments()
    assert [arg.name for arg in inputs] == ["q", "v", "tau"] and [arg.name for arg in outputs] == [
        "a"
    ]
    np.testing.assert_allclose(ACCELERATION.dense(Q, V, tau=TAU), A, rtol=1e-13)


def test_4_resolve(equation):
    """The inverse of the mass matrix is known: (I - HψK)* D⁻¹ (I - HψK), multiplied out."""
    (line,) = inverses(equation)
    assert (
        line == "(H φ M φ* H*)⁻¹ = D⁻¹ - D⁻¹ H ψ K - K* ψ* H* D⁻¹ + K* ψ* H* D⁻¹ H ψ K    [S3 "
        "Lemma 3 (13)]"
    )


def test_5_rewrite(equation):
    """Three forms of one value; rules that a paper names turn φ into ψ until no φ is left but in
    the body forces."""
    forms, too_large = passes.rewrite(equation)
    assert [form.name for form in forms] == [WHOLE, WRITTEN, REWRITTEN] and too_large is None
    whole, written, rewritten = (show_poly(form.polys["a"]) for form in forms)
    assert (
        "ψ K H φ b" in written
        and "φ b" not in rewritten
        and "ψ P a" in rewritten
        and "ψ M φ* a" in whole
    )
    assert "S0 A.2 (a.18)" in str(forms[0].derivation)
    W = S.I - S.H @ S.psi @ S.K
    nu = S.D.inv @ W @ vector("tau") - S.D.inv @ S.H @ S.psi @ (S.P @ S.a + S.b)
    assert pp.prove(ACCELERATION, nu - S.K.T @ S.psi.T @ (S.H.T @ nu + S.a)), (
        "the articulated-body algorithm"
    )


def test_6_lower(equation):
    """ψ is a loop from the tips to the base, ψ* one back: the articulated-body algorithm, found."""
    lines = loops(equation)
    assert [line for line in lines if line.startswith("for")] == [
        "for k = base .. tips:",
        "for k = tips .. base:",
        "for k = base .. tips:",
    ]
    for line in (
        "    P(k) = M(k) + Σ_c φ(k,c) P⁺(c) φ*(k,c)",
        "    z(k) = f(k) + Σ_c [ψ(k,c) z(c) + φ(k,c) G tau(c)]",
        "    α(k) = ψ*(p,k) α(p) + H* e3(k)",
    ):
        assert line in lines


def test_7_frame(tree):
    """z along the joints, x along the links: the placement of the elbow is one shift, and costs
    four operations a vector."""
    assert tree.gauge[0].rotation[:, 2].tolist() == [0, 1, 0], (
        "z of the working axes is the joint's axis y"
    )
    assert tree.links[1].axes == ("x",) and tree.links[1].fixed == [1.0, 0.0, 1.0], (
        "no turn, one metre along x"
    )
    # The joint does not feel a thin rod on its axis: mass moves inward, from the lower arm to the
    # upper and to the ground.
    assert [link.mass for link in tree.links] == [0.0, 0.0]
    assert tree.links[0].pseudo[0][0] + tree.links[0].pseudo[1][1] == pytest.approx(
        0.2 + 3 * 0.4**2 + 2 * 1.0**2
    )


def test_8_the_sweeps_mean_the_equation(equation, tree):
    """A program is its sweeps, each a direction and a step; on numbers it is the textbook."""
    program = passes.program(equation, tree)
    assert [sweep.direction for sweep in program.sweeps] == [BASE_TO_TIP, TIP_TO_BASE, BASE_TO_TIP]
    (a,) = interpret(program, tree, Q, V, TAU)
    np.testing.assert_allclose(a, A, rtol=1e-13)


def test_9_trace(straight):
    """The same program on symbols leaves the few operations this robot needs, and they mean the
    same."""
    outputs = [node for _, _, node in straight.stores]
    a = evaluate(straight.tape, outputs, lambda argument, i: (Q, V, TAU)[int(argument)][i])
    np.testing.assert_allclose(a, A, rtol=1e-13)
    count = straight.count
    assert (count.trig, count.div) == (4, 1) and count.flops <= 30, (
        "two angles, one D(k) that moves; in space it is hundreds"
    )


def test_10_choose(equation, straight):
    """Each form is traced and counted; the one that runs costs least."""
    chosen, costs = passes.choose(equation), {}
    for form in passes.lower(equation, passes.rewrite(equation)[0]):
        tree = passes.frame(MODEL, form.lowered.movable_inertia)
        costs[form.name] = passes.trace(
            form.lowered.program("a", tree, *equation.arguments()), tree
        ).count.flops
    assert costs[chosen.name] == min(costs.values()) == straight.count.flops and len(costs) == 3
    text = explain(equation, straight.count)
    assert (
        f"\ntrace: {straight.count.flops} flops (18 mul, 11 add, 1 div, 0 sqrt; 4 sin/cos), O(N)\n"
        in text
    )
    headings = (
        "resolve:",
        "rewrite, with",
        "choose the cheapest of 3 forms",
        "lower to 3 sweeps",
        "frame:",
        "trace:",
        "emit:",
        "load:",
    )
    places = [text.index(f"\n{heading}") for heading in headings]
    assert places == sorted(places), "explain() tells the passes in their order"


def test_11_emit(straight):
    """The tape as text: C for others, LLVM IR for us. Angles first, then one straight piece of
    code."""
    c = TARGETS["c"].emit(straight, "d", "arm")
    assert "void arm(const double *q, const double *v, const double *tau, double *a)" in c
    assert "const double t6 = cos(q[0]);" in c and c.count(" / ") == 1
    ir = gufunc_module(straight_kernel(straight), "loop", "double", lanes=(1, 4))
    pieces = split_segments(straight)
    assert pieces.angles == 2 and len(pieces.segments) == 1
    assert "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data)" in ir
    for suffix in ("f64", "v4f64"):
        assert f"@block.{suffix}" in ir and f"@llvm.fma.{suffix}" in ir, (
            "the same for plain doubles and four robots at a time"
        )


def test_12_load(straight):
    """The loop's address in a gufunc: one state, many, any batch axes; equal bits wherever a state
    stands."""
    ir = gufunc_module(straight_kernel(straight), "loop", "double", lanes=(1, 4))
    library = jit.load_object(jit.compile_ir(ir), ["loop"])
    function = gufunc(
        "arm", "(2),(2),(2)->(2)", {"d": library.address("loop")}, b"a = M^-1 (tau - C v - g)", 3, 1
    )
    a = function(Q, V, TAU)
    np.testing.assert_allclose(a, A, rtol=1e-13)
    many = function(np.tile(Q, (5, 3, 1)), V, TAU)
    assert many.shape == (5, 3, 2) and (many == a).all()


def test_13_the_door_does_all_of_this():
    """What a user writes."""
    robot = pp.load(URDF)
    np.testing.assert_allclose(robot.forward_dynamics(Q, V, TAU), A, rtol=1e-13)
    np.testing.assert_allclose(robot.inverse_dynamics(Q, V, A), TAU, rtol=1e-14)
    np.testing.assert_allclose(robot.mass_matrix(Q) @ A + robot.bias(Q, V), TAU, rtol=1e-14)
    assert robot.flops("forward_dynamics") <= 30 and robot.flops("inverse_dynamics") <= 30
