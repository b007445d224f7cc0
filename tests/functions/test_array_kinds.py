"""Every call that takes a state, with every kind of array and every layout of batch axes, beside
the same call state by state.

A kind is a library, an order in memory, a dtype. A call gives the numbers of each single state, in
arrays of that kind and in its dtype, or an error that `REFUSED` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import torch

import psiphi as pp
from psiphi.robot.diagonal_dynamics import Diagonalised
from tests.functions.state_methods import ELSEWHERE, OTHERS, functions, needed, parts, spun

N = 3
Arrays = dict[str, Any]


# -- the calls -------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One call: its name, the function, and arrays (3, ...) for its arguments by name."""

    name: str
    function: Callable[..., Any]
    state: Arrays

    def __call__(self, given: Arrays) -> list[Any]:
        return [y for x in parts(self.function(**given)) for y in parts(x)]


@cache
def states() -> Arrays:
    robot, rng = spun(), np.random.default_rng(7)
    q = robot.random(rng, (N,))
    given = {"q": q, "q0": q, "q1": robot.random(rng, (N,)), "q_dot": rng.standard_normal(q.shape)}
    for name in ("v", "a", "tau", "x", "nu", "nu_dot", "eps", "v_ref", "a_ref"):
        given[name] = rng.standard_normal((N, robot.nv))
    given |= {"f": rng.standard_normal((N, 6)), "other_f": rng.standard_normal((N, 6))}
    given |= {"energy": 1e3 + rng.standard_normal(N), "dt": 1e-3 * np.arange(1.0, N + 1)}
    return given | {"parameters": spun().free("inertia").randomised(N, seed=3)}


@cache
def chain() -> tuple[pp.System, Arrays]:
    """A closed chain, and states that satisfy its constraint."""
    system = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    q, rng = (
        system.assemble(np.array([[0.5, 1.0], [0.4, 1.2], [0.7, 1.1]])),
        np.random.default_rng(5),
    )
    _, v = system.project(q, rng.standard_normal((N, 2)))
    state = {"q": q, "q0": q, "q1": q + 0.1, "v": v, "a": system.complete(q, v, q)}
    state |= {"tau": rng.standard_normal((N, 2)), "x": rng.standard_normal((N, 2))}
    return system, state | {"f": states()["f"], "forces": rng.standard_normal((N, 1, 6))}


def methods(label: str, owner: Any, state: Arrays, **options: Any) -> Iterator[Call]:
    """The methods of an owner that take a state."""
    for name in functions(type(owner)):
        if name not in ELSEWHERE:
            names = [x for x in needed(owner, name) if x != "dt"]
            rest = {x: OTHERS[x] for x in needed(owner, name) if x not in state or x == "dt"}
            given = {x: state[x] for x in names if x in state}
            yield Call(f"{label}.{name}", partial(getattr(owner, name), **rest, **options), given)


def with_parameters(name: str, robot: Any) -> Callable[..., Any]:
    """A method with one set of parameters a state."""
    rest = {x: OTHERS[x] for x in needed(robot, name) if x not in states() or x == "dt"}
    if hasattr(getattr(type(robot), name), "__wrapped__"):
        return partial(getattr(robot, name), **rest)
    return lambda parameters, **given: getattr(robot.at(parameters), name)(**given, **rest)


BAKED = ("wrench_regressor", "energy_regressor")  # of robots without free parameters


def expressions() -> dict[str, Callable[..., Any]]:
    """Options and functions that are no methods of a state."""
    robot = spun()
    s, F, zero = robot.operators, robot.function("forward_dynamics"), robot.neutral()
    tau = pp.vector("tau")
    compliance, solution = pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T), s.mass.inv @ tau
    dense = pp.function((s.mass + s.I).inv @ tau)
    free = robot.free("inertia")
    laws = pp.PD(robot, zero, 3.0, 1.0), pp.ComputedTorque(robot, zero, 3.0, 1.0)
    return {
        "jacobian": lambda q, v, tau: F.jacobian("q", "v")(q, v, tau),
        "jvp": lambda q, v, tau, x: F.jvp("q")(q, v, tau, x),
        "vjp": lambda q, v, tau, x: F.vjp("q", "tau")(q, v, tau, x),
        "hessian": lambda q, v, tau, x: F.hessian("v")(q, v, tau, x),
        "expression": lambda q: compliance(q),
        "expression of a vector": lambda q, tau: pp.function(solution)(q, tau),
        "dense expression": lambda q, tau: dense(q, tau),
        "f_ext": lambda q, v, tau, f: robot.forward_dynamics(q, v, tau, f_ext={"tool": f}),
        "two f_ext": lambda q, v, tau, f, other_f: robot.inverse_dynamics(
            q, v, tau, f_ext={"tool": f, "hand": other_f}, axes="frame"
        ),
        "method": lambda q, v, tau: robot.forward_dynamics(q, v, tau, method="FD3"),
        "kalman": lambda q, v, tau: robot.forward_dynamics_details(q, v, tau, method="kalman"),
        "kalman parameters": lambda q, v, tau, parameters: free.forward_dynamics_details(
            q, v, tau, method="kalman", parameters=parameters
        ),
        "several frames": lambda q: robot.frame_pose(q, ["tool", "hand"]),
        "damped": lambda q: robot.operational_space_inertia(q, "tool", policy="damped"),
        "more columns": lambda q, v, a: robot.regressor(q, v, a, more=("armature", "friction")),
        "integrate dt": lambda q, v, dt: robot.integrate(q, v, dt),
        "step dt": lambda q, v, tau, dt: robot.step(q, v, tau, dt),
        "implicit step": lambda q, v, tau: robot.step(q, v, tau, 1e-2, "implicit"),
        "linearize dt": lambda q, v, tau, dt: robot.linearize(q, v, tau, dt, "euler"),
        "linearize parameters": lambda q, v, tau, parameters: free.at(parameters).linearize(
            q, v, tau
        ),
        "rollout": lambda q, v: tuple(pp.rollout(robot, q, v, laws[0], 1e-2, 3)),
        "rollout of torques": lambda q, v, tau: tuple(pp.rollout(robot, q, v, tau, 1e-2, 1)),
        "rollout parameters": lambda q, v, parameters: tuple(
            pp.rollout(free.at(parameters), q, v, None, 1e-2, 3)
        ),
        "PD": lambda q, v: laws[0](0.0, q, v),
        "computed torque": lambda q, v: laws[1](0.0, q, v),
    }


def chain_expressions() -> dict[str, Callable[..., Any]]:
    system, _ = chain()
    F = system.function("forward_dynamics")
    return {
        "chain: jacobian": lambda q, v, tau: F.jacobian("q", "tau")(q, v, tau),
        "chain: vjp": lambda q, v, tau, x: F.vjp("q", "tau")(q, v, tau, x),
        "chain: forces": lambda q, v, tau: system.forward_dynamics(q, v, tau, forces=True),
        "chain: f_ext": lambda q, v, tau, f: system.forward_dynamics(q, v, tau, f_ext={"tool": f}),
    }


@cache
def calls() -> tuple[Call, ...]:
    robot, state = spun(), states()
    free = robot.free("inertia")
    system, closed = chain()
    found = [
        *methods("robot", robot, state),
        *methods("diagonalised", robot.diagonalised, state),
        *methods("unnormalised", robot.diagonalised.unnormalised, state),
        *methods("chain", system, closed),
    ]
    of_parameters = [x for x in functions(type(free)) if x not in (*ELSEWHERE, *BAKED)]
    for name in of_parameters:
        names = [x for x in needed(free, name) if x in state and x != "dt"]
        given = {x: state[x] for x in (*names, "parameters")}
        if name not in ("integrate", "difference", "rate", "velocity_of", "normalize"):
            found.append(Call(f"parameters.{name}", with_parameters(name, free), given))
    for table, values in ((expressions(), state), (chain_expressions(), closed)):
        for name, function in table.items():
            code: Any = function
            names = code.__code__.co_varnames[: code.__code__.co_argcount]
            found.append(Call(name, function, {x: values[x] for x in names}))
    return tuple(found)


# -- the kinds of arrays ---------------------------------------------------------------------------


def strided(x: np.ndarray) -> np.ndarray:
    """Numbers that do not follow each other, between NaN."""
    if not x.ndim:
        return x
    wide = np.full([2 * n for n in x.shape], np.nan, x.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def table(x: np.ndarray) -> Any:
    return pd.DataFrame(x) if x.ndim == 2 else pd.Series(x) if x.ndim == 1 else x


def lazy(x: np.ndarray) -> Any:
    """Cut along the batch, and along the numbers of a state."""
    return da.from_array(x, chunks=tuple(max(1, (n + 1) // 2) for n in x.shape))


def single(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


def tensor(x: np.ndarray, **options: Any) -> torch.Tensor:
    return torch.tensor(x, **options)


ALL = "one state", "batch", "grid", "one row first", "one row after", "empty"


class Kind(NamedTuple):
    """A kind of array: how to make one, the type of the results, the layouts to test."""

    of: Callable[[np.ndarray], Any]
    result: type = np.ndarray
    layouts: tuple[str, ...] = ALL
    is_single: bool = False
    column: bool = False  # dt is an array (..., 1)
    of_arguments: str = "all"  # or only the "first", or only the "last"


KINDS = {
    "rows": Kind(lambda x: x),
    "columns": Kind(lambda x: np.asarray(x, order="F"), layouts=("grid",)),
    "strided": Kind(strided, layouts=("one state", "grid")),
    "backwards": Kind(lambda x: np.flip(np.flip(x).copy()), layouts=("one state", "batch")),
    "lists": Kind(lambda x: x.tolist(), layouts=("one state", "grid")),
    "tables": Kind(table, layouts=("one state", "batch")),
    "float32": Kind(single, is_single=True),
    "torch": Kind(tensor, torch.Tensor, column=True),
    "torch, strided": Kind(
        lambda x: torch.from_numpy(strided(x)), torch.Tensor, ("one row after",), column=True
    ),
    "torch, gradient": Kind(
        partial(tensor, requires_grad=True), torch.Tensor, ("one state", "grid"), column=True
    ),
    "torch, float32": Kind(lambda x: tensor(single(x)), torch.Tensor, ("grid",), True, True),
    "torch, first": Kind(tensor, torch.Tensor, ("batch", "one row first"), of_arguments="first"),
    "torch, last": Kind(tensor, torch.Tensor, ("batch",), column=True, of_arguments="last"),
    "jax": Kind(lambda x: jnp.asarray(single(x)), jax.Array, ("grid",), True, True),
    "dask": Kind(lazy, da.Array, ("grid",)),
    "dask, first": Kind(lazy, da.Array, ("batch",), of_arguments="first"),
}


def laid_out(state: Arrays, layout: str) -> tuple[Arrays, tuple[int, ...]]:
    """The arguments in a layout, and the batch axes of the results."""
    given = {}
    for i, (name, x) in enumerate(state.items()):
        if layout == "one state":
            x = np.array(x[1])
        elif layout == "empty":
            x = x[:0]
        elif layout == "grid":
            x = x if i % 2 else x[:2, None]
        elif (layout == "one row first" and not i) or (layout == "one row after" and i):
            x = np.array(x[0])
        given[name] = x
    grid = (2, N) if len(given) > 1 else (2, 1)
    alone = () if len(given) == 1 else (N,)
    return given, {"one state": (), "empty": (0,), "grid": grid, "batch": (N,)}.get(
        layout, alone if layout == "one row first" else (N,)
    )


def one_by_one(call: Call, given: Arrays, lead: tuple[int, ...]) -> list[np.ndarray]:
    """The results of each state alone, in float64."""
    cores = {name: call.state[name].shape[1:] for name in given}
    rows = {name: np.broadcast_to(x, (*lead, *cores[name])) for name, x in given.items()}
    each = [call({k: np.array(x[i]) for k, x in rows.items()}) for i in np.ndindex(*lead)]
    return [np.stack(xs).reshape((*lead, *np.shape(xs[0]))) for xs in zip(*each, strict=True)]


REFUSED: dict[str, tuple[str, ...]] = {  # words of the error: kinds or calls, as far as they go
    "is not one compiled function": ("dense expression",),
    "a part of this is computed by NumPy": ("kalman", "kalman parameters"),
    "whose eigenvectors have no gradients": ("torch, gradient",),
    "along which Dask arrays are cut": ("rollout parameters",),
    "give one number, or an array (...": ("torch, first", "torch, last"),
}
# of closed chains: compiled functions of the state, with the arrays of other libraries; others read
# numbers, and return NumPy arrays
ON_CHAINS = {
    *("forward_dynamics", "inverse_dynamics", "linearize", "step", "energy", "frame_pose"),
    *("difference", "integrate", "normalize"),
}
IN_DOUBLE = {  # always float64
    *("integrate", "difference", "rate", "velocity_of", "normalize", "integrate dt"),
    *("PD", "computed torque", "rollout", "rollout of torques", "rollout parameters"),
}


def is_tested(call: Call, kind: str) -> bool:
    """Whether the results are of the library of the arguments."""
    owner, _, name = call.name.partition(".")
    if owner.startswith("chain"):
        if kind.startswith("dask") or kind == "float32":
            return False
        return KINDS[kind].result is np.ndarray or name in ON_CHAINS or not name
    if name and owner == "unnormalised" and kind not in ("rows", "float32", "dask"):
        return False  # the same code as that of "diagonalised"
    if name and owner in ("diagonalised", "parameters") and KINDS[kind].is_single:
        return kind == "float32" and owner == "diagonalised"  # fewer kernels to compile
    return not (kind.startswith("dask") and call.name in ("PD", "computed torque"))


@pytest.mark.parametrize("call", calls(), ids=lambda call: call.name)
def test_every_kind_gives_the_numbers_of_each_state_alone(call: Call):
    known: dict[str, list[np.ndarray]] = {}
    for layout in ALL:
        plain, lead = laid_out(call.state, layout)
        if layout == "empty":
            known[layout] = [x[:0] for x in known["batch"]]
        else:
            known[layout] = one_by_one(call, plain, lead)
        for name, kind in KINDS.items():
            if layout in kind.layouts and is_tested(call, name):
                check(call, name, kind, plain, known[layout])


def check(call: Call, name: str, kind: Kind, plain: Arrays, wanted: list[np.ndarray]) -> None:
    given, places = dict(plain), {"all": slice(None), "first": slice(1), "last": slice(-1, None)}
    for key in list(plain)[places[kind.of_arguments]]:
        given[key] = kind.of(plain[key][..., None] if kind.column and key == "dt" else plain[key])
    try:
        found = call(given)
    except pp.Error as error:
        words = [x for x in REFUSED if x in str(error)]
        assert words and any(x in (name, call.name) for x in REFUSED[words[0]]), error
        return
    is_double = call.name.rpartition(".")[2] in IN_DOUBLE and name == "float32"
    for x, y in zip(found, wanted, strict=True):
        assert isinstance(x, kind.result | np.generic), (name, type(x))
        if y.dtype.kind == "f" and not is_double:
            assert str(x.dtype).endswith("32" if kind.is_single else "64"), (name, x.dtype)
        numbers = x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
        near = 2e-3 if kind.is_single else 1e-9
        # what does not depend on an argument need not have its batch axes
        numbers = np.broadcast_to(numbers, y.shape)
        scale = np.nanmax(np.abs(y), initial=0.0) if y.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(numbers, y, near, near * scale, err_msg=name)


def test_the_list_is_long():
    assert len(calls()) > 150
    assert len(functions(pp.Robot)) > 30 and len(functions(Diagonalised)) > 20
