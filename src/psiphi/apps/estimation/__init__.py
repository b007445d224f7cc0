"""The estimation side of the algebra: the same sweeps as a Kalman filter and Bryson-Frazier smoother.

In: a linear Gaussian chain or tree, or a robot at a state. Out: predicted, filtered and smoothed states with their
covariances. Read `linear_gaussian_tree.py` first.

    linear_gaussian_tree.py  what a model is
    smoother_equations.py    the operator expressions, which are those of forward dynamics
    filter_covariances.py    what is known before there are data, and which models are refused
    smoother_covariances.py  what is left unknown after the data
    smoother.py              `Smoother`, which runs it all
    robot_as_filter.py       a robot as an estimation problem
    stage_links.py           what the sweeps see of a tree
    stage_compilation.py     the sweeps as compiled code
    two_port.py              sub-chains as they are seen from their ends
"""

from typing import Any

from psiphi._util.deprecation import renamed_attribute
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.robot_as_filter import RobotFilterModel, of
from psiphi.apps.estimation.smoother import Estimate, Smoother
from psiphi.apps.estimation.two_port import TwoPort, two_ports

__all__ = [
    "RobotFilterModel",
    "Estimate",
    "LinearTree",
    "Smoother",
    "Stage",
    "TwoPort",
    "of",
    "sequence",
    "two_ports",
]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, "psiphi.estimation", name, {"Analogue": "RobotFilterModel"})
