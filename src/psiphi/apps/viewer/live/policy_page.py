"""A live page in which a policy moves the robot of an environment, by the user's command.

The observations without their noise, and the policy, are traced and compiled to WebAssembly as laws
are. In each control step the page calls

    act   policy: action = policy(observations), within its limit
          policy_action: aim = action_scale action, for the joints with motors
    aim   the posture of the motors, home exp(aim): after the delay of actions

and then the steps of the simulation. The robot and the ground are the nominal ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import count_of, name_of, shown
from psiphi._util.validate import finite_array
from psiphi.apps.environments.environment_input import POLICY, EnvironmentInput
from psiphi.apps.environments.terms.term_state import ACTION, COMMAND, PREVIOUS
from psiphi.apps.environments.terms.term_trace import TermTrace, traced_twice
from psiphi.apps.studies.distributions import Distribution
from psiphi.apps.viewer import html_page
from psiphi.apps.viewer.live.interactive_step import PagePolicy
from psiphi.apps.viewer.live.live_page import page_text, read_live_page
from psiphi.apps.viewer.scene import scene
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.simulation.compiled_rollout.rollout_program import law_place
from psiphi.simulation.control.joint_controllers import feedback
from psiphi.simulation.control.law_arrays import LawArray
from psiphi.simulation.forces.joint_springs import read_springs
from psiphi.simulation.plant import Plant

if TYPE_CHECKING:
    from psiphi.apps.environments.environment import Environment

DEVIATIONS = 2.0  # of a normal distribution, to each side of its mean: the range of a slider
PLACES = ("contact.impulse", "contact.mode")  # of the page, besides the state


def policy_html(
    env: Environment,
    path: str | os.PathLike[str],
    policy: Callable[[Any], Any],
    command: Numbers | None = None,
    **options: Any,
) -> Path:
    """`env.html`: write the page."""
    given = env.given
    check_actuation(given)
    robot, ground = env.robot, given.setup.contacts and given.setup.contacts.ground
    options = {"title": f"{robot.name} with {name_of(policy)}", **options}
    page = read_live_page(
        robot, given.setup.q0, given.setup.v0, given.setup.dt, None, contacts=ground
    )
    page = replace(page, policy=page_policy(env, policy, command))
    view = scene(robot, q=page.q0, contacts=ground, **options)
    return html_page.write_page(page_text(page, view), path)


def check_actuation(given: EnvironmentInput) -> None:
    """Raise for environments whose actuation a page does not have."""
    if given.is_torque or given.options.law.steps[0].operation is not feedback:
        raise StateError(
            "a live page needs actions that move the posture of pp.PD, and these do not",
            "give actuation=pp.PD(robot, posture, kp=..., kd=...), without gravity=True",
        )
    if given.setup.contacts is None:
        raise StateError(
            "a live page with a policy needs a ground", "pp.environment(robot, pp.Ground(), ...)"
        )
    springs = bool(read_springs(Plant(given.randomization.original), True).active)
    if given.options.losses or springs != bool(given.options.springs):
        raise StateError(
            "a live page with a policy has no damping and friction, and all springs of the robot",
            "leave damping= and friction= out, and give springs=True if the robot has springs",
        )
    if given.events.delay >= given.decimation:
        raise StateError(
            f"actions act {given.events.delay} steps late, a control step has {given.decimation}",
            "a live page delays them by less than a control step",
        )


def page_policy(
    env: Environment, policy: Callable[[Any], Any], command: Numbers | None
) -> PagePolicy:
    """The policy of a page: its code, and the numbers that the page needs."""
    given = env.given
    kp, kd = (np.asarray(given.constants[law_place(x)], dtype=float) for x in ("kp", "kd"))
    motors = np.zeros(env.robot.nv)
    motors[given.setup.motors] = 1.0
    return PagePolicy(
        traced_policy(env, policy),
        given.posture,
        given.setup.motors,
        given.setup.scale,
        given.decimation,
        given.events.delay,
        command_sliders(given, command),
        np.broadcast_to(kp, env.robot.nv) * motors,
        np.broadcast_to(kd, env.robot.nv) * motors,
    )


def traced_policy(env: Environment, policy: Callable[[Any], Any]) -> StraightCode:
    """The code of action = policy(observations of the group "policy"), within the limit."""
    given = env.given
    if not callable(policy):
        cause = f"policy is {shown(policy)}, expected a function of the observations"
        raise StateError(cause, "give lambda seen: action")
    group = POLICY if POLICY in given.groups else next(iter(given.groups))
    setup = replace(given.setup, robot=env.robot)
    sizes = {"Q": env.robot.nq, "V": env.robot.nv}
    sizes |= dict.fromkeys((ACTION, PREVIOUS), given.action_size)
    sizes |= {COMMAND: len(setup.commands)} if setup.commands else {}
    if setup.contacts is not None:
        sizes |= dict(zip(PLACES, (3 * setup.contacts.count, setup.contacts.count), strict=True))

    def make() -> StraightCode:
        trace = TermTrace(setup, sizes)
        seen: list[Any] = []
        for term in given.groups[group]:
            seen += replace(term, noise=None).values(trace)
        what = f"the policy {name_of(policy)}"
        action = trace.value(what, lambda s: policy(LawArray.of(seen)))
        if len(action) != given.action_size:
            cause = f"{what} returns {count_of(len(action), 'number')}"
            raise StateError(f"{cause}, expected {given.action_size}", "one for each motor")
        bounds = (given.action_limit * np.ones(given.action_size)).tolist()
        trace.outputs[PagePolicy.RESULT] = [
            minimum(maximum(a, -b), b) for a, b in zip(action, bounds, strict=True)
        ]
        return trace.code("policy")

    return traced_twice("observations and policy", make)


def command_sliders(
    given: EnvironmentInput, command: Numbers | None
) -> tuple[tuple[str, float, float, float], ...]:
    """For each command its name, its range and its first value."""
    names, known = given.setup.commands, given.resets.commands
    ranges = [slider_range(known[name]) for name in names]
    middle = [0.5 * (low + high) for low, high in ranges]
    values: Sequence[float] = middle
    if command is not None:
        values = finite_array("command", command, (len(names),), "one number each").tolist()
    rows = zip(names, ranges, values, strict=True)
    return tuple((name, min(low, x), max(high, x), x) for name, (low, high), x in rows)


def slider_range(distribution: Distribution) -> tuple[float, float]:
    """The range of samples, or most of it."""
    numbers = distribution.numbers
    if distribution.kind == "normal":
        mean, width = numbers[0], DEVIATIONS * numbers[1]
        return mean - width, mean + width
    return min(numbers), max(numbers)
