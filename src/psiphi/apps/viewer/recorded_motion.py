"""Times, configurations, forces and plots of a motion: of a trajectory, or of configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, StateError
from psiphi._util.validate import real_array
from psiphi.apps.viewer.geometry.link_poses import link_poses, origin_positions, origin_rotations
from psiphi.apps.viewer.svg_plots import Plot, coordinate_labels, sample_indices
from psiphi.model.contact.contact_pairs import ContactPair, Place
from psiphi.model.contact.contact_points import ContactPoint, on_shared_frames
from psiphi.model.contact.ground import Ground
from psiphi.model.loops.constraints import Constraint
from psiphi.model.model import WORLD, Frame, Joint, Model
from psiphi.model.spatial.screws import add
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import frame_poses
from psiphi.simulation.trajectory.trajectory import Trajectory
from psiphi.simulation.trajectory.trajectory_summary import summary_rows

START_GUESSES = 8  # random configurations from which a closed chain is assembled
MAX_CURVES = 12  # of a plot
CONFIGURATION_RATE = 30.0  # configurations per second, if no times are given
SWING_DURATION = 1.6  # seconds of one joint in `joint_tour`
SWING_SHARES = 1.0, 0.5, 0.25  # of its amplitude: smaller where links would go through the floor


@dataclass(frozen=True, eq=False)
class Arrows:
    """Forces at moving points: `point` and `force` (times, arrows, 3) in world axes, in m and N."""

    names: tuple[str, ...]
    point: np.ndarray
    force: np.ndarray


@dataclass(frozen=True, eq=False)
class Touches:
    """The contacts with a ground, whose forces are arrows: modes (times, contacts), 0 open, 1
    sticks, 2 slips; radii (contacts,) of what touches; the normal (3,) of the ground."""

    modes: np.ndarray
    radii: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """t (times,), q (times, nq), and forces, plots and facts (name, text), if they are known."""

    t: np.ndarray
    q: np.ndarray
    arrows: Arrows | None = None
    plots: tuple[Plot, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    touches: Touches | None = None

    def __getitem__(self, times: np.ndarray) -> RecordedMotion:
        """The motion at some of its times, by index or mask."""
        arrows = self.arrows and Arrows(
            self.arrows.names, self.arrows.point[times], self.arrows.force[times]
        )
        plots = tuple(Plot(p.title, p.unit, p.names, p.values[:, times], p.log) for p in self.plots)
        touches = self.touches and replace(self.touches, modes=self.touches.modes[times])
        return RecordedMotion(self.t[times], self.q[times], arrows, plots, self.facts, touches)


def motion_from_configurations(
    model: Model, q: Numbers | None = None, t: Numbers | None = None
) -> RecordedMotion:
    """The motion of given configurations; the default is a tour through the joints."""
    if q is None:
        t, q = joint_tour(model)
    q = real_array("q", q, (), "give one configuration, or one for each time")
    if q.ndim not in (1, 2) or q.shape[-1] != model.nq:
        raise StateError(
            f"q has the shape {q.shape}, expected (times, {model.nq})",
            "give one configuration, or one for each time",
        )
    q = np.atleast_2d(q)
    t = (
        np.arange(len(q)) / CONFIGURATION_RATE
        if t is None
        else real_array("t", t, (), "give one time for each configuration")
    )
    if t.shape != (len(q),):
        raise StateError(
            f"t has the shape {t.shape}, expected ({len(q)},)",
            "give one time for each configuration",
        )
    if not (np.diff(t) > 0.0).all() or not np.isfinite(t).all():
        raise StateError("the times t do not increase", "sort them, and q with them")
    plots = (_coordinate_plot("joint coordinates", "rad, m", model, "q", q),) if len(q) > 1 else ()
    return _finite_part(RecordedMotion(t, q, None, plots))


def motion_from_trajectory(
    trajectory: Trajectory, model: Model, element: int = 0
) -> RecordedMotion:
    """A simulated motion; of a batch, one element."""
    q, t = batch_element(trajectory.q, element, 2), np.asarray(trajectory.t, dtype=float)
    if q.shape[-1] != model.nq:
        cause = (
            f"the trajectory has {q.shape[-1]} coordinates, but {model.name} has nq = {model.nq}"
        )
        raise StateError(cause, "load it with the system that was simulated")
    plots = _trajectory_plots(trajectory, model, element)
    return _finite_part(
        RecordedMotion(
            t,
            q,
            _force_arrows(trajectory, model, q, element),
            tuple(plots),
            tuple(summary_rows(trajectory)),
            _touches(trajectory, element),
        )
    )


def _finite_part(motion: RecordedMotion) -> RecordedMotion:
    """The motion at the times with a finite configuration."""
    good = np.isfinite(motion.q).all(axis=1)
    if not good.any():
        raise StateError("there is no finite configuration to show", "check trajectory.events")
    return motion if good.all() else motion[np.flatnonzero(good)]


def joint_tour(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """(t, q) of a motion in which each coordinate in turn swings once, within its limits."""
    home = shown_configuration(model)
    n = int(SWING_DURATION * CONFIGURATION_RATE)
    swing, qs = np.sin(np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)), []
    for joint in [j for j in model.joints if j.kind != "free"][:40] or list(model.joints)[:1]:
        for i, slides in zip(joint.coordinates, joint.row.slides, strict=False):
            v = np.zeros((n, model.nv))
            v[:, i] = swing * _swing_amplitude(joint, slides, home)
            tries = (_integrated(model, home, share * v) for share in SWING_SHARES)
            q = next(tries)
            while _goes_below(model, home, q) and (smaller := next(tries, None)) is not None:
                q = smaller
            qs.append(q)
    q = np.concatenate([*qs, home[None]]) if qs else home[None]
    return np.arange(len(q)) / CONFIGURATION_RATE, q


def _integrated(model: Model, home: np.ndarray, v: np.ndarray) -> np.ndarray:
    is_open = model.embedding is None
    return model.integrate(home, v) if is_open else _integrate_closed(model, home, v)


def _goes_below(model: Model, home: np.ndarray, q: np.ndarray) -> bool:
    """Whether a robot on a fixed base goes below its lowest joint at home: through its floor."""
    if model.joints[0].kind == "free" or not np.any(model.gravity_vector):
        return False
    up = -np.asarray(model.gravity_vector)
    lowest, now = ((link_poses(model, x)[1] @ up).min() for x in (home, q))
    return bool(now < lowest - 1e-9 * abs(lowest))


def _integrate_closed(model: Model, home: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Integrate in small steps, scaled by 1/3: each step closes the embedded loops."""
    q = [home]
    for step in np.diff(v, axis=0) / 3.0:
        q.append(model.integrate(q[-1], step))
    return np.stack(q)


def _swing_amplitude(joint: Joint, slides: bool, home: np.ndarray) -> float:
    """How far a joint swings to both sides of `home`."""
    amplitude = 0.15 if slides else 0.8
    if joint.row.nq != 1:
        return amplitude
    here = home[joint.q_slice.start]
    return float(max(0.0, min(amplitude, joint.upper[0] - here, here - joint.lower[0])))


def rest_configuration(model: Model) -> np.ndarray:
    """The neutral configuration, with joints inside their limits.

    A joint that is at or beyond a limit moves to the middle of its range.
    """
    q = model.neutral()
    for joint in model.joints if model.embedding is None else ():
        low, high = joint.lower, joint.upper
        if joint.row.nq == 1 and not low[0] < q[joint.q_slice.start] < high[0]:
            q[joint.q_slice] = (
                (low + high) / 2 if np.isfinite(low + high).all() else np.clip(0.0, low, high)
            )
    return q


def shown_configuration(model: Model) -> np.ndarray:
    """The configuration in which a robot is shown: its posture "home", or that of rest."""
    home = model.postures.get("home")
    return rest_configuration(model) if home is None else np.array(home)


def closed_configuration(system: object, model: Model) -> np.ndarray | None:
    """A configuration with closed loops, of a closed chain; None for a robot."""
    assemble = getattr(system, "assemble", None)
    if assemble is None:
        return None
    reason: Error | None = None
    for guess in (rest_configuration(model), *model.random(seed=0, size=START_GUESSES)):
        try:
            return assemble(guess)
        except Error as error:
            reason = reason or error
    cause = "" if reason is None else reason.cause
    raise StateError(
        f"no closed configuration of {model.name} was found: {cause}", "pass one as q=..."
    ) from reason


def batch_element(values: ArrayLike, element: int, dims: int) -> np.ndarray:
    """One element of a batch; `element` counts over all axes before the last `dims`."""
    values = np.asarray(values, dtype=float)
    if values.ndim <= dims:
        return values
    flat = values.reshape(-1, *values.shape[values.ndim - dims :])
    if not len(flat):
        raise StateError(
            "the batch has no elements: there is nothing to show", "simulate at least one motion"
        )
    if not isinstance(element, int | np.integer) or not -len(flat) <= element < len(flat):
        raise StateError(
            f"element is {element}, but the batch has {len(flat)} elements", "give a smaller number"
        )
    return flat[element]


def _trajectory_plots(trajectory: Trajectory, model: Model, element: int) -> list[Plot]:
    def read(name: str, dims: int) -> np.ndarray | None:
        values = getattr(trajectory, name, None)
        if values is None or not np.size(values):
            return None
        return batch_element(values, element, dims)

    energy, q, v, tau = read("energy", 1), read("q", 2), read("v", 2), read("tau", 2)
    forces, residual = read("forces", 3), read("residual", 2)
    plots = []
    if energy is not None:
        plots.append(Plot("energy", "J", ("kinetic + potential",), energy[None]))
    if q is not None:
        plots.append(_coordinate_plot("joint coordinates", "rad, m", model, "q", q))
    if v is not None and v.shape[-1] == model.nv:
        plots.append(_coordinate_plot("joint velocities", "rad/s, m/s", model, "v", v))
    if tau is not None and tau.shape[-1] == model.nv and np.any(tau):
        plots.append(_coordinate_plot("joint torques", "Nm, N", model, "v", tau))
    if forces is not None:
        size = np.linalg.norm(forces[..., -3:], axis=-1).T
        plots.append(
            Plot("contact forces", "N", tuple(_contact_names(trajectory.system, len(size))), size)
        )
    if residual is not None:
        plots.append(
            Plot(
                "constraint residual",
                "m, rad; m/s, rad/s",
                ("position", "velocity"),
                residual.T,
                log=True,
            )
        )
    return plots


def _coordinate_plot(title: str, unit: str, model: Model, which: str, values: np.ndarray) -> Plot:
    """Curves of the coordinates that move, at most MAX_CURVES; of all if none moves."""
    chosen, finite = coordinate_labels(model, which), values[np.isfinite(values).all(axis=1)]
    moving = [
        (name, i) for name, i in chosen if len(finite) and np.ptp(finite[:, i]) > 1e-9
    ] or list(chosen)
    moving = [moving[k] for k in sample_indices(len(moving), MAX_CURVES)] if moving else []
    return Plot(title, unit, tuple(name for name, _ in moving), values[:, [i for _, i in moving]].T)


def contacts(system: object) -> list[Constraint]:
    """The contacts of a closed chain; none for a robot."""
    return list(getattr(system, "contacts", ()))


def _contact_names(system: object, count: int) -> list[str]:
    touching = [*getattr(system, "contact_points", ()), *getattr(system, "contact_pairs", ())]
    touching = touching or contacts(system)
    names = [str(getattr(contact, "name", "")) for contact in touching]
    return (
        names if len(names) == count and all(names) else [f"contact {i + 1}" for i in range(count)]
    )


def _force_arrows(
    trajectory: Trajectory, model: Model, q: np.ndarray, element: int
) -> Arrows | None:
    forces = getattr(trajectory, "forces", None)
    if forces is None or not np.size(forces):
        return None
    force = batch_element(forces, element, 3)[..., -3:]
    if np.shape(forces)[-1] == 3:
        return _ground_arrows(trajectory, model, q, force, element)
    points = [contact_point(model, contact) for contact in contacts(trajectory.system)]
    if len(points) != force.shape[1]:
        return None
    R, p = link_poses(model, q)
    places = [origin_positions(R, p, frame) for frame, _ in points]
    signs = np.array([sign for _, sign in points])
    return Arrows(
        tuple(_contact_names(trajectory.system, force.shape[1])),
        np.stack(places, axis=1),
        force * signs[:, None],
    )


def _ground_arrows(
    trajectory: Trajectory, model: Model, q: np.ndarray, force: np.ndarray, element: int
) -> Arrows | None:
    """The forces (times, c, 3) of contacts with the ground, at the points that touch it, and those
    on the first of each pair."""
    points, pairs = _touching(trajectory)
    if len(points) + len(pairs) != force.shape[1]:
        return None
    names = tuple(_contact_names(trajectory.system, force.shape[1]))
    if "height" in trajectory.info.get("ground", {}):
        return Arrows(names, _points_on_heights(trajectory, q, element), force)
    points = on_shared_frames(points, model.frames)
    normal = ground_normal(trajectory)
    R, p = link_poses(model, q)

    def place(name: str) -> Place:
        frame = model.frame(name)
        rotation, origin = origin_rotations(R, frame), origin_positions(R, p, frame)
        columns = [[rotation[..., i, j] for j in range(3)] for i in range(3)]
        return columns, [origin[..., i] for i in range(3)]

    places = []
    for point in points:
        columns, origin = place(point.frame)
        places.append(add(origin, point.lever(columns, normal)))
    for pair in pairs:
        places.append(pair.approach(place(pair.first.frame), place(pair.second.frame)).point)
    rows = [np.stack(np.broadcast_arrays(*at), axis=-1) for at in places]
    return Arrows(names, np.stack(rows, axis=1), force)


def _points_on_heights(trajectory: Trajectory, q: np.ndarray, element: int) -> np.ndarray:
    """(times, c, 3): where the contacts of a motion on heights touch, at q (times, nq)."""
    given = trajectory.info["ground"]
    height = batch_element(given["height"], element, 2)
    contacts = GroundContact(trajectory.system, Ground(**given | {"height": height}))
    poses = frame_poses(contacts, q)
    places, _ = contacts.geometry(poses)
    points = []
    for place, frames in zip(places, contacts.space.members, strict=True):
        origin = [poses[:, 16 * frames[0] + 4 * i + 3] for i in range(3)]
        points.append(np.stack(np.broadcast_arrays(*add(origin, place.levers[0])), axis=-1))
    return np.stack(points, axis=1)


def _touching(
    trajectory: Trajectory,
) -> tuple[tuple[ContactPoint, ...], tuple[ContactPair, ...]]:
    """The contact points and pairs of the robot that moved."""
    system = trajectory.system
    return getattr(system, "contact_points", ()), getattr(system, "contact_pairs", ())


def _touches(trajectory: Trajectory, element: int) -> Touches | None:
    """Which contacts with the ground are closed, if the robot's contact points are known."""
    points, pairs = _touching(trajectory)
    modes = getattr(trajectory, "modes", None)
    if modes is None or np.shape(modes)[-1] != len(points) + len(pairs):
        return None
    balls = [0.0 if point.axis is not None else point.radius for point in points]
    radii = np.array([*balls, *(0.0 for _ in pairs)])
    shown = np.nan_to_num(batch_element(modes, element, 2)).astype(int)
    return Touches(shown, radii, np.array(ground_normal(trajectory)))


def ground_normal(trajectory: Trajectory) -> list[float]:
    """The normal of the ground of a motion; z if it is not known."""
    return list(trajectory.info.get("ground", {}).get("normal", (0.0, 0.0, 1.0)))


def contact_point(model: Model, contact: Constraint) -> tuple[Frame, float]:
    """The frame at which the force of a contact is drawn, and the sign of the force.

    The force acts at the origin of the first frame. Drawn is the force on the body of the second
    frame; if that is the world, the opposite force, on the body of the first frame.
    """
    sign = -1.0 if model.frame(contact.second).body == WORLD else 1.0
    return model.frame(contact.first), sign
