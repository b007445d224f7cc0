"""Newton's law of restitution: c+ = -e c- along the normal of a contact that is made.

Together with Coulomb's law it may increase the energy, if large friction deflects an impact far
from the centre of mass; such impacts raise an error. If the force that presses on the contact
(gravity, for example) would end the bounce within two steps, there is no bounce: the contact is
made.
"""

from __future__ import annotations

import numpy as np

from psiphi._util.errors import StateError
from psiphi.simulation.contact.contact_rows import Contacts

ENERGY_TOLERANCE = 1e-9  # of the energy of the impact


def rebound_speeds(
    rows: Contacts, q: np.ndarray, v: np.ndarray, tau: np.ndarray, new: list[int], dt: float
) -> dict[int, float]:
    """{contact: speed (m/s) after the impact} of those of the contacts `new` that bounce."""
    if not any(rows.frictions[i].restitution for i in new):
        return {}
    accelerations, rates, found = rows.terms(q, v, tau)[2], rows.velocity_errors(q, v), {}
    for i in new:
        normal = rows.rows_of(i)[0]
        speed = -rows.frictions[i].restitution * float(rates[normal])
        if speed > max(-float(accelerations[normal]), 0.0) * dt:
            found[i] = speed
    return found


def check_energy(before: np.ndarray, after: np.ndarray, impulses: np.ndarray) -> None:
    """Raise an error if an impact increases the energy: lambda* (c- + c+) / 2."""
    gained = float(impulses @ (before + after)) / 2.0
    size = float(np.abs(impulses) @ (np.abs(before) + np.abs(after)))
    if gained > ENERGY_TOLERANCE * size:
        raise StateError(
            f"Newton's law of restitution would add {gained:.3g} J where contacts are made, with "
            "this friction",
            "give less friction or restitution there",
        )
