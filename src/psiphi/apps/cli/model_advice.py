"""What would be slow, wrong or surprising about a robot: each line a fact and what follows from it."""

from __future__ import annotations

from psiphi._util.text import first_names

WRITTEN_OUT = 64  # bodies up to which a robot's code is straight-line
STIFF = 1e6  # ratio of the largest to the smallest mass or inertia a joint feels


def advice(robot) -> list[str]:
    """One line for each thing to know before computing with this robot."""
    out = [*_size(robot), *_masses(robot), *_limits(robot), *_kept(robot), *_looks(robot)]
    if any(joint.kind in ("free", "spherical") for joint in robot.joints):
        out.append(
            f"q has quaternions (x, y, z, w): nq = {robot.nq}, nv = {robot.nv}; use robot.integrate and robot.difference"
        )
    return out


def _size(robot) -> list[str]:
    n = len(robot.bodies)
    if n > WRITTEN_OUT:
        return [
            f"{n} bodies: functions run as loops over classes of links, and full matrices take nv = {robot.nv} sweeps each"
        ]
    return [
        f"{n} bodies: the first call of a function compiles for some seconds; later processes take it from the cache"
    ] * (n > 25)


def _masses(robot) -> list[str]:
    out = []
    light = [body.name for body in robot.bodies if body.mass == 0.0]
    if light:
        out.append(f"without mass: {first_names(light)}; fine as long as what they carry has some")
    heavy = [body.mass for body in robot.bodies if body.mass > 0.0]
    if heavy and max(heavy) / min(heavy) > STIFF:
        out.append(
            f"masses from {min(heavy):.2g} to {max(heavy):.2g} kg: expect lost digits and small time steps"
        )
    return out


def _limits(robot) -> list[str]:
    out = []
    beyond = [
        j.name for j in robot.joints if len(j.lower) == 1 and not j.lower[0] <= 0.0 <= j.upper[0]
    ]
    if beyond:
        out.append(f"q = 0 is outside the limits of {first_names(beyond)}")
    backward = [
        j.name
        for j in robot.joints
        if any(low > high for low, high in zip(j.lower, j.upper, strict=True))
    ]
    if backward:
        out.append(f"lower limit above the upper one: {first_names(backward)}")
    return out


def _kept(robot) -> list[str]:
    """What the description has and the plain functions leave out."""
    out = []
    mimic = [joint.name for joint in robot.joints if getattr(joint, "mimic", None) is not None]
    if mimic:
        out.append(
            f"mimic joints move freely unless pp.connect(robot, mimic=True) couples them: {first_names(mimic)}"
        )
    for acts, words in (
        ("damping", ["damping"]),
        ("friction", ["friction"]),
        ("springs", ["stiffness", "spring"]),
    ):
        own = [
            joint.name
            for joint in robot.joints
            if any(_there(getattr(joint, word, ())) for word in words)
        ]
        if own:
            out.append(
                f"{acts} act{'' if acts == 'springs' else 's'} only in simulate with {acts}=True (--{acts}): {first_names(own)}"
            )
    rotors = [joint.name for joint in robot.joints if any(getattr(joint, "armature", ()))]
    if rotors:
        out.append(f"rotor inertia is part of the mass matrix: {first_names(rotors)}")
    return out


def _there(numbers) -> bool:
    """Whether any is not zero; of a spring that is not linear, whether there is one."""
    return numbers is not None and any(map(bool, numbers))


def _looks(robot) -> list[str]:
    from psiphi.apps.viewer.geometry.urdf_visuals import absent

    shapes = getattr(robot, "shapes", ())
    gone = absent(shapes)
    if gone:
        return [
            f"viewers draw simple shapes for mesh files that are missing or not STL, OBJ, COLLADA: {first_names(gone)}"
        ]
    return [] if shapes else ["no shapes: viewers draw it from its kinematics"]
