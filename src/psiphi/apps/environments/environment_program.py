"""The control step of an environment as blocks, in the frame of a rollout.

    env.check_action, env.use_action    an action that is not finite is replaced by zero
    env.act, env.aim                    the action becomes the torque, or the reference of the law
    (law, dynamics, contacts, ...)      the steps of the simulation
    env.check, env.restore              a state that is not finite is replaced by that before
    env.air                             how long contact points have been in the air
    env.terms                           reward, terminated, truncated
    env.clock, env.event, ...           new commands and pushes
    env.noise, env.observe              random numbers and observations
    env.renew, env.draw, env.reset,     where an episode ended: the next one begins, and
    env.apply                           is observed again

The three modes of autoreset differ in the order of the blocks, and in where `env.reset` acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.apps.environments.environment_input import EnvironmentInput
from psiphi.apps.environments.state_resets import NEW
from psiphi.apps.environments.step_events import COMMAND_DUE, EVENT, PUSH_DUE, TIMERS
from psiphi.apps.environments.terms.term_state import (
    ACTION,
    AIR,
    COMMAND,
    COUNTER,
    EPISODE,
    FLIGHT,
    KEY,
    LAST_V,
    PREVIOUS,
    STEP,
)
from psiphi.apps.environments.terms.term_trace import NUMBERS, TermTrace, traced_twice
from psiphi.compiler.ir.block_frame import BlockFrame, Code, NamedBlocks
from psiphi.compiler.ir.lane_blocks import DRAWS, RandomNumbers, Selection
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.model.spatial.branch_free import less, maximum, minimum
from psiphi.simulation.compiled_rollout import contact_blocks, step_blocks
from psiphi.simulation.compiled_rollout.contact_blocks import contact_place
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram, law_place
from psiphi.simulation.plant import parameters_of

NEXT_STEP, SAME_STEP, DISABLED, RESET = "next_step", "same_step", "disabled", "reset"
MODES = (NEXT_STEP, SAME_STEP, DISABLED)
GIVEN, PENDING, RESETTING, OBSERVING = "env.given", "env.pending", "env.resetting", "env.observing"
INVALID, FAILED = "env.invalid", "env.failed"
REWARD, REWARD_TERMS = "env.reward", "env.reward_terms"
TERMINATED, TRUNCATED, ENDS = "env.terminated", "env.truncated", "env.ends"
BEFORE = {"Q": "env.before_q", "V": "env.before_v"}
NEW_COUNTER, NOISE, RENEWAL = "env.new_counter", "env.noise_numbers", "env.reset_numbers"
HAPPENING = "env.event_numbers"
HISTORY, RECENT = "env.history", "env.recent"  # actions, the last one first
EVENT_DRAWS = 1 << 20  # the first draw of events: observations come before
LARGEST_ACTION, LARGEST_SQUARE = 1e100, 1e16  # above which numbers count as diverged


def observed(group: str) -> str:
    """The place of a group of observations."""
    return f"env.observed.{group}"


def final(group: str) -> str:
    """The place of the last observations of an episode."""
    return f"env.final.{group}"


@dataclass(frozen=True, eq=False)
class EnvironmentProgram:
    """The blocks of a control step in a mode of autoreset, or those of a reset (`RESET`)."""

    given: EnvironmentInput
    mode: str

    @property
    def rollout_program(self) -> RolloutProgram:
        return self.given.program

    @cached_property
    def state_sizes(self) -> dict[str, int]:
        """The state of an environment, by place: what a step reads and returns."""
        given = self.given
        found = {"q": given.robot.nq, "v": given.robot.nv, KEY: 2, COUNTER: 3}
        found |= dict.fromkeys((ACTION, PREVIOUS), given.action_size) | {PENDING: 1}
        found |= self._commands | given.randomization.sizes | self._feet((AIR,))
        found |= {TIMERS: 2} if given.events.exist else {}
        return found | ({HISTORY: self._past * given.action_size} if self._past else {})

    @property
    def _past(self) -> int:
        """How many earlier actions act on some step of the simulation."""
        return -(-self.given.events.delay // self.given.decimation)

    def _feet(self, places: tuple[str, ...] = (AIR, FLIGHT)) -> dict[str, int]:
        """The sizes of places with a number for each contact point."""
        contacts = self.given.setup.contacts
        return {} if contacts is None else dict.fromkeys(places, contacts.count)

    @property
    def _commands(self) -> dict[str, int]:
        count = len(self.given.setup.commands)
        return {COMMAND: count} if count else {}

    @property
    def outputs(self) -> dict[str, int]:
        """The results of a step besides the state, by place."""
        groups = dict.fromkeys(self.given.groups, self.codes["env.observe"].program.outputs)
        sizes = {arg.name: arg.size for arg in next(iter(groups.values()))}
        if self.mode == RESET:
            return sizes
        flags = dict.fromkeys((REWARD, TERMINATED, TRUNCATED, FAILED), 1)
        found = {**sizes, **flags, REWARD_TERMS: max(1, len(self.given.rewards))}
        if self.given.setup.contacts is not None:
            found |= {contact_blocks.TOTAL: self.given.setup.contacts.count}
        if self.mode == SAME_STEP:
            found |= {final(name): sizes[observed(name)] for name in groups}
        return found

    # -- the code of each block ------------------------------------------------------------------

    @cached_property
    def term_sizes(self) -> dict[str, int]:
        """The places that terms may read."""
        given = self.given
        nv, contacts = given.robot.nv, given.setup.contacts
        found = {"Q": given.robot.nq, "V": nv, "tau": nv, LAST_V: nv, COUNTER: 3}
        found |= dict.fromkeys((ACTION, PREVIOUS), given.action_size)
        found |= self._commands | self._feet()
        if contacts is not None:
            found |= {"contact.impulse": 3 * contacts.count, "contact.mode": contacts.count}
            found |= {contact_place("place"): contacts.space.place_size}
        for values in parameters_of(given.robot):
            found[PARAMETERS] = np.shape(values)[-1]
        return found

    @cached_property
    def codes(self) -> dict[str, Code]:
        """The blocks of this package, by name."""
        observe, noise = self._observations()
        reset, drawn = self._resets()
        codes: dict[str, Code] = {
            "start": step_blocks.start_block(self.given.robot.manifold),
            "env.observe": observe,
            "env.reset": reset,
            "env.renew": _rule("renew", {COUNTER: 3}, _renewed),
            "env.apply": self._apply(),
        }
        codes |= {"env.noise": RandomNumbers(noise)} if noise else {}
        codes |= {"env.draw": RandomNumbers(drawn, noise // DRAWS)} if drawn else {}
        if self.mode == RESET:
            return codes | {"env.quiet": self._quiet()}
        nq, nv, na = self.given.robot.nq, self.given.robot.nv, self.given.action_size
        codes |= {
            "env.check_action": _rule("check_action", {GIVEN: na}, _checked_action),
            "env.use_action": Selection(INVALID, {GIVEN: ""}, {GIVEN: na}),
            "env.act": self._act(),
            **{f"env.aim{i}": self._aim(i) for i in self.actions},
            **self._events,
            "env.last": _rule("last", {"V": nv}, lambda x: {LAST_V: x["V"]}),
            "env.check": _rule("check", {"Q": nq, "V": nv, INVALID: 1}, _checked_state),
            "env.restore": self._restore(),
            **self._flights(),
            "env.terms": traced_twice("rewards and terminations", self._terms),
        }
        if self.mode == SAME_STEP:
            sizes = {arg.name: arg.size for arg in observe.program.outputs}
            codes["env.final"] = _rule("final", {**sizes, ENDS: 1}, self._final)
        return codes

    def trace(self) -> None:
        """Trace all terms: an error in one of them is raised now."""
        assert self.codes

    def _act(self) -> StraightCode:
        given = self.given
        sizes = {GIVEN: given.action_size, ACTION: given.action_size, COUNTER: 3}
        sizes |= {"Q": given.robot.nq, "V": given.robot.nv}
        sizes |= {HISTORY: self._past * given.action_size} if self._past else {}

        def rule(x: dict[str, np.ndarray]) -> dict[str, Any]:
            bounds = (given.action_limit * np.ones(given.action_size)).tolist()
            action = np.array(
                [minimum(maximum(a, -b), b) for a, b in zip(x[GIVEN], bounds, strict=True)]
            )
            number, episode, step = x[COUNTER]
            found: dict[str, Any] = {ACTION: action, PREVIOUS: x[ACTION], RECENT: action}
            if self._past:
                found[RECENT] = [*action, *x[HISTORY]]
                found[HISTORY] = found[RECENT][: len(x[HISTORY])]
            found[COUNTER] = [number, episode, step + 1.0]
            return found | {BEFORE["Q"]: x["Q"], BEFORE["V"]: x["V"]}

        return _rule("act", sizes, rule)

    @property
    def actions(self) -> list[int]:
        """How many control steps ago the actions were given that act now."""
        late, early = divmod(self.given.events.delay, self.given.decimation)
        return [late + 1, late] if early else [late]

    def _aim(self, ago: int) -> StraightCode:
        """An action as the torque, or as the reference of the law."""
        given, m, count = self.given, self.given.robot.manifold, self.given.action_size
        motors = given.setup.motors

        def rule(x: dict[str, np.ndarray]) -> dict[str, Any]:
            push = np.zeros(given.robot.nv, dtype=object)
            push[motors] = x[RECENT][ago * count : (ago + 1) * count] * given.setup.scale
            if given.is_torque:
                return {"tau": push}
            posture = np.array(given.posture, dtype=object)
            return {law_place("q_ref"): _moved(m, posture, push, motors)}

        return _rule("aim", {RECENT: (1 + self._past) * count}, rule)

    @cached_property
    def _events(self) -> dict[str, Code]:
        """The blocks of new commands and of pushes."""
        events = self.given.events
        if not events.exist:
            return {}
        sizes: list[int] = []

        def make() -> StraightCode:
            trace = TermTrace(self.given.setup, self.term_sizes, random=True)
            events.store(trace)
            sizes.append(trace.random_size)
            return trace.code("event")

        code = traced_twice("commands and pushes", make)
        drawn = {"env.event_draw": RandomNumbers(sizes[-1], EVENT_DRAWS)} if sizes[-1] else {}
        clock = _rule("clock", {TIMERS: 2}, events.tick)
        return {"env.clock": clock, **drawn, "env.event": code, **events.selections(self._sizes)}

    def _flights(self) -> dict[str, Code]:
        """The block of the times in the air, if there are contact points."""

        def rule(x: dict[str, np.ndarray]) -> dict[str, Any]:
            touches = [less(0.0, mode) for mode in x["contact.mode"]]
            pairs = list(zip(touches, x[AIR], strict=True))
            flying = [(1.0 - a) * (air + self.given.setup.step_time) for a, air in pairs]
            return {AIR: flying, FLIGHT: [a * air for a, air in pairs]}

        sizes = self._feet(("contact.mode", AIR))
        return {"env.air": _rule("air", sizes, rule)} if sizes else {}

    def _restore(self) -> Selection:
        given = self.given
        values = {"Q": BEFORE["Q"], "q": BEFORE["Q"], "V": BEFORE["V"], "v": BEFORE["V"]}
        values |= {LAST_V: BEFORE["V"], **self._silent}
        values.pop(FLIGHT, None)  # which `env.air` writes after this block
        return Selection(FAILED, values, self._sizes | dict.fromkeys(("v", "V"), given.robot.nv))

    def _quiet(self) -> StraightCode:
        """No torques and no contacts: those of the step before are not part of the state."""
        nv, sizes = self.given.robot.nv, self._sizes

        def rule(x: dict[str, np.ndarray]) -> dict[str, Any]:
            return {LAST_V: x["V"]} | {name: [0.0] * sizes[name] for name in self._silent}

        return _rule("quiet", {"V": nv}, rule)

    @property
    def _silent(self) -> dict[str, str]:
        """Places that are zero before the first step: {place: ""}."""
        names = ["tau"]
        if self.given.setup.contacts is not None:
            names += [*contact_blocks.RECORDED, contact_place("place"), FLIGHT]
        return dict.fromkeys(names, "")

    @cached_property
    def _sizes(self) -> dict[str, int]:
        nq, nv = self.given.robot.nq, self.given.robot.nv
        return {**self.term_sizes, **self.state_sizes, "Q": nq, "q": nq, "V": nv, "v": nv}

    def _terms(self) -> StraightCode:
        """Reward, terminated and truncated, and where an episode ends."""
        given = self.given
        trace = TermTrace(given.setup, {**self.term_sizes, FAILED: 1, PENDING: 1})
        terms = [
            weight * trace.number(f"the reward {name!r}", term)
            for name, (weight, term) in given.rewards.items()
        ] or [0.0]
        (failed,) = trace.place(FAILED)
        terminated: Any = failed.item()
        for name, term in given.terminations.items():
            flag = trace.number(f"the termination {name!r}", term)
            flag = 1.0 - _is_zero(flag)
            terminated = terminated + flag - terminated * flag
        truncated: Any = 0.0
        if given.most_steps:
            step = trace.place(COUNTER)[STEP].item()
            truncated = (1.0 - less(step, given.most_steps - 0.5)) * (1.0 - terminated)
        if self.mode == NEXT_STEP:  # the episode of a pending environment begins now
            pending = trace.place(PENDING)[0].item()
            active = 1.0 - pending
            terms = [active * x for x in terms]
            terminated, truncated = active * terminated, active * truncated
            trace.outputs[FAILED] = [active * failed.item()]
            trace.outputs[RESETTING] = [pending]
        ends = terminated + truncated
        total: Any = 0.0
        for x in terms:
            total = total + x
        trace.outputs |= {
            REWARD: [total],
            REWARD_TERMS: terms,
            TERMINATED: [terminated],
            TRUNCATED: [truncated],
            ENDS: [ends],
            PENDING: [ends],
            OBSERVING: [1.0],
        }
        return trace.code("terms")

    def _observations(self) -> tuple[StraightCode, int]:
        """The code, and how many random numbers it reads."""
        sizes: list[int] = []

        def make() -> StraightCode:
            trace = TermTrace(self.given.setup, self.term_sizes, random=True)
            for group, terms in self.given.groups.items():
                values: list[Any] = []
                for term in terms:
                    values += term.values(trace)
                trace.outputs[observed(group)] = values
            sizes.append(trace.random_size)
            return trace.code("observe")

        code = traced_twice("observations", make)
        return code, sizes[-1]

    def _resets(self) -> tuple[StraightCode, int]:
        sizes: list[int] = []

        def make() -> StraightCode:
            trace = TermTrace(self.given.setup, {}, random=True)
            self.given.resets.store(trace, self.given.robot)
            if self.given.events.exist:
                trace.outputs[NEW + TIMERS] = list(self.given.events.first)
            sizes.append(trace.random_size)
            return trace.code("reset")

        code = traced_twice("resets", make)
        return code, sizes[-1]

    def _apply(self) -> Selection:
        values = {"Q": f"{NEW}q", "q": f"{NEW}q", "V": f"{NEW}v", "v": f"{NEW}v"}
        values |= {LAST_V: f"{NEW}v", COUNTER: NEW_COUNTER, KEY: KEY, **self._silent}
        values |= dict.fromkeys((ACTION, PREVIOUS, PENDING), "")
        values |= dict.fromkeys(self._feet((AIR,)), "")
        values |= {COMMAND: NEW + COMMAND} if self.given.setup.commands else {}
        values |= {place: NEW + place for place in self.given.randomization.sizes}
        values |= {TIMERS: NEW + TIMERS} if self.given.events.exist else {}
        values |= {HISTORY: ""} if self._past else {}
        return Selection(RESETTING, values, self._sizes)

    def _final(self, x: dict[str, np.ndarray]) -> dict[str, Any]:
        found: dict[str, Any] = {final(name): x[observed(name)] for name in self.given.groups}
        return found | {RESETTING: x[ENDS], OBSERVING: x[ENDS]}

    # -- the program ------------------------------------------------------------------------------

    @property
    def blocks(self) -> NamedBlocks:
        """The blocks of this package and those of the simulation."""
        found: NamedBlocks = {name: (code, _places(name)) for name, code in self.codes.items()}
        return found if self.mode == RESET else self.rollout_program.blocks | found

    @property
    def order(self) -> tuple[str, ...]:
        """The blocks of a control step, in order."""
        look = ("env.noise", "env.observe")
        reset = ("env.renew", "env.draw", "env.reset", "env.apply")
        after = {
            SAME_STEP: (*look, "env.final", *reset, *look),
            NEXT_STEP: (*reset, *look),
            DISABLED: look,
            RESET: ("env.quiet", *reset, *look),
        }[self.mode]
        if self.mode == RESET:
            return self._present(after)
        step, count = self.rollout_program.order, self.given.decimation
        head = ("env.check_action", "env.use_action", "env.act")
        steps: list[tuple[str, ...]] = [step] * count
        for ago, at in zip(self.actions[::-1], (self.given.events.delay % count, 0), strict=False):
            steps[at] = (f"env.aim{ago}", *step)
        steps[-1] = ("env.last", *steps[-1])
        events = ("env.clock", "env.event_draw", "env.event", "env.steer", "env.push")
        tail = ("env.check", "env.restore", "env.air", "env.terms", *events, *after)
        return self._present((*head, *(name for names in steps for name in names), *tail))

    def _present(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(x for x in names if x in self.codes or not x.startswith("env."))

    @property
    def conditions(self) -> dict[str, str]:
        """{block: the place that says where it acts}."""
        found = dict.fromkeys(("env.renew", "env.draw", "env.reset", "env.apply"), RESETTING)
        found |= dict.fromkeys(("env.event_draw", "env.event"), EVENT)
        found |= {"env.steer": COMMAND_DUE, "env.push": PUSH_DUE}
        if self.mode == SAME_STEP:
            found |= dict.fromkeys(("env.noise", "env.observe"), OBSERVING)
        return {name: place for name, place in found.items() if name in self.order}

    @property
    def packed(self) -> tuple[str, ...]:
        """The places that a call gives, besides the constants."""
        return (*self.state_sizes, RESETTING if self.mode == RESET else GIVEN)

    @property
    def constants(self) -> tuple[str, ...]:
        """The places of constants."""
        if self.mode == RESET:
            return ()
        written = {"q", "v", "tau" if self.given.is_torque else law_place("q_ref")}
        written |= set(self.given.randomization.sizes)
        return tuple(x for x in self.given.options.packed_once if x not in written)

    @property
    def sampled(self) -> tuple[str, ...]:
        """The places that a call returns: the state, then the outputs."""
        state = {"q": "Q", "v": "V"}
        return (*(state.get(x, x) for x in self.state_sizes), *self.outputs)

    @property
    def rollout(self) -> Rollout:
        """One control step, for the back end."""
        loops, conditions, prologue = (), {}, ("start",)
        if self.mode != RESET:
            simulated = self.rollout_program.rollout
            loops, prologue = simulated.repeats, simulated.prologue
            conditions = dict(simulated.conditions)
        return Rollout(
            BlockFrame(self._used(prologue)),
            self.order,
            (*self.packed, *self.constants),
            (),
            self.sampled,
            loops,
            conditions | self.conditions,
            prologue,
        )

    def _used(self, prologue: tuple[str, ...]) -> NamedBlocks:
        """The blocks that run; `env.apply` gives each place of the state its size."""
        names = {*self.order, *prologue, "env.apply"}
        return {x: y for x, y in self.blocks.items() if x in names or x[:4] != "env."}

    @property
    def flops(self) -> int:
        """The operations of a control step; a sine or cosine counts as forty."""
        counts = [code.count for name, code in self.codes.items() if name in self.order]
        own = sum(count.flops + 40 * count.trig for count in counts)
        return own + (self.mode != RESET) * self.given.decimation * self.rollout_program.flops

    @property
    def key(self) -> list[str]:
        """What the code depends on, besides the robot."""
        texts = [
            f"{name} {code.program.inputs} {code.program.outputs} {code.tape.nodes} {code.stores}"
            if isinstance(code, StraightCode)
            else f"{name} {getattr(code, 'key', code)}"
            for name, code in self.codes.items()
        ]
        head = [*self.packed, *self.constants, *self.sampled, str(self.given.decimation)]
        return [self.mode, *head, *texts]


def _rule(name: str, sizes: Mapping[str, int], rule: Callable[[dict], Mapping]) -> StraightCode:
    """The code of a rule on a dict of places."""
    inputs = [Argument(place, (size,)) for place, size in sizes.items()]
    return trace_rule(name, inputs, lambda **places: rule(places))


def _places(block: str) -> dict[str, str]:
    """{argument: place} of a block with arguments of its own names."""
    counter = NEW_COUNTER if block == "env.draw" else COUNTER
    places: dict[str, str] = dict.fromkeys(("env.observe", "env.noise"), NOISE)
    places |= dict.fromkeys(("env.event", "env.event_draw"), HAPPENING)
    numbers = places.get(block, RENEWAL)
    if block in ("env.draw", "env.noise", "env.event_draw"):
        return {"key": KEY, "counter": counter, NUMBERS: numbers}
    return {NUMBERS: numbers}


def _renewed(x: dict[str, np.ndarray]) -> dict[str, Any]:
    """The counter of the next episode."""
    return {NEW_COUNTER: [x[COUNTER][0], x[COUNTER][EPISODE] + 1.0, 0.0]}


def _checked_action(x: dict[str, np.ndarray]) -> dict[str, Any]:
    good: Any = 1.0
    for a in x[GIVEN]:
        good = good * less(a, LARGEST_ACTION) * less(-LARGEST_ACTION, a)
    return {INVALID: [1.0 - good]}


def _checked_state(x: dict[str, np.ndarray]) -> dict[str, Any]:
    """failed: 1 where the state is not finite, or the action was not."""
    size: Any = 0.0
    for value in (*x["Q"], *x["V"]):
        size = size + value * value
    return {FAILED: [1.0 - less(size, LARGEST_SQUARE) * (1.0 - x[INVALID][0])]}


def _is_zero(flag: Any) -> Any:
    """1 where a number is 0: neither above nor below."""
    return (1.0 - less(flag, 0.0)) * (1.0 - less(0.0, flag))


def _moved(m: Any, posture: np.ndarray, shift: np.ndarray, motors: np.ndarray) -> np.ndarray:
    """posture exp(shift), for joints that have a motor; the others keep the posture."""
    out = posture.copy()
    i, k = m.flat
    out[i] = posture[i] + shift[k]
    moving = set(np.asarray(motors).tolist())
    for joint in m.curved:
        if moving & set(range(joint.v_slice.start, joint.v_slice.stop)):
            own = joint.row.exp(list(posture[joint.q_slice]), list(shift[joint.v_slice]))
            out[joint.q_slice] = own
    return out
