"""Mutated files: whatever one flip, cut or swap makes of a URDF, it loads into a finite model or
ends in a psiphi error."""

import os
import random
import re

import numpy as np
import pytest

from psiphi._util.errors import Error
from psiphi.io.urdf.urdf import load_urdf
from psiphi.model.model import Model
from tests.io.urdf.faulty_urdf import ROBOT
from tests.oracles import reference
from tests.zoo import example_robots

COUNT = int(os.environ.get("PSIPHI_MUTATIONS", "2000"))
PANDA = next(
    (file.read_text(encoding="utf-8") for file in example_robots() if file.stem == "panda"), ROBOT
)
NUMBERS = [
    "0",
    "-1",
    "1e308",
    "-1e-308",
    "nan",
    "inf",
    "",
    "1,5",
    "1e-300",
    "1e49",
    "0 0 0",
    "x",
    "99999999999999999999",
]


def flip(text: str, rng: random.Random) -> bytes:
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut(text: str, rng: random.Random) -> bytes:
    at = rng.randrange(len(text))
    return (text[:at] + text[at + rng.randint(1, 80) :]).encode()


def truncate(text: str, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text))].encode()


def double(text: str, rng: random.Random) -> bytes:
    at = rng.randrange(len(text))
    piece = text[at : at + rng.randint(1, 200)]
    return (text[:at] + piece + text[at:]).encode()


def attribute(text: str, rng: random.Random) -> bytes:
    """A number changed into something else, or an attribute dropped or renamed."""
    found = rng.choice(list(re.finditer(r'(\w+)="([^"]*)"', text)))
    new = rng.choice(
        [
            f'{found[1]}="{rng.choice(NUMBERS)}"',
            "",
            f'{found[1][:-1]}="{found[2]}"',
            f'x="{found[2]}"',
        ]
    )
    return (text[: found.start()] + new + text[found.end() :]).encode()


def number(text: str, rng: random.Random) -> bytes:
    found = rng.choice(list(re.finditer(r"-?\d+\.?\d*(?:e-?\d+)?", text)))
    return (text[: found.start()] + rng.choice(NUMBERS) + text[found.end() :]).encode()


def element(text: str, rng: random.Random) -> bytes:
    """A whole element removed, doubled or moved to another place."""
    elements = list(re.finditer(r"<(\w+)[^<>]*/>", text))
    found, other = rng.choice(elements), rng.choice(elements)
    without = text[: found.start()] + text[found.end() :]
    moved = text[: other.start()] + found[0] + text[other.start() :]
    return rng.choice([without, moved]).encode()


MUTATIONS = [flip, cut, truncate, double, attribute, number, element]


def finite(model: Model) -> bool:
    arrays = [x for body in model.bodies for x in (body.mass, body.com, body.inertia)]
    arrays += [
        x
        for j in model.joints
        for x in (*j.pose, j.axis, j.axis2, j.damping, j.friction, j.armature, j.pitch)
    ]
    limits = [x for j in model.joints for x in (j.lower, j.upper, j.velocity, j.effort)]
    places = [x for frame in model.frames.values() for x in frame.pose]
    return all(np.isfinite(x).all() for x in arrays + places) and not any(
        np.isnan(x).any() for x in limits
    )


def solvable(model: Model) -> bool:
    """Sizes are near enough for the dense oracle; the sweeps go further."""
    numbers = [x for body in model.bodies for x in (body.mass, *body.com, *body.inertia.flat)]
    numbers += [x for joint in model.joints for x in joint.pose.translation]
    return np.abs(numbers).max(initial=0.0) < 1e12


@pytest.mark.parametrize("mutate", MUTATIONS, ids=[m.__name__ for m in MUTATIONS])
@pytest.mark.parametrize("robot", ["panda", "sound"])
def test_mutated(robot, mutate):
    text = PANDA if robot == "panda" else ROBOT
    rng = random.Random(f"{robot} {mutate.__name__}")
    loaded = 0
    for _ in range(COUNT // (2 * len(MUTATIONS))):
        data = mutate(text, rng)
        try:
            model = load_urdf(data)
        except Error as error:
            assert error.file and error.line and error.element and error.remedy
            continue
        loaded += 1
        assert finite(model)
        if not solvable(model):
            continue
        with np.errstate(all="ignore"):
            a = reference.forward_dynamics(
                model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
            )
        assert np.isfinite(a).all(), "no unannounced non-finite answer"
    assert loaded or mutate is truncate
