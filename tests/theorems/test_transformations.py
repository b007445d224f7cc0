"""The same mechanism, told in another way or changed in a known way: what must stay, and what must
follow."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi._util.validate import frozen
from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import WORLD, Model, Pose
from psiphi_bench.interpreted_robot import Interpreted
from tests.theorems.laws import both, state
from tests.zoo import (
    KINDS,
    random_axis,
    random_body,
    random_joint,
    random_rotation,
    trees,
    with_frames,
)

SEEDS = st.integers(0, 2**32 - 1)
SIMPLE = ("revolute", "prismatic", "helical", "continuous")  # one coordinate, along one axis


def close(left, right, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(
        left, right, rtol=0, atol=tolerance * (1.0 + np.abs(right).max(initial=0.0))
    )


def recipe(rng: np.random.Generator, n: int, kinds=KINDS, root: str = "") -> Builder:
    """A random tree that is not built yet; the root's joint kind may be given."""
    b, names = Builder("tree"), [f"b{k}" for k in range(n)]
    for k, name in enumerate(names):
        parent = str(rng.choice(names[:k])) if k else "world"
        random_body(b, rng, name)
        random_joint(b, rng, root if root and not k else str(rng.choice(list(kinds))), parent, name)
    return with_frames(b, rng, names)


def by_name(here: Model, there: Model, x: np.ndarray, which: str = "v_slice") -> np.ndarray:
    """Coordinates of `here`, in the order of `there`."""
    places = {joint.name: getattr(joint, which) for joint in here.joints}
    return np.concatenate([x[places[joint.name]] for joint in there.joints] or [x[:0]])


def same_dynamics(here: Model, there: Model, seed: int) -> None:
    """Equal answers to equal questions, coordinates matched by their joints' names."""
    a, b, s = Interpreted.of(here), Interpreted.of(there), state(here, seed)
    q, v, x, tau = (
        by_name(here, there, s.q, "q_slice"),
        *(by_name(here, there, y) for y in (s.v, s.a, s.tau)),
    )
    close(by_name(here, there, a.forward_dynamics(s.q, s.v, s.tau)), b.forward_dynamics(q, v, tau))
    close(by_name(here, there, a.inverse_dynamics(s.q, s.v, s.a)), b.inverse_dynamics(q, v, x))
    f_ext = {"tool": s.f}
    close(by_name(here, there, a.bias(s.q, s.v, f_ext=f_ext)), b.bias(q, v, f_ext=f_ext))
    close(a.energy(s.q, s.v), b.energy(q, v))
    close(a.center_of_mass(s.q), b.center_of_mass(q))
    close(a.frame_pose(s.q, "tool"), b.frame_pose(q, "tool"))
    close(a.frame_velocity(s.q, s.v, "tool"), b.frame_velocity(q, v, "tool"))


# -- told in another way ---------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 7))
def test_the_order_of_the_telling_does_not_matter(seed, n):
    rng = np.random.default_rng(seed)
    b = recipe(rng, n)
    here = b.build()
    b.joints = {name: b.joints[name] for name in rng.permutation(list(b.joints))}
    same_dynamics(here, b.build(), seed)
    same_dynamics(here, b.build(order="name"), seed)


@given(SEEDS, st.integers(1, 5))
def test_a_weld_in_the_way_does_not_matter(seed, n):
    """Every link hangs welded on a massless stub, its own frame anywhere: the mechanism is the
    same."""
    rng = np.random.default_rng(seed)
    b = recipe(rng, n)
    plain, welded = b.build(), Builder("tree")
    moved = {"world": Pose(np.eye(3), np.zeros(3))}
    for body, joint in zip(plain.bodies, plain.joints, strict=True):
        parent = "world" if joint.parent == WORLD else plain.bodies[joint.parent].name
        moved[body.name] = shift = Pose(random_rotation(rng), rng.standard_normal(3))
        pose, R = moved[parent].inv @ joint.pose, shift.rotation
        welded.body(f"stub_{body.name}")
        welded.body(
            body.name, body.mass, R.T @ (body.com - shift.translation), R.T @ body.inertia @ R
        )
        kind = dict(
            axis=joint.axis,
            axis2=joint.axis2 if joint.kind == "universal" else None,
            pitch=joint.pitch,
        )
        welded.joint(
            joint.name,
            joint.kind,
            parent,
            f"stub_{body.name}",
            xyz=pose.translation,
            rotation=pose.rotation,
            **kind,
        )
        welded.joint(
            f"weld_{body.name}",
            "fixed",
            f"stub_{body.name}",
            body.name,
            xyz=shift.translation,
            rotation=R,
        )
    for name in ("tool", "elbow"):
        body = plain.bodies[plain.frames[name].body].name
        pose = moved[body].inv @ plain.frames[name].pose
        welded.frame(name, body, xyz=pose.translation, rotation=pose.rotation)
    same_dynamics(plain, welded.build(), seed)


@given(trees(), SEEDS)
def test_the_world_s_axes_do_not_matter(model, seed):
    """Turn and shift everything, gravity too: joints feel nothing; potential energy shifts by m
    g.d."""
    rng = np.random.default_rng(seed)
    turn = Pose(random_rotation(rng), rng.standard_normal(3))
    roots = [replace(j, pose=turn @ j.pose) if j.parent == WORLD else j for j in model.joints]
    here = Interpreted.of(model)
    there = Interpreted.of(
        replace(model, joints=tuple(roots), gravity_vector=turn.rotation @ model.gravity_vector)
    )
    s = state(model, seed)
    close(there.forward_dynamics(s.q, s.v, s.tau), here.forward_dynamics(s.q, s.v, s.tau))
    close(there.inverse_dynamics(s.q, s.v, s.a), here.inverse_dynamics(s.q, s.v, s.a))
    close(there.center_of_mass(s.q), turn.rotation @ here.center_of_mass(s.q) + turn.translation)
    close(there.frame_pose(s.q, "tool"), turn.matrix @ here.frame_pose(s.q, "tool"))
    close(there.jacobian(s.q, "tool"), both(turn.rotation) @ here.jacobian(s.q, "tool"))
    close(
        there.potential_energy(s.q),
        here.potential_energy(s.q) - here.mass * there.gravity_vector @ turn.translation,
    )


@given(SEEDS, st.integers(1, 6))
def test_a_floating_base_may_stand_anywhere(seed, n):
    """Gravity is the same everywhere: moving the free base changes no acceleration, no torque, no
    mass matrix."""
    rng = np.random.default_rng(seed)
    model = Interpreted.of(recipe(rng, n, root="free").build())
    s = state(model, seed)
    q = s.q.copy()
    q[:3] += 10.0 * rng.standard_normal(3)
    close(model.forward_dynamics(q, s.v, s.tau), model.forward_dynamics(s.q, s.v, s.tau), 1e-12)
    close(model.bias(q, s.v), model.bias(s.q, s.v), 1e-12)
    close(model.mass_matrix(q), model.mass_matrix(s.q), 1e-12)


@given(SEEDS, st.integers(2, 6))
def test_any_end_of_a_floating_chain_may_be_its_base(seed, n):
    """Re-rooted at its tip: the same energy and centre of mass, and torques between the links move
    the joints the same."""
    rng = np.random.default_rng(seed)
    b, names = Builder("chain"), [f"b{k}" for k in range(n)]
    for k, name in enumerate(names):
        random_body(b, rng, name)
        random_joint(
            b, rng, str(rng.choice(SIMPLE)) if k else "free", names[k - 1] if k else "world", name
        )
    here = Interpreted.of(b.build())
    there = Interpreted.of(rerooted(here))
    s = state(here, seed)
    s.tau[:6] = 0.0
    tip = here.frame_pose(s.q, names[-1])
    q, v, tau = there.neutral(), np.zeros(there.nv), np.zeros(there.nv)
    q[:7] = np.concatenate([tip[:3, 3], quaternion(tip[:3, :3])])
    v[:6] = here.frame_velocity(s.q, s.v, names[-1], axes="frame")
    q[7:], v[6:], tau[6:] = s.q[:6:-1], s.v[:5:-1], s.tau[:5:-1]
    close(there.energy(q, v), here.energy(s.q, s.v))
    close(there.center_of_mass(q), here.center_of_mass(s.q))
    close(there.forward_dynamics(q, v, tau)[6:], here.forward_dynamics(s.q, s.v, s.tau)[:5:-1])


def rerooted(chain: Model) -> Model:
    """A floating chain of simple joints, told from its tip: joint k turns about -axis, where its
    outer link was."""
    b, inverse = Builder("rerooted"), Pose(np.eye(3), np.zeros(3))
    for k in reversed(range(len(chain.bodies))):
        body, joint = chain.bodies[k], chain.joints[k]
        R = inverse.rotation
        b.body(body.name, body.mass, R @ body.com + inverse.translation, R @ body.inertia @ R.T)
        if k == len(chain.bodies) - 1:
            b.joint("base", "free", "world", body.name)
        if k:
            inner, axis = chain.bodies[k - 1].name, -R @ joint.axis
            place = dict(xyz=inverse.translation, axis=axis, pitch=joint.pitch)
            b.joint(joint.name, joint.kind, body.name, inner, **place)
            inverse = Pose(R, np.zeros(3)) @ joint.pose.inv
    return b.build()


def quaternion(R: np.ndarray) -> np.ndarray:
    """x, y, z, w of a rotation: the eigenvector of Bar-Itzhack's matrix to its largest
    eigenvalue."""
    (a, b, c), (d, e, f), (g, h, i) = R
    K = np.array(
        [
            [a - e - i, b + d, c + g, h - f],
            [0, e - a - i, f + h, c - g],
            [0, 0, i - a - e, d - b],
            [0, 0, 0, a + e + i],
        ]
    )
    return np.linalg.eigh(K.T)[1][:, -1]


# -- a joint is a chain of simpler ones ------------------------------------------------------------


def chained(joint, body, steps: list[tuple[str, np.ndarray]]) -> Model:
    """Simple joints one after another, massless links between them, then the body."""
    b, parent = Builder("chained"), "world"
    for k, (kind, axis) in enumerate(steps):
        last = k == len(steps) - 1
        child = "body" if last else f"link{k}"
        b.body(child, *((body.mass, body.com, body.inertia) if last else ()))
        place = {} if k else dict(xyz=joint.pose.translation, rotation=joint.pose.rotation)
        b.joint(f"step{k}", kind, parent, child, axis=axis, **place)
        parent = child
    b.frame("tool", "body")
    return b.build()


STEPS = {  # each kind as simple joints, and its configuration for theirs
    "cylindrical": (lambda j: [("revolute", j.axis), ("prismatic", j.axis)], lambda q: q),
    "universal": (lambda j: [("revolute", j.axis), ("revolute", j.axis2)], lambda q: q),
    "planar": (
        lambda j: [
            ("prismatic", j.axis2),
            ("prismatic", np.cross(j.axis, j.axis2)),
            ("revolute", j.axis),
        ],
        lambda q: q,
    ),
    "spherical": (lambda j: [("revolute", axis) for axis in np.eye(3)[::-1]], lambda q: euler(q)),
    "free": (
        lambda j: (
            [("prismatic", axis) for axis in np.eye(3)]
            + [("revolute", axis) for axis in np.eye(3)[::-1]]
        ),
        lambda q: np.concatenate([q[:3], euler(q[3:])]),
    ),
}


def euler(q: np.ndarray) -> np.ndarray:
    """Angles about z, y, x, in this order, of a unit quaternion."""
    x, y, z, w = q
    yaw = np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z))
    roll = np.arctan2(2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
    return np.array([yaw, np.arcsin(2 * (w * y - x * z)), roll])


def alone(kind: str, rng: np.random.Generator) -> Interpreted:
    """One body on one joint, its frame "tool" at the link's origin."""
    b = Builder("alone")
    random_body(b, rng, "body")
    random_joint(b, rng, kind, "world", "body")
    b.frame("tool", "body")
    return Interpreted.of(b.build())


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("seed", range(5))
def test_a_joint_is_a_chain_of_simple_ones(kind, seed):
    """H* v = J(chain) qdot, so v = T qdot; hence T* M T, T* gravity and T* (bias + M dT/dt qdot)
    are the chain's."""
    rng = np.random.default_rng([seed, sum(map(ord, kind))])
    one, (steps, configuration) = alone(kind, rng), STEPS[kind]
    chain = Interpreted.of(chained(one.joints[0], one.bodies[0], steps(one.joints[0])))
    q, rates, h = one.random(rng), rng.standard_normal(chain.nv), 1e-6
    angles = configuration(q)

    def T(angles: np.ndarray) -> np.ndarray:
        H = one.jacobian(
            angles if one.nq == chain.nq else q, "tool", axes="frame"
        )  # with a quaternion, H is constant
        return np.linalg.pinv(H) @ chain.jacobian(angles, "tool", axes="frame")

    v, dT = T(angles) @ rates, (T(angles + h * rates) - T(angles - h * rates)) / (2 * h)
    M, bias = one.mass_matrix(q), one.bias(q, v)
    close(one.frame_pose(q, "tool"), chain.frame_pose(angles, "tool"), 1e-12)
    close(one.frame_velocity(q, v, "tool"), chain.frame_velocity(angles, rates, "tool"), 1e-10)
    close(one.energy(q, v), chain.energy(angles, rates), 1e-10)
    close(T(angles).T @ M @ T(angles), chain.mass_matrix(angles), 1e-10)
    close(T(angles).T @ one.gravity(q), chain.gravity(angles), 1e-10)
    close(T(angles).T @ (bias + M @ dT @ rates), chain.bias(angles, rates), 1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_a_screw_turns_and_slides_by_its_pitch(seed):
    rng = np.random.default_rng(seed)
    screw, (steps, _) = alone("helical", rng), STEPS["cylindrical"]
    joint = screw.joints[0]
    chain = Interpreted.of(chained(joint, screw.bodies[0], steps(joint)))
    S, q, v = np.array([1.0, joint.pitch]), screw.random(rng), rng.standard_normal(1)
    close(screw.frame_pose(q, "tool"), chain.frame_pose(S * q, "tool"), 1e-12)
    close(screw.frame_velocity(q, v, "tool"), chain.frame_velocity(S * q, S * v, "tool"), 1e-12)
    close(screw.mass_matrix(q)[0, 0], S @ chain.mass_matrix(S * q) @ S, 1e-10)
    close(screw.bias(q, v)[0], S @ chain.bias(S * q, S * v), 1e-10)


# -- changed in a known way ------------------------------------------------------------------------


def with_bodies(model: Model, **factors: float) -> Model:
    """Every body's mass, centre of mass and inertia times a factor."""
    changed = [
        replace(
            b,
            **{
                name: frozen(getattr(b, name) * x) if name != "mass" else b.mass * x
                for name, x in factors.items()
            },
        )
        for b in model.bodies
    ]
    return replace(model, bodies=tuple(changed))


@given(trees(armature=False), SEEDS, st.floats(0.01, 100.0))
def test_heavier_bodies_need_more_torque(model, seed, factor):
    """All masses times s: M, bias, energy times s; the same motion needs s times the torque."""
    a, b = Interpreted.of(model), Interpreted.of(with_bodies(model, mass=factor, inertia=factor))
    s = state(model, seed)
    close(b.mass_matrix(s.q), factor * a.mass_matrix(s.q))
    close(b.inverse_dynamics(s.q, s.v, s.a), factor * a.inverse_dynamics(s.q, s.v, s.a))
    close(b.forward_dynamics(s.q, s.v, factor * s.tau), a.forward_dynamics(s.q, s.v, s.tau))
    close(b.energy(s.q, s.v), factor * a.energy(s.q, s.v))
    close(b.center_of_mass(s.q), a.center_of_mass(s.q))


@given(
    trees(kinds=["revolute", "universal", "spherical"], armature=False), SEEDS, st.floats(0.1, 10.0)
)
def test_larger_robots_turn_like_small_ones_in_stronger_gravity(model, seed, factor):
    """All lengths and g times s, joints that only turn: torques times s^2, accelerations the same.
    (Units.)"""
    joints = tuple(
        replace(j, pose=Pose(j.pose.rotation, factor * j.pose.translation)) for j in model.joints
    )
    scaled = with_bodies(model, com=factor, inertia=factor**2)
    a = Interpreted.of(model)
    b = Interpreted.of(replace(scaled, joints=joints, gravity_vector=factor * model.gravity_vector))
    s = state(model, seed)
    close(b.inverse_dynamics(s.q, s.v, s.a), factor**2 * a.inverse_dynamics(s.q, s.v, s.a))
    close(b.forward_dynamics(s.q, s.v, factor**2 * s.tau), a.forward_dynamics(s.q, s.v, s.tau))


@given(trees(), SEEDS)
def test_gravity_is_linear(model, seed):
    """Off: no gravity torques, the rest of the bias stays. Twice: twice."""
    s = state(model, seed)
    on, off, twice = (
        Interpreted.of(replace(model, gravity_vector=x * model.gravity_vector))
        for x in (1.0, 0.0, 2.0)
    )
    np.testing.assert_array_equal(off.gravity(s.q), 0.0)
    close(off.bias(s.q, s.v), on.bias(s.q, s.v) - on.gravity(s.q))
    close(twice.gravity(s.q), 2.0 * on.gravity(s.q))
    close(off.mass_matrix(s.q), on.mass_matrix(s.q), 0.0)
    close(off.energy(s.q, s.v), on.kinetic_energy(s.q, s.v))


@given(trees(armature=False), SEEDS)
def test_rotors_add_to_the_diagonal(model, seed):
    rng = np.random.default_rng(seed)
    rotors = rng.uniform(0.0, 2.0, model.nv)
    joints = tuple(replace(j, armature=frozen(rotors[j.v_slice])) for j in model.joints)
    a, b, s = (
        Interpreted.of(model),
        Interpreted.of(replace(model, joints=joints)),
        state(model, seed),
    )
    close(b.mass_matrix(s.q), a.mass_matrix(s.q) + np.diag(rotors), 1e-11)
    close(b.bias(s.q, s.v), a.bias(s.q, s.v), 1e-11)
    close(
        b.inverse_dynamics(s.q, s.v, s.a), a.inverse_dynamics(s.q, s.v, s.a) + rotors * s.a, 1e-11
    )
    close(b.kinetic_energy(s.q, s.v), a.kinetic_energy(s.q, s.v) + rotors @ s.v**2 / 2, 1e-11)


@given(SEEDS, st.integers(2, 6))
def test_a_locked_joint_is_a_weld(seed, n):
    """Weld a joint where it stands: M loses its rows and columns, and the other torques stay."""
    rng = np.random.default_rng(seed)
    b = recipe(rng, n)
    free = Interpreted.of(b.build())
    s, joint = state(free, seed), free.joints[rng.integers(n)]
    parent = "world" if joint.parent == WORLD else free.bodies[joint.parent].name
    child = free.bodies[joint.index].name
    outer = np.eye(4) if joint.parent == WORLD else free.frame_pose(s.q, parent)
    place = np.linalg.inv(outer) @ free.frame_pose(s.q, child)
    del b.joints[joint.name]
    b.joint(joint.name, "fixed", parent, child, xyz=place[:3, 3], rotation=place[:3, :3])
    locked = Interpreted.of(b.build())
    kept = np.ones(free.nv, dtype=bool)
    kept[joint.v_slice] = False
    s.v[~kept] = s.a[~kept] = 0.0
    q, v, a = (
        by_name(free, locked, s.q, "q_slice"),
        by_name(free, locked, s.v),
        by_name(free, locked, s.a),
    )
    order = by_name(free, locked, np.arange(free.nv))
    close(locked.mass_matrix(q), free.mass_matrix(s.q)[np.ix_(order, order)])
    close(locked.inverse_dynamics(q, v, a), free.inverse_dynamics(s.q, s.v, s.a)[order])


# -- conserved -------------------------------------------------------------------------------------


def momentum(model: Interpreted, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[angular about the world's origin; linear] of a tree on a free base, in world axes: the
    base's rows of M v."""
    h, T = (model.mass_matrix(q) @ v)[:6], model.frame_pose(q, model.joints[0].name)
    h = both(T[:3, :3]) @ h
    return np.concatenate([h[:3] + np.cross(T[:3, 3], h[3:]), h[3:]])


@given(SEEDS, st.integers(1, 6))
def test_momentum_changes_by_gravity_alone(seed, n):
    """Torques between the links change neither linear nor angular momentum; gravity pulls at the
    centre of mass."""
    rng = np.random.default_rng(seed)
    model = Interpreted.of(recipe(rng, n, root="free").build())
    s, h = state(model, seed), 2e-5
    s.tau[:6] = 0.0
    a = model.forward_dynamics(s.q, s.v, s.tau)
    later, sooner = (momentum(model, model.integrate(s.q, s.v, t), s.v + t * a) for t in (h, -h))
    weight = model.mass * model.gravity_vector
    close(
        (later - sooner) / (2 * h),
        np.concatenate([np.cross(model.center_of_mass(s.q), weight), weight]),
        1e-5,
    )


@given(SEEDS, st.integers(1, 6))
def test_linear_momentum_is_mass_times_the_velocity_of_the_centre(seed, n):
    model = Interpreted.of(recipe(np.random.default_rng(seed), n, root="free").build())
    s, h = state(model, seed), 2e-5
    later, sooner = (model.center_of_mass(model.integrate(s.q, s.v, t)) for t in (h, -h))
    close(model.mass * (later - sooner) / (2 * h), momentum(model, s.q, s.v)[3:], 1e-6)


def rk4(model, q, v, h):
    """One Runge-Kutta step on the configuration manifold: stages are velocities seen from the
    step's start."""

    def slope(u, v):
        """The rate of u = difference(q, .) along v, by the chart's own differences, and the
        acceleration."""
        here = model.integrate(q, u)
        eps = 1e-5
        du = (
            model.difference(q, model.integrate(here, v, eps))
            - model.difference(q, model.integrate(here, v, -eps))
        ) / (2 * eps)
        return SimpleNamespace(u=du, v=model.forward_dynamics(here, v, 0.0 * v))

    zero = 0.0 * v
    k1 = slope(zero, v)
    k2 = slope(h / 2 * k1.u, v + h / 2 * k1.v)
    k3 = slope(h / 2 * k2.u, v + h / 2 * k2.v)
    k4 = slope(h * k3.u, v + h * k3.v)
    u = h / 6 * (k1.u + 2 * k2.u + 2 * k3.u + k4.u)
    return model.integrate(q, u), v + h / 6 * (k1.v + 2 * k2.v + 2 * k3.v + k4.v)


@pytest.mark.parametrize("kind", JOINTS)
def test_energy_is_conserved(kind):
    """A chain of two joints of a kind swings freely for a while: total energy stays, however it is
    exchanged."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    b = Builder(kind)
    for k in range(2):
        random_body(b, rng, f"b{k}")
        random_joint(b, rng, kind, f"b{k - 1}" if k else "world", f"b{k}")
    model = Interpreted.of(b.build())
    q, v = model.random(rng), rng.standard_normal(model.nv)
    energies = [model.energy(q, v)]
    for _ in range(40):
        q, v = rk4(model, q, v, 5e-3)
        energies.append(model.energy(q, v))
    exchanged = abs(model.kinetic_energy(q, v) - energies[0] + model.potential_energy(q)) + 1.0
    close(energies, np.full(41, energies[0]), 1e-7 * exchanged)


def test_axes_are_drawn_from_everywhere():
    """The strategies do reach skew axes: a law that holds on coordinate axes alone would not
    pass."""
    rng = np.random.default_rng(0)
    assert any((np.abs(random_axis(rng)) > 0.1).all() for _ in range(20))
