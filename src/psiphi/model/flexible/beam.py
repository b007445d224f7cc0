"""Uniform Euler-Bernoulli beams along x, with bending in y and z, torsion and extension.

    tip="free"     cantilever modes: φ = cosh - cos - σ (sinh - sin) of βx, cosh βL cos βL = -1,
                   ω² = EI/(ρA) β⁴; torsion and extension: sin((2 j - 1) π x / 2 L)
    tip="loaded"   Craig-Bampton shapes: cubics for unit deflection and unit slope of the tip, then
                   modes clamped at both ends, cosh βL cos βL = 1; torsion and extension: x / L,
                   then sin(j π x / L)

The mass is lumped at Gauss points, whose sums equal the integrals of the shapes to many digits.
Without torsion, a smaller set of points with the same sums replaces them (`lumped_masses.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag, one_of, real_array, whole_number
from psiphi.model.flexible.flexible_body import FlexibleBody
from psiphi.model.flexible.modal_checks import check_names

MATERIALS = {  # Young's modulus, shear modulus, density in SI units
    "steel": dict(E=210e9, G=81e9, density=7850.0),
    "aluminium": dict(E=70e9, G=26e9, density=2700.0),
    "titanium": dict(E=114e9, G=43e9, density=4430.0),
    "carbon": dict(E=120e9, G=5e9, density=1600.0),
}
DRAWN_POINTS = 8  # nodes that pictures show
SECTION = ("area", "Iy", "Iz", "J")
ModeCurve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]  # x -> φ, φ', φ''


class Beam(FlexibleBody):
    """A uniform beam along x, clamped at its root, with `modes` shapes per plane and a node "tip".

    `section` is (width in y, height in z) of a rectangle, one number for the diameter of a round
    rod, or the properties {"area", "Iy", "Iz", "J"} (Iz is for bending in y). `material` is
    "steel", "aluminium", "titanium", "carbon" or {"E", "density", "G"}. `planes` are the planes of
    bending; `torsion` and `axial` are numbers of shapes. Use `tip="loaded"` if other links are
    attached to the tip; "free" has the exact modes of a beam without load. `damping` is a damping
    ratio, one for all modes or one per mode. A beam shortens as it bends, so rotation stiffens it
    and axial compression softens it; `stiffening=False` neglects this and needs less than half the
    operations.

    >>> beam = Beam(1.0, (0.05, 0.01), "aluminium", modes=2, tip="free")
    >>> (beam.frequencies / (2 * np.pi)).round(2), round(beam.mass, 3)
    (array([  8.23,  41.13,  51.55, 257.73]), 1.35)
    """

    def __init__(
        self,
        length: float,
        section: Numbers | Mapping[str, float],
        material: str | Mapping[str, float],
        modes: int = 3,
        *,
        planes: str = "yz",
        torsion: int = 0,
        axial: int = 0,
        tip: str = "loaded",
        damping: Numbers = 0.0,
        stiffening: bool = True,
    ):
        L = _positive_number("length", length)
        area, Iy, Iz, J = _section_properties(section)
        E, G, density = _material_properties(material)
        count, twists, pulls = (
            _count("modes", modes),
            _count("torsion", torsion),
            _count("axial", axial),
        )
        one_of("planes", planes, ("y", "z", "yz", ""), "name the planes of bending", ModelError)
        one_of("tip", tip, ("loaded", "free"), kind=ModelError)
        bending = _bending_shapes(L, count, tip == "loaded") if planes else []
        twisting, pulling = (_axial_shapes(L, n, tip == "loaded") for n in (twists, pulls))
        rows: list[tuple[str, ModeCurve]] = [
            (plane, shape) for plane in planes for shape in bending
        ]
        rows += [("t", shape) for shape in twisting] + [("x", shape) for shape in pulling]
        if not rows:
            raise ModelError("there are no shapes", "give modes=1 or more, and planes")
        x, weight = _gauss(
            L, 5 + 2 * max(count, twists, pulls) if twists else 24 + 2 * max(count, pulls)
        )
        rigidity = {"y": E * Iz, "z": E * Iy, "t": G * J, "x": E * area}
        drawn = (np.arange(DRAWN_POINTS) + 0.5) * L / DRAWN_POINTS
        stations, count_of_masses = np.concatenate([x, drawn, [L]]), len(x)
        U, T = _shape_values(rows, stations, turns=False), _shape_values(rows, stations, turns=True)
        # The sections rotate only in torsion; their rotation in bending is neglected.
        T[:count_of_masses] *= np.array([kind == "t" for kind, _ in rows])
        rotary = np.zeros((len(stations), 3, 3))
        rotary[:count_of_masses] = density * weight[:, None, None] * np.diag([Iy + Iz, Iy, Iz])
        nodes = np.stack([stations, 0.0 * stations, 0.0 * stations], axis=1)
        super().__init__(
            nodes,
            np.concatenate([density * area * weight, np.zeros(DRAWN_POINTS + 1)]),
            U,
            _stiffness(rows, L, rigidity),
            interface={"tip": count_of_masses + DRAWN_POINTS},
            turns=T,
            rotary=rotary,
            shortening=_shortening(rows, stations) if flag("stiffening", stiffening) else None,
            damping=damping,
            drawn=count_of_masses + np.arange(DRAWN_POINTS),
        )


def _shape_values(rows: list[tuple[str, ModeCurve]], x: np.ndarray, turns: bool) -> np.ndarray:
    """U or Θ (N, 3, n): bending in y rotates about z, bending in z about -y."""
    out = np.zeros((len(x), 3, len(rows)))
    for j, (kind, shape) in enumerate(rows):
        value, slope, _ = shape(x)
        if turns:
            axis, angle = {"y": (2, slope), "z": (1, -slope), "t": (0, value), "x": (0, 0.0)}[kind]
            out[:, axis, j] = angle
        elif kind != "t":
            out[:, "xyz".index(kind), j] = value
    return out


def _stiffness(
    rows: list[tuple[str, ModeCurve]], L: float, rigidity: dict[str, float]
) -> np.ndarray:
    """∫ EI φ_i'' φ_j'' for bending, ∫ GJ φ_i' φ_j' for torsion, ∫ EA φ_i' φ_j' for extension."""
    x, weight = _gauss(L, 24 + 2 * len(rows))
    strain = [shape(x)[2 if kind in "yz" else 1] for kind, shape in rows]
    return np.array(
        [
            [
                rigidity[a] * float(weight @ (s * t)) if a == b else 0.0
                for (b, _), t in zip(rows, strain, strict=True)
            ]
            for (a, _), s in zip(rows, strain, strict=True)
        ]
    )


def _shortening(rows: list[tuple[str, ModeCurve]], stations: np.ndarray) -> np.ndarray:
    """Q_x,ij(x) = -∫₀ˣ φ_i' φ_j': bending does not change the arc length."""
    n = len(rows)
    out = np.zeros((len(stations), 3, n, n))
    for k, end in enumerate(stations):
        x, weight = _gauss(float(end), 24 + 2 * n)
        slopes = [shape(x)[1] if kind in "yz" else None for kind, shape in rows]
        for i, (a, s) in enumerate(zip(rows, slopes, strict=True)):
            for j, (b, t) in enumerate(zip(rows, slopes, strict=True)):
                if s is not None and t is not None and a[0] == b[0]:
                    out[k, 0, i, j] = -float(weight @ (s * t))
    return out


def _bending_shapes(L: float, count: int, loaded: bool) -> list[ModeCurve]:
    if not loaded:
        return [_vibration_mode(L, beta, -1.0) for beta in _frequency_roots(count, -1.0)]
    cubics: list[ModeCurve] = [
        lambda x: (
            3 * (x / L) ** 2 - 2 * (x / L) ** 3,
            (6 * x / L - 6 * (x / L) ** 2) / L,
            (6 - 12 * x / L) / L**2,
        ),
        lambda x: (x**3 / L**2 - x**2 / L, 3 * (x / L) ** 2 - 2 * x / L, (6 * x / L - 2) / L),
    ]
    return cubics[:count] + [
        _vibration_mode(L, beta, 1.0) for beta in _frequency_roots(count - 2, 1.0)
    ]


def _frequency_roots(count: int, sign: float) -> list[float]:
    """The first roots βL of cosh βL cos βL = sign, by Newton's method from the zeros of cos βL."""
    found = []
    for j in range(count):
        y = (j + 0.5) * np.pi if sign < 0.0 else (j + 1.5) * np.pi
        for _ in range(20):
            y -= (np.cos(y) - sign / np.cosh(y)) / (
                -np.sin(y) + sign * np.sinh(y) / np.cosh(y) ** 2
            )
        found.append(float(y))
    return found


def _vibration_mode(L: float, beta: float, sign: float) -> ModeCurve:
    """cosh - cos - σ (sinh - sin), evaluated without growing exponentials.

    cosh - σ sinh = e⁻ʸ + (1 - σ) sinh.
    """
    c, s, ch, sh = np.cos(beta), np.sin(beta), np.cosh(beta), np.sinh(beta)
    sigma = (ch + c) / (sh + s) if sign < 0.0 else (ch - c) / (sh - s)
    decay = np.exp(-beta)
    rest = (s - c - decay) / (sh + s) if sign < 0.0 else (c - s - decay) / (sh - s)  # 1 - σ

    def shape(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y, b = beta * x / L, beta / L
        even = np.exp(-y) + rest * np.sinh(y)  # cosh - σ sinh
        odd = rest * np.cosh(y) - np.exp(-y)  # sinh - σ cosh
        return (
            even - np.cos(y) + sigma * np.sin(y),
            b * (odd + np.sin(y) + sigma * np.cos(y)),
            b * b * (even + np.cos(y) - sigma * np.sin(y)),
        )

    return shape


def _axial_shapes(L: float, count: int, loaded: bool) -> list[ModeCurve]:
    line: ModeCurve = lambda x: (x / L, np.full_like(x, 1.0 / L), np.zeros_like(x))  # noqa: E731
    waves = [j * np.pi / L if loaded else (j - 0.5) * np.pi / L for j in range(1, count + 1)]
    sines = [
        (lambda x, b=b: (np.sin(b * x), b * np.cos(b * x), -b * b * np.sin(b * x))) for b in waves
    ]
    return [line, *sines[: count - 1]] if loaded and count else sines


def _gauss(L: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    x, weight = np.polynomial.legendre.leggauss(count)
    return 0.5 * L * (x + 1.0), 0.5 * L * weight


def _positive_number(what: str, value: Numbers) -> float:
    x = real_array(what, value, (), "give a number")
    if x.shape != () or not 0.0 < x < 1e50:
        raise ModelError(
            f"{what} is {shown(value)}, expected a finite number above 0", "give a positive number"
        )
    return float(x)


def _count(what: str, value: int) -> int:
    n = whole_number(what, value)
    if not 0 <= n <= 40:
        raise ModelError(f"{what} is {n}, expected 0 to 40", "use fewer shapes")
    return n


def _section_properties(value: Numbers | Mapping[str, float]) -> tuple[float, float, float, float]:
    """(area, Iy, Iz, J) of a section."""
    if isinstance(value, Mapping):
        check_names("section", value, SECTION, SECTION)
        area, Iy, Iz, J = (_positive_number(name, value[name]) for name in SECTION)
        return area, Iy, Iz, J
    size = real_array(
        "section", value, (), "give (width, height), a diameter, or area, Iy, Iz, J by name"
    )
    if size.shape == ():
        d = _positive_number("section", value)
        I = np.pi * d**4 / 64.0
        return np.pi * d * d / 4.0, I, I, 2.0 * I
    if size.shape != (2,):
        raise ModelError(
            f"section is {shown(value)}, expected (width, height) or a diameter", "give one of them"
        )
    w, h = (_positive_number("section", x) for x in size)
    return (
        w * h,
        w * h**3 / 12.0,
        h * w**3 / 12.0,
        _rectangle_torsion_constant(max(w, h), min(w, h)),
    )


def _rectangle_torsion_constant(a: float, b: float) -> float:
    """J of a rectangle: a b³ (1/3 - 64/π⁵ b/a Σ tanh(k π a / 2 b) / k⁵), k odd (Saint-Venant)."""
    k = np.arange(1, 40, 2)
    series = np.tanh(k * np.pi * a / (2.0 * b)) / k**5
    return float(a * b**3 * (1.0 / 3.0 - 64.0 / np.pi**5 * (b / a) * series.sum()))


def _material_properties(value: str | Mapping[str, float]) -> tuple[float, float, float]:
    """(E, G, density) of a material."""
    if isinstance(value, str):
        if value not in MATERIALS:
            raise ModelError(f"no material {shown(value)}", nearest(value, MATERIALS))
        value = MATERIALS[value]
    if not isinstance(value, Mapping):
        raise ModelError(
            f"material is {shown(value)}, expected a name or properties",
            'give {"E": 70e9, "density": 2700}',
        )
    check_names("material", value, ("E", "G", "density"), ("E", "density"))
    E, density = _positive_number("E", value["E"]), _positive_number("density", value["density"])
    return E, _positive_number("G", value["G"]) if "G" in value else E / 2.6, density
