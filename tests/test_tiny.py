"""The whole road on one page: a two-link arm, from the text of its URDF to a number.

    URDF text -> Model -> Tree (working axes) -> Program (sweeps) -> Straight (a tape) -> LLVM IR -> object code -> gufunc

Every language on the way has an interpreter, so every stage is checked against the one before it; the first against the
equations of a textbook. Read from top to bottom.
"""

import numpy as np
import pytest

import psiphi as pp
from psiphi.catalogue.dynamics import sweeps_of
from psiphi.emitters import jit
from psiphi.emitters.kernel import module
from psiphi.emitters.segments import cut
from psiphi.emitters.straight import straight_kernel
from psiphi.framing.framing import frame_tree
from psiphi.model.urdf import load_urdf
from psiphi.runtime.gufunc import gufunc
from psiphi.sweeps.drive import unroll
from psiphi.sweeps.interpreter import interpret
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE
from psiphi.tape.interpreter import evaluate

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

Q, V, A = np.array([0.3, -0.7]), np.array([1.1, 0.4]), np.array([-0.6, 2.0])  # a state and an acceleration


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


@pytest.fixture(scope="module")
def road():
    """All stages, each made from the one before."""
    model = load_urdf(URDF)
    tree = frame_tree(model)
    program = sweeps_of("inverse_dynamics", tree, (), "world")
    straight = unroll(program, tree)
    ir = module(straight_kernel(straight), "loop", "double", lanes=4)
    address = jit.load_object(jit.compile_ir(ir), ["loop"]).address("loop")
    return model, tree, program, straight, ir, address


def test_1_the_text_becomes_a_model(road):
    """What the robot is: bodies on joints, parents first, every number as written."""
    model = road[0]
    assert [j.name for j in model.joints] == ["shoulder", "elbow"] and model.parent == (-1, 0)
    assert (model.nq, model.nv) == (2, 2) and [b.mass for b in model.bodies] == [3.0, 2.0]
    assert model.joints[1].axis.tolist() == [0, 1, 0] and model.joints[1].pose.translation.tolist() == [1, 0, 0]


def test_2_the_model_gets_working_axes(road):
    """z along the joints, x along the links: the placement of the elbow is one shift, and costs four operations a vector."""
    _, tree, *_ = road
    assert tree.gauge[0].rotation[:, 2].tolist() == [0, 1, 0], "z of the working axes is the joint's axis y"
    assert tree.links[1].axes == ("x",) and tree.links[1].fixed == [1.0, 0.0, 1.0], "no turn, one metre along x"
    # The joint does not feel a thin rod on its axis: mass moves inward, from the lower arm to the upper and to the ground.
    assert [link.mass for link in tree.links] == [0.0, 0.0]
    assert tree.links[0].pseudo[0][0] + tree.links[0].pseudo[1][1] == pytest.approx(0.2 + 3 * 0.4**2 + 2 * 1.0**2)


def test_3_the_equation_becomes_sweeps(road):
    """Inverse dynamics: accelerations base to tip, forces tip to base. On numbers, the program is the textbook."""
    _, tree, program, *_ = road
    assert [sweep.direction for sweep in program.sweeps] == [BASE_TO_TIP, TIP_TO_BASE]
    assert [arg.name for arg in program.inputs] == ["q", "v", "a"] and [arg.name for arg in program.outputs] == ["tau"]
    (tau,) = interpret(program, tree, Q, V, A)
    np.testing.assert_allclose(tau, TAU, rtol=1e-14)


def test_4_the_sweeps_become_a_tape(road):
    """The same program on symbols leaves the few operations this robot needs, and they mean the same."""
    _, _, _, straight, *_ = road
    outputs = [node for _, _, node in straight.stores]
    tau = evaluate(straight.tape, outputs, lambda argument, i: (Q, V, A)[int(argument)][i])
    np.testing.assert_allclose(tau, TAU, rtol=1e-14)
    count = straight.count
    assert count.trig == 4 and count.flops <= 30, "two angles; general 3-D bodies would take two hundred operations"


def test_5_the_tape_becomes_text(road):
    """Angles first, then one straight piece of code; the same text for plain doubles and for four robots at a time."""
    _, _, _, straight, ir, _ = road
    pieces = cut(straight)
    assert pieces.angles == 2 and len(pieces.segments) == 1
    assert "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data)" in ir
    for suffix in ("f64", "v4f64"):
        assert f"@block.{suffix}" in ir and f"@llvm.fma.{suffix}" in ir
    assert ir.count("fdiv") == 0, "nothing to divide by in inverse dynamics"


def test_6_the_text_becomes_a_number(road):
    """The loop's address in a gufunc: one state, many, any batch axes; equal bits wherever a state stands."""
    function = gufunc("inverse_dynamics", "(2),(2),(2)->(2)", {"d": road[-1]}, "tau = M a + C v + g", 3, 1)
    tau = function(Q, V, A)
    np.testing.assert_allclose(tau, TAU, rtol=1e-14)
    many = function(np.tile(Q, (5, 3, 1)), V, A)
    assert many.shape == (5, 3, 2) and (many == tau).all()


def test_7_the_door_does_all_of_this():
    """What a user writes."""
    robot = pp.load(URDF)
    tau = robot.inverse_dynamics(Q, V, A)
    np.testing.assert_allclose(tau, TAU, rtol=1e-14)
    np.testing.assert_allclose(robot.forward_dynamics(Q, V, tau), A, rtol=1e-13)
    np.testing.assert_allclose(robot.mass_matrix(Q) @ A + robot.bias(Q, V), TAU, rtol=1e-14)
    assert robot.flops("inverse_dynamics") <= 30
