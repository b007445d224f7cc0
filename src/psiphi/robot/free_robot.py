"""A robot with free parameters: `robot.free("inertia")`.

Its functions take `parameters=`. `at(parameters)` binds values once, and the result is a robot like
any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.memory_layout import frozen_copy
from psiphi._util.text import nearest, shown
from psiphi._util.validate import (
    as_list,
    flag,
    is_foreign,
    is_lazy,
    is_list,
    matching_names,
    read_array,
)
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions.bound_function import BoundFunction
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.model import Model
from psiphi.model.parameters import inertial_parameters
from psiphi.model.parameters.free_parameters import (
    PARAMETER_GROUPS,
    FreeParameters,
    free_fields,
)
from psiphi.model.shapes import Shape
from psiphi.robot.robot import Robot

_ndarray = np.ndarray
Method = Callable[..., Any]
# cached attributes that depend on the values of the parameters
PARAMETER_DEPENDENT = ("_fast_forward_dynamics", "_steppers", "mass")


def free(robot: Robot, *words: str, links: str | Sequence[str] | None = None) -> FreeRobot:
    """This robot with free parameters: every function takes `parameters` (..., n).

    `words` are "inertia" (ten numbers per body, as in `regressor`), "mass", "com", "armature",
    "damping", "stiffness" and "offsets" (joint positions). `links` are names or patterns; the
    default is all moving links. Pass one set of parameters, or one per batch element. New values do
    not trigger a compilation.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> light = robot.free("inertia", links="wrist_3_link")
    >>> q, v, tau = robot.random(seed=0), np.zeros(6), np.zeros(6)
    >>> heavier = light.parameters() * np.linspace(1.0, 2.0, 5)[:, None]
    >>> a = light.forward_dynamics(q, v, tau, parameters=heavier)
    >>> a.shape, bool(np.allclose(a[0], robot.forward_dynamics(q, v, tau)))
    ((5, 6), True)
    """
    if robot.freed is not None:
        raise StateError(
            f"parameters of {robot.name} are free already",
            "call free once on the original robot, with all words",
        )
    known = [body.name for body in robot.bodies]
    named = known if links is None else matching_names("moving link", links, known, robot.name)
    chosen = as_list("words", words, f"name some of {', '.join(PARAMETER_GROUPS)}")
    for word in chosen:
        if not isinstance(word, str) or word not in PARAMETER_GROUPS:
            remedy = (
                'pass the words as separate arguments: robot.free("mass", "com")'
                if is_list(word)
                else nearest(word, PARAMETER_GROUPS)
            )
            raise StateError(f"free: {shown(word)} cannot be a free parameter", remedy)
    if not chosen or len(set(chosen)) < len(chosen):
        raise StateError(
            f"free: words are {shown(tuple(chosen))}, expected at least one, each once",
            f"name some of {', '.join(PARAMETER_GROUPS)}",
        )
    if len(robot.joints) > UNROLL_LIMIT:
        cause = (
            f"{robot.name} has {len(robot.joints)} bodies: "
            "its compiled loops have constant parameters"
        )
        raise StateError(cause, f"free parameters need at most {UNROLL_LIMIT} bodies")
    own = {f.name: getattr(robot, f.name) for f in fields(Robot)}
    own |= free_fields(robot, chosen, [known.index(name) for name in named])
    return FreeRobot(**{**own, "description": None})


def check_single_robot(name: str, robot: Robot) -> None:
    """Raise a StateError if the robot has a batch of parameters."""
    if isinstance(robot, FreeRobot) and np.ndim(robot.given) > 1:
        shape = np.shape(robot.given)
        cause = f"{name}: {robot.name} has parameters of shape {shape}, expected one set"
        raise StateError(cause, "call it for each light.at(parameters[i])")


def with_parameters(method: Method) -> Method:
    """The method of a robot with the argument `parameters=`, which `check=True` also checks."""

    @wraps(method)
    def call(
        self: FreeRobot, *args: object, parameters: Numbers | None = None, **options: object
    ) -> Any:
        if parameters is None:
            return method(self, *args, **options)
        robot = self.bind_parameters(parameters)
        if flag("check", options.get("check", False)):
            robot._check_consistency()
        return method(robot, *args, **options)

    return call


def parameter_fast_path(method: Method) -> Method:
    """`with_parameters` with a fast path for one state and one set of parameters.

    After the first such call it avoids NumPy's overhead.
    """
    general = with_parameters(method)

    @wraps(method)
    def call(self: FreeRobot, *args: Any, parameters: Any = None, **options: object) -> Any:
        values = self.given if parameters is None else parameters
        single = (
            not options
            and len(args) == 3
            and type(args[0]) is type(values) is _ndarray
            and args[0].ndim == values.ndim == 1
        )
        if single:
            try:
                a = self._fast_free_dynamics(*args, values)
                if type(a) is _ndarray:
                    return a
            except Exception:
                pass  # the first call, a list, or a wrong argument: the general path handles it
        result = general(self, *args, parameters=parameters, **options)
        if single and self.nv and "_fast_free_dynamics" not in self.__dict__:
            self.__dict__["_fast_free_dynamics"] = scalar_fast_path.checked_call(
                self.model,
                self.unbound_function(method.__name__).scalar_call(scalar_fast_path.no_fast_path),
            )
        return result

    return call


@dataclass(frozen=True, eq=False, repr=False)
class FreeRobot(Robot):
    """A robot with free parameters, from `robot.free`. `given` are the values that `at` bound."""

    given: Any = None
    # forward dynamics of one state and one set of parameters, set by the first call
    _fast_free_dynamics: ClassVar[Callable[..., Array]]

    @classmethod
    def of(cls, model: Model, shapes: Iterable[Shape] | None = None) -> Any:
        """A robot of this model: a `FreeRobot` if the model has free parameters."""
        free = getattr(model, "freed", None) is not None
        return super().of(model, shapes) if free else Robot.of(model, shapes)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters: "forearm.m", "forearm.mx", ..., "elbow.armature"."""
        return self._free_parameters.names

    def parameters(self) -> Array:
        """The values of the original robot, (n,)."""
        return self._free_parameters.values

    def at(self, parameters: Numbers) -> FreeRobot:
        """This robot with the values `parameters` (..., n) bound.

        Every function uses them; their batch axes broadcast with those of the arguments. A set that
        is physically inconsistent raises an error; in a batch, such elements become NaN. Functions
        compute what depends on the parameters only once, so many calls with the same values are
        faster than with `parameters=`.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("mass")
        >>> heavy = light.at(2.0 * light.parameters())
        >>> round(heavy.mass / light.at(light.parameters()).mass, 9)
        2.0
        """
        if is_foreign(parameters) or is_lazy(parameters):
            return self.bind_parameters(parameters)
        return self.bind_parameters(frozen_copy(self.consistent(parameters)))

    def consistent(self, parameters: Numbers) -> Array:
        """The parameters (..., n), checked for physical consistency.

        Consistent means: the mass and the moments of a density that is nowhere negative. A single
        inconsistent set raises an error that names the fault; elements of a batch become NaN.
        """
        return inertial_parameters.mask_inconsistent(
            self._free_parameters, self._read_parameters(parameters)
        )

    def masses(self, masses: Mapping[str, Numbers]) -> Array:
        """Parameters (..., n) with other masses of some links.

        If "inertia" is free, it scales with the mass.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("inertia", links="wrist_3_link")
        >>> light.masses({"wrist_3_link": [0.1, 0.2, 0.4]}).shape
        (3, 10)
        """
        return inertial_parameters.masses(self._free_parameters, masses)

    def payload(
        self,
        frame: str,
        mass: Numbers,
        com: Numbers = (0.0, 0.0, 0.0),
        inertia: Numbers | None = None,
    ) -> Array:
        """Parameters (..., n) with a load on a frame.

        mass (...), com (..., 3) and inertia about the com (..., 3, 3) are in the frame's axes.

        >>> import numpy as np, psiphi as pp
        >>> light = pp.load("ur5").free("inertia", links="wrist_3_link")
        >>> light.payload("tool", np.linspace(0.0, 5.0, 11), com=(0, 0, 0.1)).shape
        (11, 10)
        """
        return inertial_parameters.payload(self, self._free_parameters, frame, mass, com, inertia)

    def randomised(
        self,
        size: int | tuple[int, ...] = (),
        spread: float = 0.1,
        seed: int | np.random.Generator | None = None,
    ) -> Array:
        """Random, physically consistent parameters (*size, n) near the robot's own.

        `spread` is relative.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("inertia")
        >>> light.at(light.randomised(100, seed=0)).mass_matrix(light.neutral()).shape
        (100, 6, 6)
        """
        return inertial_parameters.random_parameters(self._free_parameters, size, spread, seed)

    def baked(self, parameters: Numbers | None = None) -> Robot:
        """A robot without free parameters, with one set of values in its links and joints.

        The default is the set that `at` bound.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("mass", links="wrist_3_link")
        >>> light.baked([0.5]).bodies[-1].mass
        0.5
        """
        values = (
            argument_checks.require_parameters(self, "baked", self.given)
            if parameters is None
            else self.consistent(parameters)
        )
        if np.ndim(values) != 1:
            raise StateError(
                f"baked: parameters have shape {np.shape(values)}, expected one set",
                "give parameters[i]",
            )
        values = np.asarray(values, dtype=float)
        return inertial_parameters.fix_parameters(self._free_parameters, values)

    @property
    def mass(self) -> Any:  # type: ignore[override]
        """The total mass of the moving bodies, for the parameters that `at` bound."""
        return inertial_parameters.total_mass(
            self,
            self._free_parameters,
            argument_checks.require_parameters(self, "mass", self.given),
        )

    def function(  # type: ignore[override]
        self, name: str, frames: str | Sequence[str] = (), axes: str = "world"
    ) -> DifferentiableFunction | BoundFunction:
        """`Robot.function`. After `at`, the function has the values of the parameters."""
        function = self.unbound_function(name, frames, axes)
        return function if self.given is None else BoundFunction(function, self.given)

    @property
    def _free_parameters(self) -> FreeParameters:
        assert self.freed is not None
        return self.freed

    def _read_parameters(self, parameters: Numbers) -> np.ndarray:
        if (
            type(parameters) is np.ndarray
            and parameters.dtype.kind == "f"
            and parameters.shape[-1:] == (self._free_parameters.size,)
        ):
            return parameters
        array, fault = read_array(parameters, (self._free_parameters.size,))
        if fault:
            cause = f"parameters {fault}"
            remedy = (
                f"give {self._free_parameters.size} numbers in the last axis; "
                "light.parameters() are the robot's own"
            )
            raise StateError(cause, remedy)
        return array

    def bind_parameters(self, parameters: Numbers) -> FreeRobot:
        """(Internal use only) This robot with values that are not checked for consistency.

        It shares the compiled functions.
        """
        bound = object.__new__(type(self))
        _ = self.function_cache, self.model, self.quaternions  # computed before they are shared
        own = bound.__dict__
        own.update(self.__dict__)
        for name in PARAMETER_DEPENDENT:
            own.pop(name, None)
        in_place = is_foreign(parameters) or is_lazy(parameters)
        own["given"] = parameters if in_place else self._read_parameters(parameters)
        return bound

    def _check_consistency(self) -> None:
        """Raise a StateError if the parameters are physically inconsistent.

        Values that are not finite are reported with the other arguments.
        """
        if type(self.given) is np.ndarray and np.isfinite(self.given).all():
            inertial_parameters.check_consistency(self._free_parameters, self.given)

    def with_sample_axis(self) -> FreeRobot:
        return self if np.ndim(self.given) < 2 else self.bind_parameters(self.given[..., None, :])

    def _parameter_values(self, name: str) -> Any:
        return argument_checks.require_parameters(self, name, self.given)

    def require_mass(self, name: str, remedy: str) -> None:
        """No check: the mass depends on the parameters. Without mass, results are NaN."""

    def __eq__(self, other: object) -> bool:
        a, b = self.given, getattr(other, "given", None)
        equal = a is b or (a is not None and b is not None and np.array_equal(a, b))
        return super().__eq__(other) and equal

    def __hash__(self) -> int:
        return super().__hash__()

    forward_dynamics: ClassVar[Method] = parameter_fast_path(Robot.forward_dynamics)
    forward_dynamics_details: ClassVar[Method] = with_parameters(Robot.forward_dynamics_details)
    inverse_dynamics: ClassVar[Method] = with_parameters(Robot.inverse_dynamics)
    bias: ClassVar[Method] = with_parameters(Robot.bias)
    gravity: ClassVar[Method] = with_parameters(Robot.gravity)
    coriolis: ClassVar[Method] = with_parameters(Robot.coriolis)
    coriolis_product: ClassVar[Method] = with_parameters(Robot.coriolis_product)
    link_accelerations: ClassVar[Method] = with_parameters(Robot.link_accelerations)
    joint_forces: ClassVar[Method] = with_parameters(Robot.joint_forces)
    hybrid_dynamics: ClassVar[Method] = with_parameters(Robot.hybrid_dynamics)
    joint_torques: ClassVar[Method] = with_parameters(Robot.joint_torques)
    mass_log_det: ClassVar[Method] = with_parameters(Robot.mass_log_det)
    mass_matrix: ClassVar[Method] = with_parameters(Robot.mass_matrix)
    mass_matrix_inverse: ClassVar[Method] = with_parameters(Robot.mass_matrix_inverse)
    mass_matrix_factors: ClassVar[Method] = with_parameters(Robot.mass_matrix_factors)
    mass_product: ClassVar[Method] = with_parameters(Robot.mass_product)
    factor_product: ClassVar[Method] = with_parameters(Robot.factor_product)
    mass_solve: ClassVar[Method] = with_parameters(Robot.mass_solve)
    frame_pose: ClassVar[Method] = with_parameters(Robot.frame_pose)
    frame_velocity: ClassVar[Method] = with_parameters(Robot.frame_velocity)
    frame_acceleration: ClassVar[Method] = with_parameters(Robot.frame_acceleration)
    frame_imu: ClassVar[Method] = with_parameters(Robot.frame_imu)
    jacobian: ClassVar[Method] = with_parameters(Robot.jacobian)
    operational_space_inertia: ClassVar[Method] = with_parameters(Robot.operational_space_inertia)
    operational_compliance: ClassVar[Method] = with_parameters(Robot.operational_compliance)
    operational_space_bias: ClassVar[Method] = with_parameters(Robot.operational_space_bias)
    energy: ClassVar[Method] = with_parameters(Robot.energy)
    kinetic_energy: ClassVar[Method] = with_parameters(Robot.kinetic_energy)
    potential_energy: ClassVar[Method] = with_parameters(Robot.potential_energy)
    center_of_mass: ClassVar[Method] = with_parameters(Robot.center_of_mass)
    momentum: ClassVar[Method] = with_parameters(Robot.momentum)
    centroidal_momentum: ClassVar[Method] = with_parameters(Robot.centroidal_momentum)
    centroidal_momentum_matrix: ClassVar[Method] = with_parameters(Robot.centroidal_momentum_matrix)
    regressor: ClassVar[Method] = with_parameters(Robot.regressor)
    regressor_blocks: ClassVar[Method] = with_parameters(Robot.regressor_blocks)
    step: ClassVar[Method] = with_parameters(Robot.step)


assert PARAMETERS == "parameters"  # the keyword of `with_parameters`
