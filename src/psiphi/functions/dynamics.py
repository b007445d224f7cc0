"""The catalogue: every quantity psiphi computes of a robot, as a program over its tree.

Each entry names its equation, its arguments and its sweeps. `Quantity.program(tree, frames, axes)` makes the program for
one robot; `columns` says which operator's columns a matrix is, for robots too large to write the matrix out in code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from psiphi.functions import kinematics as kin
from psiphi.functions import matrices as mat
from psiphi.functions import steps
from psiphi.model.model import WORLD, Model
from psiphi.sweeps.framing import Tree
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Argument, Program, Site, Sweep


@dataclass(frozen=True)
class Quantity:
    """One entry: equation and shapes for the reader, `program` for the compiler."""

    equation: str
    program: Callable[[Tree, tuple[str, ...], str], Program]
    columns: str = ""
    rods: bool = True  # does the result survive moving the inertia a joint does not feel (framing.py)?


def q(model: Model) -> Argument:
    return Argument("q", (model.nq,), "q")


def joint(name: str, model: Model) -> Argument:
    return Argument(name, (model.nv,), "v")


def _wrench(frames: tuple[str, ...]) -> tuple[Argument, ...]:
    return (Argument("f_ext", (len(frames), 6)),) if frames else ()


def _loads(tree: Tree, frames: tuple[str, ...], axes: str) -> dict[int, tuple]:
    """Marks for `carry_wrenches`: on each body, the wrenches that pass or act there."""
    marks: dict[int, tuple] = {}
    for number, name in enumerate(frames):
        body = tree.model.frame(name).body
        for k in tree.path_to(body) if axes == "world" else [body] * (body != WORLD):
            marks[k] = (*marks.get(k, ()), (number, _spot(tree, name) if k == body else None, axes == "world"))
    return marks


def _spot(tree: Tree, frame: str) -> tuple:
    """Rotation and origin of a frame in its body's working axes, as plain tuples."""
    spot = tree.model.frame(frame)
    place = tree.place(spot.body, spot.pose)
    return tuple(map(tuple, place.rotation.tolist())), tuple(place.translation.tolist())


def _rates(name: str, inputs: tuple[str, ...]) -> Callable:
    """Inverse dynamics with some of its inputs zero."""

    def program(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
        m = tree.model
        return Program(
            name,
            (q(m), *(joint(x, m) for x in inputs), *_wrench(frames)),
            (joint("tau", m),),
            (Sweep(BASE_TO_TIP, steps.accelerate_loaded), Sweep(TIP_TO_BASE, steps.collect_forces)),
            steps.still_world(m.gravity_vector),
            marks=_loads(tree, frames, axes),
        )

    return program


def forward_dynamics(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    m = tree.model
    return Program(
        "forward_dynamics",
        (q(m), joint("v", m), joint("tau", m), *_wrench(frames)),
        (joint("a", m),),
        (
            Sweep(BASE_TO_TIP, steps.accelerate_loaded),
            Sweep(TIP_TO_BASE, steps.filter_forces),
            Sweep(BASE_TO_TIP, steps.smooth_accelerations),
        ),
        steps.still_world(m.gravity_vector),
        marks=_loads(tree, frames, axes),
    )


def mass_product(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    m = tree.model
    sweeps = (Sweep(BASE_TO_TIP, steps.accelerate), Sweep(TIP_TO_BASE, steps.collect_forces))
    return Program("mass_product", (q(m), joint("a", m)), (joint("tau", m),), sweeps, steps.still_world((0, 0, 0)))


def mass_solve(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    m = tree.model
    sweeps = (Sweep(TIP_TO_BASE, steps.filter_torques), Sweep(BASE_TO_TIP, steps.smooth_accelerations))
    return Program("mass_solve", (q(m), joint("tau", m)), (joint("a", m),), sweeps, steps.still_world((0, 0, 0)))


def factor_product(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    """y = L x and D's blocks, row by row."""
    m = tree.model
    sweeps = (Sweep(TIP_TO_BASE, mat.innovations_product),)
    return Program("factor_product", (q(m), joint("x", m)), (joint("y", m), joint("d", m)), sweeps)


def _matrix(name: str, outputs: tuple[str, ...], *sweeps: Sweep) -> Callable:
    def program(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
        m = tree.model
        results = tuple(Argument(x, (m.nv, m.nv)) for x in outputs)
        return Program(name, (q(m),), results, sweeps, local=False)

    return program


def _on_frame(tree: Tree, frames: tuple[str, ...]) -> dict:
    """The path to the one frame, and the mark on its body."""
    body = tree.model.frame(frames[0]).body
    return {"bodies": tree.path_to(body), "marks": {body: _spot(tree, frames[0])}}


def frame_pose(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    outputs = (Argument("T", (4, 4)),)
    still = None
    if tree.model.frame(frames[0]).body == WORLD:
        still = _constant("T", tree.model.frame(frames[0]).pose.matrix.ravel().tolist())
    sweeps = (Sweep(BASE_TO_TIP, kin.write_pose),)
    return Program("frame_pose", (q(tree.model),), outputs, sweeps, kin.world_origin, still, **_on_frame(tree, frames))


def _constant(name: str, values: list[float]) -> Callable[[Site], None]:
    return lambda site: site.write(name, 0, values)


def frame_velocity(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    m, fixed = tree.model, tree.model.frame(frames[0]).body == WORLD
    sweeps, finish = (Sweep(BASE_TO_TIP, kin.velocity_own_axes),), None
    if axes == "world":
        sweeps = (Sweep(BASE_TO_TIP, kin.spatial_velocity), Sweep(TIP_TO_BASE, kin.velocity_inward))
        finish = None if fixed else kin.write_velocity
    outputs = (Argument("V", (6,)),)
    inputs = (q(m), joint("v", m))
    return Program("frame_velocity", inputs, outputs, sweeps, kin.world_origin, finish, **_on_frame(tree, frames))


def jacobian(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    m = tree.model
    sweeps = (Sweep(BASE_TO_TIP, kin.world_pose), Sweep(TIP_TO_BASE, kin.jacobian_columns(axes == "world")))
    outputs = (Argument("J", (6, m.nv), "v"),)
    return Program("jacobian", (q(m),), outputs, sweeps, kin.world_origin, **_on_frame(tree, frames))


def _energies(kinetic: bool, potential: bool) -> Callable:
    def program(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
        m = tree.model
        outward = (Sweep(BASE_TO_TIP, kin.kinetic),) if kinetic else ()
        inward = [step for step, on in ((kin.sum_energy, kinetic), (kin.sum_moments, potential)) if on]

        def finish(site: Site) -> None:
            total = site.children["energy"][0] if kinetic else 0.0
            for g, x in zip(m.gravity_vector.tolist(), site.children["moment"] if potential else (), strict=False):
                total = total - g * x
            site.write("E", 0, [total])

        sweeps = (*outward, Sweep(TIP_TO_BASE, kin.both(*inward)))
        inputs = (q(m), joint("v", m)) if kinetic else (q(m),)
        return Program("energy", inputs, (Argument("E", ()),), sweeps, kin.world_origin, finish)

    return program


def center_of_mass(tree: Tree, frames: tuple[str, ...], axes: str) -> Program:
    def finish(site: Site) -> None:
        site.write("c", 0, [x / site.children["mass"][0] for x in site.children["moment"]])

    outputs = (Argument("c", (3,)),)
    sweeps = (Sweep(TIP_TO_BASE, kin.sum_moments),)
    return Program("center_of_mass", (q(tree.model),), outputs, sweeps, finish=finish)


CATALOGUE: dict[str, Quantity] = {
    "forward_dynamics": Quantity("a = M^-1 (tau - C v - g + J* f_ext)", forward_dynamics),
    "inverse_dynamics": Quantity("tau = M a + C v + g - J* f_ext", _rates("inverse_dynamics", ("v", "a"))),
    "bias": Quantity("C v + g", _rates("bias", ("v",))),
    "gravity": Quantity("g(q) = H phi M phi* E g", _rates("gravity", ())),
    "mass_matrix": Quantity(
        "M = H phi M phi* H*", _matrix("mass_matrix", ("M",), Sweep(TIP_TO_BASE, mat.composite)), columns="mass_product"
    ),
    "mass_matrix_inverse": Quantity(
        "M^-1 = (I - H psi K)* D^-1 (I - H psi K)",
        _matrix(
            "mass_matrix_inverse", ("M_inv",), Sweep(TIP_TO_BASE, mat.climb_with_psi), Sweep(BASE_TO_TIP, mat.inverse_rows)
        ),
        columns="mass_solve",
    ),
    "mass_matrix_factors": Quantity(
        "M = L D L*, L = I + H phi K",
        _matrix("mass_matrix_factors", ("L", "D"), Sweep(TIP_TO_BASE, mat.innovations_factor)),
        columns="factor_product",
    ),
    "mass_product": Quantity("M a", mass_product),
    "mass_solve": Quantity("M^-1 tau = (I - H psi K)* D^-1 (I - H psi K) tau", mass_solve),
    "factor_product": Quantity("(I + H phi K) x, D x", factor_product),
    "frame_pose": Quantity("T(q): world <- frame", frame_pose),
    "frame_velocity": Quantity("V = B* phi* H* v", frame_velocity),
    "jacobian": Quantity("J = B* phi* H*", jacobian),
    "energy": Quantity("v* M v / 2 - sum m g.c", _energies(True, True), rods=False),
    "kinetic_energy": Quantity("v* M v / 2", _energies(True, False), rods=False),
    "potential_energy": Quantity("- sum m g.c", _energies(False, True), rods=False),
    "center_of_mass": Quantity("c = sum m c / sum m", center_of_mass, rods=False),
}
