"""Live pages in which a policy moves the robot: in Chromium they do what the environment does."""

import re

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from tests.apps.environments.test_randomization import ball, make
from tests.apps.viewer.browser import page, show

STEPS = 25  # control steps of three steps
OBSERVATIONS = {
    "policy": [
        ("q", {"noise": (-0.5, 0.5)}),
        ("joint_velocities", {"scale": 0.1}),
        "command",
        "previous_action",
        "action",
        "contacts",
    ],
    "critic": ["v"],
}
COMMANDS = {"wave": (-1.0, 1.0), "lean": 0.25, "shift": {"normal": (0.0, 0.1)}}
GAINS = np.random.default_rng(0).uniform(-0.6, 0.6, (4, 15))


def policy(seen):
    """Two layers, on arrays of NumPy and on traced ones."""
    inner = np.tanh(GAINS[:3] @ seen)
    return [np.exp(-inner[0] * inner[0]) - 0.7 + inner[1] * seen[9] - 1.5 * inner[2]]


def rolling(**options):
    """A ball with an arm that a policy swings; two steps of three see the new action."""
    given = dict(observations=OBSERVATIONS, commands=COMMANDS, action_delay=0.004, action_scale=0.8)
    return make(**(given | {"effort": False, "resets": None, "episode_length": None} | options))


def test_the_page_does_what_the_environment_does(tmp_path):
    """The same states, with the command of the sliders and without noise; off, and on again."""
    env, command = rolling(), [0.6, 0.25, -0.1]
    same = rolling(
        observations={"policy": ["q", *OBSERVATIONS["policy"][1:]]},
        commands=dict(zip(COMMANDS, command, strict=True)),
    )
    wanted = same.episode(policy, steps=STEPS).motion
    path = env.html(tmp_path / "ball.html", policy, command, title="<Ball & arm>")
    assert "&lt;Ball &amp; arm&gt; " not in path.read_text(encoding="utf-8")[:200]
    with page(900, 500) as opened:
        show(opened, path)
        run = "n => { psiphi.advance(n); return [[...psiphi.memory.Q], [...psiphi.memory.V]]; }"
        for k in range(1, STEPS + 1):
            q, v = opened.evaluate(run, 3)
            np.testing.assert_allclose(q, wanted.q[k], atol=1e-9, err_msg=f"step {k}")
            np.testing.assert_allclose(v, wanted.v[k], atol=1e-8, err_msg=f"step {k}")
        assert np.ptp(wanted.q[:, 7]) > 0.05, "the arm moves"
        names = opened.locator("#sliders span").all_inner_texts()
        assert names[:3] == ["wave", "lean", "shift"] and opened.locator("#targets").is_hidden()
        opened.evaluate("psiphi.restart()")
        q, _ = opened.evaluate(run, 3 * STEPS)
        np.testing.assert_allclose(q, wanted.q[-1], atol=1e-9)
        slider = opened.locator("#sliders input").first
        slider.fill("-0.9")
        assert opened.evaluate("[...psiphi.memory['env.command']]") == [-0.9, 0.25, -0.1]
        assert not opened.complaints


def test_what_a_page_refuses(tmp_path):
    robot, path = ball(), tmp_path / "page.html"
    q = robot.neutral()
    q[2] = 0.1
    cases = [
        (rolling(actuation=None), policy, "posture of pp.PD"),
        (rolling(actuation=pp.PD(robot, q, 20.0, 1.0, gravity=True)), policy, "posture of pp.PD"),
        (rolling(action_delay=0.012), policy, "act 3 steps late"),
        (rolling(damping=np.full(7, 0.1)), policy, "no damping"),
        (rolling(), 3.0, "policy is 3.0"),
        (rolling(), lambda seen: seen[:2], "returns 2 numbers, expected 1"),
        (rolling(), lambda seen: seen[:1] if seen[0] > 0 else seen[1:2], "cannot be traced"),
        (rolling(observations=["time"]), policy, "reads env.counter"),
    ]
    for env, given, words in cases:
        with pytest.raises(StateError, match=re.escape(words)):
            env.html(path, given)
    with pytest.raises(StateError, match="command"):
        rolling().html(path, policy, [0.0, 0.0])
    assert not path.exists()
