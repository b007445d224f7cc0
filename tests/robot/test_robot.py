"""The robot at the door: every function on every size of robot, the same bits whoever calls, when
and in what company."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import sys
import threading
from dataclasses import FrozenInstanceError, replace
from functools import partial

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.model.joint_types import JOINTS
from psiphi.robot import matrix_by_columns as columns
from psiphi.robot.catalogue.catalogue import CATALOGUE
from psiphi.robot.catalogue.quantity_request import ON_FRAMES
from tests.children import exit_code, in_threads
from tests.functions.call_cases import (
    DOORS,
    arguments,
    assert_same,
    gymnast,
    knock_name,
    parts,
    stone,
)
from tests.zoo import ZOO

MATRICES = [door for door in DOORS if door.name.startswith("mass_matrix")]


@pytest.fixture
def threads():
    yield
    pp.set_threads(None)


def fresh(seed: int = 0) -> pp.Robot:
    """A robot no cache has met."""
    chain, extra = pp.robots.chain(3, seed=seed), 1e-6 * int.from_bytes(os.urandom(3), "little")
    return replace(
        chain, bodies=tuple(replace(body, mass=body.mass + extra) for body in chain.bodies)
    )


# -- robots of every size --------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
@pytest.mark.parametrize("batch", [(), (3,), (0,), (2, 0, 1)])
def test_a_robot_that_cannot_move(door, batch):
    given = {name: np.zeros((*batch, 0)) for name in ("q", "v", "a", "tau", "x")}
    if door.name == "center_of_mass" or door.name.startswith("centroidal"):
        with pytest.raises(pp.SingularError, match="no moving body of stone has mass"):
            door(stone(), given)
        return
    for check in (False, True):
        result = parts(door(stone(), given, check=check))
        assert [x.shape for x in result] == [(*batch, *core) for core in door.core(stone())]
        assert_same(
            parts(door(stone(), given, out=result if len(result) > 1 else np.asarray(result[0]))),
            result,
        )
    pose = np.array([[1.0, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 4], [0, 0, 0, 1]])
    rest = {"frame_pose": pose, "frame_imu": [0.0, 0.0, 0.0, 0.0, 0.0, 9.81]}
    assert (result[0] == rest.get(door.name, 0.0)).all()
    with pytest.raises(pp.StateError, match="has shape"):
        door(stone(), {name: np.zeros((*batch, 2)) for name in given})
    if not batch:
        assert_same(door(stone(), {name: [] for name in given}), result)


@pytest.mark.parametrize("kind", JOINTS)
def test_one_body(kind):
    robot = pp.Robot.of(dict(ZOO)[kind]())
    for door, batch in itertools.product(DOORS, [(), (3,)]):
        given = arguments(robot, batch)
        result = parts(door(robot, given, check=True))
        assert [x.shape for x in result] == [(*batch, *core) for core in door.core(robot)], (
            door.name
        )
        assert_same(door(robot, given), result)


@pytest.mark.parametrize("door", MATRICES, ids=knock_name)
def test_columns_are_the_matrix(door):
    """The road of large robots, taken by a small one: dense answers, with out=, dtype=, check= and
    batches."""
    robot = gymnast()
    for batch in ((), (5,), (2, 0), (2, 3)):
        q = robot.random(1, batch)
        dense = parts(door(robot, {"q": q}))

        def by_columns(q=q, out=None, dtype=None, check=False):
            return parts(columns.compute_matrix(robot, door.name, q, out, dtype, check))

        assert_same(by_columns(), dense, rtol=1e-12, atol=1e-12)
        assert_same(by_columns(q.tolist() if q.size else q), by_columns())
        assert_same(by_columns(check=True), by_columns())
        for result in (by_columns(dtype=np.float32), by_columns(q.astype(np.float32))):
            assert all(x.dtype == np.float32 for x in result)
            assert_same(result, dense, rtol=1e-3, atol=1e-3)
        out = tuple(np.empty_like(x) for x in dense)
        given = by_columns(out=out if len(out) > 1 else out[0])
        assert all(a is b for a, b in zip(given, out, strict=True))
        assert_same(given, by_columns())
        if len(dense) == 1:
            assert_same(given[0].swapaxes(-1, -2), given[0])
    for bad in (
        dict(q=q[..., :-1]),
        dict(q=None),
        dict(q=1.0),
        dict(dtype=int),
        dict(check="no"),
        dict(out=np.zeros(3)),
        dict(out=[]),
    ):
        with pytest.raises(pp.StateError, match=door.name if "check" not in bad else "check"):
            by_columns(**bad)
    q[1, 2, 12] = np.nan
    with pytest.raises(
        pp.StateError, match=r"q\[1, 2, 12\]: joint 'grip' in batch element \(1, 2\)"
    ):
        by_columns(q, check=True)
    q[1, 2, 12] = 1e200
    with pytest.raises(pp.SingularError, match="element"):
        by_columns(q, check=True)


def test_a_large_robot():
    """More bodies than are written out in code: the doors open the same way."""
    n = UNROLL_LIMIT + 6
    robot = pp.robots.random_tree(n, seed=3, kinds=["revolute"], branching=0.2)
    q, out = robot.random(seed=0, size=2), np.empty((2, n, n))
    M = robot.mass_matrix(q, out=out, check=True)
    assert M is out
    L, D = robot.mass_matrix_factors(q)
    np.testing.assert_allclose(L @ D @ L.swapaxes(-1, -2), M, rtol=0, atol=1e-12 * np.abs(M).max())
    unit = robot.mass_matrix_inverse(q) @ M
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(n), unit.shape), rtol=0, atol=1e-8)
    e = np.eye(n)[5]
    column = robot.inverse_dynamics(q, 0 * e, e) - robot.gravity(q)
    np.testing.assert_allclose(column, M[..., 5], rtol=0, atol=1e-11 * np.abs(M).max())
    with pytest.raises(pp.StateError, match=r"mass_matrix: q has shape \(3,\)"):
        robot.mass_matrix(np.zeros(3))
    tau = np.ones(n)
    tau[9] = np.nan
    with pytest.raises(pp.StateError, match=repr(robot.joints[9].name)):
        robot.forward_dynamics(q[0], 0 * e, tau, check=True)


# -- the same bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_bits_do_not_depend_on_company(door, threads):
    """One at a time, seven, 1024, any strides, on one thread or several: the same bits."""
    robot, given = gymnast(), arguments(gymnast(), (1024,))
    pp.set_threads(1)
    whole = parts(door(robot, given))
    for start, stop in ((0, 7), (5, 12), (1000, 1024), (3, 4)):
        some = {name: x[start:stop] for name, x in given.items()}
        assert_same(door(robot, some), tuple(x[start:stop] for x in whole))
    for k in (0, 511, 1023):
        assert_same(
            door(robot, {name: x[k] for name, x in given.items()}), tuple(x[k] for x in whole)
        )
    backwards = {name: np.asfortranarray(x)[::-1] for name, x in given.items()}
    assert_same(door(robot, backwards), tuple(x[::-1] for x in whole))
    many = {name: np.tile(x, (30, 1)) for name, x in given.items()}
    for count in (1, 2, 3):
        pp.set_threads(count)
        result = parts(door(robot, many))
        assert_same(result, tuple(np.tile(x, (30,) + (1,) * (x.ndim - 1)) for x in whole))


def test_one_state_meets_a_batch():
    robot, given = gymnast(), arguments(gymnast(), (6,))
    one = {name: x[0] for name, x in given.items()}
    whole = robot.forward_dynamics(given["q"], one["v"], one["tau"])
    for k in range(6):
        assert_same(robot.forward_dynamics(given["q"][k], one["v"], one["tau"]), whole[k])
    grid = robot.forward_dynamics(given["q"][:, None], given["v"], one["tau"])
    assert grid.shape == (6, 6, robot.nv)
    assert_same(grid[2, 3], robot.forward_dynamics(given["q"][2], given["v"][3], one["tau"]))


def test_threads_share_a_robot_from_its_first_call():
    """Compilation included: eight threads, one robot, no two answers."""
    robot, start, results = fresh(), threading.Barrier(8, timeout=60), []
    robot_again, given = pickle.loads(pickle.dumps(robot)), arguments(robot, (9,))
    doors = [door for door in DOORS if not door.frame] + [door for door in DOORS if door.frame]

    def knock(shift: int):
        start.wait()
        results.append({door.name: door(robot, given) for door in doors[shift:] + doors[:shift]})

    in_threads(partial(knock, shift) for shift in range(8))
    assert len(results) == 8
    for door in doors:
        for result in results:
            assert_same(result[door.name], door(robot_again, given))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_goes_on(threads):
    """With kernels of its parent, with kernels it compiles itself, with threads."""
    robot, other = gymnast(), fresh(1)
    given, batch = arguments(robot), arguments(robot, (20_000,))
    pp.set_threads(2)
    expected, expected_batch = (
        robot.forward_dynamics(*_fd(given)),
        robot.forward_dynamics(*_fd(batch)),
    )
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(robot.forward_dynamics(*_fd(given)), expected)
            same &= np.array_equal(robot.forward_dynamics(*_fd(batch)), expected_batch)
            same &= bool(np.isfinite(other.forward_dynamics(*_fd(arguments(other)))).all())
            os._exit(0 if same else 3)
        except BaseException:
            os._exit(4)
    assert exit_code(child) == 0


def _fd(given: dict) -> tuple:
    return given["q"], given["v"], given["tau"]


# -- a robot is a value ----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_robots_travel(protocol):
    robot, given = gymnast(), arguments(gymnast())
    expected = robot.forward_dynamics(*_fd(given))
    again = pickle.loads(pickle.dumps(robot, protocol))
    assert (
        type(again) is pp.Robot
        and again is not robot
        and again == robot
        and hash(again) == hash(robot)
    )
    assert (
        list(again.frames) == list(robot.frames)
        and again.report == robot.report
        and again.name == robot.name
    )
    assert_same(again.forward_dynamics(*_fd(given)), expected)
    for array in (
        again.bodies[0].com,
        again.joints[2].pose.rotation,
        again.frames["tool"].pose.translation,
        again.gravity_vector,
    ):
        with pytest.raises(ValueError):
            array[0] = 1.0
    assert copy.copy(robot) is robot and copy.deepcopy(robot) is robot, "nothing in it can change"
    assert copy.deepcopy([robot, {"of": robot}])[1]["of"] is robot


def test_robots_do_not_change():
    robot = gymnast()
    with pytest.raises(FrozenInstanceError):
        robot.name = "other"
    with pytest.raises(FrozenInstanceError):
        robot.bodies[0].mass = 3.0
    with pytest.raises(TypeError):
        robot.frames["new"] = robot.frames["tool"]
    with pytest.raises(TypeError):
        robot.joints[0] = robot.joints[1]
    for array in (
        robot.gravity_vector,
        robot.bodies[0].inertia,
        robot.joints[0].axis,
        robot.joints[0].pose.rotation,
    ):
        with pytest.raises(ValueError):
            array[...] = 0.0
    q = robot.neutral()
    q[0] = 5.0
    assert robot.neutral()[0] == 0.0, "a new array each time"


def test_a_changed_copy_is_another_robot():
    robot, given = gymnast(), arguments(gymnast())
    robot.forward_dynamics(*_fd(given))
    floating = replace(robot, gravity_vector=np.zeros(3))
    assert type(floating) is pp.Robot and floating != robot and hash(floating) != hash(robot)
    assert (
        np.abs(floating.gravity(given["q"])).max() == 0.0 < np.abs(robot.gravity(given["q"])).max()
    )


def test_equality_and_hashing():
    robot = gymnast()
    again = pp.Robot.of(robot)
    assert (
        again == robot
        and len({again, robot}) == 1
        and robot != pp.robots.puma560()
        and robot != "gymnast"
        and robot != 3
    )
    model = pp.Model(robot.name, robot.bodies, robot.joints, robot.frames)
    assert model == robot and pp.Robot.of(model) == robot, "a Robot is its Model, with functions"


def test_only_models_become_robots():
    for other in (None, 3, "panda.urdf", {}, object()):
        with pytest.raises(pp.ModelError, match="is not a Model"):
            pp.Robot.of(other)


# -- what there is ---------------------------------------------------------------------------------


def test_every_function_is_a_gufunc_with_an_equation():
    robot = gymnast()
    for name in CATALOGUE:
        frames = ("tool",) if name in ON_FRAMES else ()
        ufunc = robot.function(name, frames).ufunc
        assert (
            isinstance(ufunc, np.ufunc)
            and ufunc.signature.startswith("(13)")
            and ufunc.__name__ == name
        )
        assert robot.flops(name, frames=frames) > 0
    assert robot.function("forward_dynamics") is robot.function("forward_dynamics", (), "world")


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_every_door_says_its_equation_and_shapes(door):
    text = getattr(pp.Robot, door.name).__doc__
    assert "->" in text and len(text.splitlines()[0]) < 140


def test_lists_first():
    """A first call with lists, then arrays, then other types: no order is special."""
    for order in itertools.permutations(["list", "array", "batch", "single"]):
        robot, given = pp.Robot.of(gymnast()), arguments(gymnast())
        say = {
            "list": lambda x: x.tolist(),
            "array": lambda x: x,
            "batch": lambda x: x[None],
            "single": lambda x: x.astype(np.float32),
        }
        expected = gymnast().forward_dynamics(*_fd(given))
        for kind in order:
            a = robot.forward_dynamics(*(say[kind](x) for x in _fd(given)))
            np.testing.assert_allclose(
                a.reshape(-1), expected, rtol=1e-3 if kind == "single" else 0, atol=0
            )
            assert a.dtype == (np.float32 if kind == "single" else np.float64)


def test_the_mass_is_that_of_moving_bodies():
    assert gymnast().mass == 10.0 and stone().mass == 0


def test_python_s_own_complaints_stay():
    """A missing or misspelt argument is a mistake in the program: Python's TypeError names it."""
    with pytest.raises(TypeError, match="tau"):
        gymnast().forward_dynamics(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="chek"):
        gymnast().gravity(1, chek=True)  # type: ignore[call-arg]
    assert sys.version_info >= (3, 11)
