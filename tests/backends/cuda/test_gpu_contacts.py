"""Motions on a ground, on a graphics card.

The card is a stand-in (`fake_gpu.py`); the truth is the host's kernel, which other tests hold
against mechanics and MuJoCo.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.backends.cpu.cpu_target import has_fma
from psiphi.backends.cuda.cuda_target import CudaTarget
from psiphi.simulation.compiled_rollout.cuda_runner import CudaRolloutProgram
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Law
from tests.backends.cuda import ptx_assembler
from tests.backends.cuda.fake_gpu import CardArray, cards

__all__ = ["cards"]  # a fixture
RUN: dict[str, Any] = {"steps": 40, "dt": 2.0**-9, "every": 10}  # a dt that float32 holds exactly


@pytest.fixture(scope="module")
def crate() -> pp.Robot:
    """Eight points on one body: sweeps and steps of Newton's method."""
    b = pp.Builder("crate")
    b.body("crate", 1.0, inertia=0.01 * np.eye(3))
    b.joint("base", "free", "world", "crate")
    return b.build().with_contacts({"crate": pp.Box((0.2, 0.2, 0.2))})


@pytest.fixture(scope="module")
def biped() -> pp.Robot:
    """Two legs with a ball each: sweeps only."""
    b = pp.Builder("biped")
    b.body("trunk", 4.0, inertia=0.05 * np.eye(3))
    b.joint("base", "free", "world", "trunk")
    for side, y in (("left", 0.1), ("right", -0.1)):
        b.body(side, 0.5, com=(0, 0, -0.1), inertia=0.005 * np.eye(3))
        b.joint(f"{side} hip", "revolute", "trunk", side, xyz=(0, y, 0), axis=(0, 1, 0))
        b.frame(f"{side}_foot", side, xyz=(0, 0, -0.3))
    return b.build().with_contacts({"*_foot": pp.Sphere(0.02)})


def starts(
    robot: pp.Robot, count: int = 7, ground: pp.Ground | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """On the ground and above it in turn, in float32; each moves another way."""
    q = robot.on_ground(np.tile(robot.neutral(), (count, 1)), ground)
    q[:, 2] += 0.01 * (np.arange(count) % 2)
    v = np.random.default_rng(0).standard_normal((count, robot.nv))
    return q.astype("f"), v.astype("f")


def compare(
    robot: pp.Robot, ground: pp.Ground, char: str = "d", tau: Any = None, **options: Any
) -> Any:
    """The motion on the card beside that of the host; returns the host's."""
    q, v = (x.astype(char) for x in starts(robot, ground=ground))
    given: dict[str, Any] = {"tau": tau, "contacts": ground, **RUN, **options}
    found: Any = pp.rollout(robot, CardArray(q), CardArray(v), **given)
    host: Any = pp.rollout(robot, q.astype(float), v.astype(float), **given)
    rtol = 1e-12 if char == "d" else 1e-6
    for x, y in zip(found, host, strict=True):
        assert x.array.dtype == char and x.array.shape == y.shape
        assert np.allclose(x.array, y, rtol=rtol, atol=rtol)
        assert char == "f" or not has_fma() or np.array_equal(x.array, y)
    residual = found.contact_residual.array
    assert residual.shape == host.contact_residual.shape
    assert np.allclose(residual, host.contact_residual, rtol=1e-3, atol=1e-11)
    return host


def test_motions_on_heights_are_those_of_the_host(cards, biped):
    """Each motion has its own terrain. One that starts deep inside it is NaN."""
    x = np.linspace(-2.0, 2.0, 17)
    hills = 0.1 * np.sin(2.0 * x)[:, None] + 0.05 * x**2
    hills = np.stack([(1.0 - 0.1 * k) * hills for k in range(7)]).astype("f").astype(float)
    ground = pp.Ground(friction=0.4, height=hills, size=(8.0, 8.0))
    for char in "df":
        compare(biped, ground, char)
    q, v = starts(biped, ground=ground)
    q[3, 2] -= 0.1
    found: Any = pp.rollout(biped, CardArray(q), CardArray(v), contacts=ground, **RUN)
    assert np.isnan(found.q.array).all((1, 2)).tolist() == [k == 3 for k in range(7)]


def test_crates_fall_slide_and_rest_as_on_the_host(cards, crate):
    """Some motions of a warp touch the ground and others do not; each has its own friction. One
    launch, whose results in float32 are those of float64, rounded."""
    ground = pp.Ground(friction=np.arange(1.0, 8.0)[:, None] / 8.0)
    host = compare(crate, ground)
    assert (host.q[1::2, 1, 2] > 0.1).all() and 0.0 < host.contact_residual.max() < 1e-6
    assert [entry[0] for entry in cards.log].count("launch") == 1
    compare(crate, ground, "f")


def test_legs_with_a_controller_on_a_springy_ground(cards, biped):
    """Joint damping is implicit; restitution starts the sweeps of some steps again."""
    q = biped.on_ground(biped.neutral())
    stand = pp.PD(biped, q, kp=20.0, kd=0.5)
    damping = np.array([0.0] * 6 + [0.3] * 2)
    ground = pp.Ground(friction=0.6, restitution=0.4, stiffness=5e3, damping=20.0)
    compare(biped, ground, tau=stand, damping=damping)


def test_a_start_deep_inside_the_ground_is_nan(cards, biped):
    """The host raises an error; on the card its neighbours in the warp move on."""
    q, v = (x.astype(float) for x in starts(biped))
    q[2, 2] -= 0.01
    given: dict[str, Any] = {"contacts": pp.Ground(), **RUN}
    with pytest.raises(StateError, match="inside the ground"):
        pp.rollout(biped, q, v, **given)
    found: Any = pp.rollout(biped, CardArray(q), CardArray(v), **given)
    wrong = [np.isnan(x.array).all(axis=(1, 2)) for x in found]
    assert [x.tolist() for x in wrong] == [[i == 2 for i in range(7)]] * 2
    assert np.isfinite(found.q.array[~wrong[0]]).all()


def test_derivatives_are_refused(cards, biped):
    q, v = starts(biped)
    motion: Any = pp.rollout(biped, CardArray(q), CardArray(v), contacts=pp.Ground(), **RUN)
    for way in (lambda: motion.vjp(motion.q), lambda: motion.jvp(v=CardArray(v))):
        with pytest.raises(StateError, match="contacts are available on the CPU only"):
            way()


@pytest.mark.skipif(not ptx_assembler.found(), reason="needs nvidia-nvjitlink")
def test_the_assembler_takes_contacts(biped):
    """Branches inside loops, sums that start again, and arrays of float32 beside float64."""
    contacts = GroundContact(biped, pp.Ground())
    plan = RolloutOptions("moreau", Law(), time_varying=False, hold=True, contacts=contacts)
    text = CudaTarget().emit(CudaRolloutProgram(biped, plan).rollout, "f")
    assert "Used" in ptx_assembler.assemble(text, "sm_90")


@pytest.mark.parametrize("law", [{"law": "convex"}, {"smooth": 0.01}])
def test_other_laws_are_those_of_the_host(cards, biped, law):
    """The friction differs by motion, and some feet slide. Feet that slide and part from the ground
    feel it by the convex law: also if the motion is alone."""
    friction = np.arange(1.0, 8.0)[:, None] / 8.0
    ground = pp.Ground(friction=friction, **law)
    for char in "df":
        host = compare(biped, ground, char)
    q, v = (x.astype(float) for x in starts(biped, ground=ground))
    for i in range(len(q)):
        alone = pp.rollout(
            biped, q[i], v[i], contacts=pp.Ground(friction=friction[i], **law), **RUN
        )
        assert all(map(np.array_equal, alone, (host.q[i], host.v[i])))
