"""Control of closed chains as programs, and solves that leave out what follows: against the same in
NumPy."""

import numpy as np
import pytest

from psiphi.robot.mechanisms.dynamics.load_distribution import drivable_acceleration
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi_bench import closed_cells


@pytest.mark.parametrize("rank", range(1, 6))
def test_loose_solves(rank, rng):
    """Whatever the rank: A x = b wherever b can be met, and a large ill_conditioning where it
    cannot."""
    B = rng.standard_normal((5, rank))
    A, b = B @ B.T, B @ rng.standard_normal(rank)
    x, ill_conditioning = semidefinite_solve.solve(A.tolist(), b.tolist())
    np.testing.assert_allclose(A @ x, b, atol=1e-9)
    assert ill_conditioning < ILL_CONDITIONED
    if rank < 5:
        out = np.linalg.svd(A)[0][:, -1]
        assert semidefinite_solve.solve(A.tolist(), (b + 1e-3 * out).tolist())[1] > ILL_CONDITIONED


def test_a_small_pivot_is_a_strain():
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-8]])
    assert semidefinite_solve.solve(A.tolist(), [1.0, 2.0])[1] > ILL_CONDITIONED
    assert semidefinite_solve.solve([[0.0, 0.0], [0.0, 2.0]], [0.0, 3.0])[0] == [0.0, 1.5]
    assert semidefinite_solve.solve([[0.0]], [1.0])[1] > ILL_CONDITIONED


@pytest.mark.parametrize("arms", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_torques_are_those_of_inverse_dynamics(arms, seed):
    """holding: at rest; driving: of what the torques M u + C v + g would do, where no contact feels
    it moving as it must; both shared by least forces."""
    closed = closed_cells.random_cell(10 * seed + arms, arms)
    cell, q, v, u, rest = closed.system, closed.q, closed.v, closed.tau, np.zeros(closed.system.nv)
    accelerated = cell.forward_dynamics(
        q[None], v[None], cell.robot.inverse_dynamics(q, v, u)[None]
    )
    for found, meant in (
        (
            cell.call_function(cell.static_torque_function, (q,)),
            cell.inverse_dynamics(q[None], rest, rest)[0],
        ),
        (
            cell.call_function(cell.inverse_dynamics_function, (q, v, u)),
            cell.inverse_dynamics(q[None], v[None], drivable_acceleration(cell, q, v, accelerated))[
                0
            ],
        ),
    ):
        tau, ill_conditioning = found
        assert (ill_conditioning < ILL_CONDITIONED) == np.isfinite(meant).all(), (
            "no answer where there is none"
        )
        if ill_conditioning < ILL_CONDITIONED:
            np.testing.assert_allclose(tau, meant, atol=1e-8 * (1 + np.abs(meant).max()))


def test_redundant_rows_do_not_matter():
    """A planar four-bar held by a hinge: three rows of five follow. The motion is that of the
    least-norm forces."""
    cell, tau = closed_cells.four_bar(), np.array([2.0, 0.0, 0.0])
    q = cell.assemble([0.5, 0.3, 1.0])
    q, v = cell.project(q, np.array([1.0, 0.0, 0.0]))
    a, _, _, ill_conditioning = cell.call_function(cell.redundant_dynamics_function, (q, v, tau))
    assert (
        ill_conditioning < ILL_CONDITIONED and cell.forward_dynamics_details(q, v, tau)["rank"] == 2
    )
    np.testing.assert_allclose(a, cell.forward_dynamics(q, v, tau), atol=1e-9 * np.abs(a).max())
