"""Every wrong argument is an error that says what came and what to do."""

import numpy as np
import pytest

import psiphi as pp
from tests.apps.environments.worlds import cart_pole, stand

COUNT = [0]


def stateful(s):
    COUNT[0] += 1
    return s.q * COUNT[0]


def make(**options):
    given = dict(observations=["q"], rewards={"alive": 1.0}, actuated="slide")
    return pp.environment(pp.load("cartpole"), **(given | options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(observations=[]), "the group 'policy' of observations is empty"),
        (dict(observations={}), "observations is empty"),
        (dict(observations="q"), "expected a list of terms"),
        (dict(observations=["Q"]), r"'Q' is unknown.*'q'"),
        (dict(observations=[3]), "expected a word or a function"),
        (dict(observations=[("q", {"gain": 2})]), "is not a term with options"),
        (dict(observations=[("q", {"scale": [1, 2, 3]})]), "scale .* has 3 numbers, the term 2"),
        (dict(observations=[("q", {"noise": (1, 0)})]), "not above its first"),
        (dict(observations=["height"]), "has no free base"),
        (dict(observations=["contacts"]), "there is no ground"),
        (dict(observations=["command"]), "there are no commands.*commands="),
        (dict(observations=[lambda s: s.speed]), "has no 'speed'"),
        (dict(observations=[lambda s: "q"]), "returns str, expected numbers"),
        (dict(observations=[lambda s: s.q if s.q[0] > 0 else s.v]), "cannot be traced.*branch"),
        (dict(observations=[lambda s: s.q * np.nan]), "has a constant that is NaN"),
        (dict(observations=[stateful]), "internal state"),
        (dict(observations=[lambda s: s.q + np.random.rand()]), "internal state or draws random"),
        (dict(rewards={}), "expected a dict or a function"),
        (dict(rewards={"alife": 1.0}), r"'alife' is unknown.*'alive'"),
        (dict(rewards={"alive": "much"}), "the weight of the reward 'alive'"),
        (dict(rewards={"alive": np.nan}), "the weight of the reward 'alive'"),
        (dict(rewards={"x": (1.0, lambda s: s.q)}), "returns 2 numbers, expected one"),
        (dict(rewards={"x": (1.0, lambda s: s.uniform())}), "draws random numbers"),
        (dict(terminations=["fallen"]), "has no free base"),
        (dict(terminations=["fell"]), "'fell' is unknown"),
        (dict(terminations=7), "expected words or functions"),
        (dict(resets={"position": {}}), "expected a function, or a dict.*'offset'"),
        (dict(resets={"offset": {"wheel": 0.1}}), "wheel"),
        (dict(resets={"offset": {"slide": "far"}}), "expected a distribution"),
        (dict(resets={"offset": {"slide": {"grid": [1, 2]}}}), "its kind is one of"),
        (dict(resets=lambda s: s.q0), "expected a dict with q, v or both"),
        (dict(resets=lambda s: {"q": s.q0[:1]}), "returns 1 numbers as q"),
        (dict(resets=lambda s: {"q": s.q}), "does not exist here"),
        (dict(commands={}), "expected a dict"),
        (dict(commands={"vx": [1, 2, 3]}), "the command 'vx'"),
        (dict(actuation="torque"), "expected a controller or None"),
        (dict(actuation=pp.GravityCompensation(pp.load("cartpole"))), "constant posture q_ref"),
        (dict(actuation=pp.PD(pp.load("ur5"), np.zeros(6), 1.0, 1.0)), "of another robot"),
        (dict(action_scale=[1, 2, 3]), "action_scale .* expected one number or 1"),
        (dict(action_limit=-1.0), "expected positive numbers"),
        (dict(decimation=0), "decimation is 0"),
        (dict(decimation=2**40), "expected 1 to 100000"),
        (dict(ground="floor"), "ground is 'floor', expected a ground"),
        (dict(action_limit=True), "expected positive numbers"),
        (dict(episode_length=1e308), "episode_length is 1e[+]308 s, more than"),
        (dict(action_delay=1e6), "action_delay is 1e[+]06 s, more than 10000 steps of 0.005 s"),
        (dict(pushes={}, push_interval=1.0), "expected a dict of changes of velocity"),
        (dict(dt=0.0), "dt"),
        (dict(episode_length=-1.0), "episode_length"),
        (dict(actuated=[]), "has no motors"),
        (dict(method="moreau"), "moreau"),
        (dict(q0=[0.0]), "posture"),
    ],
)
def test_an_argument(options, words):
    with pytest.raises(pp.Error, match=f"(?s){words}"):
        make(**options)


def test_a_start_inside_the_ground_is_an_error():
    robot, ground, q = stand()
    low = q - np.eye(19)[2] * 0.2
    env = pp.environment(robot, ground, observations=["q"], rewards={"alive": 1.0}, q0=low)
    with pytest.raises(pp.StateError, match="inside the ground"):
        env.reset(2)


def test_a_reward_that_is_not_a_number_is_an_error():
    """With the name of the term, the environment, its episode and the step."""
    rewards = {"alive": 1.0, "ratio": (1.0, lambda s: np.sqrt(s.q[1]))}
    env = make(rewards=rewards, v0=(0.0, 1.0), q0=(0.0, 0.1))
    state, _ = env.reset(20, seed=0)
    state, _ = env.step(state, np.zeros((20, 1)))
    state["q"][13, 1] = -0.5
    with pytest.raises(
        pp.StateError, match=r"'ratio' is -?nan in environment 13, episode 0, at step 2"
    ):
        env.step(state, np.zeros((20, 1)))


def test_states_and_numbers():
    env = cart_pole()
    state, _ = env.reset(3)
    with pytest.raises(pp.StateError, match="not one of this environment"):
        env.step({}, np.zeros((3, 1)))
    with pytest.raises(pp.StateError, match="has shape"):
        env.step(state | {"q": state["q"][:2]}, np.zeros((3, 1)))
    with pytest.raises(pp.StateError, match="the action"):
        env.step(state, np.zeros((2, 1)))
    with pytest.raises(pp.StateError, match=r"autoreset is 'never'"):
        env.step(state, np.zeros((3, 1)), "never")
    for count in (-1, 2.5, [0.5], "x", [[1]], 2**32, [2**32]):
        with pytest.raises(pp.StateError, match="count"):
            env.reset(count)
    for episode in (0.5, [1, 2], "x", -1, 2**32):
        with pytest.raises(pp.StateError, match="episode"):
            env.reset(3, episode=episode)
    for seed in (-1, 0.5, True, [1, 2], 2**64):  # 2**64 would be 0
        with pytest.raises(pp.StateError, match="seed"):
            env.reset(3, seed=seed)
    for where in ([1, 0, 1], [True], "all"):
        with pytest.raises(pp.StateError, match=r"where is .* expected 3 booleans"):
            env.begin(state, where)
    with pytest.raises(pp.StateError, match=r"the policy <lambda> failed at step 0: KeyError"):
        env.episode(lambda seen: {}["gain"] * seen)
    assert env.reset(0)[1]["policy"].shape == (0, 4)
    assert repr(env) == (
        "<Environment of 'cartpole': 1 actions, observations policy 4, 0.02 s a step>"
    )
    assert env.action_names == ("slide",) and env.reward_names == ("alive", "upright")


@pytest.mark.parametrize("kind", ["friction", "height", "parameters", "q_ref"])
def test_numbers_of_several_environments_are_refused(kind):
    """An environment is the same alone, in any batch and on a GPU: numbers by the place in a batch
    would change it. A set with an axis of length 1 is one set."""
    robot = pp.load("anymal_c")
    q = robot.neutral()

    def make(rows):
        sets = np.linspace(0.5, 1.0, rows)[:, None]
        loose = robot.free("mass")
        body = loose.at(sets * loose.parameters()) if kind == "parameters" else robot
        ground = {
            "friction": {"friction": sets},
            "height": {"height": np.zeros((rows, 3, 3)), "size": (4, 4)},
        }
        return pp.environment(
            body,
            pp.Ground(**ground.get(kind, {})),
            actuation=pp.PD(body, np.tile(q, (rows, 1)) if kind == "q_ref" else q, 80.0, 2.0),
            observations=["height"],
            rewards={"alive": 1.0},
        )

    with pytest.raises(pp.StateError, match=rf"the batch axes of {kind} are \(3,\).*randomize="):
        make(3)
    make(1)
