"""Every function of a robot, of its diagonalised form and of a closed chain that takes a state, on
a graphics card: found by their signatures, so that a new one is tried as soon as it is there. Each
answers as on the host; closed chains refuse what is not in a table, in words."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.robot.diagonal_dynamics import Diagonalised
from psiphi.simulation.integration.integrators import METHODS
from tests.backends.cuda.fake_gpu import CardArray, StandinDriver, cards
from tests.functions.call_cases import DOORS, arguments
from tests.functions.state_methods import ELSEWHERE, called, functions, parts, spun

__all__ = ["cards"]  # a fixture
N = 3
ON_CARDS = {  # of closed chains
    *(
        "forward_dynamics",
        "energy",
        "frame_pose",
        "difference",
        "integrate",
        "normalize",
        "constraint_bias",
    ),
    *(
        "constraint_jacobian",
        "constraint_residual",
        "contact_rates",
        "contact_accelerations",
        "linearize",
        "step",
    ),
    "inverse_dynamics",
}


def given() -> dict[str, np.ndarray]:
    robot = spun()
    made = arguments(robot, (N,))
    rest = {
        "q0": made["q"],
        "q1": made["q"][::-1].copy(),
        "q_dot": made["q"],
        "energy": np.full(N, 1e3),
    }
    named = {
        "nu": made["v"],
        "nu_dot": made["a"],
        "eps": made["tau"],
        "v_ref": made["x"],
        "a_ref": made["a"],
    }
    return made | rest | named


def cases() -> list[tuple[str, str]]:
    """But for those that `test_gpu_arrays.py` tries on a larger robot."""
    known = {door.name for door in DOORS} | ELSEWHERE
    own = [("robot", name) for name in functions(pp.Robot) if name not in known]
    others = [name for name in functions(Diagonalised) if name not in ELSEWHERE]
    return own + [("diagonalised", name) for name in others]


@pytest.mark.parametrize(("kind", "name"), cases())
def test_a_function_on_a_card(kind: str, name: str, cards: StandinDriver):
    robot, state = spun(), given()
    at = {key: CardArray(x) for key, x in state.items()}
    owner = robot if kind == "robot" else robot.diagonalised
    host = called(owner, name, state)
    for x, y in zip(parts(called(owner, name, at)), map(np.asarray, parts(host)), strict=True):
        assert isinstance(x, CardArray) and x.shape == y.shape
        assert np.allclose(x.array, y, rtol=1e-9, atol=1e-9 * np.abs(y).max()), name


def test_the_list_is_long():
    assert len(cases()) > 30


@pytest.mark.parametrize("char", "df")
def test_what_torques_tell(char, cards):
    """Columns of rotors and friction; the force of every link; how well motions tell numbers apart,
    and where not."""
    robot, rng = pp.load("acrobot"), np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 40, 2)).astype(char)
    at = [*map(CardArray, (q, v, a))]
    more, close = ("armature", "damping", "friction"), 1e-10 if char == "d" else 1e-3
    pairs = [(robot.regressor(*at, more=more), robot.regressor(q, v, a, more=more))]
    pairs += [
        (robot.wrench_regressor(*at, body.name), robot.wrench_regressor(q, v, a, body.name))
        for body in robot.bodies
    ]
    pairs += [
        (robot.excitation(*at, more=words), robot.excitation(q, v, a, more=words))
        for words in ((), more)
    ]
    for x, y in pairs:
        assert isinstance(x, CardArray) and x.shape == np.shape(y) and x.dtype == char
        assert np.allclose(x.array, y, rtol=close, atol=close * np.abs(y).max())
    for some in ((q, 0 * v, 0 * a), (q[:1], v[:1], a[:1]), (q * np.nan, v, a)):
        assert robot.excitation(*map(CardArray, some)).array == np.inf == robot.excitation(*some)


def test_energies_that_no_motion_has_are_nan(cards):
    """The host refuses them; one number for all, or one a state."""
    d, state = spun().diagonalised, given()
    q, nu = state["q"], state["nu"] * np.array([1.0, 0.0, 1.0])[:, None]
    wanted = d.robot.potential_energy(q) + np.array([2.0, 2.0, -1.0])  # the second does not move
    found = d.at_energy(CardArray(q), CardArray(nu), CardArray(wanted)).array
    assert np.isnan(found[1:]).all() and np.allclose(found[0], d.at_energy(q[0], nu[0], wanted[0]))
    one = d.at_energy(CardArray(q[:1]), CardArray(nu[:1]), 50.0).array
    assert np.allclose(one, d.at_energy(q[:1], nu[:1], 50.0))
    with pytest.raises(StateError, match="at_energy: energy is a ndarray, and q a CardArray"):
        d.at_energy(CardArray(q), CardArray(nu), wanted)


@pytest.mark.parametrize("char", "df")
def test_every_policy_of_operational_space(char, cards):
    """Of an arm; one that is stretched out is singular, and by "exact" NaN."""
    robot = pp.robots.puma560()
    q = np.array([robot.random(seed=0), robot.neutral()]).astype(char)
    close = 1e-7 if char == "d" else 1e-4
    for policy in ("exact", "pseudo", "damped"):
        found, host = (
            robot.operational_space_inertia(x, "tool", policy=policy) for x in (CardArray(q), q)
        )
        lost = np.isnan(found.array).all(axis=(1, 2))
        assert found.dtype == host.dtype == char
        assert np.array_equal(np.isnan(found.array), np.isnan(host)) and lost.tolist() == [
            False,
            policy == "exact",
        ]
        assert np.allclose(
            found.array[~lost], host[~lost], rtol=close, atol=close * np.nanmax(np.abs(host))
        ), policy


def test_the_kalman_form_is_the_hosts(cards):
    robot, state = spun(), given()
    with pytest.raises(StateError, match="on the GPU"):
        robot.forward_dynamics_details(
            *(CardArray(state[x]) for x in ("q", "v", "tau")), method="kalman"
        )
    flat = pp.load("acrobot").diagonalised
    for method in (flat.christoffel_symbols, flat.riemann_symbols, flat.is_flat):
        with pytest.raises(StateError, match="on the GPU"):
            method(CardArray(np.zeros((N, 2))))


def test_closed_chains(cards):
    """What a closed chain answers on a card; everything else is refused in words."""
    chain = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    q = chain.assemble(np.tile([0.5, 1.0], (N, 1)))
    state = {
        "q": q,
        "q0": q,
        "q1": q + 0.1,
        "v": 0 * q,
        "a": chain.complete(q, 0 * q, q),
        "tau": 0 * q + 1.0,
        "forces": np.zeros((N, 1, 6)),
    }
    at = {key: CardArray(x) for key, x in state.items()}
    for name in functions(type(chain)):
        if name in ON_CARDS:
            for x, y in zip(
                parts(called(chain, name, at)), parts(called(chain, name, state)), strict=True
            ):
                assert np.allclose(x.array, y), name
            continue
        with pytest.raises(StateError):
            called(chain, name, at)
    with pytest.raises(
        StateError, match="jacobian by q and v and tau: tau is a ndarray on the host, and q is on"
    ):
        chain.linearize(at["q"], at["v"], state["tau"])


@pytest.mark.parametrize("char", "df")
def test_linearize_by_every_method(char, cards):
    """At once and over a step, one dt and one a state; one row for all; nothing comes to the
    host."""
    robot, state = spun(), given()
    q, v, tau = (state[x].astype(char) for x in ("q", "v", "tau"))
    every = np.full((N, 1), 1e-2) + 1e-3 * np.arange(N)[:, None]
    for method in METHODS:
        for dt in (None, 1e-2, every.astype(char)):
            if dt is None and method != "rk4":
                continue
            host = robot.linearize(
                q, v, tau, dt[:, 0] if isinstance(dt, np.ndarray) else dt, method
            )
            found = robot.linearize(
                *map(CardArray, (q, v, tau)),
                CardArray(dt) if isinstance(dt, np.ndarray) else dt,
                method,
            )
            for x, y in zip(found, host, strict=True):
                assert (
                    isinstance(x, CardArray) and x.dtype == y.dtype == char and x.shape == y.shape
                )
                assert np.allclose(
                    x.array, y, rtol=1e-9, atol=(1e-9 if char == "d" else 1e-4) * np.abs(y).max()
                ), (method, dt)
    one, host = (
        robot.linearize(CardArray(q), CardArray(v[0]), CardArray(tau[:1])),
        robot.linearize(q, v[0], tau[:1]),
    )
    assert one[0].shape == host[0].shape and np.allclose(
        one[0].array, host[0], rtol=1e-3, atol=1e-3 * np.abs(host[0]).max()
    )


def test_a_state_that_is_none_stays_alone(cards):
    """NaN, or a quaternion of zeros, in one lane of a warp; any card; rows that do not follow each
    other; huge angles; none."""
    robot, state = spun(), given()
    q, v, tau = (state[x] for x in ("q", "v", "tau"))
    for lost in (np.nan, 0.0):
        bad = q.copy()
        bad[1, :4] = lost
        A, B = robot.linearize(*(CardArray(x, 1) for x in (bad, v, tau)), 1e-2)
        assert A.device == B.device == 1 and np.isnan(A.array).any(axis=(1, 2)).tolist() == [
            False,
            True,
            False,
        ]
        motion = pp.rollout(robot, CardArray(bad), CardArray(v), steps=2, method="euler")
        turned = motion.hvp(CardArray(np.ones((N, 3, 5))), v=CardArray(v))
        assert np.isnan(turned["q"].array).any(axis=1).tolist() == [False, True, False]
    wide = np.repeat(v, 2, axis=1)[:, ::2]
    far = q + 1e6 * np.eye(5)[4]
    for given_q, given_v in ((q, wide), (far, v), (q[:0], v[:0])):
        found = robot.linearize(CardArray(given_q), CardArray(given_v), CardArray(tau[0]))
        host = robot.linearize(given_q, given_v, tau[0])
        assert found[0].shape == host[0].shape and np.allclose(
            found[0].array, host[0], rtol=1e-9, atol=1e-6
        )


def test_linearize_says_what_does_not_fit(cards):
    robot, state = spun(), given()
    q, v, tau = (CardArray(state[x]) for x in ("q", "v", "tau"))
    for words, call in {
        "linearize: v is a ndarray on the host, and q is on the GPU": lambda: robot.linearize(
            q, state["v"], tau
        ),
        "linearize: tau is float32, and q is float64": lambda: robot.linearize(
            q, v, CardArray(state["tau"].astype("f"))
        ),
        "linearize: v is on GPU 1, and q is on GPU 0": lambda: robot.linearize(
            q, CardArray(state["v"], 1), tau
        ),
        r"linearize: q has shape \(3, 4\), expected \(..., 5\)": lambda: robot.linearize(v, v, tau),
        "linearize: dt is an array of NumPy": lambda: robot.linearize(q, v, tau, np.ones(N)),
        r"linearize: dt has shape \(3,\), expected \(..., 1\)": lambda: robot.linearize(
            q, v, tau, CardArray(np.ones(N))
        ),
        "linearize: method is 'heun'": lambda: robot.linearize(q, v, tau, 1e-3, "heun"),
    }.items():
        with pytest.raises(StateError, match=words):
            call()


def test_torques_of_closed_chains(cards):
    """A joint without a motor: torques and their gradients; motions that leave the constraints are
    NaN."""
    arm, rng = pp.load("pelican"), np.random.default_rng(0)
    loop = [pp.Loop("distance", "tool", "world", length=0.3)]
    cell = pp.connect(arm, loop, passive=[arm.joint_names[1]])
    q, v = cell.project(cell.assemble(np.tile([0.5, 1.0], (N, 1))), rng.standard_normal((N, 2)))
    a = cell.complete(q, v, rng.standard_normal((N, cell.nv)))
    assert len(cell.idle) == 1
    a[1] += 1.0
    f = cell.function("inverse_dynamics")
    found, host = (
        cell.inverse_dynamics(*map(CardArray, (q, v, a))).array,
        cell.inverse_dynamics(q, v, a),
    )
    assert np.isnan(found).any(axis=1).tolist() == [False, True, False] and np.array_equal(
        np.isnan(found), np.isnan(host)
    )
    assert np.allclose(found[::2], host[::2], rtol=1e-9, atol=1e-9)
    for x, y in zip(
        f.vjp("q", "a")(*map(CardArray, (q, v, a, v + 1.0))),
        f.vjp("q", "a")(q, v, a, v + 1.0),
        strict=True,
    ):
        assert np.isnan(x.array[1]).all() and np.allclose(
            x.array[::2], y[::2], rtol=1e-9, atol=1e-9
        )
    with pytest.raises(StateError, match="float32 cannot tell whether a satisfies the constraints"):
        f(*(CardArray(x.astype("f")) for x in (q, v, a)))
    with pytest.raises(StateError, match="on the GPU"):
        cell.inverse_dynamics(*map(CardArray, (q, v, a)), forces=True)
