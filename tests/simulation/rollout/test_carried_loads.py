"""A load that is taken, carried and let go in rollouts of one kernel: loads are parameters."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.compiled_rollout import rollout_runner


@pytest.fixture(scope="module")
def gripper():
    """An arm, the arm with a box, the arm with free inertia, and its parameters without and with
    the box."""
    arm, box = pp.load("pelican"), pp.Body.box(2.0, (0.1, 0.1, 0.2), "box")
    holds, link = arm.attach(box, "tool", (0.05, 0.0, 0.02)), arm.bodies[-1].name
    light = arm.free("inertia", links=link)
    return arm, holds, light, light.parameters(), holds.free("inertia", links=link).parameters()


def test_a_sequence_of_loads_is_data(gripper, monkeypatch):
    """Each piece as that of a robot of its own, in batches whose motions have other sequences;
    nothing is compiled after the first piece."""
    arm, holds, light, empty, full = gripper
    rng = np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, 4, 2))
    sequence = rng.random((3, 4)) < 0.5
    sequence[:, 0] = False, True, False
    states, kernels = [(q, v)], set()
    make = rollout_runner.rollout_kernel

    def counted(*arguments):
        kernel = make(*arguments)
        kernels.add(id(kernel._codes))
        return kernel

    monkeypatch.setattr(rollout_runner, "rollout_kernel", counted)
    for loaded in sequence:
        robot = light.at(np.where(loaded[:, None], full, empty))
        motion = pp.rollout(robot, *states[-1], tau, steps=50)
        states.append((motion.q[:, -1], motion.v[:, -1]))
    assert len(kernels) == 1
    for i in range(4):
        state = q[i], v[i]
        for k, loaded in enumerate(sequence[:, i]):
            motion = pp.rollout(holds if loaded else arm, *state, tau[i], steps=50)
            state = motion.q[-1], motion.v[-1]
            for x, want in zip(states[k + 1], state, strict=True):
                np.testing.assert_allclose(x[i], want, rtol=1e-9, atol=1e-11)


def test_taking_a_load_at_rest_is_a_plastic_impact(gripper):
    """M_full v+ = M_empty v, beside arm and box as two bodies that an impulse joins."""
    arm, holds, light, empty, full = gripper
    q, v = np.array([0.4, -0.9]), np.array([1.0, -2.0])
    after = light.mass_solve(q, light.mass_product(q, v, parameters=empty), parameters=full)
    M, J = arm.mass_matrix(q), holds.jacobian(q, "box")
    R = holds.frame_pose(q, "box")[:3, :3]
    box = pp.Body.box(2.0, (0.1, 0.1, 0.2), "box")
    inertia = np.zeros((6, 6))
    inertia[:3, :3], inertia[3:, 3:] = R @ box.inertia @ R.T, box.mass * np.eye(3)
    whole = np.block(
        [
            [M, np.zeros((2, 6)), J.T],
            [np.zeros((6, 2)), inertia, -np.eye(6)],
            [J, -np.eye(6), np.zeros((6, 6))],
        ]
    )
    want = np.linalg.solve(whole, np.concatenate([M @ v, np.zeros(12)]))[:2]
    np.testing.assert_allclose(after, want, rtol=1e-10)
