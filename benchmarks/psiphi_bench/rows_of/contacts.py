"""Robots that stand and trot on a ground, beside `mujoco.rollout` (benchmarks/ground.py)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import ground
import psiphi as pp
from psiphi_bench.row import Measurement, Size, microseconds


def rollouts(size: Size) -> Iterator[Measurement]:
    """One step of one robot on one core; MuJoCo with elliptic cones, by its faster solver."""
    pp.set_threads(1)
    walkers = (ground.anymal(),) if size.quick else (ground.anymal(), ground.g1(8), ground.g1(16))
    for walker in walkers:
        ours = ground.best(ground.psiphi_motion(walker, ground.STEPS))
        solvers = ("NEWTON",) if size.quick else ("NEWTON", "PGS")
        theirs = min(ground.best(ground.mujoco_motion(walker, "ELLIPTIC", x)) for x in solvers)
        note = f"per step of {ground.DT} s, {ground.BATCH} x {ground.STEPS} steps"
        figures = microseconds(1e-6 * ours), microseconds(1e-6 * theirs)
        yield Measurement(walker.name, theirs / ours, *figures, note)


def unsolved(size: Size) -> Iterator[Measurement]:
    """Steps that violate Coulomb's law by more than 1e-6 m/s, in per cent of those of a motion."""
    for walker in (ground.anymal(), ground.g1(8), ground.g1(16)):
        law = pp.PD(walker.robot, walker.target, kp=walker.joint_vector(walker.kp), kd=0.0)
        q, v = walker.starts(8 if size.quick else ground.BATCH)
        damping = walker.joint_vector(walker.kd)
        options = {"dt": ground.DT, "contacts": walker.ground, "damping": damping}
        states = pp.rollout(walker.robot, q, v, tau=law, steps=ground.STEPS, **options)
        residual = np.nan_to_num(states.contact_residual[:, 1:], nan=np.inf)
        share = 100.0 * float((residual > 1e-6).mean())
        yield Measurement(walker.name, share, f"at most {residual.max():.0e} m/s")
