# %% [markdown]
# # Three fingers carry a ball as fast as friction allows
# Three fingers with three joints each hold an object at points with friction. The object follows a
# given path. The speed along it *and* the contact forces are planned: as fast as the friction cones
# and the motors allow. Along a path the torques and contact forces are linear in s'', s'^2 and the
# internal forces, so the plan is a linear program.

# %%
import numpy as np
from scipy.optimize import linprog

import psiphi as pp

FRICTION, EFFORT = 0.6, 0.5  # -, N m
POINTS = 31  # tests: 13
MARGIN = 0.9  # of the cones and limits, for feedback and for the time between points

# %% [markdown]
# ## The hand
# The fingers stand around the object; their tips touch it at three points of its equator.

# %%
builder = pp.Builder("finger")
builder.body("base", 0.15, com=(0, 0, 0.02), inertia=1e-4 * np.eye(3))
builder.joint("turn", "revolute", "world", "base", axis=(0, 0, 1))
builder.body("upper", 0.12, com=(0, 0, 0.06), inertia=np.diag([2e-4, 2e-4, 2e-5]))
builder.joint("swing", "revolute", "base", "upper", axis=(0, 1, 0), xyz=(0, 0, 0.04))
builder.body("lower", 0.08, com=(0, 0, 0.05), inertia=np.diag([1e-4, 1e-4, 1e-5]))
builder.joint("bend", "revolute", "upper", "lower", axis=(0, 1, 0), xyz=(0, 0, 0.12))
builder.frame("tip", "lower", xyz=(0, 0, 0.1))
finger = builder.build()

RADIUS, angles = 0.05, 2 * np.pi * np.arange(3) / 3
out = np.stack([np.cos(angles), np.sin(angles), np.zeros(3)], axis=-1)  # from the centre
bases, grips, contacts = [], [], []
for angle, direction in zip(angles, out, strict=True):
    base = np.eye(4)
    base[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    base[:3, 3] = 0.13 * direction
    bases.append(base)
    grips.append(tuple(RADIUS * direction))
    contacts.append(pp.Contact("point", normal=tuple(-direction), friction=FRICTION))
ball = pp.Body("ball", 0.4, (0, 0, 0), 4e-4 * np.eye(3))
hand = pp.grasp([(finger, base, "tip") for base in bases], ball, grips, contacts)
guess = [0.0, -1.0, 1.2] * 3
q0 = hand.assemble([*guess, 0, 0, 0.16, 0, 0, 0, 1], hold="ball/free")
print(hand)

# %% [markdown]
# ## The path
# The object moves 4 cm sideways and 3 cm up, and turns by 40 degrees; the fingers follow. X(s) is
# its pose for s from 0 to 1; q(s), q'(s) and q''(s) are those of all joints.

# %%
SHIFT, TURN = np.array([0.0, 0.04, 0.03]), np.radians(40.0)
own = slice(hand.nv - 6, hand.nv)  # the object's velocity


def pose(s):
    """Position and quaternion of the object, along an arc."""
    along = SHIFT * [0, np.sin(np.pi / 2 * s), s]
    return [*(q0[-7:-4] + along), 0, 0, np.sin(TURN / 2 * s), np.cos(TURN / 2 * s)]


def follow(q, V):
    """Velocities of all joints for that of the object."""
    Jc = hand.constraint_jacobian(q)
    fingers = -np.linalg.lstsq(Jc[:, : own.start], Jc[:, own] @ V, rcond=None)[0]
    return np.concatenate([fingers, V])


def body_rates(s):
    """dX/ds and its derivative, in axes of the object: rotation first."""
    c, n = np.cos(TURN * s), np.sin(TURN * s)
    R = np.array([[c, -n, 0], [n, c, 0], [0, 0, 1]])
    first = np.array([0, SHIFT[1] * np.pi / 2 * np.cos(np.pi / 2 * s), SHIFT[2]])
    second = np.array([0, -SHIFT[1] * (np.pi / 2) ** 2 * np.sin(np.pi / 2 * s), 0])
    w = np.array([0, 0, TURN])
    return np.concatenate([w, R.T @ first]), np.concatenate(
        [0 * w, R.T @ (second - np.cross(w, first))]
    )


S, q_path = np.linspace(0.0, 1.0, POINTS), [q0]
for s in S[1:]:
    q_path.append(hand.assemble([*q_path[-1][:-7], *pose(s)], hold="ball/free"))

# %% [markdown]
# ## The plan
# At each point the torques and forces are f0 + f1 s'' + f2 s'^2 + sum_k w_k f_k with internal
# forces w. z = s'^2 is linear between the points: z' = 2 s''.


# %%
def terms(q, s):
    """(tau, forces) at rest, per s'', per s'^2, and per internal force."""
    rest = np.zeros(hand.nv)
    V, A = body_rates(s)
    v = follow(q, V)
    wanted = np.zeros(hand.nv)
    wanted[own] = A
    curve = hand.complete(q, v, wanted, exactly="ball/free")  # q'' at s'' = 0, s' = 1
    hold = hand.inverse_dynamics(q, rest, rest, forces=True)
    push = hand.inverse_dynamics(q, rest, v, forces=True)
    turn = hand.inverse_dynamics(q, v, curve, forces=True)
    unit = np.zeros((9, 3, 6))
    unit[np.arange(9), np.repeat(np.arange(3), 3), np.tile([3, 4, 5], 3)] = 1.0
    internal = hand.split_forces(np.tile(q, (9, 1)), unit)[1].reshape(9, -1)
    _, sizes, rows = np.linalg.svd(internal)
    squeezes = rows[: int((sizes > 1e-9).sum())].reshape(-1, 3, 6)
    found = [hold, [x - y for x, y in zip(push, hold, strict=True)]]
    found.append([x - y for x, y in zip(turn, hold, strict=True)])
    for w in squeezes:
        more = hand.inverse_dynamics(q, rest, rest, internal=w, forces=True)
        found.append([x - y for x, y in zip(more, hold, strict=True)])
    return [(tau[hand.actuated], force[:, 3:]) for tau, force in found]


def limits(q, values):
    """Rows A x <= b on (s'', s'^2, w): pyramids within the cones, and torques."""
    R = np.array(hand.frame_pose(q, hand.object))[:3, :3]
    A, b = [], []
    for i in range(len(hand.contacts)):
        n = R @ -out[i]
        side = np.cross(n, R @ [0, 0, 1])
        other = np.cross(n, side)
        mu = MARGIN * FRICTION * np.cos(np.pi / 8)
        for phase in np.pi / 4 * np.arange(8):
            row = np.cos(phase) * side + np.sin(phase) * other - mu * n
            A.append([row @ force[i] for _, force in values[1:]])
            b.append(-row @ values[0][1][i])
    for sign in (1.0, -1.0):
        for k in range(hand.na):
            A.append([sign * tau[k] for tau, _ in values[1:]])
            b.append(MARGIN * EFFORT - sign * values[0][0][k])
    return np.array(A), np.array(b)


def plan():
    """z, s'' and the internal forces at the points: the largest sum of z."""
    every = [terms(q, s) for q, s in zip(q_path, S, strict=True)]
    inner, ds = len(every[0]) - 3, S[1]
    width = 2 + inner  # of a point: s'', z, w
    A, b = np.zeros((0, POINTS * width)), []
    for k, (q, values) in enumerate(zip(q_path, every, strict=True)):
        own_A, own_b = limits(q, values)
        block = np.zeros((len(own_b), POINTS * width))
        block[:, k * width : (k + 1) * width] = own_A
        A, b = np.vstack([A, block]), [*b, *own_b]
    links, right = np.zeros((POINTS + 1, POINTS * width)), np.zeros(POINTS + 1)
    for k in range(POINTS - 1):
        links[k, [(k + 1) * width + 1, k * width + 1, k * width]] = 1.0, -1.0, -2.0 * ds
    links[-2, 1] = links[-1, (POINTS - 1) * width + 1] = 1.0  # at rest at both ends
    gain = np.tile([0.0, -1.0] + [0.0] * inner, POINTS)
    bounds = ([(None, None), (0.0, None)] + [(None, None)] * inner) * POINTS
    found = linprog(gain, A, b, links, right, bounds)
    assert found.success, found.message
    x = found.x.reshape(POINTS, width)
    tight = (A @ found.x > np.array(b) - 1e-6).reshape(POINTS, -1)
    return x[:, 1], x[:, 0], x[:, 2:], every, tight


z, acceleration, inner, every, tight = plan()
rates = np.sqrt(np.maximum(z, 0.0))
T = np.concatenate([[0.0], np.cumsum(2 * S[1] / (rates[1:] + rates[:-1]))])
bound = int(tight.any(axis=1).sum())
print(f"{T[-1]:.3f} s; at {bound} of {POINTS} points a cone or a motor is used up")

# %% [markdown]
# Without internal forces the contacts would slip or pull: the planned forces are needed.

# %%
ratios = {}
for name in ("planned", "least"):
    forces = []
    for k, values in enumerate(every):
        weights = [acceleration[k], z[k], *(inner[k] if name == "planned" else 0 * inner[k])]
        total = values[0][1] + sum(w * f for w, (_, f) in zip(weights, values[1:], strict=True))
        forces.append(np.concatenate([np.zeros((3, 3)), total], axis=-1))
    ratios[name] = hand.contact_ratio(np.array(q_path), np.array(forces))
    if name == "planned":
        planned = np.array(forces)
print("used part of the cones:", {name: float(x.max().round(3)) for name, x in ratios.items()})
assert ratios["planned"].max() <= MARGIN + 1e-6 and not ratios["least"].max() < 1.0

# %% [markdown]
# ## The motion
# `pp.ObjectControl` follows the plan: the pose of the object with feedback, and the contact forces.


# %%
def target(t):
    """Pose, velocity and acceleration of the object, in world axes."""
    k = int(np.clip(np.searchsorted(T, t) - 1, 0, POINTS - 2))
    h = np.clip(t, 0.0, T[-1]) - T[k]
    s = S[k] + rates[k] * h + acceleration[k] * h * h / 2
    ds, dds = (rates[k] + acceleration[k] * h, acceleration[k]) if t < T[-1] else (0.0, 0.0)
    p = pose(s)
    c, n = np.cos(TURN * s), np.sin(TURN * s)
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = [[c, -n, 0], [n, c, 0], [0, 0, 1]], p[:3]
    first = np.array([0, 0, TURN, 0, SHIFT[1] * np.pi / 2 * np.cos(np.pi / 2 * s), SHIFT[2]])
    second = np.array([0, 0, 0, 0, -SHIFT[1] * (np.pi / 2) ** 2 * np.sin(np.pi / 2 * s), 0])
    return X, first * ds, first * dds + second * ds**2


def desired(t):
    """The planned forces on the object, in its axes."""
    k = int(np.clip(np.searchsorted(T, t) - 1, 0, POINTS - 2))
    R = target(t)[0][:3, :3]
    return np.concatenate([np.zeros((3, 3)), planned[k][:, 3:] @ R], axis=-1)


control = pp.ObjectControl(hand, target, kp=400, kd=40, forces=desired)
motion = pp.simulate(hand, q0, tau=control, duration=np.ceil(1e3 * T[-1]) / 1e3 + 0.05, dt=5e-4)
error = np.linalg.norm(motion.final.q[-7:-4] - pose(1.0)[:3])
inside = motion.t < T[-1]
used = hand.contact_ratio(motion.q, motion.forces)[inside].max()
torques = np.abs([control(t, q, v) for t, q, v in zip(motion.t, motion.q, motion.v, strict=True)])
print(f"error {1e3 * error:.2f} mm, cones {used:.2f}, motors {torques[inside].max() / EFFORT:.2f}")
assert error < 1e-3 and used < 1.0 and torques[inside].max() < EFFORT
