"""Closed chains where it gets hard: many loops at once, singular masses, NaN, rough guesses, and
words for what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler import passes
from psiphi.robot.mechanisms.dynamics.load_distribution import drivable_acceleration
from psiphi.robot.mechanisms.grasp_and_connect import Contact, Loop, connect, grasp
from psiphi_bench.closed_cells import ClosedState, elbows_up, facing_pumas
from psiphi_bench.interpreted_robot import uncompiled
from tests.robot.mechanisms.cells import inertia_at_object, pair, pinned_arm
from tests.robot.mechanisms.worldly import accelerations


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.fixture(scope="module")
def both() -> ClosedState:
    """Two 7-joint arms with a box."""
    return pair("rigid", "rigid")


@pytest.fixture(scope="module")
def pumas():
    return uncompiled(facing_pumas())


def gripper() -> pp.Robot:
    """An arm whose second finger follows the first."""
    b = pp.Builder("gripper")
    below = "world"
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]):
        b.body(f"l{i}", mass=1.0, com=(0, 0, 0.15), inertia=np.eye(3) * 0.02)
        b.joint(f"j{i}", "revolute", below, f"l{i}", xyz=(0, 0, 0.3), axis=axis, armature=0.05)
        below = f"l{i}"
    for name, side, mimic in (("finger", 1, None), ("twin", -1, ("finger", -1.0, 0.0))):
        b.body(name, mass=0.2, com=(0, 0, 0.05), inertia=np.eye(3) * 0.001)
        b.joint(
            f"{name} slide",
            "prismatic",
            below,
            name,
            xyz=(0.02 * side, 0, 0.1),
            axis=(1, 0, 0),
            **_follow(mimic),
        )
    b.frame("palm", below, xyz=(0, 0, 0.1))
    return pp.Robot.of(b.build())


def _follow(mimic) -> dict:
    return {} if mimic is None else {"mimic": (f"{mimic[0]} slide", *mimic[1:])}


MANY = {
    "two loops on one frame": [
        Loop("hinge", "a/link7", "b/link6", axis=(0, 1, 1)),
        Loop("distance", "b/link6", "a/link4", length=0.6),
    ],
    "to the world, and a redundant copy": [
        Loop("ball", "a/link7", "b/link6"),
        Loop("ball", "b/link6", "a/link7"),
        Loop("planar", "b/link3", "world", axis=(0, 0, 1)),
    ],
    "universal and cylinder": [
        Loop("universal", "a/link7", "b/link6", axis=(1, 0, 0), axis2=(0, 1, 0)),
        Loop("cylindrical", "world", "a/link3", axis=(0, 1, 0)),
    ],
}


@pytest.mark.parametrize("name", MANY)
def test_several_loops_agree_with_world_axes(name):
    """Trees with rotors, one on a flying base; loops that share frames, that are redundant, that
    hold to the world."""
    trees = {
        "a": pp.robots.random_tree(8, 5, ("revolute", "spherical"), 0.0, "free"),
        "b": pp.robots.random_tree(6, 9, "revolute", 0.0),
    }
    system = uncompiled(connect(trees, MANY[name]))
    rng = np.random.default_rng(1)
    q = system.assemble(system.random(rng))
    q, v = system.project(q, rng.standard_normal(system.nv))
    tau = rng.standard_normal(system.nv)
    assert np.abs(system.constraint_residual(q, v)).max() < 1e-10
    assert relative(system.forward_dynamics(q, v, tau), accelerations(system, q, v, tau)) < 1e-9


def test_fingers_that_follow_hold_an_object_too():
    """Mimic joints and a loop of the arm's own beside the grasps; followers have no motor."""
    arm = gripper()
    loops = [Loop("distance", "gripper_1/finger", "gripper_2/finger", length=0.9)]
    bases = [None, (1.0, 0, 0)]
    arms = [(arm, base, "palm") for base in bases]
    cell = uncompiled(
        grasp(
            arms,
            pp.Body.box(1.0, (0.2, 0.2, 0.2)),
            [(0, 0, 0), (0.3, 0, 0)],
            ["rigid", "point"],
            loops,
            mimic=True,
        )
    )
    assert (
        cell.nc == 6 + 3 + 1 + 2
        and cell.na == cell.nv - 6 - 2
        and "mimic gripper_2/twin slide" in repr(cell)
    )
    rng = np.random.default_rng(0)
    q = cell.assemble(cell.random(rng))
    q, v = cell.project(q, rng.standard_normal(cell.nv))
    tau = np.zeros(cell.nv)
    tau[cell.actuated] = rng.standard_normal(cell.na)
    a = cell.forward_dynamics(q, v, tau[cell.actuated])
    assert relative(a, accelerations(cell, q, v, tau)) < 1e-9
    torques = cell.inverse_dynamics(q, v, a)
    assert not torques[cell.idle].any() and relative(cell.forward_dynamics(q, v, torques), a) < 1e-9


@pytest.mark.parametrize("method", [None, "RCCFD1", "RCCFD2", "RCCFD3", "KKT"])
@pytest.mark.parametrize(
    "loops",
    [[], [Loop("distance", "finger", "world", length=0.8)]],
    ids=["mimic", "mimic and loop"],
)
def test_every_method_knows_joints_that_follow(method, loops):
    system = uncompiled(connect(gripper(), loops, mimic=True))
    rng = np.random.default_rng(0)
    q = system.assemble(system.random(rng))
    q, v = system.project(q, rng.standard_normal(system.nv))
    tau = rng.standard_normal(system.nv)
    assert (
        relative(
            system.forward_dynamics(q, v, tau, method=method), accelerations(system, q, v, tau)
        )
        < 1e-9
    )


def test_mujoco_agrees_at_rest():
    """connect, weld and joint equalities, armature; its constraints give way by a ten-thousandth,
    and so do its answers."""
    mujoco = pytest.importorskip("mujoco")
    stiff = 'solref="1e-4 1" solimp="0.9999 0.9999 0.001"'
    xml = f"""<mujoco><option><flag contact="disable"/></option><worldbody>
    <body name="a"><joint name="ja" axis="0 1 0" armature="0.1"/><inertial pos=".2 0 0" mass="1" diaginertia=".01 .02 .03"/>
      <body name="b" pos=".5 0 0"><joint name="jb" axis="0 1 0"/><inertial pos=".2 0 0" mass="1.5" diaginertia=".02 .02 .03"/>
        <body name="d" pos=".1 0 .1"><joint name="jd" axis="0 1 0"/><inertial pos=".1 0 0" mass=".5" diaginertia=".01 .01 .01"/>
        </body></body></body>
    <body name="c" pos=".9 0 .2"><joint name="jc" axis="0 1 0"/><inertial pos=".1 0 .1" mass=".7" diaginertia=".01 .02 .03"/>
    </body><body name="o" pos=".4 .3 .2"><freejoint/><inertial pos=".01 .02 .03" mass="2" diaginertia=".05 .06 .07"/></body>
    </worldbody><equality><connect body1="b" body2="c" anchor=".4 0 0" {stiff}/><weld body1="o" body2="a" {stiff}/>
    <joint joint1="jd" joint2="ja" polycoef="0 -1.5 0 0 0" {stiff}/></equality></mujoco>"""  # noqa: E501
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.tolerance, model.opt.iterations = 0.0, 500
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    b = pp.Builder("same")
    rows = (("a", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.03), "world", (0, 0, 0), {"armature": 0.1}),)
    rows += (("b", 1.5, (0.2, 0, 0), (0.02, 0.02, 0.03), "a", (0.5, 0, 0), {}),)
    rows += (
        (
            "d",
            0.5,
            (0.1, 0, 0),
            (0.01, 0.01, 0.01),
            "b",
            (0.1, 0, 0.1),
            {"mimic": ("ja", -1.5, 0.0)},
        ),
    )
    rows += (("c", 0.7, (0.1, 0, 0.1), (0.01, 0.02, 0.03), "world", (0.9, 0, 0.2), {}),)
    for name, mass, com, inertia, parent, at, more in rows:
        b.body(name, mass=mass, com=com, inertia=np.diag(inertia))
        b.joint(f"j{name}", "revolute", parent, name, xyz=at, axis=(0, 1, 0), **more)
    b.body("o", mass=2.0, com=(0.01, 0.02, 0.03), inertia=np.diag([0.05, 0.06, 0.07]))
    b.joint("jo", "free", "world", "o")
    b.frame("end of b", "b", xyz=(0.4, 0, 0))
    b.frame("hold of c", "c", xyz=(0, 0, -0.2))
    b.frame("hold of a", "a", xyz=(0.4, 0.3, 0.2))
    system = uncompiled(
        connect(
            b.build(),
            [Loop("ball", "end of b", "hold of c"), Loop("weld", "o", "hold of a")],
            mimic=True,
        )
    )
    q = system.neutral()
    q[system.joint("jo").q_slice] = [0.4, 0.3, 0.2, 0, 0, 0, 1]
    a = system.forward_dynamics(q, np.zeros(system.nv), np.zeros(system.nv))
    ours = [
        *(a[system.joint(f"j{name}").v_slice][0] for name in "abdc"),
        *a[system.joint("jo").v_slice][[3, 4, 5, 0, 1, 2]],
    ]
    assert relative(np.array(ours), data.qacc) < 2e-3


def point_mass(tip) -> pp.System:
    """A point mass on a universal joint, on its first axis: the mass matrix is diag(0, 1). A rod
    holds it to a pin."""
    b = pp.Builder("mass", gravity=(0, -9.81, 0))
    b.body("point", mass=1.0, com=(1.0, 0, 0), inertia=np.zeros((3, 3)))
    b.joint("gimbal", "universal", "world", "point", axis=(1, 0, 0), axis2=(0, 0, 1))
    b.frame("tip", "point", xyz=tip)
    b.frame("pin", "world", xyz=(0.5, 0, 0.3))
    length = float(np.linalg.norm(np.subtract(tip, (0.5, 0, 0.3))))
    return uncompiled(connect(b.build(), [Loop("distance", "tip", "pin", length=length)]))


@pytest.mark.parametrize("method", [None, "KKT"])
def test_constraints_may_hold_what_has_no_inertia(method):
    """M is singular, and yet the rod makes the acceleration unique; the free fall of the point
    decides it."""
    system, rest = point_mass((0.5, 0.3, 0.0)), np.zeros(2)
    found = system.forward_dynamics_details(rest, rest, rest, method=method)
    a, Jc = found["a"], system.constraint_jacobian(rest)[0]
    assert found["unique"] and found["solvable"] and abs(a[1] + 9.81) < 1e-9 and abs(Jc @ a) < 1e-12


def test_an_acceleration_that_is_not_unique_names_joint_and_direction():
    system, rest = (
        point_mass((0.7, 0.0, 0.0)),
        np.zeros(2),
    )  # a rod to a point on the first axis does not hold its turn
    with pytest.raises(pp.SingularError, match=r"joint gimbal along \(1, 0\) is not unique"):
        system.forward_dynamics(rest, rest, rest)
    batch = system.forward_dynamics_details(np.array([[0.0, 0.0], [0.0, 0.4]]), rest, rest)
    assert (
        batch["solvable"].tolist() == [False, True]
        and np.isnan(batch["a"][0]).all()
        and np.isfinite(batch["a"][1]).all()
    )


def test_a_batch_without_any_answer_is_nan():
    """One state raises; a batch does not, however many of its elements are lost, unless check says
    so."""
    system, v = uncompiled(pinned_arm(pin=(2.0, 0.0, 0.0))), np.array([1.0, -2.0])
    assert np.isnan(system.forward_dynamics(np.zeros((2, 2)), v, np.zeros(2))).all()
    with pytest.raises(pp.SingularError, match=r"of tip to pin, .*batch element 0"):
        system.forward_dynamics(np.zeros((1, 2)), v, np.zeros(2), check=True)


def test_nan_stays_in_its_element_everywhere(both):
    """Before: an error of the SVD for all, and a projection that stopped for all."""
    cell, v = both.system, np.zeros(both.system.nv)
    q = np.stack([both.q, np.full(cell.nq, np.nan), both.q])
    for answer in (
        cell.inverse_dynamics(q, v, v),
        cell.complete(q, v, v, exactly="box/free"),
        cell.split_forces(q, np.ones((2, 6)))[0].reshape(3, -1),
        cell.project(cell.integrate(q, np.full(cell.nv, 1e-3)), v)[0],
        cell.effective_inertia(q).reshape(3, -1),
    ):
        assert np.isnan(answer).any(axis=-1).tolist() == [False, True, False]
    closed, _ = cell.project(cell.integrate(q, np.full(cell.nv, 1e-3)), v)
    assert np.abs(cell.constraint_residual(closed[0])).max() < 1e-11
    found = cell.forward_dynamics_details(q, v, v)
    assert found["solvable"].tolist() == [True, False, True]
    with pytest.raises(pp.StateError, match="in batch element 1 has nan"):
        cell.forward_dynamics(q, v, v, check=True)


def test_projection_does_not_depend_on_neighbours(both):
    """An element that is closed stays as it is, whatever the others need."""
    cell, v = both.system, both.v
    q = np.stack([both.q, cell.integrate(both.q, np.full(cell.nv, 1e-2))])
    assert np.array_equal(cell.project(q, v)[0][1], cell.project(q[1], v)[0]) and np.array_equal(
        cell.project(q, v)[0][0], both.q
    )


@pytest.mark.parametrize("mass", [1e-2, 1e-4, 1e-6, 1e-8])
def test_a_feather_between_heavy_arms(pumas, mass):
    """Omega loses the digits of the arms beside a light object; accelerations, projection and
    inertia keep theirs."""
    cell = uncompiled(facing_pumas(mass=mass, width=0.02))
    rng = np.random.default_rng(0)
    q, v = cell.project(elbows_up(pumas), rng.standard_normal(cell.nv))
    assert np.abs(cell.constraint_residual(q, v)).max() < 1e-11
    tau = np.r_[rng.standard_normal(12), np.zeros(6)]
    a = cell.forward_dynamics(q, v, tau)
    assert (
        np.abs(cell.constraint_jacobian(q) @ a + cell.constraint_bias(q, v)).max()
        < 1e-9 * np.abs(a).max()
    )
    assert relative(a, accelerations(cell, q, v, tau)) < (1e-10 if mass > 1e-7 else 1e-8), (
        "world axes square the masses' ratio"
    )
    assert relative(cell.effective_inertia(q), inertia_at_object(cell, q)) < 1e-10


def test_two_arms_assemble_from_any_guess(pumas):
    rng = np.random.default_rng(0)
    q = pumas.assemble(pumas.random(rng, 100))
    assert np.abs(pumas.constraint_residual(q)).max() < 1e-10


def test_assembly_starts_again_where_it_is_stuck():
    """A straight arm pulled inward feels no torque: from the guess itself no step helps."""
    system = uncompiled(pinned_arm())
    q = system.assemble([np.arctan2(0.4, 1.2), 0.0])
    assert np.abs(system.constraint_residual(q)).max() < 1e-10


def test_singular_arms_are_named(pumas):
    """Wrists straight and turning: the error says which arm, which contact, which way."""
    posture = [0.0, -0.8, 0.6, 0.0, 0.0, 0.0]
    puma = pp.robots.puma560()
    one, two = np.eye(4), np.eye(4)
    two[1, 3] = 1.0
    hands = [
        base @ pumas.frame_pose(np.r_[posture, posture, np.zeros(6), 1.0], "puma560_1/tool")
        for base in (one, two)
    ]
    body = pp.Body.box(5.0, (0.1, 1.0, 0.1), "beam")
    cell = uncompiled(grasp([(puma, one, "tool"), (puma, two, "tool")], body, hands))
    q = np.array([*posture, *posture, 0, 0, 0, 0, 0, 0, 1])
    kept = np.linalg.svd(cell.constraint_jacobian(q))[2][cell.nc - 1 :]
    with pytest.raises(
        pp.SingularError,
        match=r"contact \d \(weld\) of puma560_\d/tool to beam/grip\d, sliding along \(0, 1, 0\)",
    ):
        cell.forward_dynamics(q, 0.5 * kept.sum(axis=0), np.ones(12))


def test_wrenches_from_outside_in_inverse_dynamics(both):
    cell, q, v = both.system, both.q, both.v
    rng = np.random.default_rng(3)
    push = {cell.object: rng.standard_normal(6), cell.contacts[0].first: rng.standard_normal(6)}
    a, forces = cell.forward_dynamics(q, v, np.zeros(cell.na), f_ext=push, forces=True)
    torques, wrenches = cell.inverse_dynamics(q, v, a, f_ext=push, forces=True)
    again, same = cell.forward_dynamics(q, v, torques, f_ext=push, forces=True)
    assert relative(again, a) < 1e-9 and relative(same, wrenches) < 1e-8
    for axes in ("world", "frame"):
        ours, theirs = (
            cell.forward_dynamics(q, v, np.zeros(cell.na), f_ext=push, axes=axes, method=m)
            for m in (None, "KKT")
        )
        assert relative(ours, theirs) < 1e-9


def test_a_flying_base_without_thrusters():
    """Torques for the motion that some torques made, none at the base; a motion that needs thrust
    is refused."""
    rng = np.random.default_rng(8)
    flyer = pp.robots.random_tree(8, 3, "revolute", 0.0, base="free")
    passive = f"{flyer.name}/{flyer.joints[0].name}"
    cell = uncompiled(
        grasp(
            [(flyer, None, flyer.bodies[-1].name)],
            pp.Body.box(1.0, (1, 1, 1)),
            [None],
            passive=passive,
        )
    )
    assert cell.na == flyer.nv - 6
    q, v = cell.project(cell.assemble(cell.random(rng)), rng.standard_normal(cell.nv))
    a = cell.forward_dynamics(q, v, rng.standard_normal(cell.na))
    torques = cell.inverse_dynamics(q, v, a)
    assert not torques[cell.idle].any() and relative(cell.forward_dynamics(q, v, torques), a) < 1e-9
    thrust = np.linalg.pinv(cell.constraint_jacobian(q)) @ -cell.constraint_bias(q, v)
    with pytest.raises(pp.StateError, match=r"no contact can give coordinate .* system\.complete"):
        cell.inverse_dynamics(q, v, thrust)
    wish = rng.standard_normal(cell.nv)
    for a in (cell.complete(q, v, wish), drivable_acceleration(cell, q, v, thrust)):
        torques = cell.inverse_dynamics(q, v, a)
        assert (
            not torques[cell.idle].any()
            and relative(cell.forward_dynamics(q, v, torques, method="KKT"), a) < 1e-9
        )
        np.testing.assert_allclose(falling(cell, q, v, a), [0, 0, -9.81], atol=1e-3)
    with pytest.raises(pp.StateError, match=r"needs a force on coordinate . of"):
        cell.complete(q, v, wish, exactly=[passive, "box/free"])
    push = {cell.object: np.array([0.0, 0, 0, 3.0, 0, 0])}
    pushed = cell.inverse_dynamics(q, v, cell.complete(q, v, wish, f_ext=push), f_ext=push)
    assert not pushed[cell.idle].any() and cell.complete(np.stack([q, q]), v, wish).shape == (
        2,
        cell.nv,
    )
    assert np.isnan(cell.complete(np.stack([q, q]), v, wish, exactly=[passive, "box/free"])).all()


def falling(cell, q: np.ndarray, v: np.ndarray, a: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """The acceleration of the common centre of mass, by differences of positions."""
    robot = cell.robot
    mass = np.array([body.mass for body in robot.bodies])

    def centre(t: float) -> np.ndarray:
        along = robot.integrate(
            q, t * v + 0.5 * t * t * a
        )  # to second order: v and a are at the middle
        T = np.stack([robot.frame_pose(along, body.name) for body in robot.bodies])
        points = T[:, :3, 3] + np.einsum(
            "bij,bj->bi", T[:, :3, :3], [body.com for body in robot.bodies]
        )
        return mass @ points / mass.sum()

    return (centre(h) - 2 * centre(0.0) + centre(-h)) / h**2


def test_a_controller_of_a_flying_cell():
    """Computed torque asks nothing of the base: joints accelerate as if it had thrusters, and it
    moves as momentum asks."""
    rng = np.random.default_rng(5)
    flyer = pp.robots.random_tree(8, 3, "revolute", 0.0, base="free")
    cell = uncompiled(
        grasp([(flyer, None, flyer.bodies[-1].name)], pp.Body.box(1.0, (1, 1, 1)), [None])
    )
    q, v = cell.project(cell.assemble(cell.random(rng)), rng.standard_normal(cell.nv))
    control = pp.ComputedTorque(cell, q, 3.0, 2.0)
    tau = control(0.0, q, v)
    a = cell.forward_dynamics(q, v, tau)
    assert not tau[cell.idle].any()
    thrusted = cell.forward_dynamics(q, v, cell.robot.inverse_dynamics(q, v, -2.0 * v))
    np.testing.assert_allclose(a[cell.actuated], thrusted[cell.actuated], atol=1e-9)
    np.testing.assert_allclose(falling(cell, q, v, a), [0, 0, -9.81], atol=1e-3)
    assert (
        relative(
            tau[cell.actuated],
            cell.inverse_dynamics(q, v, drivable_acceleration(cell, q, v, thrusted))[cell.actuated],
        )
        < 1e-9
    )
    one, other = (
        pp.simulate(cell, q, v, control, duration=0.01, method="euler", compiled=flag).final
        for flag in (True, False)
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-10)


def test_a_motion_that_breaks_the_grasp_is_refused(both):
    cell, q, v = both.system, both.q, both.v
    with pytest.raises(pp.StateError, match=r"does not satisfy contact .* system\.complete"):
        cell.inverse_dynamics(q, v, np.ones(cell.nv))
    good = cell.complete(q, v, np.ones(cell.nv))
    batch = cell.inverse_dynamics(q, v, np.stack([np.ones(cell.nv), good]))
    assert np.isnan(batch[0]).all() and np.isfinite(batch[1]).all()
    with pytest.raises(pp.StateError, match="batch element 0"):
        cell.inverse_dynamics(q, v, np.stack([np.ones(cell.nv), good]), check=True)


def test_friction_of_many_states_at_once():
    """q and forces broadcast against each other; NaN forces have no ratio."""
    rng = np.random.default_rng(4)
    arms = [pp.robots.random_tree(6, seed, "revolute", 0.0) for seed in (1, 2)]
    grips = [Contact("point", normal=(0, 0, 1), friction=0.5, torsion=0.01)] * 2
    cell = uncompiled(
        grasp(
            [(arm, None, "link6") for arm in arms],
            pp.Body.box(1.0, (1, 1, 1)),
            [None, (0.1, 0, 0)],
            grips,
        )
    )
    q = np.stack([cell.random(rng) for _ in range(3)])
    forces = np.ones((2, 6))
    assert cell.contact_ratio(q, forces).shape == (3, 2)
    assert np.isnan(cell.contact_ratio(q[0], forces * np.nan)).all()


def test_explain_shows_what_was_rewritten(both):
    text = both.system.explain()
    for part in (
        "= B* ψ* H* D⁻¹ H ψ B",
        "for k = tips .. base:",
        "Ω = Z X Z*",
        "nearest common ancestor",
        "a = a_f + Δa",
        "flops (free)",
    ):
        assert part in text
    assert "B(" not in text, "the frames are named once"
    assert "Ω = F Y F*" in uncompiled(connect(gripper(), mimic=True)).explain()


def test_what_a_system_is(both):
    cell = both.system
    assert cell.joint("box/free").kind == "free" and len(cell.idle) + cell.na == cell.nv
    assert np.allclose(
        cell.contact_configuration(both.q, np.int64(1)),
        cell.contact_configuration(both.q, "contact 2"),
    )
    chain = pp.robots.chain(3)
    stiff = uncompiled(grasp([(chain, None, "tool")], pp.Body.box(1.0, (1, 1, 1)), [None]))
    q = stiff.assemble(stiff.random(seed=0))
    assert np.isnan(stiff.effective_inertia(q)).all()
    inertia = stiff.effective_inertia(q, policy="pseudo")
    X = stiff.effective_compliance(q)
    assert np.allclose(X @ inertia @ X, X, atol=1e-9)


PUMA = pp.robots.puma560()
BAD = {
    "contacts=one": (dict(contacts=Contact("point")), "expected a list"),
    "contacts=str": (dict(contacts="rigid"), "expected a list"),
    "an axis in words": (dict(contacts=[Contact("line", axis="z")]), "has the axis 'z'"),
    "an axis for nothing": (
        dict(contacts=[Contact("rigid", axis=(0, 0, 1))]),
        "only a line contact",
    ),
    "friction in words": (
        dict(contacts=[Contact("point", normal=(0, 0, 1), friction="much")]),
        "expected real numbers",
    ),
    "negative torsion": (
        dict(contacts=[Contact("point", None, (0, 0, 1), 0.5, -1)]),
        "torsion of contacts",
    ),
    "torsion alone": (dict(contacts=[Contact("soft", normal=(0, 0, 1), torsion=1)]), "no friction"),
    "a kind that is a list": (dict(contacts=[Contact(["rigid"])]), "of kind"),
    "a frame that is a number": (dict(arms=[(PUMA, None, 3)]), "the frame of arms"),
    "no frame": (dict(arms=[(PUMA, None, ())]), "names no frame"),
    "a loop to nowhere": (dict(loops=[Loop("ball", "puma560/tool", "moon")]), "no frame 'moon'"),
    "a ball with an axis": (
        dict(loops=[Loop("ball", "puma560/link2", "world", axis=(0, 0, 1))]),
        "leave it out",
    ),
    "a length in words": (
        dict(loops=[Loop("distance", "puma560/link2", "world", length="long")]),
        "expected real numbers",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_cells_are_refused(name):
    change, words = BAD[name]
    good = dict(
        arms=[(PUMA, None, "tool")],
        object=pp.Body.box(1.0, (1, 1, 1)),
        at=[None],
        contacts=["rigid"],
    )
    with pytest.raises(pp.Error, match=words):
        grasp(**good | change)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, q, v: c.forward_dynamics(q + 0j, v, v), "complex128"),
        (lambda c, q, v: c.forward_dynamics([None] * len(q), v, v), "holds None"),
        (lambda c, q, v: c.inverse_dynamics(q, v, v, share="even"), "2 positive numbers"),
        (lambda c, q, v: c.inverse_dynamics(q, 0 * v, 0 * v, internal="hard"), "the wrenches"),
        (lambda c, q, v: c.assemble(q, hold=3), "hold is 3"),
        (lambda c, q, v: c.assemble(q * 0), r"quaternion of joint .* is zero"),
        (lambda c, q, v: c.assemble(q, tolerance=0.0), "expected a positive number"),
        (lambda c, q, v: c.contact_configuration(q, True), "no contact True"),
        (lambda c, q, v: c.explain("KKT"), "which has no sweeps"),
        (lambda c, q, v: c.forward_dynamics(q, v, v, check="yes"), "expected True or False"),
    ],
)
def test_bad_calls_are_refused(both, call, words):
    with pytest.raises(pp.Error, match=words):
        call(both.system, both.q, both.v)


def test_a_warm_process_chooses_a_method_without_tracing(tmp_path, monkeypatch):
    monkeypatch.setenv("PSIPHI_CACHE", str(tmp_path / "cache"))
    cold = pp.scenes.load("four_bar").system.chosen_method()

    def never(*_):
        raise AssertionError("a tape is traced")

    monkeypatch.setattr(passes, "straight_code", never)
    warm = pp.scenes.load("four_bar").system.chosen_method()
    assert (warm.method, warm.flops) == (cold.method, cold.flops)
    monkeypatch.setenv("PSIPHI_CACHE", "off")
    with pytest.raises(AssertionError, match="traced"):
        pp.scenes.load("four_bar").system.chosen_method()
