"""The loops over the nodes of one iteration, as blocks of tape.

    backward   from the last node to the first: slopes of the step and of the costs, masks of
               torques at their bounds, a Riccati step; results k, K
    look       from the first node to the last: CANDIDATES motions with u + alpha k + K dx, clipped,
               in one tape, so that the gains are read once; results: only their costs
    take       the best of them again; results: its states and torques
    value      the cost of each term along given states and torques

A problem is a SIMD lane. Goals and gaps are packed for each node; a goal that does not change is a
row with stride 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.apps.optimal_control.contact_sequence.held_contacts import (
    HeldContacts,
    HeldFrames,
    HeldSlopes,
    HeldStep,
)
from psiphi.apps.optimal_control.cost_terms import (
    CostTerm,
    Slopes,
    Variables,
    cost_curvature,
    excess_rows,
    slopes,
    term_values,
    weighted_sum,
)
from psiphi.apps.optimal_control.riccati_step import CostSlopes, StepSlopes, riccati_step
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.tape.tape import Count, Tape
from psiphi.model.loops.cluster_joints import ClusterJoint
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import dot
from psiphi.robot import joint_law_derivatives
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Values, rule_places
from psiphi.simulation.integration.integrators import step_sequence
from psiphi.simulation.linearization.linearize import TangentManifold
from psiphi.simulation.linearization.linearize_function import call_traced

CANDIDATES = 8  # step lengths 1, 1/2, 1/4, ...
STEP_LENGTHS = tuple(0.5**i for i in range(CANDIDATES))
METHOD = "euler"
MARGIN = 1e-3  # share of the range of a torque within which it counts as being at a bound
STATE_LIMIT = tuple[int, float, float]  # index in (q, v), sign, bound


@dataclass(frozen=True, eq=False)
class ControlBlocks:
    """The problem, as far as the code depends on it."""

    robot: Robot
    running: tuple[CostTerm, ...]
    final: tuple[CostTerm, ...]
    motors: tuple[int, ...]  # the indices in v of the torques u
    has_bounds: bool  # of the torques
    limits: tuple[STATE_LIMIT, ...] = ()  # of q and v
    has_gaps: bool = False
    curvature: bool = False  # whether `backward` adds the curvature of the dynamics
    contacts: HeldFrames = ()  # frames that can be held, and how

    # -- sizes of the places

    @property
    def state_size(self) -> int:
        return 2 * self.robot.nv

    @property
    def sizes(self) -> dict[str, int]:
        """{place: size}."""
        nq, n, m, x = self.robot.nq, self.robot.nv, len(self.motors), self.state_size
        named = {
            "q": nq, "v": n, "u": m, "k": m, "K": m * x, "d": x, "h": 1, "mu": 1, "theta": 1,
            "low": m, "high": m, "p": x, "P": x * (x + 1) // 2, "decrease": 1, "residual": 1,
            "pivot": 1, "alpha": 1, "Q": nq, "V": n, "U": m, "J": 1, "last": 1,
        }  # fmt: skip
        for name, terms in (("", self.running), ("final_", self.final)):
            named[f"{name}goal"] = sum(term.goal_size for term in terms)
            named[f"{name}weight"] = sum(len(term.kept) for term in terms)
        named |= {"shift": len(self.limits), "rho": 1, "final_shift": len(self.limits)}
        named |= {f"final_{name}": named[name] for name in ("q", "v")}
        named |= {"hold": len(self.contacts), "F": len(self.held.rows)}
        if self.robot.freed is not None:
            named[PARAMETERS] = self.robot.parameter_arguments[0].shape[-1]
        return named

    def _some(self, names: Sequence[str]) -> dict[str, int]:
        """{place: size} of the places that are not empty."""
        sizes = self.sizes
        return {name: sizes[name] for name in names if sizes.get(name)}

    @cached_property
    def held(self) -> HeldContacts:
        """The contacts of the schedule."""
        return HeldContacts(self.robot, self.contacts)

    @property
    def parameters(self) -> tuple[str, ...]:
        return (PARAMETERS,) * (self.robot.freed is not None)

    @property
    def bounds(self) -> tuple[str, ...]:
        return ("low", "high") * self.has_bounds

    @property
    def gaps(self) -> tuple[str, ...]:
        return ("d",) * self.has_gaps

    # -- laws of one node, on tape expressions

    def torque(self, u: np.ndarray) -> np.ndarray:
        """tau (nv,), zero at joints without a motor."""
        tau = np.array([0.0] * self.robot.nv, dtype=object)
        tau[list(self.motors)] = u
        return tau

    def acceleration(
        self, x: Variables, places: dict[str, Any], parameters: Sequence[np.ndarray]
    ) -> HeldStep:
        """The acceleration, with the forces of the contacts that hold."""
        tau = self.torque(x.u)
        if self.contacts:
            h, hold = places["h"][0], entries(places["hold"])
            return self.held.step(x.q, x.v, tau, h, hold, parameters)
        function = self.robot.unbound_function("forward_dynamics")
        return HeldStep(call_traced(function, [x.q, x.v, tau, *parameters]), [])

    def with_contacts(self, x: Variables, step: HeldStep, places: dict[str, Any]) -> Variables:
        """x with the forces of contacts, and which of them hold."""
        if not self.contacts:
            return x
        force, hold = np.array(step.force, dtype=object), np.array(places["hold"], dtype=object)
        return Variables(x.q, x.v, x.u, force, hold)

    def next_state(self, x: Variables, h: Any, a: np.ndarray) -> list:
        """(q, v) after one step, by the rules of the integrator."""
        m = self.robot.manifold
        values: dict[str, Any] = {"q": x.q, "v": x.v, "Q": x.q, "V": x.v, "h": h}
        for item in step_sequence(METHOD, False):
            if callable(item):
                values |= item(m, *(values[name] for name in rule_places(item)))
                continue
            values["u"] = values["v"]
            if isinstance(item, int):
                values["a"] = a
        return [values["q"], values["v"]]

    def difference(self, q: np.ndarray, v: np.ndarray, Q: np.ndarray, V: np.ndarray) -> list:
        """dx = (log(q^-1 Q), V - v)."""
        return [*entries(self.robot.manifold.log(q, Q)), *entries(V - v)]

    def clipped(self, u: list, low: list, high: list) -> list:
        """u within the bounds."""
        if not self.has_bounds:
            return u
        triples = zip(u, low, high, strict=True)
        return [minimum(maximum(x, a), b) for x, a, b in triples]

    def _bind(self, parameters: np.ndarray | None, tape: Tape) -> tuple[np.ndarray, ...]:
        """The free parameters; functions of the robot in costs read them too."""
        if parameters is None:
            return ()
        tape.alias(self.robot.parameter_arguments[0], parameters)
        return (parameters,)

    def node_cost(
        self, terms: Sequence[CostTerm], x: Variables, places: dict[str, Any], prefix: str = ""
    ) -> Any:
        """The cost of one node, without h."""
        goal, weight = (
            entries(places[prefix + name]) if prefix + name in places else []
            for name in ("goal", "weight")
        )
        return weighted_sum(terms, x, goal, weight) + self._limit_cost(x, places, prefix)

    def _limit_cost(self, x: Variables, places: dict[str, Any], prefix: str) -> Any:
        """rho max(0, s + c)^2 / 2 of the limits of the state."""
        if not self.limits:
            return 0.0
        state = [*self._limited(x), *entries(x.v)]
        rows = excess_rows(self.limits, state, entries(places[prefix + "shift"]))
        return (0.5 * places["rho"][0]) * dot(rows, rows)

    def _limited(self, x: Variables) -> list:
        """q in the order of v; limits are of flat coordinates."""
        return entries(self.robot.manifold.positions(x.q))

    def node_slopes(
        self,
        terms: Sequence[CostTerm],
        x: Variables,
        places: dict[str, Any],
        prefix: str = "",
        force_slopes: Sequence[list] = (),
    ) -> Slopes:
        """The slopes of that cost; `force_slopes` are those of the forces x.f by (q, v, u)."""
        goal, weight = (
            entries(places[prefix + name]) if prefix + name in places else []
            for name in ("goal", "weight")
        )
        found = slopes(self.robot, terms, x, goal, weight, force_slopes)
        if not self.limits:
            return found
        state = [*self._limited(x), *entries(x.v)]
        rho = places["rho"][0]
        rows = excess_rows(self.limits, state, entries(places[prefix + "shift"]))
        for (i, sign, _), row in zip(self.limits, rows, strict=True):
            found.x[i] = found.x[i] + (rho * sign) * row
            found.xx[i][i] = found.xx[i][i] + rho * less(0.0, row)
        return found

    def step_slopes(
        self, x: Variables, places: dict[str, Any], parameters: Sequence[np.ndarray]
    ) -> tuple[StepSlopes, HeldSlopes]:
        """The derivatives of one semi-implicit step, in blocks, and those of its velocity."""
        robot, n, h = self.robot, self.robot.nv, places["h"]
        tau, motors = self.torque(x.u), list(self.motors)
        eye = np.eye(n).astype(object)
        if self.contacts:
            hold = entries(places["hold"])
            found = self.held.slopes(x.q, x.v, tau, h[0], hold, motors, parameters)
        else:
            jacobian = robot.unbound_function("forward_dynamics").jacobian("q", "v", "tau")
            a_q, a_v, a_tau = call_traced(jacobian, [x.q, x.v, tau, *parameters])
            Z = a_tau[:, motors] * h[0]
            found = HeldSlopes(a_q * h[0], eye + a_v * h[0], Z, [], Z)
        Ad, J = eye.copy(), eye * h[0]
        if not robot.manifold.is_flat:
            held = found.step or self.acceleration(x, places, parameters)
            v1 = self.next_state(x, h, held.a)[1]
            for joints in TangentManifold(robot).slices:
                if joints.number is not None and not self._is_cluster(joints.number):
                    block = joints.v, joints.v
                    Ad[block], J[block] = self._configuration_slopes(
                        joints.number, v1[joints.v], h[0]
                    )
        blocks = Ad, J, found.X, found.Y, found.Z
        return StepSlopes(*(block.tolist() for block in blocks)), found

    def _is_cluster(self, number: int) -> bool:
        """Whether a curved joint is an embedded loop, whose free coordinates move by h v."""
        return isinstance(self.robot.manifold.curved[number], ClusterJoint)

    def _configuration_slopes(self, number: int, v: np.ndarray, h: Any) -> tuple[Any, Any]:
        """The change of q exp(h v) as a tangent vector, by that of q and by v, for one joint.

        exp is invariant from the left, so q may be the neutral configuration.
        """
        row: Any = self.robot.manifold.curved[number].row
        start = np.array(row.neutral, dtype=object)
        T0 = np.array([row.rate(list(start), unit) for unit in np.eye(row.nv).tolist()]).T
        law = joint_law_derivatives.joint_law_function
        moved, by_q, by_v = call_traced(law(self.robot, number, "exp"), [start, v * h])
        tangent = call_traced(law(self.robot, number, "tangent"), [moved])
        return tangent @ (by_q @ T0), (tangent @ by_v) * h

    def bent(
        self, x: Variables, p: list, h: Any, theta: Any, parameters: Sequence[np.ndarray]
    ) -> tuple[list, list]:
        """theta lam* d2f by (x, x) and (u, x), lam = p; that by (u, u) vanishes."""
        robot, n, m = self.robot, self.robot.nv, len(self.motors)
        hessian = robot.unbound_function("forward_dynamics").hessian("q", "v", "tau")
        weight = np.array([h[0] * (p[n + i] + h[0] * p[i]) for i in range(n)], dtype=object)
        H = call_traced(hessian, [x.q, x.v, self.torque(x.u), *parameters, weight])
        scaled = theta[0] * H
        motors = [2 * n + i for i in self.motors]
        xx, ux = scaled[: 2 * n, : 2 * n], scaled[motors, : 2 * n]
        assert ux.shape == (m, 2 * n)
        return xx.tolist(), ux.tolist()

    # -- blocks

    def backward_block(self, **places: Any) -> Values:
        """One Riccati step."""
        x = Variables(places["q"], places["v"], places["u"])
        h, tape = places["h"], places["v"][0].tape
        parameters = self._bind(places.get(PARAMETERS), tape)
        step, velocity = self.step_slopes(x, places, parameters)
        if velocity.step is not None:
            x = self.with_contacts(x, velocity.step, places)
        cost = self.node_slopes(self.running, x, places, force_slopes=velocity.force)
        P = unpack_symmetric(entries(places["P"]), self.state_size)
        p = entries(places["p"])
        if self.has_gaps:
            d = entries(places["d"])
            p = [y + dot(row, d) for y, row in zip(p, P, strict=True)]
        h0 = h[0]
        lx, lu = [h0 * y for y in cost.x], [h0 * y for y in cost.u]
        lxx, lux, luu = ([[h0 * y for y in row] for row in M] for M in cost[3:])
        if self.curvature:
            xx, ux = self.bent(x, p, h, places["theta"], parameters)
            lxx, lux = _matrix_sum(lxx, xx), _matrix_sum(lux, ux)
        scale = places["mu"][0] * h0
        rows = velocity.free[list(self.motors)]  # h S* M^-1 S
        damping = [[scale * y for y in row] for row in rows]

        def mask(Qu: list) -> tuple[list, list]:
            each = zip(x.u, places["low"], places["high"], Qu, strict=True)
            free, to_bound = zip(*(_mask(*values) for values in each), strict=True)
            return list(free), list(to_bound)

        masks, given = (mask if self.has_bounds else None), CostSlopes(lx, lu, lxx, lux, luu)
        found = riccati_step(p, P, step, given, masks, damping, self.curvature)
        total = {
            "k": found.k,
            "K": [y for row in found.K for y in row],
            "p": found.p,
            "P": pack_symmetric(found.P),
            "decrease": [places["decrease"][0] + found.decrease],
            "residual": [maximum(places["residual"][0], found.residual)],
        }
        if self.curvature:
            total["pivot"] = [minimum(places["pivot"][0], found.pivot)]
        return total

    def final_block(self, **places: Any) -> Values:
        """p and P at the last node."""
        q, v, n = places["final_q"], places["final_v"], self.state_size
        self._bind(places.get(PARAMETERS), v[0].tape)
        x = Variables(q, v, np.zeros(0, dtype=object))
        cost = self._final_slopes(x, places)
        start = {"p": cost[0], "P": pack_symmetric(cost[1]), "decrease": [0.0], "residual": [0.0]}
        assert len(start["p"]) == n
        return start | ({"pivot": [1.0]} if self.curvature else {})

    def _final_slopes(self, x: Variables, places: dict[str, Any]) -> tuple[list, list]:
        """l_x and l_xx of the last node; limits count like those of a step."""
        h = places["h"][0] if self.limits else 1.0
        scaled = dict(places)
        if self.limits:
            scaled["rho"] = places["rho"] * h
        found = self.node_slopes(self.final, x, scaled, "final_")
        return found.x, found.xx

    def final_cost(self, x: Variables, places: dict[str, Any]) -> Any:
        scaled = dict(places)
        if self.limits:
            scaled["rho"] = places["rho"] * places["h"][0]
        return self.node_cost(self.final, x, scaled, "final_")

    def advance(self, alpha: Any, Q: np.ndarray, V: np.ndarray, J: Any, places: Any) -> list:
        """(U, Q, V, J, F) after one node of a motion with step length alpha."""
        n, m = self.state_size, len(self.motors)
        k, K = entries(places["k"]), entries(places["K"])
        dx = self.difference(places["q"], places["v"], Q, V)
        wanted = [
            u + alpha * k[i] + dot(K[n * i : n * (i + 1)], dx)
            for i, u in enumerate(entries(places["u"]))
        ]
        bounds = [entries(places[name]) for name in self.bounds]
        U = np.array(self.clipped(wanted, *bounds) if bounds else wanted, dtype=object)
        assert len(U) == m
        h, parameters = places["h"], self._bind(places.get(PARAMETERS), V[0].tape)
        step = self.acceleration(Variables(Q, V, U), places, parameters)
        x = self.with_contacts(Variables(Q, V, U), step, places)
        q1, v1 = self.next_state(x, h, step.a)
        J = J + h[0] * self.node_cost(self.running, x, places)
        if self.has_gaps:
            back = np.array([(alpha - 1.0) * y for y in places["d"]], dtype=object)
            m_ = self.robot.manifold
            q1 = m_.unit(m_.exp(q1, back[: self.robot.nv]))
            v1 = v1 + back[self.robot.nv :]
        return [U, q1, v1, J, step.force]

    def look_block(self, **places: Any) -> Values:
        """All candidates, one node further."""
        nq, nv, parts = self.robot.nq, self.robot.nv, []
        for c, alpha in enumerate(STEP_LENGTHS):
            Q, V = places["Q"][nq * c : nq * (c + 1)], places["V"][nv * c : nv * (c + 1)]
            parts.append(self.advance(alpha, Q, V, places["J"][c], places))
        _, Q, V, J, _ = zip(*parts, strict=True)
        return {"Q": np.concatenate(Q), "V": np.concatenate(V), "J": list(J)}

    def take_block(self, **places: Any) -> Values:
        """One candidate, one node further."""
        alpha, J = places["alpha"][0], places["J"][0]
        U, Q, V, J, F = self.advance(alpha, places["Q"], places["V"], J, places)
        return {"U": U, "Q": Q, "V": V, "J": [J]} | ({"F": F} if self.contacts else {})

    def end_block(self, count: int, **places: Any) -> Values:
        """J with the final cost, of `count` candidates; nothing before the last node."""
        nq, nv, J = self.robot.nq, self.robot.nv, []
        self._bind(places.get(PARAMETERS), places["V"][0].tape)
        for c in range(count):
            Q, V = places["Q"][nq * c : nq * (c + 1)], places["V"][nv * c : nv * (c + 1)]
            x = Variables(Q, V, np.zeros(0, dtype=object))
            total = places["J"][c] + self.final_cost(x, places)
            J.append(choose(places["last"][0], total, places["J"][c]))
        return {"J": J}

    # -- loops

    @property
    def _cost_places(self) -> tuple[str, ...]:
        return ("weight", "rho") if self.limits else ("weight",)

    def _node_places(self, *names: str) -> dict[str, int]:
        return self._some((*names, "goal", "hold", *["shift"] * bool(self.limits)))

    def _final_places(self) -> dict[str, int]:
        names = ("final_goal", "final_weight", *["final_shift", "rho"] * bool(self.limits))
        return self._some((*names, "h"))

    @cached_property
    def backward(self) -> Rollout:
        """The loop "backward"; its rows are given last first."""
        theta = ("theta",) * self.curvature
        pivot = ("pivot",) * self.curvature
        carried = ("p", "P", "decrease", "residual", *pivot)
        per_node = self._node_places("q", "v", "u", *self.gaps)
        once = self._some(("h", "mu", *theta, *self.bounds, *self._cost_places, *self.parameters))
        start = self._some(("final_q", "final_v", *self.parameters)) | self._final_places()
        blocks: NamedBlocks = {
            "start": (trace("start", start, self.final_block), {}),
            "backward": (
                trace("backward", {**per_node, **once, **self._some(carried)}, self.backward_block),
                {},
            ),
        }
        return Rollout(
            BlockFrame(blocks),
            ("backward",),
            tuple({**start, **once}),
            tuple(per_node),
            ("k", "K", "decrease", "residual", *pivot),
        )

    def _forward(self, name: str, count: int, sampled: tuple[str, ...]) -> Rollout:
        nq, nv = self.robot.nq, self.robot.nv
        state = {"Q": count * nq, "V": count * nv, "J": count}
        per_node = self._node_places("q", "v", "u", "k", "K", *self.gaps)
        alpha = self._some(("alpha",) * (count == 1))
        once = self._some(("h", *self.bounds, *self._cost_places, *self.parameters)) | alpha
        rule = self.take_block if count == 1 else self.look_block
        first = {"q0": nq, "v0": nv}

        def start(q0: np.ndarray, v0: np.ndarray) -> Values:
            Q, V = (np.concatenate([x] * count) for x in (q0, v0))
            return {"Q": Q, "V": V, "J": [0.0] * count}

        blocks: NamedBlocks = {
            "start": (trace("start", first, start), {}),
            name: (trace(name, {**per_node, **once, **state}, rule), {}),
        }
        order, conditions, last = (name,), {}, ()
        if self.final or self.limits:
            places = {**state, **self._final_places(), **self._some(("last", *self.parameters))}
            end = trace("end", places, lambda **values: self.end_block(count, **values))
            blocks["end"] = end, {}
            order, conditions, last = (name, "end"), {"end": "last"}, ("last",)
            once |= {key: n for key, n in places.items() if key not in (*state, "last")}
        return Rollout(
            BlockFrame(blocks),
            order,
            tuple({**first, **once}),
            (*per_node, *last),
            sampled,
            conditions=conditions,
        )

    @cached_property
    def look(self) -> Rollout:
        """The loop "look"."""
        return self._forward("look", CANDIDATES, ("J",))

    @cached_property
    def take(self) -> Rollout:
        """The loop "take"."""
        return self._forward("take", 1, ("Q", "V", "U", "J", *["F"] * bool(self.contacts)))

    @cached_property
    def value(self) -> Rollout:
        """The costs of all terms along given states and torques, and then of the final terms."""
        count, ends = len(self.running), len(self.final)
        forces = any(term.depends_on_contacts for term in self.running)
        per_node = self._some(("q", "v", "u", "goal", *["hold"] * forces))
        once = self._some(("h", "weight", *self.parameters))
        places = self._some(("final_q", "final_v", "final_goal", "final_weight", *self.parameters))

        def start(**values: Any) -> Values:
            self._bind(values.get(PARAMETERS), values["final_v"][0].tape)
            q, v = values["final_q"], values["final_v"]
            x = Variables(q, v, np.zeros(0, dtype=object))
            numbers = [entries(values.get(f"final_{n}", np.zeros(0))) for n in ("goal", "weight")]
            zero = 0.0 * v[0]
            return {
                "costs": [zero] * max(count, 1),
                "final_costs": term_values(self.final, x, *numbers) or [zero],
            }

        def add(**values: Any) -> Values:
            parameters = self._bind(values.get(PARAMETERS), values["v"][0].tape)
            x = Variables(values["q"], values["v"], values["u"])
            if forces:
                x = self.with_contacts(x, self.acceleration(x, values, parameters), values)
            numbers = [entries(values.get(n, np.zeros(0))) for n in ("goal", "weight")]
            each = term_values(self.running, x, *numbers) or [0.0 * x.v[0]]
            h = values["h"][0]
            return {"costs": [a + h * b for a, b in zip(values["costs"], each, strict=True)]}

        sizes = {**per_node, **once, "costs": max(count, 1)}
        blocks: NamedBlocks = {
            "start": (trace("start", places, start), {}),
            "add": (trace("add", sizes, add), {}),
        }
        assert ends == len(self.final)
        return Rollout(
            BlockFrame(blocks),
            ("add",),
            tuple({**places, **once}),
            tuple(per_node),
            ("costs", "final_costs"),
        )

    @cached_property
    def second(self) -> Rollout:
        """The gradients and exact Hessians of the costs of all nodes, by (delta, dv, du), and their
        derivatives by goals and parameters; then those of the final costs."""
        n, m = self.state_size, len(self.motors)
        per_node = self._some(("q", "v", "u", "goal"))
        once = self._some(("weight", *self.parameters))
        places = self._some(("final_q", "final_v", "final_goal", "final_weight", *self.parameters))
        others = {prefix: self.sizes[f"{prefix}goal"] for prefix in ("", "final_")}
        count = self.sizes.get(PARAMETERS, 0)

        def second(terms: Sequence[CostTerm], x: Variables, prefix: str, values: Any) -> Values:
            self._bind(values.get(PARAMETERS), x.v[0].tape)
            goal, weight = (
                entries(values[prefix + name]) if prefix + name in values else []
                for name in ("goal", "weight")
            )
            leaves = [*goal, *entries(values.get(PARAMETERS, np.zeros(0)))]
            found = cost_curvature(self.robot, terms, x, goal, weight, leaves)
            return {f"{prefix}{name}": row for name, row in found.items() if row}

        def start(**values: Any) -> Values:
            q, v = values["final_q"], values["final_v"]
            x = Variables(q, v, np.zeros(0, dtype=object))
            return second(self.final, x, "final_", values)

        def node(**values: Any) -> Values:
            x = Variables(values["q"], values["v"], values["u"])
            return second(self.running, x, "", values)

        blocks: NamedBlocks = {
            "start": (trace("start", places, start), {}),
            "node": (trace("node", {**per_node, **once}, node), {}),
        }
        mixed = [f"{x}mixed" for x in others if others[x] + count]
        kept = ["gradient", "hessian", "final_gradient", "final_hessian", *mixed]
        assert n and m
        return Rollout(
            BlockFrame(blocks),
            ("node",),
            tuple({**places, **once}),
            tuple(per_node),
            tuple(kept),
        )

    @property
    def key(self) -> str:
        """The part of the cache key."""
        terms = [[term.key for term in group] for group in (self.running, self.final)]
        return json.dumps(
            [terms, self.motors, self.has_bounds, self.limits, self.has_gaps, self.curvature]
            + [[*self.contacts]] * bool(self.contacts)
        )


def loop_count(rollout: Rollout) -> Count:
    """The operations of one node."""
    return sum((rollout.frame.named[name][0].count for name in rollout.order), Count())


def unpack_symmetric(values: list, n: int) -> list[list]:
    """The symmetric matrix of its upper half, by rows."""
    rows: list[list] = [[0.0] * n for _ in range(n)]
    places = ((i, j) for i in range(n) for j in range(i, n))
    for (i, j), x in zip(places, values, strict=True):
        rows[i][j] = rows[j][i] = x
    return rows


def pack_symmetric(A: list[list]) -> list:
    """The upper half of a symmetric matrix, by rows."""
    return [A[i][j] for i in range(len(A)) for j in range(i, len(A))]


def _mask(u: Any, low: Any, high: Any, gradient: Any) -> tuple[Any, Any]:
    """0 where u is close to a bound and the gradient pushes it outwards, else 1; and the step to
    that bound.

    Without the margin, a torque that approaches its bound in ever shorter steps stays free, and
    the direction of the other torques relies on a step that the bound cuts off (Bertsekas 1982).
    """
    margin = MARGIN * (high - low)
    at_low = less(u, low + margin) * less(0.0, gradient)
    at_high = less(high - margin, u) * less(gradient, 0.0)
    return (1.0 - at_low) * (1.0 - at_high), at_low * (low - u) + at_high * (high - u)


def _matrix_sum(A: list[list], B: list[list]) -> list[list]:
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]
