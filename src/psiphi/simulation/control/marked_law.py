"""The decorator `pp.law`: it marks a function tau(t, q, v) as pure, so that psiphi may compile it,
or as a function of a whole batch of motions.

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
from psiphi._util.validate import flag
from psiphi.simulation.control.control_law import is_law_controller

Function = TypeVar("Function", bound=Callable[..., Any])


class MarkedLaw:
    """A function tau(t, q, v) that is marked as pure, batched, or both. It is called like the
    function."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], batched: bool = False, pure: bool = True):
        update_wrapper(self, function, updated=())  # name, docstring, signature
        self.batched, self.pure = batched, pure

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)

    def __get__(self, instance: object, owner: type | None = None) -> MarkedLaw:
        """A method that its class marks is bound to an object as a marked method."""
        bind = getattr(type(self.__wrapped__), "__get__", None)
        bound = bind(self.__wrapped__, instance, owner) if bind else None
        if not isinstance(bound, MethodType) or bound is self.__wrapped__:
            return self
        return MarkedLaw(bound, self.batched, self.pure)

    def __reduce__(self) -> Any:
        """Pickle by name, as for functions, if the name refers to this object; else pickle the
        function and mark it again."""
        name, module = getattr(self, "__qualname__", ""), sys.modules.get(self.__module__)
        found = reduce(lambda value, part: getattr(value, part, None), name.split("."), module)
        return name if found is self else (MarkedLaw, (self.__wrapped__, self.batched, self.pure))

    def __repr__(self) -> str:
        try:
            arguments = str(inspect.signature(self.__wrapped__))
        except (TypeError, ValueError):  # some compiled functions have no signature
            arguments = "(...)"
        return f"<pp.law {name_of(self.__wrapped__)}{arguments}>"


@overload
def law(function: Function, *, batched: bool = False, pure: bool = True) -> Function: ...
@overload
def law(
    function: None = None, *, batched: bool = False, pure: bool = True
) -> Callable[[Function], Function]: ...
def law(
    function: Callable[..., Any] | None = None, *, batched: bool = False, pure: bool = True
) -> Any:
    """Mark a law of control tau(t, q, v) as a pure function, which psiphi may trace and compile.

    A pure function depends on t, q, v and on values that do not change during the motion. It has no
    memory, draws no random numbers and reads no clock. `pp.simulate` compiles a marked law together
    with the dynamics where that saves time; it calls other functions in Python at every stage.

    A law that compiles uses arithmetic, NumPy's sin, cos, tan, sqrt, exp, tanh, arctan2, sums,
    products, maximum, minimum, clip, sign and where with comparisons, psiphi's controllers and the
    functions of a robot. `np.where(x > 0, a, b)` selects, with both a and b computed; `if x > 0`
    does not compile. Any other marked law raises an error that says why.

    A law gets one motion at a time, q (nq,) and v (nv,), also in a batch. With `batched=True` it
    gets all motions in one call, q (..., nq), and returns (..., nv): write q[..., 0] for the first
    coordinate. The first call is compared with calls for single motions. Functions in `events=` can
    be marked in the same way. With `pure=False` nothing is traced or compared: for functions of a
    batch that have internal state.

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
    batched, pure = flag("batched", batched), flag("pure", pure)
    if function is None:
        return partial(law, batched=batched, pure=pure)
    if not (batched or pure):
        raise StateError(
            "pp.law(pure=False) marks nothing", "leave out pp.law; or add batched=True"
        )
    if inspect.isclass(function):
        cause = f"pp.law of the class {function.__name__}"
        raise StateError(cause, "mark its __call__ method, or an object of the class")
    if not callable(function):
        raise StateError(f"pp.law of {shown(function)}", "give a function tau(t, q, v)")
    same = isinstance(function, MarkedLaw) and (function.batched, function.pure) == (batched, pure)
    return function if same or is_law_controller(function) else MarkedLaw(function, batched, pure)


def unwrap_law(tau: Any) -> Any:
    """The function of a marked law; any other torque is returned unchanged."""
    return unwrap_law(tau.__wrapped__) if isinstance(tau, MarkedLaw) else tau


def mark_of(function: object) -> MarkedLaw | None:
    """The mark of a function, of the `__call__` of its class, or of the function of a partial."""
    if isinstance(function, MarkedLaw):
        return function
    if isinstance(function, partial):
        return mark_of(function.func)
    call = inspect.getattr_static(type(function), "__call__", None)
    return call if isinstance(call, MarkedLaw) else None


def is_pure(function: object) -> bool:
    """Whether a function is marked as pure."""
    mark = mark_of(function)
    return mark is not None and mark.pure


def is_batched(function: object) -> bool:
    """Whether a function gets all motions of a batch in one call: controllers of psiphi, and
    functions that are marked so."""
    mark = mark_of(function)
    return is_law_controller(function) or (mark is not None and mark.batched)
