"""How fast a point leaves the plane it strikes: Newton's law, c⁺ = -e c⁻ along the normal, with the contact's restitution e.

Together with Coulomb's law this may give energy, where much friction turns a blow that is far from the centre of mass: such
blows are refused. A bounce that gravity, or whatever presses, would end within two steps is none: there the contact is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError

GAINED = 1e-9  # of the energy of the blow: more is no rounding


def rebound_speeds(
    rows: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray, new: list[int], dt: float
) -> dict[int, float]:
    """The speeds (m/s) with which those of the contacts `new` leave that bounce."""
    if not any(rows.sides[i].restitution for i in new):
        return {}
    pressed, rates, found = rows.terms(q, v, tau)[2], rows.rates(q, v), {}
    for i in new:
        normal = rows.own(i)[0]
        speed = -rows.sides[i].restitution * float(rates[normal])
        if speed > max(-float(pressed[normal]), 0.0) * dt:
            found[i] = speed
    return found


def check_energy(before: np.ndarray, after: np.ndarray, impulses: np.ndarray) -> None:
    """Refuse a blow that gives energy: λ* (c⁻ + c⁺) / 2."""
    gained, size = (
        float(impulses @ (before + after)) / 2.0,
        float(np.abs(impulses) @ (np.abs(before) + np.abs(after))),
    )
    if gained > GAINED * size:
        raise StateError(
            f"Newton's law of restitution would give {gained:.3g} J where contacts are made, with this friction",
            "less friction or restitution there",
        )
