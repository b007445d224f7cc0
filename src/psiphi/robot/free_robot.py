"""A robot with numbers that are inputs: `robot.free("inertia")`. Its functions take `parameters=`, or it is given them once, by
`at`, and is a robot like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.memory_layout import frozen_copy
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_list, flag, is_foreign, is_lazy, is_list, read_array
from psiphi.compiler.passes import UNROLLED
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.model.editing.name_patterns import matching
from psiphi.model.model import Model
from psiphi.model.parameters import inertial_parameters
from psiphi.model.parameters.free_parameters import FREE, freed
from psiphi.robot.robot import Robot

_ndarray = np.ndarray
Taking = Callable[..., Any]
FORGOTTEN = ("_one_step", "_steppers", "mass")  # what was computed of other parameters


def free(robot: Robot, *words: str, links: str | Sequence[str] | None = None) -> FreeRobot:
    """This robot with some of its numbers as inputs: `parameters` (..., n) of every function, one set or one an element.

    `words` are "inertia" (ten numbers a body, as in `regressor`), "mass", "com", "armature", "damping", "stiffness" and
    "offsets" (where joints are); `links` names or patterns, all moving ones when left out. Nothing is compiled again for
    other numbers.

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
            f"numbers of {robot.name} are free already", "free all at once, from the robot itself"
        )
    known = [body.name for body in robot.bodies]
    named = known if links is None else matching("moving link", links, known, robot.name)
    chosen = as_list("words", words, f"name some of {', '.join(FREE)}")
    for word in chosen:
        if not isinstance(word, str) or word not in FREE:
            remedy = (
                'write words beside each other: robot.free("mass", "com")'
                if is_list(word)
                else nearest(word, FREE)
            )
            raise StateError(f"free: {shown(word)} is nothing that can be free", remedy)
    if not chosen or len(set(chosen)) < len(chosen):
        raise StateError(
            f"free: {shown(tuple(chosen))} came", f"name some of {', '.join(FREE)}, each once"
        )
    if len(robot.joints) > UNROLLED:
        cause = f"{robot.name} has {len(robot.joints)} bodies, and its code runs in loops that keep their numbers"
        raise StateError(cause, f"numbers can be free on robots of up to {UNROLLED} bodies")
    kept = {f.name: getattr(robot, f.name) for f in fields(Robot)}
    own = {
        **kept,
        **freed(robot, chosen, [known.index(name) for name in named]),
        "description": None,
    }
    return FreeRobot(**own)


def check_one(name: str, robot: Robot) -> None:
    """Refuse a batch of robots where one is meant: sets of parameters would meet whatever axis is as long as theirs."""
    if isinstance(robot, FreeRobot) and np.ndim(robot.given) > 1:
        cause = f"{name}: {robot.name} has parameters of shape {np.shape(robot.given)}, expected one set"
        raise StateError(cause, "give light.at(parameters[i]), one robot after the other")


def taking(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a robot, with `parameters=`; `check=True` looks at these, too."""

    @wraps(method)
    def of(self: FreeRobot, *args: Any, parameters: Any = None, **options: Any) -> Any:
        if parameters is None:
            return method(self, *args, **options)
        robot = self.bind_parameters(parameters)
        if flag("check", options.get("check", False)):
            robot._refuse_impossible()
        return method(robot, *args, **options)

    return of


def at_once(method: Taking) -> Taking:
    """`taking`, for what control loops ask: one state and one set of parameters without NumPy's overhead, after the first."""
    slow = taking(method)

    @wraps(method)
    def of(self: FreeRobot, *args: Any, parameters: Any = None, **options: Any) -> Any:
        given = self.given if parameters is None else parameters
        alone = (
            not options
            and len(args) == 3
            and type(args[0]) is type(given) is _ndarray
            and args[0].ndim == given.ndim == 1
        )
        if alone:
            try:
                a = self._one_call(*args, given)
                if type(a) is _ndarray:
                    return a
            except Exception:
                pass  # a first call, a list, or a mistake: the door below finds the words
        result = slow(self, *args, parameters=parameters, **options)
        if alone and self.nv and "_one_call" not in self.__dict__:
            self.__dict__["_one_call"] = scalar_fast_path.upright(
                self.model, self.function(method.__name__).single()
            )
        return result

    return of


@dataclass(frozen=True, eq=False, repr=False)
class FreeRobot(Robot):
    """A robot some of whose numbers are inputs: see `robot.free`. `given` are those that `at` put in."""

    given: Any = None
    _one_call: ClassVar[
        Any
    ]  # forward dynamics of one state and one set of parameters, after the first call

    @classmethod
    def of(cls, model: Model, shapes: Any = None) -> Any:
        """A robot of this model; with the same numbers free where the model has some."""
        return (
            super().of(model, shapes)
            if getattr(model, "freed", None) is not None
            else Robot.of(model, shapes)
        )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters by name: "forearm.m", "forearm.mx", ..., "elbow.armature"."""
        return self._free.names

    def parameters(self) -> Array:
        """The robot's own numbers, (n,): what they were before they were free."""
        return self._free.values

    def at(self, parameters: Numbers) -> FreeRobot:
        """This robot with these parameters (..., n): every function uses them, batch axes as those of all arguments.

        One set that no body can have is refused; in a batch, such elements become NaN. What functions make of the parameters
        alone is made once: many calls with the same numbers take less time so than with `parameters=`.

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
        """The parameters (..., n), where bodies can have them: mass and moments of a density that is nowhere negative.

        One set that none can have is an error that names what is wrong; elements of a batch become NaN.
        """
        return inertial_parameters.consistent(self._free, self._read(parameters))

    def masses(self, masses: Mapping[str, Numbers]) -> Array:
        """Parameters (..., n) with other masses of some links: where "inertia" is free, of the same shape and density scaled.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("inertia", links="wrist_3_link")
        >>> light.masses({"wrist_3_link": [0.1, 0.2, 0.4]}).shape
        (3, 10)
        """
        return inertial_parameters.masses(self._free, masses)

    def payload(
        self,
        frame: str,
        mass: Numbers,
        com: Numbers = (0.0, 0.0, 0.0),
        inertia: Numbers | None = None,
    ) -> Array:
        """Parameters (..., n) with a load on a frame: mass (...), com (..., 3) and inertia about it (..., 3, 3) in its axes.

        >>> import numpy as np, psiphi as pp
        >>> light = pp.load("ur5").free("inertia", links="wrist_3_link")
        >>> light.payload("tool", np.linspace(0.0, 5.0, 11), com=(0, 0, 0.1)).shape
        (11, 10)
        """
        return inertial_parameters.payload(self, self._free, frame, mass, com, inertia)

    def randomised(
        self, size: int | tuple[int, ...] = (), spread: float = 0.1, seed: Any = None
    ) -> Array:
        """Random parameters (*size, n) that bodies can have, about the robot's own; `spread` is relative.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("inertia")
        >>> light.at(light.randomised(100, seed=0)).mass_matrix(light.neutral()).shape
        (100, 6, 6)
        """
        return inertial_parameters.randomised(self._free, size, spread, seed)

    def baked(self, parameters: Numbers | None = None) -> Robot:
        """A robot with nothing free, one set of parameters (those of `at`, if none are given) in its links and joints.

        >>> import psiphi as pp
        >>> light = pp.load("ur5").free("mass", links="wrist_3_link")
        >>> light.baked([0.5]).bodies[-1].mass
        0.5
        """
        given = (
            argument_checks.parameters(self, "baked", self.given)
            if parameters is None
            else self.consistent(parameters)
        )
        if np.ndim(given) != 1:
            raise StateError(
                f"baked: parameters of shape {np.shape(given)} came, expected one set",
                "give parameters[i]",
            )
        return inertial_parameters.baked(self._free, np.asarray(given, dtype=float))

    @property
    def mass(self) -> Any:  # type: ignore[override]
        """The mass of all moving bodies, of the parameters that `at` put in."""
        return inertial_parameters.total_mass(
            self, self._free, argument_checks.parameters(self, "mass", self.given)
        )

    @property
    def _free(self) -> Any:
        return self.freed

    def _read(self, parameters: Any) -> np.ndarray:
        if (
            type(parameters) is np.ndarray
            and parameters.dtype.kind == "f"
            and parameters.shape[-1:] == (self._free.size,)
        ):
            return parameters
        array, fault = read_array(parameters, (self._free.size,))
        if fault:
            cause = f"parameters {fault}"
            raise StateError(
                cause,
                f"give {self._free.size} numbers in the last axis; light.parameters() are the robot's own",
            )
        return array

    def bind_parameters(self, parameters: Any) -> FreeRobot:
        """The same robot, compiled functions included, with parameters."""
        made, _ = (
            object.__new__(type(self)),
            (self.function_cache, self.model, self.quaternions),
        )  # known from now on
        own = made.__dict__
        own.update(self.__dict__)
        for name in FORGOTTEN:
            own.pop(name, None)
        own["given"] = (
            parameters if is_foreign(parameters) or is_lazy(parameters) else self._read(parameters)
        )
        return made

    def _refuse_impossible(self) -> None:
        """An error where no body can have the parameters; what is no number at all is named by who looks at all arguments."""
        if type(self.given) is np.ndarray and np.isfinite(self.given).all():
            inertial_parameters.refuse(self._free, self.given)

    def with_sample_axis(self) -> FreeRobot:
        """For arrays (..., samples, n): parameters with batch axes get one for the samples."""
        return self if np.ndim(self.given) < 2 else self.bind_parameters(self.given[..., None, :])

    def _parameter_values(self, name: str) -> Any:
        return argument_checks.parameters(self, name, self.given)

    def require_mass(self, name: str, remedy: str) -> None:
        """Whether there is mass is a question of the parameters: where there is none the answer is NaN."""

    def __eq__(self, other: object) -> bool:
        mine, theirs = self.given, getattr(other, "given", None)
        same = mine is theirs or (
            mine is not None and theirs is not None and np.array_equal(mine, theirs)
        )
        return super().__eq__(other) and same

    def __hash__(self) -> int:
        return super().__hash__()

    forward_dynamics: ClassVar[Taking] = at_once(Robot.forward_dynamics)
    forward_dynamics_details: ClassVar[Taking] = taking(Robot.forward_dynamics_details)
    inverse_dynamics: ClassVar[Taking] = taking(Robot.inverse_dynamics)
    bias: ClassVar[Taking] = taking(Robot.bias)
    gravity: ClassVar[Taking] = taking(Robot.gravity)
    coriolis: ClassVar[Taking] = taking(Robot.coriolis)
    coriolis_product: ClassVar[Taking] = taking(Robot.coriolis_product)
    link_accelerations: ClassVar[Taking] = taking(Robot.link_accelerations)
    joint_forces: ClassVar[Taking] = taking(Robot.joint_forces)
    mass_log_det: ClassVar[Taking] = taking(Robot.mass_log_det)
    mass_matrix: ClassVar[Taking] = taking(Robot.mass_matrix)
    mass_matrix_inverse: ClassVar[Taking] = taking(Robot.mass_matrix_inverse)
    mass_matrix_factors: ClassVar[Taking] = taking(Robot.mass_matrix_factors)
    mass_product: ClassVar[Taking] = taking(Robot.mass_product)
    factor_product: ClassVar[Taking] = taking(Robot.factor_product)
    mass_solve: ClassVar[Taking] = taking(Robot.mass_solve)
    frame_pose: ClassVar[Taking] = taking(Robot.frame_pose)
    frame_velocity: ClassVar[Taking] = taking(Robot.frame_velocity)
    frame_acceleration: ClassVar[Taking] = taking(Robot.frame_acceleration)
    jacobian: ClassVar[Taking] = taking(Robot.jacobian)
    operational_space_inertia: ClassVar[Taking] = taking(Robot.operational_space_inertia)
    operational_compliance: ClassVar[Taking] = taking(Robot.operational_compliance)
    operational_space_bias: ClassVar[Taking] = taking(Robot.operational_space_bias)
    energy: ClassVar[Taking] = taking(Robot.energy)
    kinetic_energy: ClassVar[Taking] = taking(Robot.kinetic_energy)
    potential_energy: ClassVar[Taking] = taking(Robot.potential_energy)
    center_of_mass: ClassVar[Taking] = taking(Robot.center_of_mass)
    momentum: ClassVar[Taking] = taking(Robot.momentum)
    centroidal_momentum: ClassVar[Taking] = taking(Robot.centroidal_momentum)
    centroidal_momentum_matrix: ClassVar[Taking] = taking(Robot.centroidal_momentum_matrix)
    regressor: ClassVar[Taking] = taking(Robot.regressor)
    regressor_blocks: ClassVar[Taking] = taking(Robot.regressor_blocks)
    step: ClassVar[Taking] = taking(Robot.step)


assert PARAMETERS == "parameters"  # as `taking` calls them
