"""Random trees with every joint kind, and the zoo: every function against Pinocchio and against
plain NumPy, 1e-10."""

import numpy as np
import pytest
from hypothesis import given, settings

from psiphi.model.model import Model
from psiphi.robot.robot import Robot
from psiphi_bench.agreement import FUNCTIONS, TOLERANCE, compiled, errors, interpreted
from psiphi_bench.peers.peer import Peer
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo
from tests.oracles import reference

ZOO = pytest.mark.parametrize(
    "make", [thunk for _, thunk in zoo.ZOO], ids=[name for name, _ in zoo.ZOO]
)
IN_WORLD = [
    row for row in FUNCTIONS if row.axes != "frame"
]  # what is compiled here; the rest is interpreted


class Same:
    """A layout that changes nothing."""

    def __getattr__(self, name: str):
        return lambda x, *_: np.asarray(x, dtype=float)


class Reference(Peer):
    """The second opinion in plain NumPy as a peer: psiphi's conventions, one state at a time."""

    def __init__(self, model: Model):
        super().__init__(model, Same())  # type: ignore[arg-type]
        self.masses: dict[bytes, np.ndarray] = {}

    def _forward(self, q, v, tau, wrenches, names):
        return reference.forward_dynamics(
            self.model, q, v, tau, dict(zip(names, wrenches, strict=True))
        )

    def _inverse(self, q, v, a, wrenches, names):
        return reference.inverse_dynamics(
            self.model, q, v, a, dict(zip(names, wrenches, strict=True))
        )

    def _mass(self, q):
        """Four functions ask for the same ones."""
        key = q.tobytes()
        if key not in self.masses:
            self.masses[key] = reference.mass_matrix(self.model, q)
        return self.masses[key]

    def _inverse_mass(self, q):
        return np.linalg.inv(self._mass(q))

    def _pose(self, q, frame):
        return tuple(reference.frame_pose(self.model, q, frame))

    def _velocity(self, q, v, frame, axes):
        return reference.frame_velocity(self.model, q, v, frame, axes)

    def _jacobian(self, q, frame):
        return reference.jacobian(self.model, q, frame)

    def _energy(self, q, v):
        return reference.energy(self.model, q, v)

    def _center(self, q):
        return reference.center_of_mass(self.model, q)


def agree(model: Model, peer: Peer, call, size: int = 3, functions=FUNCTIONS) -> None:
    for error in errors(Robot.of(model), peer, size, call, functions):
        assert error.value <= TOLERANCE, error.label


@ZOO
def test_zoo_interpreted_beside_plain_numpy(make):
    model = make()
    agree(model, Reference(model), interpreted)


@ZOO
def test_zoo_compiled_beside_pinocchio(make):
    model = make()
    agree(model, Pin(model), compiled, 20, IN_WORLD)


@given(model=zoo.trees())
def test_random_trees_beside_plain_numpy(model):
    agree(model, Reference(model), interpreted)


@given(model=zoo.trees())
def test_random_trees_beside_pinocchio(model):
    agree(model, Pin(model), interpreted, 10)


@settings(max_examples=6)  # each compiles 13 functions
@given(model=zoo.trees(max_bodies=5))
def test_random_trees_compiled_beside_pinocchio(model):
    agree(model, Pin(model), compiled, 10, IN_WORLD)


@given(model=zoo.trees())
def test_functions_fit_together(model):
    """What one function says of another: no peer needed."""
    robot, (q, v, a, tau) = Robot.of(model), zoo.random_state(model, 0, (5,))

    def ask(name: str, *arrays, **options):
        return interpreted(robot, name, *arrays, **options)

    def same(x, y, law: str) -> None:
        np.testing.assert_allclose(
            x, y, rtol=0.0, atol=1e-9 * max(1.0, np.abs(y).max()), err_msg=law
        )

    M, J = ask("mass_matrix", q), ask("jacobian", q, frame="tool")
    times = lambda A, x: np.einsum("...ij,...j->...i", A, x)  # noqa: E731
    same(
        ask("inverse_dynamics", q, v, ask("forward_dynamics", q, v, tau)), tau, "ID(FD(tau)) = tau"
    )
    same(ask("inverse_dynamics", q, v, a), times(M, a) + ask("bias", q, v), "tau = M a + bias")
    same(ask("bias", q, 0 * v), ask("gravity", q), "bias at rest = gravity")
    same(
        M @ ask("mass_matrix_inverse", q), np.broadcast_to(np.eye(model.nv), M.shape), "M M^-1 = 1"
    )
    same(ask("mass_solve", q, times(M, a)), a, "M^-1 (M a) = a")
    same(ask("mass_product", q, a), times(M, a), "M a, without M")
    same(times(J, v), ask("frame_velocity", q, v, frame="tool"), "V = J v")
    kinetic = ask("energy", q, v) - ask("energy", q, 0 * v)
    same(kinetic, 0.5 * np.einsum("ki,kij,kj->k", v, M, v), "kinetic energy = v* M v / 2")
    same(kinetic, ask("kinetic_energy", q, v), "energy = kinetic + potential")
    wrench = np.random.default_rng(1).standard_normal((5, 6))
    unloaded, loaded = (
        ask("inverse_dynamics", q, v, a),
        ask("inverse_dynamics", q, v, a, f_ext={"tool": wrench}),
    )
    same(unloaded - loaded, times(np.swapaxes(J, -1, -2), wrench), "a wrench acts as J* f")
