"""The decorator `pp.law`: it marks a function tau(t, q, v) as pure, so that psiphi may compile it.

psiphi cannot tell whether a Python function has internal state. The user says that it has none, as
with `jax.jit`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial, reduce, update_wrapper
from types import MethodType
from typing import Any, TypeVar, overload

from psiphi._util.errors import StateError
from psiphi._util.text import name_of, shown
from psiphi.simulation.control.control_law import is_law_controller

Function = TypeVar("Function", bound=Callable[..., Any])


class PureLaw:
    """A function tau(t, q, v) that is marked as pure. It is called like the function."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]):
        update_wrapper(self, function, updated=())  # name, docstring, signature

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)

    def __get__(self, instance: object, owner: type | None = None) -> PureLaw:
        """A method that its class marks is bound to an object as a marked method."""
        bind = getattr(type(self.__wrapped__), "__get__", None)
        bound = bind(self.__wrapped__, instance, owner) if bind else None
        if not isinstance(bound, MethodType) or bound is self.__wrapped__:
            return self
        return PureLaw(bound)

    def __reduce__(self) -> Any:
        """Pickle by name, as for functions, if the name refers to this object; else pickle the
        function and mark it again."""
        name, module = getattr(self, "__qualname__", ""), sys.modules.get(self.__module__)
        found = reduce(lambda value, part: getattr(value, part, None), name.split("."), module)
        return name if found is self else (law, (self.__wrapped__,))

    def __repr__(self) -> str:
        try:
            arguments = str(inspect.signature(self.__wrapped__))
        except (TypeError, ValueError):  # some compiled functions have no signature
            arguments = "(...)"
        return f"<pp.law {name_of(self.__wrapped__)}{arguments}>"


@overload
def law(function: Function) -> Function: ...
@overload
def law(function: None = None) -> Callable[[Function], Function]: ...
def law(function: Callable[..., Any] | None = None) -> Any:
    """Mark a law of control tau(t, q, v) as a pure function, which psiphi may trace and compile.

    A pure function depends on t, q, v and on values that do not change during the motion. It has no
    memory, draws no random numbers and reads no clock. `pp.simulate` compiles a marked law together
    with the dynamics where that saves time; it calls other functions in Python at every stage.

    A law that compiles uses arithmetic, NumPy's sin, cos, sqrt, sums and products, psiphi's
    controllers and the functions of a robot. Any other marked law raises an error that says why.

    `law` takes functions, lambdas, partial functions, methods and callable objects. What it returns
    is called as before.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> @pp.law
    ... def hold(t, q, v):
    ...     return robot.gravity(q) - 8 * v
    >>> hold
    <pp.law hold(t, q, v)>
    >>> motion = pp.simulate(robot, robot.neutral(), np.ones(6), hold, duration=2)
    >>> "in Python" in motion.summary()
    False
    """
    if function is None:
        return law
    if inspect.isclass(function):
        cause = f"pp.law of the class {function.__name__}"
        raise StateError(cause, "mark its __call__ method, or an object of the class")
    if not callable(function):
        raise StateError(f"pp.law of {shown(function)}", "give a function tau(t, q, v)")
    return (
        function
        if is_law_controller(function) or isinstance(function, PureLaw)
        else PureLaw(function)
    )


def unwrap_law(tau: Any) -> Any:
    """The function of a marked law; any other torque is returned unchanged."""
    return tau.__wrapped__ if isinstance(tau, PureLaw) else tau


def is_pure(tau: object) -> bool:
    """Whether a torque is marked, or the `__call__` of its class, or the function of a partial."""
    if isinstance(tau, partial):
        return is_pure(tau.func)
    call = inspect.getattr_static(type(tau), "__call__", None)
    return isinstance(tau, PureLaw) or isinstance(call, PureLaw)
