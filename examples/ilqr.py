# %% [markdown]
# # iLQR
# Optimal control in sixty lines: an acrobot swings up, and a UR5 reaches a point. `robot.linearize`
# returns A and B of all steps in one call, Riccati's recursion gives the change of the torques, and
# one batch of motions is the line search.

# %%
import numpy as np

import psiphi as pp

ROUNDS = 150  # tests: 80


def improve(robot, q, v, u, dt, motors, cost, end, damp):
    """One iteration: the feedback that lowers the cost most, and a line search 1, 1/2, 1/4, ..."""
    A, B = robot.linearize(q[:-1], v[:-1], u, dt, method="euler")
    B = B[..., motors]
    Vx, Vxx = end(q[-1], v[-1])[1:]
    k, K = np.zeros((len(u), len(motors))), np.zeros((len(u), len(motors), 2 * robot.nv))
    for i in reversed(range(len(u))):
        Qx, Qu = A[i].T @ Vx, B[i].T @ Vx + cost * dt * u[i, motors]
        Qxx, Qux = A[i].T @ Vxx @ A[i], B[i].T @ Vxx @ A[i]
        Quu = B[i].T @ Vxx @ B[i] + (cost * dt) * np.eye(len(motors))
        braced = Quu + damp * np.eye(len(motors))
        k[i], K[i] = -np.linalg.solve(braced, Qu), -np.linalg.solve(braced, Qux)
        Vx = Qx + K[i].T @ Quu @ k[i] + K[i].T @ Qu + Qux.T @ k[i]
        Vxx = Qxx + K[i].T @ Quu @ K[i] + K[i].T @ Qux + Qux.T @ K[i]
        Vxx = (Vxx + Vxx.T) / 2
    part = 0.5 ** np.arange(10)[:, None]
    Q, V, U = (np.repeat(x[None], len(part), axis=0) for x in (q, v, u))
    with np.errstate(all="ignore"):  # diverging motions are discarded
        for i in range(len(u)):
            x = np.concatenate([Q[:, i] - q[i], V[:, i] - v[i]], axis=-1)
            U[:, i, motors] = u[i, motors] + part * k[i] + x @ K[i].T
            Q[:, i + 1], V[:, i + 1] = robot.step(Q[:, i], V[:, i], U[:, i], dt, method="euler")
        total = np.array(
            [
                0.5 * cost * dt * (U[j] ** 2).sum() + end(Q[j, -1], V[j, -1])[0]
                for j in range(len(part))
            ]
        )
    best = int(np.nanargmin(total))
    return Q[best], V[best], U[best], total[best]


def ilqr(robot, q0, u, dt, motors, cost, end, rounds):
    """Torques (steps, nv) of a motion of least cost, from an initial guess."""
    q, v = pp.rollout(robot, q0, None, u, dt, len(u), "euler")
    total, damp = 0.5 * cost * dt * (u**2).sum() + end(q[-1], v[-1])[0], 1e-3
    for _ in range(rounds):
        new = improve(robot, q, v, u, dt, motors, cost, end, damp)
        if new[3] < total:
            done, (q, v, u, total), damp = total - new[3] < 1e-7 * total, new, max(damp / 3.0, 1e-9)
            if done:
                break
        else:
            damp *= 10.0
            if damp > 1e6:
                break
    return q, v, u, total


# %% [markdown]
# The acrobot has a motor at its elbow only. The final state should be upright, at rest.

# %%
acrobot = pp.load("acrobot")
up = np.array([np.pi, 0.0])
W = np.diag([1000.0, 1000.0, 100.0, 100.0])


def upright(q, v):
    x = np.concatenate([q - up, v])
    return 0.5 * x @ W @ x, W @ x, W


guess = np.zeros((250, 2))
guess[:, 1] = 3.0 * np.sin(0.02 * np.arange(250) * 4.0)
q, v, u, total = ilqr(acrobot, np.zeros(2), guess, 0.02, [1], 0.05, upright, ROUNDS)
print(
    "at the end",
    q[-1].round(4),
    v[-1].round(4),
    "torque at most",
    np.abs(u).max().round(1),
    "cost",
    total.round(3),
)
assert np.abs(q[-1] - up).max() < 0.05 and np.abs(v[-1]).max() < 0.1 and not u[:, 0].any()

# %% [markdown]
# The tool of the UR5 should reach a point and stop there. The final cost depends on the position of
# the tool; its Jacobian gives the gradient by the joints.

# %%
arm = pp.load("ur5")
start, goal = np.array([0.0, -1.2, 1.2, -1.0, -1.5, 0.0]), np.array([0.5, 0.3, 0.4])


def reached(q, v):
    off = arm.frame_pose(q, "tool")[:3, 3] - goal
    J = np.hstack([arm.jacobian(q, "tool")[3:], np.zeros((3, 6))])
    S = np.diag([0.0] * 6 + [10.0] * 6)
    return (
        0.5e4 * off @ off + 5.0 * v @ v,
        1e4 * J.T @ off + S @ np.concatenate([q, v]),
        1e4 * J.T @ J + S,
    )


hold = np.tile(arm.gravity(start), (50, 1))
q, v, u, total = ilqr(arm, start, hold, 0.02, list(range(6)), 2e-5, reached, 40)
off = np.linalg.norm(arm.frame_pose(q[-1], "tool")[:3, 3] - goal)
print(f"the tool ends {1e3 * off:.2f} mm from the goal, at {np.abs(v[-1]).max():.3f} rad/s")
assert off < 2e-3 and np.abs(v[-1]).max() < 0.05
