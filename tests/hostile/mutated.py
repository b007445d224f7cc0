"""Mutated files of eight robots: bytes, numbers, attributes, elements, and the tree itself; each
from a seed."""

from __future__ import annotations

import copy
import random
from functools import cache
from xml.etree import ElementTree

import numpy as np

from psiphi._util.errors import Error
from psiphi.io.urdf.urdf import load_urdf
from psiphi.robot.robot import Robot
from tests.io.urdf.faulty_urdf import ROBOT
from tests.model.test_mutations import MUTATIONS, NUMBERS, finite, solvable
from tests.oracles import reference
from tests.zoo import example_robots

NAMES = (
    "panda",
    "ur5_robot",
    "kinova",
    "hyq_no_sensors",
    "double_pendulum",
    "allegro_left_hand",
    "iris",
    "z1",
)
TYPES = (
    "revolute",
    "continuous",
    "prismatic",
    "fixed",
    "floating",
    "planar",
    "spherical",
    "ball",
    "",
    "screw",
)


@cache
def texts() -> list[str]:
    """The robots' files; without example-robot-data, the one of the tests' own."""
    there = {file.stem: file for file in example_robots()}
    return [there[name].read_text(encoding="utf-8") for name in NAMES if name in there] or [ROBOT]


def structure(text: str, rng: random.Random) -> bytes:
    """The tree of elements: moved, nested, doubled, dropped, exchanged, reconnected, renamed; one
    to three times."""
    root = ElementTree.fromstring(text)
    for _ in range(rng.randint(1, 3)):
        rng.choice(MOVES)(root, rng)
    return ElementTree.tostring(root)


def _some(
    root: ElementTree.Element, rng: random.Random
) -> tuple[ElementTree.Element, ElementTree.Element]:
    """A parent and one of its children."""
    parent = rng.choice([element for element in root.iter() if len(element)])
    return parent, rng.choice(list(parent))


def _drop(root, rng):
    parent, child = _some(root, rng)
    parent.remove(child)


def _double(root, rng):
    parent, child = _some(root, rng)
    parent.append(copy.deepcopy(child))


def _nest(root, rng):
    _, child = _some(root, rng)
    rng.choice(list(root.iter())).append(copy.deepcopy(child))


def _exchange(root, rng):
    (_, a), (_, b) = _some(root, rng), _some(root, rng)
    a.attrib, b.attrib = b.attrib, a.attrib


def _connect(root, rng):
    """A joint that hangs elsewhere: loops, two parents, two roots."""
    ends = [element for element in root.iter() if "link" in element.attrib] or [root]
    names = [element.attrib.get("name", "") for element in root.iter("link")] or [""]
    rng.choice(ends).attrib["link"] = rng.choice([*names, "", "world", "nowhere"])


def _retype(root, rng):
    joints = [element for element in root.iter("joint") if "type" in element.attrib]
    if joints:
        rng.choice(joints).attrib["type"] = rng.choice(TYPES)


def _rename(root, rng):
    named = [element for element in root.iter() if "name" in element.attrib]
    if named:
        rng.choice(named).attrib["name"] = rng.choice(
            ["", " ", "world", rng.choice(named).attrib["name"], "x" * 3000, "\u202e", "a/b"]
        )


def _mimic(root, rng):
    joints = [element for element in root.iter("joint") if "name" in element.attrib]
    if joints:
        name = rng.choice(joints).attrib["name"]
        ElementTree.SubElement(
            rng.choice(joints), "mimic", {"joint": name, "multiplier": rng.choice(NUMBERS)}
        )


def _scale(root, rng):
    """All numbers of one element at once."""
    element = rng.choice(list(root.iter()))
    for key, value in element.attrib.items():
        try:
            element.attrib[key] = " ".join(
                repr(float(x) * rng.choice([-1.0, 0.0, 1e9, 1e-9, 1e60])) for x in value.split()
            )
        except ValueError:
            continue


MOVES = (_drop, _double, _nest, _exchange, _connect, _retype, _rename, _mimic, _scale)


def mutant(seed: int) -> bytes:
    """The file of that number."""
    rng = random.Random(f"mutant {seed}")
    text, mutate = rng.choice(texts()), rng.choice([*MUTATIONS, structure, structure, structure])
    return mutate(text, rng)


def judge(seed: int, compiled: bool = False) -> str:
    """What becomes of a mutant: "refused" or "loaded"; anything else is raised."""
    rng = random.Random(f"judge {seed}")
    options = {"base": rng.choice(["fixed", "free"]), "repair": rng.choice([(), "all"])}
    try:
        model = load_urdf(mutant(seed), **options)
    except Error as error:
        assert error.file and error.line and error.element and error.remedy, (
            f"no place or remedy: {error}"
        )
        str(error).encode()
        return "refused"
    assert finite(model), "a model that is not finite"
    if solvable(model) and model.nv < 60:
        q, v = model.random(seed=seed), np.zeros(model.nv)
        with np.errstate(all="ignore"):
            assert np.isfinite(reference.forward_dynamics(model, q, v, v)).all(), (
                "a non-finite answer without a word"
            )
            if compiled:
                try:
                    a = Robot.of(model).forward_dynamics(q, v, v, check=True)
                except Error:
                    return "loaded"
                assert np.isfinite(a).all(), "a non-finite answer of the compiled code"
    return "loaded"
