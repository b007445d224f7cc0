"""What expressions mean: dense matrices against an independent opinion, structure against the
pattern of nonzeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi import robots
from psiphi._util.errors import Error, SingularError, StateError
from psiphi.algebra.expressions.expression import symbol, vector
from psiphi.algebra.expressions.letters import LETTERS
from psiphi.algebra.expressions.operator_properties import (
    dot_test,
    is_anticausal,
    is_causal,
    is_memoryless,
    is_strictly_anticausal,
    is_strictly_causal,
)
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.expressions.spaces import JOINT, LINK
from psiphi.algebra.expressions.terms import structure
from psiphi.model.builder.builder import Builder
from tests.oracles import reference
from tests.soundness.oracle import Oracle
from tests.zoo import ZOO, random_state, random_tree, trees


def close(a, b, tolerance=1e-9):
    return np.abs(a - b).max(initial=0.0) <= tolerance * (1.0 + np.abs(b).max(initial=0.0))


@pytest.mark.parametrize(("name", "thunk"), ZOO, ids=[name for name, _ in ZOO])
def test_dynamics_of_the_zoo(name, thunk):
    model = thunk()
    s, (q, v, _, tau) = Operators(model), random_state(model, 1)
    bias = s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)
    assert close(s.mass.dense(q), reference.mass_matrix(model, q))
    assert close(bias.dense(q, v), reference.bias(model, q, v))
    assert close(
        (s.mass.inv @ (vector("tau") - bias)).dense(q, v, tau=tau),
        reference.forward_dynamics(model, q, v, tau),
        1e-7,
    )
    for frame in ("tool", "elbow") if "tool" in model.frames else ():
        for axes in ("world", "frame"):
            assert close(s.J(frame, axes=axes).dense(q), reference.jacobian(model, q, frame, axes))


@pytest.mark.parametrize("armature", [False, True])
def test_batches(armature):
    model = random_tree(3, 6, armature=armature)
    s, (q, v, _, tau) = Operators(model), random_state(model, 2, (2, 3))
    e = s.mass.inv @ (vector("tau") - s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b)) + 2 * vector("tau")
    batch = e.dense(q, v, tau=tau)
    assert batch.shape == (2, 3, model.nv)
    assert close(batch[1, 2], e.dense(q[1, 2], v[1, 2], tau=tau[1, 2]))
    assert s.Om.dense(q).shape == (2, 3, 36, 36)
    assert s.B("tool", "elbow").dense(q).shape == (2, 3, 36, 12)


def related(model, i, j):
    """What body i is to body j."""
    if i == j:
        return "same"
    for a, b, name in ((j, i, "inward"), (i, j, "outward")):
        while a >= 0:
            a = model.parent[a]
            if a == b:
                return name
    return "unrelated"


BUSHY = random_tree(7, 7, kinds=["revolute", "universal"], branching=1.0)
s = Operators(BUSHY)
W = s.I - s.H @ s.psi @ s.K


@pytest.mark.parametrize(
    "e",
    [
        *(getattr(s, x) for x in LETTERS if x != "I"),
        W,
        W.T,
        W.inv,
        s.mass,
        s.mass.inv,
        s.psi.T @ s.H.T @ s.H @ s.psi,
        s.phi @ s.M,
    ],
    ids=str,
)
def test_blocks_stand_where_the_structure_says(e):
    q, v = BUSHY.random(seed=1), np.linspace(-1.0, 1.0, BUSHY.nv)
    blocks, allowed = e.blocks(q, v), structure(e.term).relations
    size = np.abs(blocks.matrix).max()
    for i, row in enumerate(blocks.rows):
        for j, col in enumerate(blocks.cols):
            if np.abs(blocks[row, col]).max() > 1e-12 * size:
                assert related(BUSHY, i, j) in allowed, (row, col)


def test_questions():
    assert all(map(is_memoryless, (s.I, s.H, s.P, s.H @ s.P @ s.H.T + s.rotor, s.D.inv)))
    assert is_causal(s.phi) and is_causal(W) and is_causal(W.inv) and not is_causal(s.phi.T)
    assert (
        is_strictly_causal(s.H @ s.phi @ s.K)
        and is_strictly_causal(s.Phi)
        and not is_strictly_causal(s.phi)
    )
    assert (
        is_anticausal(W.T.inv)
        and is_strictly_anticausal(s.K.T @ s.psi.T)
        and not is_anticausal(s.mass)
    )
    assert is_memoryless(s.phi.inv @ s.phi) and is_memoryless((s.I - s.E_phi) @ s.phi)
    assert is_causal(s.mass @ s.mass.inv @ W) and is_memoryless(s.phi - s.phi)
    assert not is_causal(s.B("tool")) and not is_memoryless(vector("x"))


def test_dot_test():
    rng = np.random.default_rng(0)
    for e in (
        s.mass,
        W,
        s.J("tool", "elbow"),
        s.phi.T @ s.a,
        s.psi @ symbol("X") @ s.phi.T,
        vector("x").T @ s.D,
    ):
        assert dot_test(e, BUSHY.random(rng), rng), e
        assert dot_test(e)
    assert not dot_test(s.phi)._replace(error=1.0)


@given(trees(max_bodies=5), st.integers(0, 99))
def test_every_letter_passes_the_dot_test(model, seed):
    own = Operators(model)
    for name in LETTERS:
        if name != "I":
            assert dot_test(getattr(own, name), rng=seed), name


def test_blocks_have_names():
    model = Operators(random_tree(0, 3)).model
    own, q = Operators(model), model.random(seed=0)
    blocks = own.phi.blocks(q)
    assert blocks.rows == blocks.cols == ("b0", "b1", "b2")
    assert np.array_equal(blocks["b0", "b1"], own.phi.dense(q)[:6, 6:12])
    assert own.J("tool").blocks(q).rows == ("tool",)
    assert own.J("tool").blocks(q).cols == tuple(joint.name for joint in model.joints)
    assert own.B("tool", "elbow").blocks(q).cols == ("tool", "elbow")
    assert set(own.M.blocks(q)) == {(name, name) for name in ("b0", "b1", "b2")}
    assert "■" in repr(blocks) and len(own.E_phi.blocks(q)) == 2
    with pytest.raises(StateError, match="no block 'b9'"):
        blocks["b9", "b0"]
    with pytest.raises(StateError, match="one state"):
        own.phi.blocks(model.random(seed=0, size=2))


def test_arguments_are_checked():
    q = BUSHY.random(seed=0)
    for call, words in (
        (lambda: vector("tau").dense(q), "belongs to no robot"),
        (lambda: (s.D @ vector("tau")).dense(q), "needs tau"),
        (lambda: (s.D @ vector("tau")).dense(q, tau=np.ones(3)), "tau has shape"),
        (lambda: s.D.dense(q, tau=q), "has no vector 'tau'"),
        (lambda: s.D.dense(q[:-1]), "q has shape"),
        (lambda: (s.phi.T @ s.a).dense(q), "depends on the velocity"),
        (lambda: s.I.dense(q), "no space of its own"),
        (lambda: symbol("X").T.dense(q, X=np.eye(3)), "belongs to no robot"),
        (lambda: (s.phi @ symbol("X")).dense(q, X=np.eye(3)), "X has shape"),
    ):
        with pytest.raises(StateError, match=words):
            call()


def test_singular_operators_say_so():
    with pytest.raises(StateError, match="singular at every tested state"):
        s.M @ (s.E_phi @ s.phi).inv.T
    arm = Operators(robots.puma560())
    J = arm.J("tool")
    with pytest.raises(SingularError, match="singular at this state"):  # the wrist is in line
        (J @ arm.mass.inv @ J.T).inv.dense(np.zeros(6))


def test_a_frame_on_the_world_does_not_move():
    builder = Builder("pendulum")
    builder.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3))
    builder.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    builder.frame("anchor", "world", xyz=(1, 2, 3))
    model = builder.build()
    assert not Operators(model).J("anchor").dense(model.neutral()).any()


def test_plot(tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    figure = s.mass.plot(BUSHY.random(seed=0), path=tmp_path / "mass.svg")
    (axes,) = figure.axes
    assert isinstance(figure, figures.Figure) and (tmp_path / "mass.svg").stat().st_size > 1000
    assert axes.get_title() == str(s.mass)
    for labels in (axes.get_yticklabels(), axes.get_xticklabels()):
        assert [tick.get_text() for tick in labels] == [joint.name for joint in BUSHY.joints]
    own = figures.Figure().add_subplot()
    assert s.phi.plot(BUSHY.random(seed=0), ax=own) is own.figure and own.get_title() == str(s.phi)
    with pytest.raises(Error, match="cannot write"):
        s.phi.plot(BUSHY.random(seed=0), path=tmp_path / "none" / "x.png")


def test_vectors_keep_their_space():
    assert vector("x").rows == JOINT and s.a.rows == LINK
    assert (vector("x").T @ s.D @ vector("x")).dense(
        BUSHY.random(seed=0), x=np.ones(BUSHY.nv)
    ).shape == ()
    assert (vector("x").T @ s.D).dense(BUSHY.random(seed=0), x=np.ones(BUSHY.nv)).shape == (
        BUSHY.nv,
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_operators_in_world_axes(seed):
    """S0 section 1: phi(k, j) = [1 p~; 0 1] in world axes, with p from k to j; the others are those
    of an oracle that shares no code, turned."""
    model = random_tree(seed, 5, forest=True)
    s, rng = Operators(model), np.random.default_rng(seed)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    o = Oracle(model, q, v)
    A = np.zeros((6 * o.count,) * 2)
    for k, (R, _) in enumerate(o.poses):
        A[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = np.kron(np.eye(2), R)
    for name in ("M", "P", "psi", "G", "H", "a", "b", "mass"):
        x, want = getattr(s, name), o[name].m
        want = A @ want if x.rows.name == "link" else want
        want = want @ A.T if x.cols.name == "link" else want
        got = x.dense(q, v, axes="world").reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8, err_msg=name)
    blocks, names = s.phi.blocks(q, axes="world"), [body.name for body in model.bodies]
    for j in range(o.count):
        for k in o.above[j]:
            shift = np.cross(o.poses[j][1] - o.poses[k][1], np.eye(3)).T
            want = np.block([[np.eye(3), shift], [np.zeros((3, 3)), np.eye(3)]])
            np.testing.assert_allclose(blocks[names[k], names[j]], want, atol=1e-12)
    with pytest.raises(StateError, match="axes of a body and of its parent"):
        s.Delta_phi.dense(q, axes="world")
    with pytest.raises(StateError, match="expected one of link, world"):
        s.phi.dense(q, axes="body")
