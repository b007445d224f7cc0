"""Joints and bodies by number and by name; what unknown names say."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

import psiphi as pp

PANDA = pp.load("panda")


@pytest.mark.parametrize("what", ["joints", "bodies"])
def test_parts_are_a_tuple_that_takes_names(what):
    parts = getattr(PANDA, what)
    assert isinstance(parts, tuple) and parts == tuple(parts) and hash(parts) == hash(tuple(parts))
    for k, part in enumerate(parts):
        assert parts[part.name] is part is parts[k] is parts[k - len(parts)]
        assert part.name in parts and part in parts
    assert "nobody" not in parts and parts[1:3] == tuple(parts)[1:3]
    with pytest.raises(IndexError):
        parts[len(parts)]
    with pytest.raises(TypeError):
        parts[1.0]


def test_names_survive_copies_pickles_and_edits():
    edited = (
        pickle.loads(pickle.dumps(PANDA)),
        copy.copy(PANDA),
        copy.deepcopy(PANDA),
        replace(PANDA, joints=tuple(PANDA.joints)),
        PANDA.lock("panda_finger_*"),
        PANDA.with_base("free"),
        PANDA.free("mass"),
        pp.embed(PANDA, mimic=True),
        pp.Builder(PANDA).build(),
    )
    for robot in edited:
        assert robot.joints["panda_joint4"].name == "panda_joint4"
        with pytest.raises(KeyError, match=r"no frame .tol.*did you mean .tool"):
            robot.frames["tol"]
    joints = pickle.loads(pickle.dumps(PANDA.joints))
    assert joints["panda_joint4"].name == copy.copy(joints)[3].name == "panda_joint4"


def test_unknown_names_suggest_the_nearest():
    robot = PANDA.with_posture("home", PANDA.neutral())
    for mapping, wrong, noun, right in (
        (robot.joints, "panda_jont4", "joint", "panda_joint4"),
        (robot.bodies, "panda_lnk4", "body", "panda_link4"),
        (robot.frames, "tol", "frame", "tool"),
        (robot.postures, "hom", "posture", "home"),
    ):
        for kind in (KeyError, pp.StateError):
            with pytest.raises(kind) as caught:
                mapping[wrong]
            message = str(caught.value)
            assert message.startswith(f"no {noun} {wrong!r}. Remedy: did you mean {right!r}"), (
                message
            )
        assert str(pickle.loads(pickle.dumps(caught.value))) == message
    assert robot.postures.get("hom") is None and "hom" not in robot.postures
    with pytest.raises(TypeError):
        robot.postures["hom"] = robot.neutral()
    assert set(dict(robot.frames)) == set(robot.frames)
