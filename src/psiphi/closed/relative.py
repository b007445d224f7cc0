"""Where constrained frames are and how they move, and the constraint rows that follow from it.

One sweep, base to tip, gives each frame its pose in the world, its velocity, and its acceleration under the joint
accelerations a (zero where none are given: dJ/dt v), with gravity as the pseudo-acceleration of the world, which no relative
motion feels.

As words these are J v and J a + dJ/dt v in the frames' axes, but a constraint also asks where its frames are, which no word
says (`TreeSum`); so one sweep is made of the steps that words use, `world_pose`, `spatial_velocity` and `accelerate`. The words
would cost more: they know no gravity, with which the bodies' own accelerations are made already. Forward dynamics of two Pumas
that hold a box takes 5298 flops so, 5328 by words; of the scene two_arms 5346 and 5368.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from psiphi.closed.constraints import Closure, Constraint
from psiphi.framing.framing import Tree
from psiphi.model.kinds import Forbidden, Relative
from psiphi.model.model import WORLD, Frame
from psiphi.spatial import small
from psiphi.spatial.screws import add, cross, dot, subtract
from psiphi.spatial.stacks import taken
from psiphi.steps.local import EYE3, ZERO3, ZERO6, spatial_velocity
from psiphi.steps.newton import accelerate, tensor, world_at_rest
from psiphi.steps.world_poses import world_pose
from psiphi.sweeps.program import BASE_TO_TIP, Argument, Program, Site, Sweep

Scalars = dict[str, list]


@dataclass(frozen=True)
class State:
    """A frame: rotation and origin in the world; w, v, w' and v' in its own axes."""

    R: list
    p: list
    w: list
    v: list
    wd: list
    vd: list

    @property
    def flat(self) -> list:
        """All its numbers, three by three."""
        return [x for triple in (*self.R, self.p, self.w, self.v, self.wd, self.vd) for x in triple]

    @classmethod
    def of(cls, flat: list) -> State:
        triples = [flat[i : i + 3] for i in range(0, NUMBERS, 3)]
        return cls(triples[:3], *triples[3:])


NUMBERS = 24  # of one State
KEPT = ("R", "p", "V", "motion")  # what the sweep to the frames keeps at a link


def sweep_to_frames(closure: Closure) -> Callable[[Tree, tuple[Argument, ...]], Program]:
    """All constrained frames, under way with the joint velocities v and accelerations a where these are inputs."""
    names = dict.fromkeys(name for c in closure.constraints for name in (c.first, c.second))
    return partial(_whereabouts, [closure.model.frame(name) for name in names])


def _whereabouts(spots: list[Frame], tree: Tree, inputs: tuple[Argument, ...]) -> Program:
    outputs = tuple(Argument(f"at {spot.name}", (NUMBERS,)) for spot in spots)
    marks: dict[int, tuple] = {}
    for spot in spots:
        if spot.body != WORLD:
            place, (home, at) = tree.place(spot.body, spot.pose), tree.home(spot.body)
            axes, origin = tuple(map(tuple, place.rotation.tolist())), tuple(place.translation.tolist())
            marks[home] = (*marks.get(home, ()), (f"at {spot.name}", axes, origin, at))

    def world(site: Site) -> None:
        site.keep(R=EYE3, p=ZERO3, V=ZERO6, motion=world_at_rest(tree.gravity))

    def step(site: Site) -> None:
        world_pose(site)
        spatial_velocity(site)
        accelerate(site, site.of("a"), "motion")
        for name, R, r, at in site.mark:
            site.write(name, 0, _at(site, R, r, at).flat)

    def finish(site: Site) -> None:
        for spot in spots:
            if spot.body == WORLD:
                R, p = spot.pose.rotation.tolist(), spot.pose.translation.tolist()
                pull = small.apply(small.transpose(R), [-float(g) for g in tree.gravity])
                site.write(f"at {spot.name}", 0, State(R, p, ZERO3, ZERO3, ZERO3, pull).flat)

    bodies = sorted({k for spot in spots for k in tree.path_to(spot.body)})
    return Program("frames", inputs, outputs, (Sweep(BASE_TO_TIP, step),), world, finish, bodies=bodies, marks=marks)


def _at(site: Site, R: list, r: list, at: int) -> State:
    """The frame with axes R and origin r on this body; on number `at` of a cluster."""
    kept = {name: taken(site.kept[name], at, site.link.size // 6) for name in KEPT} if site.is_cluster else site.kept
    w, wd, vd, U = kept["motion"]
    back = small.transpose(R)
    turned = lambda x: small.apply(back, x)  # noqa: E731
    return State(
        small.product(kept["R"], R),
        add(kept["p"], small.apply(kept["R"], r)),
        turned(w),
        turned(add(kept["V"][3:], cross(w, r))),
        turned(wd),
        turned(add(vd, small.apply(U, r))),
    )


@dataclass(frozen=True)
class Meeting:
    """A constraint in one state: its rows, c' = S [w'; v'] + extra under the accelerations given, and w' and v' themselves."""

    constraint: Constraint
    at: Relative
    rows: list[Forbidden]
    bias: list
    wd: list
    vd: list
    axes: list  # rotation of frame 2 in the world

    def pull(self, row: Forbidden) -> tuple[list, list]:
        """A unit multiplier of a row as wrenches: on frame 1 in its axes, on frame 2 in its axes."""
        back = small.transpose(self.at.R)
        first = small.apply(back, row.turn) + small.apply(back, row.slide)
        moment = add(row.turn, cross(self.at.p, row.slide))
        return first, [-x for x in (*moment, *row.slide)]


def meet(constraint: Constraint, one: State, two: State) -> Meeting:
    """Frame 1 seen from frame 2:

    w = R w1 - w2            w' = R w1' - w2' - w2 x w
    v = R v1 - v2 - w2 x p   v' = R v1' - v2' - U2 p - 2 w2 x v      U2 = w2'~ + w2~ w2~
    """
    back = small.transpose(two.R)
    R = small.product(back, one.R)
    p = small.apply(back, subtract(one.p, two.p))
    w = subtract(small.apply(R, one.w), two.w)
    v = subtract(subtract(small.apply(R, one.v), two.v), cross(two.w, p))
    parted = (
        subtract(small.apply(R, one.wd), two.wd),
        subtract(subtract(small.apply(R, one.vd), two.vd), small.apply(tensor(two.w, two.wd), p)),
    )
    wd, vd = subtract(parted[0], cross(two.w, w)), subtract(parted[1], [2.0 * x for x in cross(two.w, v)])
    kind, at = constraint.row, Relative(R, p, w, v)
    rows = kind.rows(constraint.shape, at)
    turning, sliding = wd if kind.turns else parted[0], vd if kind.slides else parted[1]  # w = 0, v = 0 where they must be
    bias = [dot(row.turn, turning) + dot(row.slide, sliding) + row.extra for row in rows]
    return Meeting(constraint, at, rows, bias, wd, vd, two.R)


def meetings(closure: Closure, places: Scalars) -> list[Meeting]:
    """Every constraint, from the states of its frames."""
    return [meet(c, *(State.of(places[f"at {name}"]) for name in (c.first, c.second))) for c in closure.constraints]


def rates(meeting: Meeting) -> list:
    """c = S [w; v]."""
    return [dot(row.turn, meeting.at.w) + dot(row.slide, meeting.at.v) for row in meeting.rows]
