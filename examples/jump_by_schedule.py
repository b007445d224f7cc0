"""ANYmal jumps forward by a contact schedule: `python examples/jump_by_schedule.py [page.html]`.

Four feet hold, fly and land at given steps; a batch of schedules, with shorter and longer flights,
is solved in one call. The first run compiles for about a minute, later ones take seconds.
"""

import sys

import numpy as np

import psiphi as pp

DT, STEPS = 0.02, 40
FRICTION = 0.7


def flight(start, end, feet):
    """The schedule (STEPS, feet): all feet hold, except in the steps from `start` to `end`."""
    schedule = np.ones((STEPS, len(feet)))
    schedule[start:end] = 0.0
    return schedule


def jump_problem(robot, feet, motors):
    """Costs of a jump: torques, speeds, friction cones, feet on the ground; at the end a posture.
    The last `motors` joints have motors."""
    base = robot.nv - motors
    return pp.OptimalControl(
        robot,
        dt=DT,
        steps=STEPS,
        contacts=feet,
        actuated=list(robot.joint_names[-motors:]),
        running=[
            pp.cost.torque(1e-3),
            pp.cost.speed(0.1),
            pp.cost.friction(1e-2, friction=FRICTION),
            pp.cost.ground(1e3),
        ],
        final=[pp.cost.posture([1e3] * base + [30.0] * motors), pp.cost.speed(1.0)],
    )


def jump(robot, feet, motors, stand, distance, schedules):
    """The motions from the posture `stand` to one `distance` metres further along x."""
    problem = jump_problem(robot, feet, motors)
    goal = np.array(stand)
    goal[0] += distance
    return problem.solve(stand, posture=goal, schedule=schedules, iterations=300)


def report(found, distance):
    """What the feet do; the checks of this example."""
    robot, holds = found.problem.robot, found.schedule > 0.0
    print(found)
    for each, motion in enumerate(map(found.element, range(found.batch[0]))):
        print(f"schedule {each}:", "; ".join(motion.summary().splitlines()[-holds.shape[-1] :]))
    moved = found.q[:, -1, 0] - found.q[:, 0, 0]
    flying = found.forces[~holds]
    print(
        "moves by", moved.round(3), "m, needs a friction of", found.friction_needed.max().round(2)
    )
    assert found.converged.all() and np.abs(moved - distance).max() < 0.02
    assert not found.pulls.any() and not flying.any()
    for name in found.problem.contact_names:
        foot = robot.frame_pose(found.q, name)[..., :3, 3]
        assert np.abs(foot[:, 0] - foot[:, 5]).max() < 2e-3, "the feet hold"
        assert foot[..., 2].min() > -0.02, "and stay above the ground"


def main():
    robot = pp.load("anymal", base="free")
    feet = [f"{leg}_FOOT" for leg in ("LF", "LH", "RF", "RH")]
    stand = robot.neutral()
    stand[7:] = [0.0, 0.7, -1.2, 0.0, -0.7, 1.2] * 2
    stand[2] -= robot.frame_pose(stand, feet[0])[2, 3]
    schedules = np.stack([flight(15, end, feet) for end in (23, 25, 27)])
    found = jump(robot, feet, 12, stand, 0.3, schedules)
    report(found, 0.3)
    if len(sys.argv) > 1:
        print("wrote", found.element(1).html(sys.argv[1]))


if __name__ == "__main__":
    main()
