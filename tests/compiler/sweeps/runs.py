"""Lowered programs run in plain Python: what `trace_tape` and `trace_loops` return, without an
emitter."""

from __future__ import annotations

import numpy as np

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.ir.segments import FrameLayout
from psiphi.compiler.sweeps.link_loops import LinkClass, LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate
from psiphi.model.model import WORLD, Model
from psiphi.robot.catalogue.catalogue import CATALOGUE, quantity_program

ON_A_FRAME = (
    "frame_pose",
    "frame_velocity",
    "frame_acceleration",
    "frame_imu",
    "jacobian",
    "operational_compliance",
)
LOADED = ("forward_dynamics", "inverse_dynamics", "bias", "joint_forces")


def requests() -> list[tuple[str, tuple[str, ...], str]]:
    """(name, frames, axes): every quantity of the catalogue, on the frames it needs or may have, in
    both axes."""
    found = []
    for name in CATALOGUE:
        sets = [("tool",)] if name in ON_A_FRAME else [()]
        if name in LOADED:
            sets.append(("tool", "elbow", "tool"))
        found += [
            (name, frames, axes)
            for frames in sets
            for axes in (("world", "frame") if frames else ("world",))
        ]
    return found


def program_of(tree: Tree, request: tuple[str, tuple[str, ...], str]) -> Program:
    name, frames, axes = request
    return quantity_program(name, tree, frames, axes)


def arguments(
    program: Program, model: Model, seed: int = 0, size: tuple[int, ...] = (3,)
) -> list[np.ndarray]:
    """Random inputs of a program."""
    rng = np.random.default_rng(seed)
    return [
        model.random(rng, size) if a.name == "q" else rng.standard_normal((*size, *a.shape))
        for a in program.inputs
    ]


def flat(program: Program, arrays) -> list[np.ndarray]:
    """Inputs as (batch, size)."""
    pairs = zip(program.inputs, arrays, strict=True)
    return [
        np.reshape(a, (*np.shape(a)[: np.ndim(a) - len(arg.shape)], arg.size)) for arg, a in pairs
    ]


def shaped(arg: Argument, values: np.ndarray) -> np.ndarray:
    return values.reshape(*values.shape[:-1], *arg.shape)


def run_tape(straight: StraightCode, *arrays) -> tuple[np.ndarray, ...]:
    """The outputs of an unrolled program, by the tape's interpreter."""
    given = flat(straight.program, arrays)
    outs = [np.full((*given[0].shape[:-1], arg.size), np.nan) for arg in straight.program.outputs]
    values = evaluate(
        straight.tape, [n for *_, n in straight.stores], lambda space, i: given[int(space)][..., i]
    )
    for (number, index, _), value in zip(straight.stores, values, strict=True):
        outs[number][..., index] = value
    return tuple(shaped(arg, out) for arg, out in zip(straight.program.outputs, outs, strict=True))


def run_rolled(rolled: LinkLoops, *arrays) -> tuple[np.ndarray, ...]:
    """The outputs of a rolled program: loops over its tables, memory as the kernels lay it out."""
    return _Machine(rolled, flat(rolled.program, arrays)).run()


def run_staged(staged: StagedCode, *arrays) -> tuple[np.ndarray, ...]:
    """The outputs of stages, block by block: each reads its places and leaves others."""
    places = dict(
        zip((arg.name for arg in staged.program.inputs), flat(staged.program, arrays), strict=True)
    )
    for _, code, at in staged.blocks:
        run = run_rolled if isinstance(code, LinkLoops) else run_tape
        read = [shaped(arg, places[at.get(arg.name, arg.name)]) for arg in code.program.inputs]
        for arg, value in zip(code.program.outputs, run(code, *read), strict=True):
            name = at.get(arg.name, arg.name)
            assert name not in places, f"{name} is written twice"
            places[name] = value.reshape(*value.shape[: value.ndim - len(arg.shape)], arg.size)
    return tuple(shaped(arg, places[arg.name]) for arg in staged.program.outputs)


class _Machine:
    """Memory of a rolled program: the arguments' frame, a record and an inbox a body (and one of
    each for the world)."""

    def __init__(self, rolled: LinkLoops, inputs: list[np.ndarray]):
        self.rolled, self.program = rolled, rolled.program
        layout = FrameLayout.of(self.program.inputs, self.program.outputs)
        self.inputs, self.outputs, lead = layout.inputs, layout.outputs, inputs[0].shape[:-1]
        bodies = len(rolled.tree.links)
        nan = np.nan  # what nobody wrote must not be read
        self.frame = np.full((layout.size, *lead), nan)
        self.records = np.full((bodies + 1, rolled.record_size, *lead), nan)
        self.inboxes = np.full((bodies + 1, rolled.inbox_size, *lead), nan)
        for start, values in zip(layout.inputs, inputs, strict=True):
            self.frame[start : start + values.shape[-1]] = np.moveaxis(values, -1, 0)
        for start, arg in zip(layout.outputs, self.program.outputs, strict=True):
            self.frame[start : start + arg.size] = 0.0

    def run(self) -> tuple[np.ndarray, ...]:
        for stage in self.rolled.sweeps:
            assert len(stage.order) == len(stage.class_ids)
            for k, number in zip(stage.order, stage.class_ids, strict=True):
                self.step(stage.classes[number], k)
        if self.rolled.finish is not None:
            self.step(self.rolled.finish, WORLD)
        outs = []
        for start, arg in zip(self.outputs, self.program.outputs, strict=True):
            outs.append(shaped(arg, np.moveaxis(self.frame[start : start + arg.size], 0, -1)))
        return tuple(outs)

    def bases(self, k: int) -> dict:
        """Each base pointer of a step at body k."""
        joints = self.rolled.tree.model.joints
        if k == WORLD:
            return {"frame": self.frame, "inbox": self.inboxes[-1]}
        joint, start = joints[k], self.rolled.param_start[k]
        bases = {
            "frame": self.frame,
            "here": self.records[k],
            "inbox": self.inboxes[k],
            "param": self.rolled.params[start:],
        }
        parent = self.rolled.parents[k]
        bases |= {
            "parent": self.records[parent],
            "up": self.inboxes[parent],
        }  # -1: the world's, the last one
        firsts = {"q": joint.q_slice.start, "v": joint.v_slice.start}
        for word, starts, group in (
            ("in", self.inputs, self.program.inputs),
            ("out", self.outputs, self.program.outputs),
        ):
            for i, (first, arg) in enumerate(zip(starts, group, strict=True)):
                if arg.per_joint:
                    bases[f"{word}{i}"] = self.frame[first + firsts[arg.per_joint] :]
        return bases

    def step(self, cls: LinkClass, k: int) -> None:
        bases, value = self.bases(k), {}
        for node in cls.tape.live(cls.outputs, cls.loads):
            op, a, b = cls.tape.nodes[node]
            if node in cls.loads:
                base, offset = cls.loads[node]
                value[node] = np.copy(bases[base][offset])
            elif op is Op.CONST:
                value[node] = a
            else:
                value[node] = (
                    OP_FUNCTIONS[op](value[a], value[b])
                    if op in BINARY
                    else OP_FUNCTIONS[op](value[a])
                )
        for base, offset, node, accumulate in cls.stores:
            bases[base][offset] = bases[base][offset] + value[node] if accumulate else value[node]
