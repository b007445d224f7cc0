"""Uniform beams by Euler and Bernoulli: along x from the root, bending in y and z, twisting and stretching if asked.

    cantilever modes   φ = cosh - cos - σ (sinh - sin) of βx,  cosh βL cos βL = -1,  ω² = EI/(ρA) β⁴      tip="free"
    Craig-Bampton      cubics of a unit deflection and a unit slope of the tip, and modes of a beam
                       clamped at both ends, cosh βL cos βL = 1                                           tip="loaded"
    twist, stretch     sin((2 j - 1) π x / 2 L); with a loaded tip x / L first, then sin(j π x / L)

Mass is lumped at the points of Gauss' rule, whose sums are the integrals of the shapes to many digits; fewer points, with the
same sums, stand for them (`lumped_masses.py`) where no section twists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag, one_of, real, whole
from psiphi.model.flexible.flexible_body import FlexibleBody
from psiphi.model.flexible.modal_checks import known

MATERIALS = {  # Young's modulus, shear modulus, density
    "steel": dict(E=210e9, G=81e9, density=7850.0),
    "aluminium": dict(E=70e9, G=26e9, density=2700.0),
    "titanium": dict(E=114e9, G=43e9, density=4430.0),
    "carbon": dict(E=120e9, G=5e9, density=1600.0),
}
SEEN = 8  # places that pictures show
SECTION = ("area", "Iy", "Iz", "J")
ModeCurve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]  # x -> φ, φ', φ''


class Beam(FlexibleBody):
    """A uniform beam, clamped at its root, along x: `modes` shapes in each plane, and a node "tip" that others may hang on.

    `section` is (width in y, height in z) of a rectangle, one number for the diameter of a round rod, or its numbers
    {"area", "Iy", "Iz", "J"} (Iz is that of bending in y). `material` is "steel", "aluminium", "titanium" or "carbon", or
    {"E", "density", "G"}. `planes` are those it bends in, `torsion` and `axial` numbers of shapes of twist and stretch.
    `tip="loaded"` has shapes for a tip that carries something, "free" the exact modes of a beam that carries nothing.
    `damping` is a ratio, one or one a mode. A beam draws in as it bends: one that is spun gets stiffer, one that is pushed
    softer; `stiffening=False` leaves that out, at less than half the operations.

    >>> beam = Beam(1.0, (0.05, 0.01), "aluminium", modes=2, tip="free")
    >>> (beam.frequencies / (2 * np.pi)).round(2), round(beam.mass, 3)
    (array([  8.23,  41.13,  51.55, 257.73]), 1.35)
    """

    def __init__(
        self,
        length: float,
        section: Any,
        material: Any,
        modes: int = 3,
        *,
        planes: str = "yz",
        torsion: int = 0,
        axial: int = 0,
        tip: str = "loaded",
        damping: Numbers = 0.0,
        stiffening: bool = True,
    ):
        L = _above("length", length)
        area, Iy, Iz, J = _section(section)
        E, G, density = _material(material)
        count, twists, pulls = (
            _count("modes", modes),
            _count("torsion", torsion),
            _count("axial", axial),
        )
        one_of(
            "planes", planes, ("y", "z", "yz", ""), "name the directions it bends in", ModelError
        )
        one_of("tip", tip, ("loaded", "free"), kind=ModelError)
        bending = _bending(L, count, tip == "loaded") if planes else []
        twisting, pulling = (_stretching(L, n, tip == "loaded") for n in (twists, pulls))
        rows: list[tuple[str, ModeCurve]] = [
            (plane, shape) for plane in planes for shape in bending
        ]
        rows += [("t", shape) for shape in twisting] + [("x", shape) for shape in pulling]
        if not rows:
            raise ModelError("there are no shapes", "give modes=1 or more, and planes")
        x, weight = _gauss(
            L, 5 + 2 * max(count, twists, pulls) if twists else 24 + 2 * max(count, pulls)
        )
        firm = {"y": E * Iz, "z": E * Iy, "t": G * J, "x": E * area}
        middles = (np.arange(SEEN) + 0.5) * L / SEEN
        places, few = (
            np.concatenate([x, middles, [L]]),
            len(x),
        )  # masses, what pictures show, the tip
        U, T = _at_places(rows, places, turns=False), _at_places(rows, places, turns=True)
        T[:few] *= np.array(
            [kind == "t" for kind, _ in rows]
        )  # the section's own inertia: it twists, and else stays as the root
        rotary = np.zeros((len(places), 3, 3))
        rotary[:few] = density * weight[:, None, None] * np.diag([Iy + Iz, Iy, Iz])
        nodes = np.stack([places, 0.0 * places, 0.0 * places], axis=1)
        super().__init__(
            nodes,
            np.concatenate([density * area * weight, np.zeros(SEEN + 1)]),
            U,
            _stiffness(rows, L, firm),
            interface={"tip": few + SEEN},
            turns=T,
            rotary=rotary,
            shortening=_shortening(rows, places) if flag("stiffening", stiffening) else None,
            damping=damping,
            drawn=np.arange(few, few + SEEN),
        )


def _at_places(rows: list[tuple[str, ModeCurve]], x: np.ndarray, turns: bool) -> np.ndarray:
    """U or Θ (N, 3, n): a beam that bends in y turns about z, one that bends in z about -y."""
    out = np.zeros((len(x), 3, len(rows)))
    for j, (kind, shape) in enumerate(rows):
        value, slope, _ = shape(x)
        if turns:
            axis, turned = {"y": (2, slope), "z": (1, -slope), "t": (0, value), "x": (0, 0.0)}[kind]
            out[:, axis, j] = turned
        elif kind != "t":
            out[:, "xyz".index(kind), j] = value
    return out


def _stiffness(rows: list[tuple[str, ModeCurve]], L: float, firm: dict[str, float]) -> np.ndarray:
    """∫ EI φ_i'' φ_j'' of bending, ∫ GJ φ_i' φ_j' of twist, ∫ EA φ_i' φ_j' of stretch."""
    x, weight = _gauss(L, 24 + 2 * len(rows))
    strain = [shape(x)[2 if kind in "yz" else 1] for kind, shape in rows]
    return np.array(
        [
            [
                firm[a] * float(weight @ (s * t)) if a == b else 0.0
                for (b, _), t in zip(rows, strain, strict=True)
            ]
            for (a, _), s in zip(rows, strain, strict=True)
        ]
    )


def _shortening(rows: list[tuple[str, ModeCurve]], places: np.ndarray) -> np.ndarray:
    """Q_x,ij(x) = -∫₀ˣ φ_i' φ_j': a beam that bends keeps its length."""
    n = len(rows)
    out = np.zeros((len(places), 3, n, n))
    for k, end in enumerate(places):
        x, weight = _gauss(float(end), 24 + 2 * n)
        slopes = [shape(x)[1] if kind in "yz" else None for kind, shape in rows]
        for i, (a, s) in enumerate(zip(rows, slopes, strict=True)):
            for j, (b, t) in enumerate(zip(rows, slopes, strict=True)):
                if s is not None and t is not None and a[0] == b[0]:
                    out[k, 0, i, j] = -float(weight @ (s * t))
    return out


def _bending(L: float, count: int, loaded: bool) -> list[ModeCurve]:
    if not loaded:
        return [_vibrating(L, beta, -1.0) for beta in _roots(count, -1.0)]
    cubics: list[ModeCurve] = [
        lambda x: (
            3 * (x / L) ** 2 - 2 * (x / L) ** 3,
            (6 * x / L - 6 * (x / L) ** 2) / L,
            (6 - 12 * x / L) / L**2,
        ),
        lambda x: (x**3 / L**2 - x**2 / L, 3 * (x / L) ** 2 - 2 * x / L, (6 * x / L - 2) / L),
    ]
    return cubics[:count] + [_vibrating(L, beta, 1.0) for beta in _roots(count - 2, 1.0)]


def _roots(count: int, sign: float) -> list[float]:
    """βL with cosh βL cos βL = sign: by Newton's method on cos - sign / cosh, from where cosine is zero."""
    found = []
    for j in range(count):
        y = (j + 0.5) * np.pi if sign < 0.0 else (j + 1.5) * np.pi
        for _ in range(20):
            y -= (np.cos(y) - sign / np.cosh(y)) / (
                -np.sin(y) + sign * np.sinh(y) / np.cosh(y) ** 2
            )
        found.append(float(y))
    return found


def _vibrating(L: float, beta: float, sign: float) -> ModeCurve:
    """cosh - cos - σ (sinh - sin), with exponentials that do not grow: cosh - σ sinh = e⁻ʸ + (1 - σ) sinh."""
    c, s, ch, sh = np.cos(beta), np.sin(beta), np.cosh(beta), np.sinh(beta)
    sigma = (ch + c) / (sh + s) if sign < 0.0 else (ch - c) / (sh - s)
    rest = (
        (s - c - np.exp(-beta)) / (sh + s) if sign < 0.0 else (c - s - np.exp(-beta)) / (sh - s)
    )  # 1 - σ

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


def _stretching(L: float, count: int, loaded: bool) -> list[ModeCurve]:
    line: ModeCurve = lambda x: (x / L, np.full_like(x, 1.0 / L), np.zeros_like(x))  # noqa: E731
    waves = [j * np.pi / L if loaded else (j - 0.5) * np.pi / L for j in range(1, count + 1)]
    sines = [
        (lambda x, b=b: (np.sin(b * x), b * np.cos(b * x), -b * b * np.sin(b * x))) for b in waves
    ]
    return [line, *sines[: count - 1]] if loaded and count else sines


def _gauss(L: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    x, weight = np.polynomial.legendre.leggauss(count)
    return 0.5 * L * (x + 1.0), 0.5 * L * weight


def _above(what: str, value: Any) -> float:
    x = real(what, value, (), "give a number")
    if x.shape != () or not 0.0 < x < 1e50:
        raise ModelError(
            f"{what} is {shown(value)}, expected a finite number above 0", "correct it"
        )
    return float(x)


def _count(what: str, value: Any) -> int:
    n = whole(what, value)
    if not 0 <= n <= 40:
        raise ModelError(f"{what} is {n}, expected 0 to 40", "a few shapes are enough")
    return n


def _section(given: Any) -> tuple[float, float, float, float]:
    """Area, Iy, Iz, J."""
    if isinstance(given, Mapping):
        known("section", given, SECTION, SECTION)
        area, Iy, Iz, J = (_above(name, given[name]) for name in SECTION)
        return area, Iy, Iz, J
    size = real(
        "section", given, (), "give (width, height), a diameter, or area, Iy, Iz, J by name"
    )
    if size.shape == ():
        d = _above("section", given)
        I = np.pi * d**4 / 64.0
        return np.pi * d * d / 4.0, I, I, 2.0 * I
    if size.shape != (2,):
        raise ModelError(
            f"section is {shown(given)}, expected (width, height) or a diameter", "give one of them"
        )
    w, h = (_above("section", x) for x in size)
    return w * h, w * h**3 / 12.0, h * w**3 / 12.0, _twisted(max(w, h), min(w, h))


def _twisted(a: float, b: float) -> float:
    """J of a rectangle, Saint-Venant's series: a b³ (1/3 - 64/π⁵ b/a Σ tanh(k π a / 2 b) / k⁵), k odd."""
    k = np.arange(1, 40, 2)
    series = np.tanh(k * np.pi * a / (2.0 * b)) / k**5
    return float(a * b**3 * (1.0 / 3.0 - 64.0 / np.pi**5 * (b / a) * series.sum()))


def _material(given: Any) -> tuple[float, float, float]:
    """E, G, density."""
    if isinstance(given, str):
        if given not in MATERIALS:
            raise ModelError(f"no material {shown(given)}", nearest(given, MATERIALS))
        given = MATERIALS[given]
    if not isinstance(given, Mapping):
        raise ModelError(
            f"material is {shown(given)}, expected a name or numbers",
            'give {"E": 70e9, "density": 2700}',
        )
    known("material", given, ("E", "G", "density"), ("E", "density"))
    E, density = _above("E", given["E"]), _above("density", given["density"])
    return E, _above("G", given["G"]) if "G" in given else E / 2.6, density
