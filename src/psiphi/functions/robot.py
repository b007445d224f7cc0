"""The robot at the door: a model that answers. Its methods pick a gufunc, call it, and turn its errors into words."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from psiphi.errors import StateError
from psiphi.functions import guard
from psiphi.functions.compiler import Function, Request
from psiphi.functions.dynamics import CATALOGUE
from psiphi.functions.threads import run
from psiphi.model.model import Model, suggest

AXES = ("world", "frame")


class Robot(Model):
    """A model with its dynamics. Arrays have any leading batch axes; every function takes `out=`, `dtype=` and `check=`.

    `check=True` looks at the numbers first and raises a `StateError` that names the joint; without it, NaN in gives NaN
    out, in that batch element alone. Gravity acts; damping, friction, limits and mimic do not, unless an argument says so.
    """

    _one_step: Any  # the gufunc of forward dynamics, after the first call

    @classmethod
    def of(cls, model: Model) -> Robot:
        """The model, with its functions."""
        return cls(**{f.name: getattr(model, f.name) for f in fields(Model)})

    def function(self, name: str, frames: tuple[str, ...] = (), axes: str = "world") -> Function:
        """The compiled quantity `name` of the catalogue; its `.ufunc` is a NumPy gufunc."""
        request = Request(name, frames, axes)
        known = self.__dict__.setdefault("_functions", {})
        if request not in known:
            if name not in CATALOGUE:
                raise StateError(f"no function {name!r}", suggest(name, CATALOGUE))
            if axes not in AXES:
                raise StateError(f"axes is {axes!r}, expected 'world' or 'frame'", "leave it out for world axes")
            known[request] = Function(self, request)
        return known[request]

    def flops(self, name: str, **options) -> int:
        """Exact operation count (mul, add, div, sqrt) of one evaluation, sines and cosines apart."""
        return self.function(name, **options).count.flops

    def forward_dynamics(self, q, v, tau, f_ext=None, axes="world", out=None, dtype=None, check=False):
        """a = M^-1 (tau - C v - g + J* f_ext)

        q (..., nq), v and tau (..., nv) -> a (..., nv). `f_ext` maps frame names to wrenches [moment; force] (..., 6) that
        act on the robot at the frame's origin, in world axes (`axes="frame"`: in the frame's own).

        >>> import psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> robot.forward_dynamics(robot.neutral(), [0] * 6, robot.gravity(robot.neutral())).round(9) + 0.0
        array([0., 0., 0., 0., 0., 0.])
        """
        if f_ext is out is dtype is None and check is False:
            try:
                if q.ndim == 1:  # one state: control loops come here a thousand times a second
                    return self._one_step(q, v, tau)
            except (AttributeError, TypeError, ValueError):
                pass  # a first call, a list, or a mistake: the door below finds the words
        result = self._loaded("forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check)
        self.__dict__["_one_step"] = self.function("forward_dynamics").ufunc
        return result

    def inverse_dynamics(self, q, v, a, *, f_ext=None, axes="world", out=None, dtype=None, check=False):
        """tau = M a + C v + g - J* f_ext

        q (..., nq), v and a (..., nv) -> tau (..., nv); `f_ext` as in `forward_dynamics`.
        """
        return self._loaded("inverse_dynamics", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check)

    def bias(self, q, v, *, f_ext=None, axes="world", out=None, dtype=None, check=False):
        """C v + g - J* f_ext: the torques that hold the velocity v. -> (..., nv)"""
        return self._loaded("bias", dict(q=q, v=v), f_ext, axes, out, dtype, check)

    def gravity(self, q, *, out=None, dtype=None, check=False):
        """g(q): the torques that hold the robot still. -> (..., nv)"""
        return self._call("gravity", dict(q=q), out, dtype, check)

    def mass_matrix(self, q, *, out=None, dtype=None, check=False):
        """M = H phi M phi* H* (+ rotor inertia). -> (..., nv, nv)"""
        return self._matrix("mass_matrix", q, out, dtype, check)

    def mass_matrix_inverse(self, q, *, out=None, dtype=None, check=False):
        """M^-1 = (I - H psi K)* D^-1 (I - H psi K). -> (..., nv, nv)"""
        return self._matrix("mass_matrix_inverse", q, out, dtype, check)

    def mass_matrix_factors(self, q, *, out=None, dtype=None, check=False):
        """(L, D) with M = L D L*, L = I + H phi K, D block diagonal (a block a joint). -> (..., nv, nv) twice

        Bodies are numbered base to tip, so L is upper triangular: entry (k, j) is zero unless k is an ancestor of j.
        """
        return self._matrix("mass_matrix_factors", q, out, dtype, check)

    def mass_solve(self, q, tau, *, out=None, dtype=None, check=False):
        """M^-1 tau in O(N), without the matrix. -> (..., nv)"""
        return self._call("mass_solve", dict(q=q, tau=tau), out, dtype, check)

    def frame_pose(self, q, frame: str, *, out=None, dtype=None, check=False):
        """T: the 4x4 pose of a frame in the world. -> (..., 4, 4)"""
        return self._call("frame_pose", dict(q=q), out, dtype, check, (self._named(frame),))

    def frame_velocity(self, q, v, frame: str, *, axes="world", out=None, dtype=None, check=False):
        """V = [w; v] = J v of the frame's origin, in world axes (`axes="frame"`: the frame's own). -> (..., 6)"""
        return self._call("frame_velocity", dict(q=q, v=v), out, dtype, check, (self._named(frame),), axes)

    def jacobian(self, q, frame: str, *, axes="world", out=None, dtype=None, check=False):
        """J = B* phi* H*: [w; v] of the frame's origin per joint velocity, in world axes or the frame's own. -> (..., 6, nv)"""
        return self._call("jacobian", dict(q=q), out, dtype, check, (self._named(frame),), axes)

    def energy(self, q, v, *, out=None, dtype=None, check=False):
        """v* M v / 2 - sum m g.c: kinetic and potential energy together, zero at rest at the world's origin. -> (...)"""
        return self._call("energy", dict(q=q, v=v), out, dtype, check)

    def kinetic_energy(self, q, v, *, out=None, dtype=None, check=False):
        """v* M v / 2. -> (...)"""
        return self._call("kinetic_energy", dict(q=q, v=v), out, dtype, check)

    def potential_energy(self, q, *, out=None, dtype=None, check=False):
        """- sum m g.c. -> (...)"""
        return self._call("potential_energy", dict(q=q), out, dtype, check)

    def center_of_mass(self, q, *, out=None, dtype=None, check=False):
        """c = sum m c / sum m of all moving bodies, in the world. -> (..., 3)"""
        return self._call("center_of_mass", dict(q=q), out, dtype, check)

    def _named(self, frame) -> str:
        return self.frame(frame).name

    def _loaded(self, name: str, state: dict[str, Any], f_ext, axes: str, out, dtype, check):
        if not f_ext:
            return self._call(name, state, out, dtype, check)
        frames = tuple(self._named(frame) for frame in guard.mapping(f_ext))
        state["f_ext"] = guard.stack_wrenches(f_ext)
        return self._call(name, state, out, dtype, check, frames, axes)

    def _matrix(self, name: str, q, out, dtype, check):
        function = self.function(name)
        if function.written_out:
            return self._call(name, dict(q=q), out, dtype, check)
        return guard.columns(self, CATALOGUE[name].columns, name, q, out, dtype, check)

    def _call(self, name: str, state: dict[str, Any], out, dtype, check, frames: tuple[str, ...] = (), axes: str = "world"):
        function = self.function(name, frames, axes)
        if check:
            guard.check_state(self, state)
        try:
            result = run(function.ufunc, tuple(state.values()), out, dtype=dtype, flops=function.cost)
        except (ValueError, TypeError) as error:
            raise guard.in_words(self, name, function.program.inputs, state, error) from error
        if check:
            guard.check_result(self, name, result)
        return result
