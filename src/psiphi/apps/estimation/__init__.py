"""Kalman filters and Bryson-Frazier smoothers by the sweeps of forward dynamics.

In: a linear Gaussian chain or tree, or a robot at a state. Out: predicted, filtered and smoothed
states with their covariances. Read `linear_gaussian_tree.py` first.

    linear_gaussian_tree.py  the model: stages of a tree, checked
    smoother_equations.py    the operator expressions, which are those of forward dynamics
    filter_covariances.py    covariances and gains, and the check for dependent outputs
    smoother_covariances.py  the smoothed covariances
    smoother.py              `Smoother`: covariances of a model, estimates from data
    robot_as_filter.py       a robot at a state as an estimation problem
    stage_links.py           stages as the links of a tree, for the sweeps
    stage_compilation.py     the sweeps, compiled or interpreted
    fast_gains.py            gains without covariances, for constant coefficients
    two_port.py              sub-chains of a robot as two-ports
    held_riccati.py          dynamics with the Riccati solution of an earlier configuration
"""

from typing import Any

from psiphi._util.deprecation import renamed_attribute
from psiphi.apps.estimation.fast_gains import FastGains, fast_gains
from psiphi.apps.estimation.held_riccati import HeldRiccati, held_riccati
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.robot_as_filter import RobotFilterModel, of
from psiphi.apps.estimation.smoother import Estimate, Smoother
from psiphi.apps.estimation.two_port import TwoPort, two_ports

__all__ = [
    "RobotFilterModel",
    "Estimate",
    "FastGains",
    "HeldRiccati",
    "LinearTree",
    "Smoother",
    "Stage",
    "TwoPort",
    "fast_gains",
    "held_riccati",
    "of",
    "sequence",
    "two_ports",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, "psiphi.estimation", name, {"Analogue": "RobotFilterModel"})
